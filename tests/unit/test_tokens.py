"""Tokens of issuers: the good ones grant what they say, every forgery that is known is refused."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from htfi.domain.errors import AccessDenied, InvalidInput
from htfi.tenancy.claims import UnknownSigningKey
from htfi.tenancy.config import IssuerConfig, ServiceConfig, TenantConfig
from htfi.tenancy.scopes import ApiScope
from htfi.wiring.service.tokens import TokenIssuers
from signed_tokens import AUDIENCE, ISSUER, TokenIssuer, part

ISSUING = TokenIssuer()
NOW = int(time.time())


def issuers_of(folder: Path, **changes: Any) -> TokenIssuers:
    (folder / "jwks.json").write_text(json.dumps(ISSUING.jwks()), encoding="utf-8")
    settings = {"issuer": ISSUER, "audience": AUDIENCE, "keys": "jwks.json"} | changes
    tenants = {"acme": TenantConfig(run="a"), "beta": TenantConfig(run="b")}
    return TokenIssuers(ServiceConfig(tenants, issuers=(IssuerConfig(**settings),)), folder)


@pytest.fixture
def issuers(tmp_path: Path) -> TokenIssuers:
    return issuers_of(tmp_path)


@pytest.mark.parametrize("kid", ["r1", "e1"])
def test_good_token_grants_what_it_says(issuers: TokenIssuers, kid: str) -> None:
    grant = issuers.grant(ISSUING.token(kid))
    assert (grant.tenant, grant.subject, grant.person) == ("acme", "ann", "ann")
    assert grant.scopes == {ApiScope.READ, ApiScope.ASK}
    assert 500 < grant.until_ns / 1e9 - time.time() < 700


def test_claims_are_mapped_to_tenants_and_scopes(tmp_path: Path) -> None:
    issuers = issuers_of(
        tmp_path, tenant_claim="org", tenants={"org-7": "beta"}, scopes_claim="roles",
        scopes={"trader": ("read", "ask")}, person_claim="email",
    )  # fmt: skip
    grant = issuers.grant(ISSUING.token(org="org-7", roles=["trader", "x"], email="ann@acme"))
    assert (grant.tenant, grant.person) == ("beta", "ann@acme")
    assert grant.scopes == {ApiScope.READ, ApiScope.ASK}
    with pytest.raises(AccessDenied, match="no tenant of this service"):
        issuers.grant(ISSUING.token(org="beta", roles=["trader"]))


OTHER = rsa.generate_private_key(65537, 2048)
FORGERIES: dict[str, Callable[[], str]] = {
    "alg none": lambda: ISSUING.forged({"alg": "none", "kid": "r1"}),
    "alg None, another case": lambda: ISSUING.forged({"alg": "nOnE", "kid": "r1"}),
    "HS256 with the public key": lambda: ISSUING.forged({"alg": "HS256", "kid": "r1"}, ISSUING.public_pem()),
    "HS256 with the key's JWK": lambda: ISSUING.forged(
        {"alg": "HS256", "kid": "r1"}, json.dumps(ISSUING.jwks()["keys"][0]).encode()
    ),
    "another's key under the same kid": lambda: jwt.encode(
        ISSUING.claims(), OTHER, "RS256", headers={"kid": "r1"}
    ),
    "ES256 stated, RSA key": lambda: swapped(ISSUING.token(), 0, part({"alg": "ES256", "kid": "r1"})),
    "RSA signature under the EC kid": lambda: jwt.encode(
        ISSUING.claims(), ISSUING.rsa, "RS256", headers={"kid": "e1"}
    ),
    "PS256 is not taken": lambda: jwt.encode(ISSUING.claims(), ISSUING.rsa, "PS256", headers={"kid": "r1"}),
    "wrong audience": lambda: ISSUING.token(aud="other"),
    "no audience": lambda: ISSUING.token(aud=None),
    "wrong issuer": lambda: ISSUING.token(iss="https://evil.example"),
    "no issuer": lambda: ISSUING.token(iss=None),
    "issuer with a slash more": lambda: ISSUING.token(iss=ISSUER + "/"),
    "expired": lambda: ISSUING.token(exp=NOW - 60),
    "without end": lambda: ISSUING.token(exp=None),
    "not yet valid": lambda: ISSUING.token(nbf=NOW + 86_400),
    "without subject": lambda: ISSUING.token(sub=None),
    "subject that is empty": lambda: ISSUING.token(sub=""),
    "kid that is a path": lambda: ISSUING.token(headers={"kid": "../../dev/null"}),
    "kid with SQL": lambda: ISSUING.token(headers={"kid": "x' UNION SELECT 'key"}),
    "jku names where to fetch a key": lambda: ISSUING.token(headers={"jku": "https://evil.example/jwks"}),
    "x5u names where to fetch a key": lambda: ISSUING.token(headers={"x5u": "https://evil.example/c.pem"}),
    "jwk brings its own key": lambda: jwt.encode(
        ISSUING.claims(), OTHER, "RS256", headers={"kid": "r1", "jwk": ISSUING.jwks()["keys"][0]}
    ),
    "crit names an extension": lambda: ISSUING.token(headers={"crit": ["exp"]}),
    "unencoded payload": lambda: ISSUING.token(headers={"b64": False}),
    "changed claims": lambda: swapped(ISSUING.token(), 1, part(ISSUING.claims(tenant="beta"))),
    "signature left out": lambda: swapped(ISSUING.token(), 2, ""),
    "signature cut": lambda: ISSUING.token()[:-4],
    "tenant of nobody": lambda: ISSUING.token(tenant="gamma"),
    "tenant that is a list": lambda: ISSUING.token(tenant=["acme"]),
    "no scope": lambda: ISSUING.token(scope="openid"),
    "no token": lambda: "a.b.c",
    "header that is no JSON": lambda: "e30.e30.e30",
    "too long": lambda: ISSUING.token(pad="x" * 9_000),
}


def swapped(token: str, place: int, text: str) -> str:
    parts = token.split(".")
    parts[place] = text
    return ".".join(parts)


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_token_is_refused_in_one_line(issuers: TokenIssuers, name: str) -> None:
    with pytest.raises(AccessDenied) as refused:
        issuers.grant(FORGERIES[name]())
    assert "\n" not in str(refused.value)


def test_key_that_was_changed_is_found_once_the_file_is_read_again(tmp_path: Path) -> None:
    issuers, newer = issuers_of(tmp_path), TokenIssuer()
    with pytest.raises(UnknownSigningKey):
        issuers.grant(ISSUING.token(headers={"kid": "r2"}))
    keys = newer.jwks()
    keys["keys"][0]["kid"] = "r2"
    (tmp_path / "jwks.json").write_text(json.dumps(keys), encoding="utf-8")
    issuers.refresh(ISSUER)
    token = jwt.encode(ISSUING.claims(), newer.rsa, "RS256", headers={"kid": "r2"})
    assert issuers.grant(token).tenant == "acme"
    with pytest.raises(AccessDenied):
        issuers.grant(ISSUING.token())
    assert not issuers.is_due(ISSUER, is_asked=True)  # at most every half minute, whatever tokens name


@pytest.mark.parametrize("text", ["", "[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "eA"}]}', "\x00"])
def test_keys_that_are_none_change_nothing(tmp_path: Path, text: str) -> None:
    issuers = issuers_of(tmp_path)
    (tmp_path / "jwks.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput):
        issuers.refresh(ISSUER)
    assert issuers.grant(ISSUING.token()).tenant == "acme"


def test_address_of_keys_must_be_https(tmp_path: Path) -> None:
    for address in ("http://login.example/jwks", "file:///etc/passwd", "ftp://login.example/jwks"):
        with pytest.raises(InvalidInput, match="https"):
            issuers_of(tmp_path, keys=address)
    issuers_of(tmp_path, keys="https://login.example/jwks")
