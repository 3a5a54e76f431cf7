"""News in quarantine and suspicion over HTTP: what is held back and why, and the word of a person that ends it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from htfi.apps.service.acts import IdempotencyKey, perform, requester_of
from htfi.apps.service.bodies import MAX_ACT_BYTES, decode_body, read_bytes
from htfi.apps.service.callers import Scope, needs
from htfi.apps.service.schema import gives, gives_act, takes
from htfi.apps.service.served_run import run_of
from htfi.apps.service.tags import tagged_response
from htfi.client.governance_bodies import (
    AdmissionBody,
    AdmissionQuestion,
    ClearedBody,
    ClearingBody,
    ClearingQuestion,
    QuarantineBody,
    QuarantinePage,
    SuspectedBody,
    SuspicionBody,
)
from htfi.domain.time import format_ns
from htfi.wiring.quarantine import QuarantinedItem, admit, find_quarantined, list_quarantined
from htfi.wiring.request_token import RequestToken
from htfi.wiring.suspicion import SuspectedSymbol, read_status, request_reset

MAX_PAGE = 500

readers = APIRouter(dependencies=[Depends(needs(Scope.READ))])
router = APIRouter(dependencies=[Depends(needs(Scope.ACT))])


SHAPES = (
    AdmissionQuestion, ClearingQuestion, QuarantineBody, QuarantinePage, AdmissionBody, SuspicionBody, ClearingBody
)  # fmt: skip


@readers.get("/quarantine", summary="News that is held back", responses=gives(QuarantinePage))
async def list_items(
    request: Request,
    source: Annotated[str | None, Query(max_length=200)] = None,
    rule: Annotated[str | None, Query(max_length=64, description="with a finding of this rule")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """Newest first, each with every finding of the sanitiser."""
    run = run_of(request)

    def read() -> QuarantinePage:
        found = [
            one
            for one in reversed(list_quarantined(run.folder, source, rule))
            if before is None or one.held.number < before
        ]
        page = [_item_body(one) for one in found[:limit]]
        return QuarantinePage(page, page[-1].number if len(found) > limit else None)

    return tagged_response(request, await run.files.call(read))


@readers.get("/quarantine/{item_id}", summary="One of them", responses=gives(QuarantineBody))
async def item(request: Request, item_id: str) -> Response:
    """By its number or id."""
    run = run_of(request)
    return tagged_response(
        request, await run.files.call(lambda: _item_body(find_quarantined(run.folder, item_id)))
    )


@router.post(
    "/quarantine/{item_id}/admit",
    summary="Let an item out",
    openapi_extra=takes(AdmissionQuestion),
    responses=gives_act(AdmissionBody),
)
async def admit_item(request: Request, item_id: str, idempotency_key: IdempotencyKey = None) -> Response:
    """It enters the run as news, at the run's own time; the record names who admitted it and why."""
    del idempotency_key  # `perform` reads it
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, AdmissionQuestion)
    folder, requester = run_of(request).folder, requester_of(request, body.by, body.signed)

    def act(token: RequestToken) -> tuple[int, AdmissionBody]:
        del token  # the same word on the same item counts once
        kept, goes_on = admit(folder, item_id, requester, body.why)
        by = "" if kept.release is None else kept.release.by
        return 202, AdmissionBody(kept.held.number, kept.held.item.id, by, _when(goes_on))

    return await perform(request, content, act)


@readers.get("/suspicion", summary="What is suspected of manipulation", responses=gives(SuspicionBody))
async def suspicion(request: Request) -> Response:
    """By the record: at each symbol's newest decision, and before."""
    run = run_of(request)

    def read() -> SuspicionBody:
        found = read_status(run.folder, _no_progress)
        return SuspicionBody(
            [_suspected(one) for one in found.current],
            [_suspected(one) for one in found.past],
            [
                ClearedBody(
                    one.reset.symbol,
                    one.reset.by,
                    one.reset.why,
                    None if one.at_ns is None else format_ns(one.at_ns),
                )
                for one in found.requests
            ],
        )

    return tagged_response(request, await run.files.call(read))


@router.post(
    "/suspicion/clear",
    summary="End a suspicion",
    openapi_extra=takes(ClearingQuestion),
    responses=gives_act(ClearingBody),
)
async def clear_suspicion(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Of a symbol or of everything, at the run's own time; later incidents count again."""
    del idempotency_key
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, ClearingQuestion)
    folder, requester = run_of(request).folder, requester_of(request, body.by, body.signed)

    def act(token: RequestToken) -> tuple[int, ClearingBody]:
        clearing, goes_on = request_reset(folder, requester, body.why, body.symbol, token)
        return 202, ClearingBody(clearing.symbol, clearing.by, _when(goes_on))

    return await perform(request, content, act)


def _no_progress(done: int, size: int) -> None:
    del done, size


def _when(goes_on: bool) -> str:
    if goes_on:
        return "the run takes it within seconds"
    return "the run has ended: it takes effect when the run resumes: start it again"


def _suspected(one: SuspectedSymbol) -> SuspectedBody:
    return SuspectedBody(one.symbol, one.why, format_ns(one.as_of_ns), one.num_decisions)


def _item_body(one: QuarantinedItem) -> QuarantineBody:
    came, cleaned = one.held.item, one.held.screened.item
    return QuarantineBody(
        number=one.held.number,
        id=came.id,
        status=one.status,
        source=came.source,
        publisher=came.publisher,
        symbols=list(came.symbols),
        arrived=format_ns(came.available_at_ns),
        headline=cleaned.headline,
        body=cleaned.body,
        as_it_came={"headline": came.headline, "body": came.body, "url": came.url, "corrects": came.corrects},
        findings=list(one.held.screened.findings),
        admitted_by="" if one.release is None else one.release.by,
        admitted_for="" if one.release is None else one.release.why,
        entered="" if one.entered is None else format_ns(one.entered.at_ns),
    )
