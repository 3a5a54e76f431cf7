"""What is read from a run's record: series, forecasts, decisions with why, proofs."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from htfi.apps.service.callers import needs
from htfi.apps.service.chart import chart_of
from htfi.apps.service.schema import JSON, gives
from htfi.apps.service.served_run import record_of
from htfi.client.bodies import (
    ChartBody,
    ExplanationBody,
    ForecastBody,
    ForecastPage,
    SeriesBody,
    SeriesPage,
)
from htfi.client.news_bodies import ReadNewsBody
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput, NotFound
from htfi.library.serving.callers import Scope
from htfi.library.serving.read_news import read_news_of
from htfi.library.serving.representations import explanation_of, forecast_of
from htfi.wiring.service.live_record import LiveRecord
from htfi.wiring.service.record import RecordedLine
from htfi.wiring.service.search import find_before

MAX_PAGE = 500

router = APIRouter(dependencies=[Depends(needs(Scope.READ))])
Symbol = Annotated[str, Query(max_length=200, description="only decisions on this series or symbol")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Before = Annotated[int | None, Query(ge=0, le=2**62, description="entries before this index")]


def json_response(body: Any, headers: dict[str, str] | None = None) -> Response:
    """A body of ours as JSON."""
    return Response(msgspec.json.encode(body), media_type=JSON, headers=headers)


@router.get("/series", summary="The series of the run", responses=gives(SeriesPage))
async def list_series(request: Request) -> Response:
    """Each series that has been decided on, with its newest released decision."""
    record = record_of(request)
    record.check_read()
    found = [
        SeriesBody(
            series=name,
            symbol=name.rpartition("/")[0],
            interval=name.rpartition("/")[2],
            num_decisions=known.num,
            newest_index=known.newest_index,
            newest_released=None if known.newest is None else known.newest.index,
        )
        for name, known in sorted(record.series.items())
    ]
    return json_response(SeriesPage(found))


@router.get("/forecasts", summary="The newest forecast of every series", responses=gives(ForecastPage))
async def list_forecasts(
    request: Request, after: Annotated[str, Query(max_length=200)] = "", limit: Limit = 100
) -> Response:
    """In order of the series' names; `next` is the name to ask for those after."""
    record = record_of(request)
    record.check_read()
    names = sorted(name for name, known in record.series.items() if known.newest is not None and name > after)
    page = [forecast_of(record.released(name)[1]) for name in names[:limit]]
    return json_response(ForecastPage(page, names[limit - 1] if len(names) > limit else None))


@router.get(
    "/forecasts/{series:path}", summary="The newest forecast of a series", responses=gives(ForecastBody)
)
async def newest_forecast(
    request: Request,
    series: str,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Quantiles and prices for each horizon. `ETag` names the decision: 304 while it is the newest."""
    known, newest = record_of(request).released(series)
    tag = f'"{newest.index}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match is not None and tag in {one.strip() for one in if_none_match.split(",")}:
        return Response(status_code=304, headers=headers)
    if known.body is None:
        known.body = msgspec.json.encode(forecast_of(newest))
    return Response(known.body, media_type=JSON, headers=headers)


@router.get(
    "/history/{series:path}",
    summary="Earlier forecasts of a series, newest first",
    responses=gives(ForecastPage),
)
async def forecast_history(
    request: Request, series: str, before: Before = None, limit: Limit = 100
) -> Response:
    """Released forecasts before an index; `next` is the index to ask for older ones."""
    found, older = await _found(record_of(request), series, before, limit, is_released=True)
    return json_response(ForecastPage([forecast_of(one) for one in found], older))


@router.get("/charts/{series:path}", summary="What a chart of a series draws", responses=gives(ChartBody))
async def chart(
    request: Request, series: str, limit: Annotated[int, Query(ge=2, le=MAX_PAGE)] = 250
) -> Response:
    """Prices, the 90% band that was forecast for each, and the fan ahead of the newest."""
    record = record_of(request)
    record.released(series)
    found, _ = await _found(record, series, None, limit, is_released=True)
    decisions = [(one.index, one.decision) for one in reversed(found) if one.decision is not None]
    return json_response(chart_of(series, decisions))


@router.get("/decisions", summary="Decisions, newest first", responses=gives(None))
async def list_decisions(
    request: Request, symbol: Symbol = "", before: Before = None, limit: Limit = 100
) -> Response:
    """The lines of decisions.jsonl: what was released, and of what was withheld that it was, and why."""
    record = record_of(request)
    found, older = await _found(record, symbol, before, limit, is_released=False)
    lines = b",".join(one.line for one in found)
    return Response(b'{"items":[%s],"next":%s}' % (lines, msgspec.json.encode(older)), media_type=JSON)


@router.get("/decisions/{index}", summary="A decision", responses=gives(None))
async def decision(request: Request, index: int) -> Response:
    """By its index in the ledger."""
    one = await _line(record_of(request), index)
    headers = {"ETag": f'"{index}"', "Cache-Control": "private, max-age=86400"}
    return Response(one.line, media_type=JSON, headers=headers)


@router.get(
    "/decisions/{index}/explanation",
    summary="Why: what became of the news in a decision",
    responses=gives(ExplanationBody),
)
async def explanation(request: Request, index: int) -> Response:
    """ExplanationSection by section, as `htfi ledger explain` prints it."""
    record = record_of(request)
    await _released(record, index)
    return json_response(
        ExplanationBody(index, await record.ask(lambda reader: explanation_of(reader, index)))
    )


@router.get(
    "/decisions/{index}/news",
    summary="The news of a decision, with the words that counted",
    responses=gives(ReadNewsBody),
)
async def decision_news(request: Request, index: int) -> Response:
    """Headlines that its entry holds, untrusted text as data; places are in Unicode code points."""
    one = await _released(record_of(request), index)
    headers = {"ETag": f'"{index}"', "Cache-Control": "private, max-age=3600"}
    return json_response(read_news_of(one, index), headers)


@router.get("/decisions/{index}/proof", summary="That a decision is in the ledger", responses=gives(None))
async def proof(
    request: Request, index: int, size: Annotated[int | None, Query(ge=1, le=2**62)] = None
) -> Response:
    """An inclusion proof for the newest checkpoint, or that of `size`: what `htfi ledger prove` writes."""
    found = await record_of(request).ask(lambda reader: reader.inclusion_proof(index, size))
    return Response(found, media_type=JSON)


async def _released(record: LiveRecord, index: int) -> Decision:
    one = await _line(record, index)
    if one.decision is None:
        raise InvalidInput(f"entry {index} is not released: its reasons are in GET /v1/decisions/{index}")
    return one.decision


async def _line(record: LiveRecord, index: int) -> RecordedLine:
    if not 0 <= index < record.size:
        record.check_read()
        raise NotFound(
            f"there is no decision {index}: the ledger holds {record.size:,} entries, counted from 0"
        )
    return await record.ask(lambda reader: reader.line(index))


async def _found(
    record: LiveRecord, series: str, before: int | None, limit: int, *, is_released: bool
) -> tuple[Sequence[RecordedLine], int | None]:
    """Decisions before an index, newest first, and where older ones begin; None where there are none."""
    if before is None or before > record.size:
        record.check_read()
    stop = record.size if before is None else min(before, record.size)
    return await record.ask(lambda reader: find_before(reader, series, stop, limit, is_released=is_released))
