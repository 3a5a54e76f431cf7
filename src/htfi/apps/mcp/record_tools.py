"""Tools that read a run's record: catalogue, forecasts, decisions with why and what from."""

from functools import partial
from typing import Annotated

import msgspec
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from htfi.apps.mcp.models import (
    Catalogue,
    CatalogueSeries,
    DecisionDetail,
    DecisionsGiven,
    ExplanationGiven,
    ExplanationPart,
    Factors,
    ForecastGiven,
    ForecastsGiven,
)
from htfi.apps.mcp.record_shapes import detail, factors, item_effects, shown_forecast, summary
from htfi.apps.mcp.serving import RunOf, meter_of
from htfi.apps.mcp.toolbox import make_tool
from htfi.apps.mcp.untrusted import quoting
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput, NotFound
from htfi.domain.time import format_ns
from htfi.library.serving.callers import Scope
from htfi.library.serving.record_questions import EffectsQuestion
from htfi.library.serving.representations import explanation_of, forecast_of
from htfi.wiring.service.catalogue import shown_settings
from htfi.wiring.service.live_record import LiveRecord
from htfi.wiring.service.record import RecordedLine, ServedRecordReader, is_followed_run_live
from htfi.wiring.service.search import find_before

MAX_PAGE = 100
Series = Annotated[
    str, Field(min_length=1, max_length=200, description="A series, such as ACME/1d: data_catalogue lists them.")
]  # fmt: skip
Index = Annotated[int, Field(ge=0, le=2**62, description="The decision's index in the ledger.")]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="How many at most.")]


def record_tools(run_of: RunOf) -> list[Tool]:
    """The tools, of the run that `run_of` gives for a request."""

    async def data_catalogue(context: Context) -> Catalogue:
        """What there is to ask about: the run's series with their intervals and time span, the versions of the models
        that took part, and the settings that shape forecasts. Start here."""
        return await catalogue((await run_of(context, Scope.READ)).record)

    async def latest_forecast(context: Context, series: Series) -> ForecastGiven:
        """The newest released forecast of one series: quantiles of the log return and of the price for each horizon,
        the 90% band, the experts' weights, and the rationale."""
        return newest_forecast((await run_of(context, Scope.READ)).record, series)

    async def list_forecasts(
        context: Context,
        after: Annotated[str, Field(max_length=200, description="Series after this name.")] = "",
        limit: Limit = 20,
    ) -> ForecastsGiven:
        """The newest released forecast of every series, a page at a time, in order of the series' names."""
        record = (await run_of(context, Scope.READ)).record
        names = sorted(name for name, one in record.series.items() if one.newest is not None and name > after)
        return ForecastsGiven(
            items=[newest_forecast(record, name) for name in names[:limit]],
            next=names[limit - 1] if len(names) > limit else None,
        )

    async def list_decisions(
        context: Context,
        symbol: Annotated[str, Field(max_length=200, description="Only of this series or symbol.")] = "",
        before: Annotated[int | None, Field(ge=0, le=2**62, description="Entries before this index.")] = None,
        limit: Limit = 20,
    ) -> DecisionsGiven:
        """Decisions, newest first, a page at a time: what was released, and of what policy withheld that it was, and
        why."""
        record = (await run_of(context, Scope.READ)).record
        stop = record.size if before is None else min(before, record.size)
        found, older = await record.ask(
            lambda reader: find_before(reader, symbol, stop, limit, is_released=False)
        )
        return DecisionsGiven(items=[summary(one) for one in found], next=older)

    async def get_decision(context: Context, index: Index) -> DecisionDetail:
        """One decision by its index in the ledger: its forecast where that was released, the versions of the models,
        and the hash of its entry."""
        return detail(await recorded_line((await run_of(context, Scope.READ)).record, index))

    async def explain_decision(context: Context, index: Index) -> ExplanationGiven:
        """Why a decision is as it is: which news was read, what was set aside and why, what the reading says, what it
        changed in the forecast, and which contradictions were kept. In words, section by section."""
        record = (await run_of(context, Scope.READ)).record
        await _released(record, index)
        found = await record.ask(lambda reader: explanation_of(reader, index))
        sections = [
            ExplanationPart(title=one.title, lines=[quoting(line) for line in one.lines]) for one in found
        ]
        return ExplanationGiven(index=index, sections=sections)

    async def forecast_factors(
        context: Context,
        index: Index,
        without_each_item: Annotated[
            bool, Field(description="Also compute the forecast without each item of news: takes seconds.")
        ] = False,
    ) -> Factors:
        """What moved a forecast, in figures: experts' weights, unusual features, the reading of the news and the weight
        that its track record earns, and each item of news with how it was screened."""
        run = await run_of(context, Scope.ASK if without_each_item else Scope.READ)
        one = await _released(run.record, index)
        effects = None
        if without_each_item:
            answer = await run.worker.ask("effects", EffectsQuestion(index), meter_of(context))
            effects = item_effects(msgspec.json.decode(answer))
        return factors(index, one, effects)

    return [
        make_tool(data_catalogue, "Data catalogue"),
        make_tool(latest_forecast, "Newest forecast of a series"),
        make_tool(list_forecasts, "Newest forecasts of all series"),
        make_tool(list_decisions, "Decisions, newest first"),
        make_tool(get_decision, "A decision"),
        make_tool(explain_decision, "Why a decision is as it is"),
        make_tool(forecast_factors, "What moved a forecast"),
    ]


