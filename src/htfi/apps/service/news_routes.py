"""News over HTTP: items that are handed to the run as data, and what became of each."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from htfi.apps.service.acts import IdempotencyKey, perform
from htfi.apps.service.bodies import MAX_BODY_BYTES, decode_body, read_bytes
from htfi.apps.service.callers import Scope, caller_of, needs
from htfi.apps.service.problems import NotFound
from htfi.apps.service.schema import gives, gives_act, takes
from htfi.apps.service.served_run import run_of
from htfi.apps.service.tags import tagged_response
from htfi.client.news_bodies import NewsPage, NewsReceipt, NewsSubmission, ReadNewsBody
from htfi.domain.errors import InvalidInput
from htfi.wiring.request_token import RequestToken
from htfi.wiring.service.submitted_news import PostedItemBody

MAX_PAGE = 500
MAX_ITEMS = 100  # of one request

readers = APIRouter(dependencies=[Depends(needs(Scope.READ))])
router = APIRouter(dependencies=[Depends(needs(Scope.NEWS))])


SHAPES = (NewsSubmission, NewsReceipt, NewsPage, PostedItemBody, ReadNewsBody)


@router.post(
    "/news",
    summary="Hand news to the run",
    openapi_extra=takes(NewsSubmission),
    responses=gives_act(NewsReceipt),
)
async def post_news(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Each item is sanitised as any; it enters at the run's own time. An id is that of one item for good."""
    del idempotency_key  # `perform` reads it
    content = await read_bytes(request, MAX_BODY_BYTES)
    body = decode_body(content, NewsSubmission)
    if not 1 <= len(body.items) <= MAX_ITEMS:
        raise InvalidInput(f"items: {len(body.items):,} are posted: post 1 to {MAX_ITEMS} at once")
    run, by = run_of(request), caller_of(request).name

    def act(token: RequestToken) -> tuple[int, NewsReceipt]:
        items, goes_on = run.news.submit(body.items, by, token)
        detail = "the run takes them with its next event"
        if not goes_on:
            detail = "the run has ended: it takes them when it resumes: start it again"
        return 202, NewsReceipt(items, detail)

    return await perform(request, content, act)


@readers.get("/news", summary="News that was handed in", responses=gives(NewsPage))
async def list_news(
    request: Request,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """Newest first, each with what became of it."""
    run = run_of(request)
    uses = dict(run.record.uses)
    page, older = await run.files.call(lambda: run.news.page(before, limit, uses))
    return tagged_response(request, NewsPage(page, older))


@readers.get("/news/{item_id:path}", summary="What became of an item", responses=gives(PostedItemBody))
async def news_item(request: Request, item_id: str) -> Response:
    """Whether it waits, is held back and why, was reported before, and which decisions knew of it."""
    run = run_of(request)
    uses = tuple(run.record.uses.get(item_id, ()))
    found = await run.files.call(lambda: run.news.item(item_id, uses))
    if found is None:
        raise NotFound(f"no item {item_id[:80]!r} was posted: GET /v1/news lists them")
    return tagged_response(request, found)
