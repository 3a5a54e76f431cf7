"""Whether a request to re-enable counts: signed by a person whom the rules allow it. Pure but for the rules asked."""

from htfi.domain.errors import HtfiError
from htfi.domain.governance import ScopeLevel, parse_scope
from htfi.governance.authorisation import (
    AccessAction,
    AccessRequest,
    AccessResource,
    ResourceKind,
    denial_words,
)
from htfi.governance.checkpoints.answers import AnswerRights
from htfi.governance.control.requests import ReenableRequest
from htfi.governance.people import RequestStatement, identify


def reenable_statement(request: ReenableRequest, log_key: str) -> RequestStatement:
    """What a person signs; `log_key` is the verifier key of the run's ledger, or of the governance folder's log."""
    what = f"scope:{request.scope}" + (f" breaker:{request.breaker}" if request.breaker else "")
    return RequestStatement(AccessAction.REENABLE, what, log_key, request.at_ns, request.why)


def scope_resource(scope: str, tenant: str, desks: tuple[str, ...] = ()) -> AccessResource:
    """A scope of a tenant's run for rules; `desks` are those of the series that it names. Raises: InvalidInput."""
    level, name = parse_scope(scope)
    of_scope = (name,) if level is ScopeLevel.DESK else desks
    return AccessResource(ResourceKind.SCOPE, scope, tenant, of_scope, level.value)


def why_not_reenabled(
    request: ReenableRequest, rights: AnswerRights, desks: tuple[str, ...], now_ns: int
) -> str:
    """Why a request does not count at an instant, UTC; empty where it does. Without a directory all do."""
    if rights.directory is None:
        return ""
    try:
        principal, statement = identify(request.signed, rights.directory, rights.verify)
        if statement.run not in (rights.run, rights.folder) or statement != reenable_statement(
            request, statement.run
        ):
            return "what was signed is not what the request says"
        if principal.id != request.by:
            return f"it is signed by {principal.id}, not by {request.by}"
        tenant = rights.tenant if statement.run == rights.run else ""  # all runs of a folder are of no tenant
        resource = scope_resource(request.scope, tenant, desks)
        decision = rights.authoriser.decide(AccessRequest(principal, AccessAction.REENABLE, resource, now_ns))
    except HtfiError as error:
        return str(error)
    return "" if decision.is_allowed else f"{principal.id} may not: {denial_words(decision, resource)}"
