"""Governance over HTTP: limits, breakers and stops in force; what waits for people, and their answers."""

from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from htfi.apps.service.acts import Act, IdempotencyKey, named, perform, requester_of
from htfi.apps.service.bodies import MAX_ACT_BYTES, decode_body, read_bytes
from htfi.apps.service.callers import Scope, needs
from htfi.apps.service.schema import gives, gives_act, takes
from htfi.apps.service.served_run import run_of
from htfi.apps.service.tags import tagged_response
from htfi.client.governance_bodies import (
    AnswerBody,
    AnswerQuestion,
    ControlAnswer,
    DelegateQuestion,
    QuestionBody,
    QuestionPage,
    ReenableQuestion,
    StopQuestion,
)
from htfi.domain.time import format_ns
from htfi.governance.checkpoints.requests import AnswerKind
from htfi.wiring.approvals import GivenAnswer, ListedQuestion, find_question, give_answer, list_questions
from htfi.wiring.control import ControlOutcome, request_reenabling, request_stop
from htfi.wiring.request_token import RequestToken
from htfi.wiring.service.control_status import (
    BreakersBody,
    ControlBody,
    PolicyBody,
    read_breakers,
    read_control,
    read_policy,
)

MAX_PAGE = 500

readers = APIRouter(dependencies=[Depends(needs(Scope.READ))])
router = APIRouter(dependencies=[Depends(needs(Scope.ACT))])


SHAPES = (
    PolicyBody, BreakersBody, ControlBody, StopQuestion, ReenableQuestion, AnswerQuestion, DelegateQuestion,
    ControlAnswer, QuestionBody, QuestionPage, AnswerBody,
)  # fmt: skip


@readers.get("/policy", summary="The limits in force and who signed them", responses=gives(PolicyBody))
async def policy(request: Request) -> Response:
    """Of the policy bundle that the run goes by, else of its settings."""
    run = run_of(request)
    return tagged_response(request, await run.files.call(partial(read_policy, run.folder, run.governance)))


@readers.get("/breakers", summary="The circuit breakers and their states", responses=gives(BreakersBody))
async def breakers(request: Request) -> Response:
    """Each breaker and scope that has ever changed, as it changed last."""
    run = run_of(request)
    return tagged_response(request, await run.files.call(partial(read_breakers, run.folder)))


@readers.get("/control", summary="What holds the run back", responses=gives(ControlBody))
async def control(request: Request) -> Response:
    """Stops in force, breakers that are not closed, and requests that the run has not taken yet."""
    run = run_of(request)
    return tagged_response(request, await run.files.call(partial(read_control, run.folder, run.governance)))


@readers.get("/approvals", summary="Decisions that wait for people", responses=gives(QuestionPage))
async def list_approvals(
    request: Request,
    include_decided: Annotated[bool, Query(alias="all", description="also what is decided")] = False,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """Oldest first, each with the text that an answer must have seen, and its digest."""
    run = run_of(request)

    def read() -> QuestionPage:
        found = [
            one
            for one in list_questions(run.folder)
            if one.number > after and (include_decided or not one.recorded.state.is_final)
        ]
        page = [_question_body(one) for one in found[:limit]]
        return QuestionPage(page, page[-1].number if len(found) > limit else None)

    return tagged_response(request, await run.files.call(read))


@readers.get("/approvals/{number}", summary="One of them", responses=gives(QuestionBody))
async def approval(request: Request, number: str) -> Response:
    """By its number, or by the id of its decision."""
    run = run_of(request)
    return tagged_response(
        request, await run.files.call(lambda: _question_body(find_question(run.folder, number)))
    )


def _answer_route(path: str, summary: str, kind: AnswerKind) -> None:
    @router.post(
        f"/approvals/{{number}}/{path}",
        name=path,
        operation_id=f"{path}_approval",
        summary=summary,
        openapi_extra=takes(AnswerQuestion),
        responses=gives_act(AnswerBody),
    )
    async def answer(request: Request, number: str, idempotency_key: IdempotencyKey = None) -> Response:
        del idempotency_key  # `perform` reads it
        content = await read_bytes(request, MAX_ACT_BYTES)
        body = decode_body(content, AnswerQuestion)
        act = _answering(request, number, kind, body, body.why)
        return await perform(request, content, act)


_answer_route("approve", "Approve a decision that waits", AnswerKind.APPROVE)
_answer_route("deny", "Deny it: it stays withheld", AnswerKind.DENY)
_answer_route("acknowledge", "State that a person has seen it", AnswerKind.SEEN)


@router.post(
    "/approvals/{number}/delegate",
    summary="Hand it to another person",
    openapi_extra=takes(DelegateQuestion),
    responses=gives_act(AnswerBody),
)
async def delegate(request: Request, number: str, idempotency_key: IdempotencyKey = None) -> Response:
    """To somebody who has the right to approve it."""
    del idempotency_key
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, DelegateQuestion)
    return await perform(
        request, content, _answering(request, number, AnswerKind.DELEGATE, body, body.why, body.to)
    )


