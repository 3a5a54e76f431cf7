"""An issuer of tokens for tests: keys, a JWKS, and tokens good and forged."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://login.example", "htfi"


class TokenIssuer:
    """Signs by RSA (`kid` "r1") and by P-256 ("e1")."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    def jwks(self) -> dict[str, Any]:
        r1 = json.loads(RSAAlgorithm.to_jwk(self.rsa.public_key())) | {"kid": "r1", "use": "sig"}
        e1 = json.loads(ECAlgorithm.to_jwk(self.ec.public_key())) | {"kid": "e1", "alg": "ES256"}
        return {"keys": [r1, e1]}

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        made = {
            "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600,
            "tenant": "acme", "scope": "read ask openid",
        } | changes  # fmt: skip
        return {name: value for name, value in made.items() if value is not None}

    def token(self, kid: str = "r1", headers: dict[str, Any] | None = None, **changes: Any) -> str:
        key, algorithm = (self.rsa, "RS256") if kid != "e1" else (self.ec, "ES256")
        return jwt.encode(self.claims(**changes), key, algorithm, headers={"kid": kid} | (headers or {}))

    def public_pem(self) -> bytes:
        return self.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def forged(self, header: dict[str, Any], secret: bytes = b"", **changes: Any) -> str:
        """With any header, signed by HMAC with a secret, or not at all."""
        head, body = part(header), part(self.claims(**changes))
        signed = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest() if secret else b""
        return f"{head}.{body}.{encoded(signed)}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def part(value: dict[str, Any]) -> str:
    return encoded(json.dumps(value).encode())
