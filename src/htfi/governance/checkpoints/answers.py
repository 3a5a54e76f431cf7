"""Who gave an answer, and whether they had a right to: an answer file becomes an event of its question."""

from typing import NamedTuple

from htfi.domain.errors import HtfiError
from htfi.governance.authorisation import (
    AccessAction,
    AccessRequest,
    AccessResource,
    Authoriser,
    LocalUserAuthoriser,
    Principal,
    ResourceKind,
    denial_words,
)
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalAnswer, ApprovalQuestion
from htfi.governance.checkpoints.state import Answered, CheckpointState
from htfi.governance.people import PeopleDirectory, RequestStatement, identify
from htfi.governance.ports import VerifySignature

ACTIONS = {
    AnswerKind.SEEN: AccessAction.APPROVE,  # who may approve is shown what it is about
    AnswerKind.APPROVE: AccessAction.APPROVE,
    AnswerKind.DENY: AccessAction.DENY,
    AnswerKind.DELEGATE: AccessAction.DELEGATE,
}


class AnswerRights(NamedTuple):
    """By what rights are judged: without a directory, whoever may write to the run's folder may answer, as named.

    `run` is the verifier key of the run's log, which statements name; `folder` that of the governance folder's log,
    named by what is asked of all of its runs. `tenant` is whose run it is.
    """

    run: str
    directory: PeopleDirectory | None
    authoriser: Authoriser
    verify: VerifySignature
    folder: str = ""
    tenant: str = ""


def local_rights(run: str, verify: VerifySignature) -> AnswerRights:
    """Where there is no governance folder."""
    return AnswerRights(run, None, LocalUserAuthoriser(), verify)


def judge_answer(
    answer: ApprovalAnswer, state: CheckpointState, rights: AnswerRights, received_ns: int
) -> Answered:
    """The event that an answer is, at the instant when the run received it, UTC; with why it does not count.

    The author's own time is not trusted: what is late, is late by the run's clock.
    """
    by, refusal = answer.by, ""
    if rights.directory is not None:
        try:
            principal, statement = identify(answer.signed, rights.directory, rights.verify)
            by = principal.id
            refusal = _difference(answer, statement, rights.run) or _without_right(
                answer, principal, state, rights, received_ns
            )
        except HtfiError as error:
            refusal = str(error)
    return Answered(
        answer.id, received_ns, answer.answer, by, answer.why, answer.seen, answer.to, refusal
    )  # fmt: skip


def refused_answer(answer: ApprovalAnswer, received_ns: int, refusal: str) -> Answered:
    """The event of an answer that does not count, whoever gave it."""
    return Answered(
        answer.id, received_ns, answer.answer, answer.by, answer.why, answer.seen, answer.to, refusal
    )  # fmt: skip


def key_of_note(note: str, rights: AnswerRights) -> str:
    """The verifier key that a note is signed with; empty where it is that of no person in the directory."""
    if rights.directory is None:
        return ""
    try:
        principal, _ = identify(note, rights.directory, rights.verify)
    except HtfiError:
        return ""
    return next(str(key) for key, one in rights.directory.by_key.items() if one == principal)


def statement_of(answer: ApprovalAnswer, run: str) -> RequestStatement:
    """What a person signs for an answer."""
    return RequestStatement(
        ACTIONS[answer.answer],
        f"{answer.answer.value}:{answer.decision}",
        run,
        answer.at_ns,
        answer.why,
        answer.seen,
        answer.to,
    )


def checkpoint_resource(question: ApprovalQuestion, tenant: str) -> AccessResource:
    """What is asked about in a tenant's run, for rules."""
    return AccessResource(
        ResourceKind.CHECKPOINT, question.decision, question.tenant or tenant, question.desks
    )


def _difference(answer: ApprovalAnswer, statement: RequestStatement, run: str) -> str:
    if statement.run != run:
        return "the request was signed for another run"
    return "" if statement == statement_of(answer, run) else "what was signed is not what the answer says"


def _without_right(
    answer: ApprovalAnswer,
    principal: Principal,
    state: CheckpointState,
    rights: AnswerRights,
    now_ns: int,
) -> str:
    resource = checkpoint_resource(state.question, rights.tenant)

    def denial(who: Principal, action: AccessAction) -> str:
        decision = rights.authoriser.decide(
            AccessRequest(who, action, resource, now_ns, state.is_escalated)
        )  # fmt: skip
        return "" if decision.is_allowed else f"{who.id} may not: {denial_words(decision, resource)}"

    refusal = denial(principal, ACTIONS[answer.answer])
    if refusal or answer.answer is not AnswerKind.DELEGATE or rights.directory is None:
        return refusal
    delegate = rights.directory.find(answer.to)
    if delegate is None:
        return f"{answer.to} is not in the directory of people"
    return denial(delegate, AccessAction.APPROVE)
