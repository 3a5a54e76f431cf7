"""Who may do what: requests for access, and the port that decides them. Anything but a clean Allow is a deny.

A principal is a person or a node, identified beforehand (`governance.people`); `adapters.cedar` has the rules. Time
comes in with the request.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

from htfi.domain.errors import AccessDenied


class PrincipalKind(StrEnum):
    """Who asks."""

    PERSON = "person"
    NODE = "node"


class AccessAction(StrEnum):
    """What is asked for."""

    RELEASE_NEWS = "release_news"
    END_SUSPICION = "end_suspicion"
    APPROVE = "approve"
    DENY = "deny"
    DELEGATE = "delegate"
    STOP = "stop"
    REENABLE = "reenable"
    SIGN_BUNDLE = "sign_bundle"
    ACTIVATE_BUNDLE = "activate_bundle"
    PROMOTE_MODEL = "promote_model"
    ROLLBACK_MODEL = "rollback_model"
    READ_RECORD = "read_record"


class ResourceKind(StrEnum):
    """What an action is done to."""

    NEWS = "news"
    SUSPICION = "suspicion"
    CHECKPOINT = "checkpoint"
    SCOPE = "scope"
    BUNDLE = "bundle"
    MODEL = "model"
    RECORD = "record"


RESOURCE_OF = {
    AccessAction.RELEASE_NEWS: ResourceKind.NEWS,
    AccessAction.END_SUSPICION: ResourceKind.SUSPICION,
    AccessAction.APPROVE: ResourceKind.CHECKPOINT,
    AccessAction.DENY: ResourceKind.CHECKPOINT,
    AccessAction.DELEGATE: ResourceKind.CHECKPOINT,
    AccessAction.STOP: ResourceKind.SCOPE,
    AccessAction.REENABLE: ResourceKind.SCOPE,
    AccessAction.SIGN_BUNDLE: ResourceKind.BUNDLE,
    AccessAction.ACTIVATE_BUNDLE: ResourceKind.BUNDLE,
    AccessAction.PROMOTE_MODEL: ResourceKind.MODEL,
    AccessAction.ROLLBACK_MODEL: ResourceKind.MODEL,
    AccessAction.READ_RECORD: ResourceKind.RECORD,
}


class Principal(msgspec.Struct, frozen=True):
    """Who asks, once identified. `until_ns` is the end of a person's mandate, UTC; None: without end."""

    kind: PrincipalKind
    id: str
    roles: tuple[str, ...] = ()
    desks: tuple[str, ...] = ()
    tenant: str = ""
    until_ns: int | None = None


class AccessResource(msgspec.Struct, frozen=True):
    """What is acted on. An empty tenant is the installation's own; without desks it belongs to none.

    `scope_level` is that of a stop or of what is re-enabled: firm, desk, model or series. `proposed_by` is who brought
    a candidate in.
    """

    kind: ResourceKind
    id: str
    tenant: str = ""
    desks: tuple[str, ...] = ()
    scope_level: str = ""
    proposed_by: str = ""


class AccessRequest(msgspec.Struct, frozen=True):
    """One principal asks for one action on one resource at an instant, UTC. `is_escalated`: a deadline is near."""

    principal: Principal
    action: AccessAction
    resource: AccessResource
    at_ns: int
    is_escalated: bool = False


class AccessDecision(msgspec.Struct, frozen=True):
    """Whether access is allowed, why in words, and the ids of the rules that decided."""

    is_allowed: bool
    reason: str
    rules: tuple[str, ...] = ()


class Authoriser(Protocol):
    """Decides requests for access. Never raises for a request: what cannot be decided is denied."""

    def decide(self, request: AccessRequest) -> AccessDecision: ...


class LocalUserAuthoriser:
    """Where no governance folder is given: whoever may write to the run's folder may do everything, as named."""

    def decide(self, request: AccessRequest) -> AccessDecision:
        del request
        return AccessDecision(True, "no governance folder: who may write to the run's folder may act")


def require_access(authoriser: Authoriser, request: AccessRequest) -> AccessDecision:
    """The decision where it allows. Raises: AccessDenied, with the reason."""
    decision = authoriser.decide(request)
    if not decision.is_allowed:
        raise AccessDenied(
            f"{request.principal.id} may not {action_words(request.action)} "
            f"({request.resource.kind.value} {request.resource.id}): {denial_words(decision, request.resource)}"
        )
    return decision


def denial_words(decision: AccessDecision, resource: AccessResource) -> str:
    """Why a request is denied; where no rule allows it, of which desks and tenant the resource is."""
    if decision.rules:
        return decision.reason
    of = [f"desk {desk}" for desk in resource.desks]
    of += [f"tenant {resource.tenant}"] if resource.tenant else []
    return f"{decision.reason} (it is of {', '.join(of)})" if of else decision.reason


def action_words(action: AccessAction) -> str:
    """The action in a sentence."""
    return _ACTION_WORDS[action]


_ACTION_WORDS = {
    AccessAction.RELEASE_NEWS: "release quarantined news",
    AccessAction.END_SUSPICION: "end a suspicion",
    AccessAction.APPROVE: "approve a decision",
    AccessAction.DENY: "deny a decision",
    AccessAction.DELEGATE: "delegate a decision",
    AccessAction.STOP: "stop",
    AccessAction.REENABLE: "re-enable",
    AccessAction.SIGN_BUNDLE: "sign a policy bundle",
    AccessAction.ACTIVATE_BUNDLE: "activate a policy bundle",
    AccessAction.PROMOTE_MODEL: "promote a model",
    AccessAction.ROLLBACK_MODEL: "roll a model back",
    AccessAction.READ_RECORD: "read the record",
}