def newest_forecast(record: LiveRecord, series: str) -> ForecastGiven:
    """Of a series. Raises: NotFound."""
    known = record.series.get(series)
    if known is None or known.newest is None:
        names = ", ".join(sorted(record.series)[:10]) or "none yet"
        raise NotFound(f"there is no released forecast of {series!r}: the run's series are {names}")
    return shown_forecast(forecast_of(known.newest))


async def recorded_line(record: LiveRecord, index: int) -> RecordedLine:
    """An entry of the record. Raises: NotFound, IntegrityError."""
    if not 0 <= index < record.size:
        raise NotFound(
            f"there is no decision {index}: the ledger holds {record.size:,} entries, counted from 0"
        )
    return await record.ask(lambda reader: reader.line(index))


async def catalogue(record: LiveRecord) -> Catalogue:
    """What a run's record holds."""
    first = "" if not record.size else await record.ask(partial(_first_instant, stop=record.size))
    newest = [one.newest for one in record.series.values() if one.newest is not None]
    latest = max(newest, key=lambda one: one.index, default=None)
    decision = None if latest is None else latest.decision
    series = [
        CatalogueSeries(
            series=name,
            symbol=name.rpartition("/")[0],
            interval=name.rpartition("/")[2],
            num_decisions=one.num,
            newest_index=one.newest_index,
            newest_released=None if one.newest is None else one.newest.index,
            newest_as_of=None
            if one.newest is None or one.newest.decision is None
            else format_ns(one.newest.decision.as_of_ns),
        )
        for name, one in sorted(record.series.items())
    ]
    return Catalogue(
        series=series,
        intervals=sorted({one.interval for one in series}),
        num_entries=record.size,
        first_as_of=first or None,
        newest_as_of=None if decision is None else format_ns(decision.as_of_ns),
        is_running=is_followed_run_live(record.folder),
        models={} if decision is None else decision.models,
        horizons=[] if decision is None else list(decision.forecast.horizons),
        levels=[] if decision is None else list(decision.forecast.levels),
        settings_digest="" if decision is None else decision.settings_digest,
        settings=shown_settings(record.folder),
    )


def _first_instant(reader: ServedRecordReader, stop: int) -> str:
    """Of the oldest entry whose id is still there among the first thousand; '' where none is."""
    names = reader.ids(0, min(stop, 1_000))
    return next((name.partition("@")[2].partition("/")[0] for name in names if name), "")


async def _released(record: LiveRecord, index: int) -> Decision:
    one = await recorded_line(record, index)
    if one.decision is None:
        raise InvalidInput(f"entry {index} is not released, so nothing explains it: get_decision says why")
    return one.decision
