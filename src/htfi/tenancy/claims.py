"""What a verified token's claims grant: a tenant, scopes, a person."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from htfi.domain.errors import AccessDenied
from htfi.tenancy.config import IssuerConfig, ServiceConfig
from htfi.tenancy.scopes import ApiScope

_MAX_SUBJECT_CHARS = 120


class UnknownSigningKey(AccessDenied):
    """A token names a key that its issuer's keys have not; they may have changed."""


class Grant(NamedTuple):
    """Who is identified by a token, until it expires (UTC)."""

    tenant: str
    subject: str
    scopes: frozenset[ApiScope]
    person: str
    until_ns: int


def grant_of(claims: Mapping[str, Any], issuer: IssuerConfig, service: ServiceConfig) -> Grant:
    """Raises: AccessDenied where the claims name no tenant of this service, or no scope."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or len(subject) > _MAX_SUBJECT_CHARS:
        raise AccessDenied(f"the token's subject must be a text of 1 to {_MAX_SUBJECT_CHARS} letters")
    named = claims.get(issuer.tenant_claim)
    if not isinstance(named, str):
        raise AccessDenied(f"the token's claim {issuer.tenant_claim!r} names no tenant")
    tenant = issuer.tenants.get(named) if issuer.tenants else named
    if tenant is None or tenant not in service.tenants:
        raise AccessDenied(f"the token's claim {issuer.tenant_claim!r} names no tenant of this service")
    words = _words(claims.get(issuer.scopes_claim))
    granted = [one for word in words for one in (issuer.scopes.get(word, ()) if issuer.scopes else (word,))]
    scopes = frozenset(ApiScope(one) for one in granted if one in set(ApiScope))
    if not scopes:
        raise AccessDenied(f"the token's claim {issuer.scopes_claim!r} names no scope")
    person = claims.get(issuer.person_claim)
    return Grant(
        tenant, subject, scopes, person if isinstance(person, str) else "", int(claims["exp"]) * 10**9
    )


def _words(claim: Any) -> list[str]:
    if isinstance(claim, str):
        return claim.split()
    if isinstance(claim, list):
        return [one for one in claim if isinstance(one, str)]  # pyright: ignore[reportUnknownVariableType]
    return []