@router.post(
    "/stop", summary="Release nothing", openapi_extra=takes(StopQuestion), responses=gives_act(ControlAnswer)
)
async def stop(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Decisions are still made and recorded; those of the scope are withheld until it is enabled again."""
    del idempotency_key
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, StopQuestion)
    run, by = run_of(request), named(request, body.by)

    def act(token: RequestToken) -> tuple[int, ControlAnswer]:
        outcome = request_stop(run.folder, body.scope, by, body.why, token=token)
        return _control_answer(outcome, body.scope, "stopped")

    return await perform(request, content, act, is_vital=True)


@router.post(
    "/reenable",
    summary="End a stop and close breakers",
    openapi_extra=takes(ReenableQuestion),
    responses=gives_act(ControlAnswer),
)
async def reenable(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Of exactly this scope; the record names who did it."""
    del idempotency_key
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, ReenableQuestion)
    run, requester = run_of(request), requester_of(request, body.by, body.signed)

    def act(token: RequestToken) -> tuple[int, ControlAnswer]:
        outcome = request_reenabling(
            run.folder, body.scope, requester.by, body.why, body.breaker,
            shared=requester.governance, note=requester.note, token=token,
        )  # fmt: skip
        return _control_answer(outcome, body.scope, "re-enabled")

    return await perform(request, content, act)


def _answering(
    request: Request,
    number: str,
    kind: AnswerKind,
    body: AnswerQuestion | DelegateQuestion,
    why: str,
    to: str = "",
) -> Act:
    folder, requester = run_of(request).folder, requester_of(request, body.by, body.signed)

    def act(token: RequestToken) -> tuple[int, AnswerBody]:
        given = give_answer(folder, number, kind, requester, seen=body.seen, why=why, to=to, token=token)
        return 200 if given.is_recorded else 202, _answer_body(given)

    return act


def _answer_body(given: GivenAnswer) -> AnswerBody:
    if given.is_recorded:
        detail = "the run has recorded it"
    elif given.goes_on:
        detail = "the run records it with its next event"
    else:
        detail = (
            f"the run has ended and takes it when it resumes: start it again; it counts until "
            f"{format_ns(given.deadline_ns)}"
        )
    return AnswerBody(
        given.answer.decision, given.step.step.value, given.answer.by, given.is_recorded, detail
    )


def _question_body(one: ListedQuestion) -> QuestionBody:
    state = one.recorded.state
    question = state.question
    return QuestionBody(
        number=one.number,
        decision=question.decision,
        symbol=question.symbol,
        phase=state.phase.value,
        is_final=state.is_final,
        is_escalated=state.is_escalated,
        asked=format_ns(question.asked_ns),
        deadline=format_ns(question.deadline_ns),
        on_deadline=question.on_deadline.value,
        num_approvals=question.num_approvals,
        approvers=list(state.approvers),
        num_waiting_answers=one.num_waiting,
        reasons=[reason.words for reason in question.reasons],
        digest=question.digest,
        text=question.text,
        steps=msgspec.to_builtins(one.recorded.steps),
    )


_WORDS = {
    ControlOutcome.LOGGED: (200, "the run has logged it"),
    ControlOutcome.WAITS: (202, "the run logs it with its next event"),
    ControlOutcome.LATER: (202, "the run has ended: it holds as soon as the run starts again"),
    ControlOutcome.SHARED: (200, "it holds for every run of the folder, running or started later"),
    ControlOutcome.BY_FILE: (
        200,
        "the disk has no room for the request: an empty file STOP stands for it and stops everything, without a name",
    ),
}


def _control_answer(outcome: ControlOutcome, scope: str, done: str) -> tuple[int, ControlAnswer]:
    status, words = _WORDS[outcome]
    return status, ControlAnswer(outcome.value, scope, f"{done}: {scope}; {words}")
