"""Verifies the tokens of one issuer by its JWKS (RFC 7517), as RFC 8725 says: the algorithms are the operator's, never
the token's; a key signs with its own algorithm; a token names no key and no address to fetch one from.
"""

from collections.abc import Mapping
from typing import Any

import jwt
import msgspec

from htfi.domain.errors import AccessDenied, InvalidInput
from htfi.tenancy.claims import UnknownSigningKey

MAX_TOKEN_CHARS = 8_192
MAX_JWKS_BYTES = 1 << 20
_MAX_KEYS = 100
_LEEWAY_S = 30
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_FORBIDDEN_HEADERS = ("jku", "jwk", "x5u", "x5c", "crit", "b64", "zip")


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


_JWKS = msgspec.json.Decoder(_KeySet)


class TokenVerifier:
    """By the keys that were given last; safe to use from several threads."""

    def __init__(self, issuer: str, audience: str, algorithms: tuple[str, ...]) -> None:
        self._issuer, self._audience, self._algorithms = issuer, audience, algorithms
        self._keys: Mapping[str, jwt.PyJWK] = {}

    def take_keys(self, jwks: bytes) -> None:
        """Verify by these from now on. Raises: InvalidInput, and goes on with those before."""
        try:
            listed = _JWKS.decode(jwks).keys
        except msgspec.DecodeError:
            raise InvalidInput(
                f"the keys of {self._issuer} are no JWKS: an object with a list `keys`"
            ) from None
        found: dict[str, jwt.PyJWK] = {}
        for one in listed[:_MAX_KEYS]:
            key = self._usable(one)
            if key is not None:
                found[key.key_id or ""] = key
        if not found:
            raise InvalidInput(
                f"the keys of {self._issuer} hold no public key for {', '.join(self._algorithms)}"
            )
        self._keys = found

    def verify(self, text: str) -> Mapping[str, Any]:
        """The claims of a token that holds now. Raises: AccessDenied, UnknownSigningKey."""
        if len(text) > MAX_TOKEN_CHARS:
            raise AccessDenied(f"the token is longer than {MAX_TOKEN_CHARS:,} letters")
        try:
            header = jwt.get_unverified_header(text)
            algorithm, key_id = header.get("alg"), header.get("kid", "")
            if algorithm not in self._algorithms:
                raise AccessDenied("the token is signed by an algorithm that is not taken")
            if any(name in header for name in _FORBIDDEN_HEADERS):
                raise AccessDenied(
                    "the token's header states what no token may: a key, an address or an extension"
                )
            key = self._keys.get(key_id) if isinstance(key_id, str) else None
            if key is None and not key_id and len(self._keys) == 1:
                key = next(iter(self._keys.values()))
            if key is None:
                raise UnknownSigningKey("the token is signed by a key that its issuer does not have")
            if not _fits(algorithm, key.key_type):
                raise AccessDenied("the token's algorithm is not that of its key")
            return jwt.decode(
                text, key.key, algorithms=[algorithm], audience=self._audience, issuer=self._issuer, leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise AccessDenied(
                f"the token does not hold: {str(error)[:100] or type(error).__name__}"
            ) from None

    def _usable(self, listed: dict[str, Any]) -> "jwt.PyJWK | None":
        """A public key for signatures of the algorithms that are taken; None for what is not."""
        kind, stated = listed.get("kty"), listed.get("alg")
        fitting = [one for one in self._algorithms if _fits(one, kind) and stated in (None, one)]
        if not fitting or "d" in listed or listed.get("use", "sig") != "sig":
            return None
        try:
            return jwt.PyJWK(listed, fitting[0])
        except (jwt.PyJWTError, ValueError, TypeError):
            return None


def issuer_of(text: str) -> str:
    """Who a token says has issued it, unverified: only to choose the verifier. Raises: AccessDenied."""
    if len(text) > MAX_TOKEN_CHARS:
        raise AccessDenied(f"the token is longer than {MAX_TOKEN_CHARS:,} letters")
    try:
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError):
        raise AccessDenied("the token is not of a token's form") from None
    issuer = claims.get("iss")
    if not isinstance(issuer, str):
        raise AccessDenied("the token names no issuer")
    return issuer


def _fits(algorithm: Any, kind: Any) -> bool:
    return isinstance(algorithm, str) and _KEY_TYPES.get(algorithm[:2]) == kind
