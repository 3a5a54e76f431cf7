"""Which run a request asks about, and whether its caller may: from the transport's request to a served run."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.mcpserver import Context
from starlette.requests import Request

from htfi.domain.errors import AccessDenied, NotFound
from htfi.library.serving.callers import Caller, Scope
from htfi.library.serving.run import ReadableRun
from htfi.library.serving.worker import UsageMeter

RunOf = Callable[[Context, Scope], Awaitable[ReadableRun]]
CALLER_CLAIM = "htfi_caller"


def served_to_callers(runs: Mapping[str, ReadableRun], unidentified: Caller) -> RunOf:
    """Gives the run of the caller's tenant; `unidentified` is who asks where the transport has identified no caller.

    It waits until what had been recorded when the run was opened has been read. What it gives raises: AccessDenied
    without the scope, NotFound where the tenant has no run.
    """

    async def run_of(context: Context, scope: Scope) -> ReadableRun:
        caller = caller_of(context) or unidentified
        if scope not in caller.scopes:
            raise AccessDenied(f"{caller.name} has not the scope {scope.value!r} that this needs")
        if caller.tenant not in runs:
            raise NotFound(f"no run of tenant {caller.tenant!r} is served here")
        run = runs[caller.tenant]
        await run.record.caught_up()
        return run

    return run_of


def caller_of(context: Context) -> Caller | None:
    """Who asks, where the transport has identified somebody: by the SDK's verifier, or by the service around it."""
    request: Any = context.request_context.request
    if not isinstance(request, Request):
        return None
    user = request.scope.get("user")
    if isinstance(user, AuthenticatedUser):
        found = (user.access_token.claims or {}).get(CALLER_CLAIM)
        assert isinstance(found, Caller)
        return found
    caller: Caller | None = request.scope.get("caller")
    return caller


def meter_of(context: Context) -> UsageMeter | None:
    """What counts for the caller, where the service around it does."""
    request: Any = context.request_context.request
    return request.scope.get("meter") if isinstance(request, Request) else None
