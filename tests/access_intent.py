"""What the default rules are meant to say, written plainly and apart from them, and random requests to compare on."""

import random
from collections.abc import Iterator

from htfi.governance.authorisation import (
    RESOURCE_OF,
    AccessAction,
    AccessRequest,
    AccessResource,
    Principal,
    PrincipalKind,
    ResourceKind,
)

ROLES = (
    "operator", "news_officer", "approver", "risk_officer", "chief_risk_officer", "model_officer", "auditor",
    "edge", "cloud", "visitor",
)  # fmt: skip
DESKS = ("equities", "rates", "fx")
TENANTS = ("", "alpha", "beta")
MANDATE_END_NS = 1_800_000_000_000_000_000


def may(request: AccessRequest) -> bool:
    """Whether the request is meant to be allowed."""
    who, what = request.principal, request.resource
    if who.tenant != what.tenant:
        return False
    if who.kind is PrincipalKind.NODE:
        is_node_action = request.action in (
            AccessAction.STOP, AccessAction.ACTIVATE_BUNDLE, AccessAction.READ_RECORD,
        )  # fmt: skip
        return is_node_action and has(who, "edge", "cloud")
    if who.until_ns is not None and request.at_ns > who.until_ns:
        return False
    shares_desk = any(desk in what.desks for desk in who.desks)
    match request.action:
        case AccessAction.RELEASE_NEWS | AccessAction.END_SUSPICION:
            return has(who, "news_officer", "risk_officer", "chief_risk_officer")
        case AccessAction.APPROVE | AccessAction.DENY | AccessAction.DELEGATE:
            if has(who, "chief_risk_officer"):
                return True
            if has(who, "risk_officer") and request.is_escalated:
                return True
            return has(who, "approver") and (shares_desk or not what.desks)
        case AccessAction.STOP:
            return has(who, "operator", "approver", "risk_officer", "chief_risk_officer")
        case AccessAction.REENABLE:
            if has(who, "chief_risk_officer"):
                return True
            is_theirs = shares_desk or not what.desks or not who.desks
            return has(who, "risk_officer") and what.scope_level != "firm" and is_theirs
        case AccessAction.SIGN_BUNDLE:
            return has(who, "risk_officer", "chief_risk_officer")
        case AccessAction.ACTIVATE_BUNDLE:
            return has(who, "operator", "risk_officer", "chief_risk_officer")
        case AccessAction.PROMOTE_MODEL:
            return has(who, "model_officer") and what.proposed_by != who.id
        case AccessAction.ROLLBACK_MODEL:
            return has(who, "model_officer", "risk_officer", "chief_risk_officer", "operator")
        case AccessAction.READ_RECORD:
            if has(who, "auditor", "risk_officer", "chief_risk_officer"):
                return True
            return has(who, "approver") and shares_desk


def has(who: Principal, *roles: str) -> bool:
    return any(role in who.roles for role in roles)


def random_requests(num: int, seed: int) -> Iterator[AccessRequest]:
    """Requests of every kind; every principal and resource has a name of its own."""
    rng = random.Random(seed)
    actions = list(AccessAction)
    for number in range(num):
        kind = PrincipalKind.PERSON if rng.random() < 0.85 else PrincipalKind.NODE
        tenant = rng.choice(TENANTS)
        action = rng.choice(actions)
        resource = RESOURCE_OF[action]
        who = Principal(
            kind,
            f'p{number} "\\Ä',
            tuple(rng.sample(ROLES, rng.randint(0, 3))),
            tuple(rng.sample(DESKS, rng.randint(0, 2))),
            tenant,
            MANDATE_END_NS if rng.random() < 0.3 else None,
        )
        yield AccessRequest(
            who,
            action,
            AccessResource(
                resource,
                f"r{number}",
                tenant if rng.random() < 0.8 else rng.choice(TENANTS),
                tuple(rng.sample(DESKS, rng.randint(0, 2))),
                rng.choice(("firm", "desk", "model", "series")) if resource is ResourceKind.SCOPE else "",
                rng.choice((who.id, "somebody else", "")) if resource is ResourceKind.MODEL else "",
            ),
            MANDATE_END_NS + rng.randint(-2, 2),
            rng.random() < 0.3,
        )
