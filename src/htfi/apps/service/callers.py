"""Who asks: a tenant's caller with scopes, which a request carries from the moment it is identified."""

from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import HTTPConnection

from htfi.domain.errors import AccessDenied
from htfi.library.serving.callers import LOCAL, UNIDENTIFIED, Caller, Scope


class Unidentified(AccessDenied):
    """What a request brings identifies no caller."""

    status = HTTPStatus.UNAUTHORIZED


class TooManyAttempts(AccessDenied):
    """An address has given too many wrong keys."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, why: str, wait_ns: int) -> None:
        super().__init__(why)
        self.wait_ns = wait_ns


def caller_of(connection: HTTPConnection) -> Caller:
    """Who asks; on a service without keys whoever can reach it."""
    caller: Caller | None = connection.scope.get("caller")
    if caller is None:
        return LOCAL if getattr(connection.app.state, "tenants", None) is None else UNIDENTIFIED
    return caller


def needs(scope: Scope) -> Callable[[HTTPConnection], None]:
    """A dependency of routes. Raises: AccessDenied where the caller has not the scope."""

    def check(connection: HTTPConnection) -> None:
        caller = caller_of(connection)
        if scope not in caller.scopes:
            why = f": {caller.refusal}" if caller.refusal else ""
            raise AccessDenied(
                f"{caller.name} of tenant {caller.tenant!r} has not the scope {scope.value!r}{why}"
            )

    return check
