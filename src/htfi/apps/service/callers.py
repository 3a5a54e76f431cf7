"""Who asks: a tenant's caller with scopes, which a request carries from the moment it is identified."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.requests import HTTPConnection

from htfi.domain.errors import AccessDenied


class Scope(StrEnum):
    """What a caller may do on the run of its tenant."""

    READ = "read"  # what the run has recorded, and what stands beside it
    ASK = "ask"  # have something worked out: posted bars, scenarios
    GENERATE = "generate"  # have a language model write or encode
    NEWS = "news"  # hand in news
    ACT = "act"  # stop, re-enable, approve, admit; cancel orders
    ADMIN = "admin"  # tenants, keys, quotas


@dataclass(frozen=True, slots=True)
class Caller:
    """One that was identified. The tenant "" is that of a service without keys."""

    tenant: str
    name: str
    scopes: frozenset[Scope]


LOCAL = Caller("", "local user", frozenset(Scope))


def caller_of(connection: HTTPConnection) -> Caller:
    """Who asks; on a service without keys whoever can reach it."""
    caller: Caller = connection.scope.get("caller", LOCAL)
    return caller


def needs(scope: Scope) -> Callable[[HTTPConnection], None]:
    """A dependency of routes. Raises: AccessDenied where the caller has not the scope."""

    def check(connection: HTTPConnection) -> None:
        caller = caller_of(connection)
        if scope not in caller.scopes:
            raise AccessDenied(f"{caller.name} of tenant {caller.tenant!r} has not the scope {scope!r}")

    return check
