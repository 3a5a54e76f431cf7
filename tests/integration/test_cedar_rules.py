"""Authorisation by Cedar: the default rules against what they are meant to say, and that anything unclear denies."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from access_intent import MANDATE_END_NS, may, random_requests
from htfi.adapters.cedar.authoriser import CedarAuthoriser, default_rules, load_authoriser
from htfi.domain.errors import AccessDenied, InvalidInput, MissingExtra
from htfi.governance.authorisation import (
    AccessAction,
    AccessRequest,
    AccessResource,
    Principal,
    PrincipalKind,
    ResourceKind,
    require_access,
)

cedarpy: Any = pytest.importorskip("cedarpy")

ANN = Principal(PrincipalKind.PERSON, "Ann Lee", ("approver",), ("equities",))
WAITS = AccessResource(ResourceKind.CHECKPOINT, "SPX/1d@2008-10-10T20:00:00Z", "", ("equities",))
APPROVES = AccessRequest(ANN, AccessAction.APPROVE, WAITS, 1_000)
PERMIT_ALL = "permit (principal, action, resource);"


@pytest.fixture(scope="module")
def default() -> CedarAuthoriser:
    return CedarAuthoriser(default_rules(), "default.cedar")


def compare(authoriser: CedarAuthoriser, num: int, seed: int) -> None:
    requests = list(random_requests(num, seed))
    decided = authoriser.decide_all(requests)
    assert len(decided) == num
    wrong = [
        (request, decision)
        for request, decision in zip(requests, decided, strict=True)
        if decision.is_allowed != may(request)
    ]
    assert wrong == []
    allowed = Counter(
        request.action for request, decision in zip(requests, decided, strict=True) if decision.is_allowed
    )
    assert set(allowed) == set(AccessAction)
    assert 0.05 * num < allowed.total() < 0.6 * num
    assert all(decision.reason for decision in decided)


def test_default_rules_say_what_they_are_meant_to(default: CedarAuthoriser) -> None:
    compare(default, 4_000, seed=19)


@pytest.mark.slow
def test_default_rules_say_what_they_are_meant_to_in_a_hundred_thousand_requests(
    default: CedarAuthoriser,
) -> None:
    compare(default, 100_000, seed=20)


def test_many_requests_together_are_decided_as_one_by_one(default: CedarAuthoriser) -> None:
    requests = list(random_requests(60, seed=3))
    same_name = [
        replace(one, principal=replace(one.principal, id="Ann Lee"), resource=replace(one.resource, id="r"))
        for one in requests
    ]
    assert default.decide_all(same_name) == [default.decide(one) for one in same_name]


def test_forbid_that_errs_denies_where_cedar_alone_allows() -> None:
    errs = (
        PERMIT_ALL + "forbid (principal, action, resource) when { context.at_ns + 9223372036854775807 > 0 };"
    )
    alone = cedarpy.is_authorized(
        {
            "principal": {"type": "Person", "id": "Ann"},
            "action": {"type": "Action", "id": "approve"},
            "resource": {"type": "Checkpoint", "id": "r"},
            "context": {"at_ns": 1_000},
        },
        errs,
        [],
    )
    assert alone.decision.value == "Allow"  # what this project must not rely on
    decision = CedarAuthoriser(errs, "rules").decide(APPROVES)
    assert not decision.is_allowed
    assert decision.reason.startswith("a rule or the request could not be evaluated: error while evaluating")


def test_permit_that_errs_denies_though_another_permits() -> None:
    errs = (
        PERMIT_ALL + "permit (principal, action, resource) when { context.at_ns * 9223372036854775807 > 0 };"
    )
    assert not CedarAuthoriser(errs, "rules").decide(APPROVES).is_allowed


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            PERMIT_ALL + "forbid (principal, action, resource) when { context.missing };",
            "a rule does not agree with the schema",
        ),
        ('permit (principal, action == Action::"fly", resource);', "a rule does not agree with the schema"),
        ("permit (principal, action", "is not a set of Cedar rules"),
    ],
)
def test_rules_that_do_not_agree_with_the_schema_are_refused_when_they_are_read(
    rules: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^own\.cedar: {message}") as refused:
        CedarAuthoriser(rules, "own.cedar")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "request_",
    [
        replace(APPROVES, action=AccessAction.PROMOTE_MODEL),  # of a checkpoint, which no one promotes
        replace(APPROVES, at_ns=2**63),  # beyond Cedar's integers
        replace(APPROVES, at_ns=1.5),
        replace(APPROVES, principal=replace(ANN, tenant=None)),
    ],
)
def test_request_that_the_schema_does_not_know_is_denied(request_: AccessRequest) -> None:
    decision = CedarAuthoriser(PERMIT_ALL, "rules").decide(request_)
    assert not decision.is_allowed
    assert decision.reason


def test_denials_name_the_rule_that_forbids_or_say_that_none_allows(default: CedarAuthoriser) -> None:
    assert default.decide(APPROVES).reason == "allowed by approvers-of-the-desk"
    ended = replace(
        APPROVES, principal=replace(ANN, until_ns=MANDATE_END_NS), at_ns=MANDATE_END_NS + 1
    )  # fmt: skip
    assert default.decide(ended).reason == "forbidden by mandate-ended"
    other_desk = replace(APPROVES, resource=replace(WAITS, desks=("rates",)))
    assert default.decide(other_desk).reason == "no rule allows it"
    with pytest.raises(AccessDenied, match=r"^Ann Lee may not approve a decision \(checkpoint .*\): no rule"):
        require_access(default, other_desk)


def test_rules_of_the_governance_folder_replace_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "authorisation").mkdir()
    assert load_authoriser(tmp_path).decide(APPROVES).is_allowed
    (tmp_path / "authorisation" / "a.cedar").write_text(PERMIT_ALL)
    (tmp_path / "authorisation" / "b.cedar").write_text(
        '@id("nobody-approves") forbid (principal, action == Action::"approve", resource);'
    )
    authoriser = load_authoriser(tmp_path)
    assert authoriser.decide(APPROVES).reason == "forbidden by nobody-approves"
    assert authoriser.decide(replace(APPROVES, action=AccessAction.DENY)).is_allowed


def test_rules_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "authorisation").mkdir()
    (tmp_path / "authorisation" / "a.cedar").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        load_authoriser(tmp_path)


def test_without_the_extra_the_command_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.domain.errors.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'htfi\[governance\]'"):
        CedarAuthoriser(PERMIT_ALL, "rules")


@pytest.mark.slow
def test_each_default_rule_is_needed() -> None:
    """Without any one of them, some requests are decided otherwise than meant."""
    rules = default_rules().split("@id(")
    assert len(rules) > 15
    requests = list(random_requests(3_000, seed=21))
    meant = [may(request) for request in requests]
    for number in range(1, len(rules)):
        fewer = "@id(".join(rules[:number] + rules[number + 1 :])
        decided = CedarAuthoriser(fewer, "fewer").decide_all(requests)
        assert [one.is_allowed for one in decided] != meant, f"nothing shows the need of @id({rules[number]}"
