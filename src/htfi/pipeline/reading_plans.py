"""Which series of a point have news to read, and by which rung each is read: before the release, and again after it."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import (
    FidelityPlan,
    Regime,
    Rung,
)
from htfi.domain.news import ReadingBudget
from htfi.domain.plan import LadderInputs
from htfi.domain.time import NS_PER_MS
from htfi.narrative.question import Question, facts_of
from htfi.narrative.recent_news import NO_NEWS, NewsSelection
from htfi.narrative.routing import cap_plan
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.point import PointColumns
from htfi.pipeline.reading_influence import is_worth_depth, is_worth_reading, reading_influences
from htfi.pipeline.recorder import LedgerCursor
from htfi.pipeline.series import SeriesContext
from htfi.pipeline.view_cache import ReadRequest
from htfi.scheduling.fidelity import (
    choose_plan,
    deadline_of,
    is_watched,
    left_after,
    mark_high_value,
    plan_deep_reads,
)


def plan_readings(
    columns: PointColumns,
    components: Components,
    context: RunContext,
    cursor: LedgerCursor | None = None,
    first: int = 0,
) -> list[SeriesContext]:
    """The series of a point that numbers alone may not decide: the news on each, and the rung that reads them.

    The deadline is shared by the series that have news to read: a few series are read by the target, many by the
    draft, and those for which no time is left come first at a later point. A rung whose reader governance holds back
    from decision `first` on is left out. Where views are put to the swap test, facts are read with neutral names.
    """
    components.news.read_neutrally(components.governance.fairness is not None)
    series = _contexts(columns, components, context)
    if all(series_context.request.news is NO_NEWS for series_context in series):
        return series
    suspicion = _suspicions(series, components)
    left_ms = context.pipeline.deadline_ms
    questions = [
        (series_context.request.series, series_context.request.question) for series_context in series
    ]
    left_out = _left_out(series, components, cursor, first)
    turns = components.views.reading_order(questions, suspicion, left_out)
    influences = {
        place: reading_influences(series[place].request, components, left_out[place]) for place in turns
    }
    worthwhile = [
        place
        for place in turns
        if is_worth_reading(series[place].request, influences[place], context.fidelity)
    ]
    unread = set(turns).difference(worthwhile)
    for turn, place in enumerate([*worthwhile, *(place for place in turns if place in unread)]):
        series_context = series[place]
        inputs = (
            cursor.next_inputs(series_context.row, series_context.bar.symbol, columns.as_of_ns)
            if cursor is not None
            else None
        )
        if inputs is None:  # what no model reads waits for none and takes no time
            num_waiting = 1 if place in unread else len(worthwhile) - turn
            left = context.pipeline.deadline_ms if place in unread else left_ms
            divergence = _divergence(series_context, components, left_out[place])
            inputs = components.views.times.inputs(num_waiting, left, divergence, influences[place])
            if left_out[place]:
                inputs = replace(inputs, held=tuple(rung for rung in Rung if rung in left_out[place]))
        deadline_ms = deadline_of(inputs)
        plan = _plan(
            series_context.regime, deadline_ms, series_context.request.news, components, context, inputs
        )
        request = series_context.request._replace(
            plan=plan, budget=_budget(deadline_ms, inputs.left_ms, components)
        )
        news = components.news.contents.read_by_encoder(request.news) if plan.counts_encoder_alone else None
        if news is not None:
            request = request._replace(news=news, question=replace(request.question, items=()))
        series[place] = replace(series_context, request=request)
        if place not in unread:
            is_read = not components.views.has(*questions[place], plan.rung, left_out[place])
            left_ms = left_after(inputs, plan.rung, context.fidelity) if is_read else inputs.left_ms
    rest = _budget(context.pipeline.deadline_ms, left_ms, components)
    return [
        series_context
        if series_context.request.budget is not None or series_context.request.news is NO_NEWS
        else replace(series_context, request=series_context.request._replace(budget=rest))
        for series_context in series
    ]


def plan_deep_readings(
    series: Sequence[SeriesContext],
    components: Components,
    context: RunContext,
    cursor: LedgerCursor,
    first: int,
) -> tuple[list[SeriesContext], int]:
    """The series, with plans for those to be read again in depth; and how many were skipped for lack of time.

    What is worth a frontier model, where the budget allows one, is read by it first. A reader that governance holds
    back from decision `first` on is not asked, unless its breaker is to be watched.
    """
    news, views = components.news, components.views
    if Rung.DEEP not in views.rungs:
        return list(series), 0
    plans = [series_context.request.plan for series_context in series]
    divergences = [0.0] * len(series)
    for place, series_context in enumerate(series):
        request, tilt = (
            series_context.request,
            series_context.forecast.tilt if series_context.forecast is not None else None,
        )
        if (
            series_context.view is None
            or series_context.view.provisional
            or views.has(request.series, request.question, Rung.DEEP)
            or not _may_read_deeper(series_context, components, cursor, first)
        ):
            continue
        if news.is_worth_frontier(request.news):
            divergences[place], plans[place] = 1.0, mark_high_value(request.plan)
        elif tilt is not None and is_worth_depth(request, components, context.fidelity):
            divergences[place] = tilt.divergence_rank
    bars_ms = [series_context.request.question.bar_ns / NS_PER_MS for series_context in series]
    limit = news.frontier.num_affordable(len(series))
    chosen, num_skipped = plan_deep_reads(plans, divergences, bars_ms, context.fidelity, limit)
    news.frontier.charge(len(chosen))
    return [
        replace(series_context, request=series_context.request._replace(plan=chosen[place]))
        if place in chosen
        else series_context
        for place, series_context in enumerate(series)
    ], num_skipped


def _contexts(columns: PointColumns, components: Components, context: RunContext) -> list[SeriesContext]:
    """The series with news, and all where each counts: between two bars, and where views are prepared."""
    selected = components.news.select_each([bar.symbol for bar in columns.bars], columns.as_of_ns)
    rows = range(len(columns)) if columns.answered or components.prepared.is_on else list(selected)
    return [
        _make_series_context(row, selected.get(row, NO_NEWS), columns, components, context) for row in rows
    ]


def _make_series_context(
    row: int,
    news: NewsSelection,
    columns: PointColumns,
    components: Components,
    context: RunContext,
) -> SeriesContext:
    """A series with its news, as if the whole deadline were its own."""
    bar, series = columns.bars[row], columns.series[row]
    answered = columns.answered[row] if columns.answered else None
    regime, features = columns.market.regime(row), columns.market.features_at(row)
    returns: tuple[float, ...] = ()
    if news.items:
        returns = components.scaled_returns.recent(series)
        sigma, last = components.scaled_returns.sigma(series), features.get("return_last")
        if answered is None and sigma and last is not None:  # the newest, which nothing has learnt from yet
            returns = (*returns, last / sigma)
    marks = facts_of(news.items, news.readings)
    question = components.news.facts.with_neutral_names(
        Question(bar.symbol, columns.as_of_ns, bar.end_ns - bar.start_ns, news.items, returns, facts=marks)
    )
    plan = _plan(regime, context.pipeline.deadline_ms, news, components, context)
    request = ReadRequest(series, question, plan, news)
    return SeriesContext(bar, row, regime, features, request, answered=answered)


def _suspicions(series: Sequence[SeriesContext], components: Components) -> dict[int, float]:
    """How far readings of series, by place, should queue behind others, 0–1: by the least believed of their sources."""
    found: dict[int, float] = {}
    by_sources: dict[frozenset[str], float] = {}  # the news of an instant has few
    for place, series_context in enumerate(series):
        request = series_context.request
        if not request.question.items:
            continue
        if request.news.suspicion:
            found[place] = 1.0
            continue
        sources = frozenset([item.source for item in request.news.items])
        if sources not in by_sources:
            by_sources[sources] = components.news.sanitiser.reading_suspicion(sources)
        found[place] = by_sources[sources]
    return found


def _left_out(
    series: Sequence[SeriesContext], components: Components, cursor: LedgerCursor | None, first: int
) -> dict[int, frozenset[Rung]]:
    """The rungs whose reader is not asked, by place of a series with news; what the ledger holds of it stands."""
    found: dict[int, frozenset[Rung]] = {}
    for place, one in enumerate(series):
        items = one.request.question.items
        if items:
            recorded = cursor and cursor.next_left_out(one.row, one.bar.symbol, one.request.question.as_of_ns)
            found[place] = _held_rungs(first, items[0].id, components) if recorded is None else recorded
    return found


def _held_rungs(first: int, newest_item: str, components: Components) -> frozenset[Rung]:
    """The rungs whose reader is not asked, because governance holds it back from decision `first` on.

    A view in depth never comes before the release: where its reader is held, another rung's counts, watched or not.
    """
    views, governance = components.views, components.governance
    watched = is_watched(newest_item)
    found = {
        rung
        for rung in views.rungs - {Rung.TEMPLATE, Rung.DEEP}
        if governance.leaves_out(first, _reader_names(rung, components), is_watched=watched)
    }
    if Rung.DEEP in views.rungs and governance.holds_reader(first, _reader_names(Rung.DEEP, components)):
        found.add(Rung.DEEP)
    return frozenset(found)


def _may_read_deeper(
    series_context: SeriesContext, components: Components, cursor: LedgerCursor, first: int
) -> bool:
    """Whether the reader in depth may be asked about the news of a series; what the ledger holds of it stands.

    One that governance holds, and that is to be watched, is asked about news that was just read, not again and again.
    """
    governance, names = components.governance, _reader_names(Rung.DEEP, components)
    request, view = series_context.request, series_context.view
    recorded = cursor.next_decision(series_context.row)
    if recorded is not None and governance.num_logged:
        return recorded.plan.rung_after_release is Rung.DEEP
    if not governance.holds_reader(first, names):
        return True
    newest = request.question.items[0].id if request.question.items else ""
    is_new = view is not None and view.read_at_ns == request.question.as_of_ns
    return is_new and not governance.leaves_out(first, names, is_watched=is_watched(newest))


def _reader_names(rung: Rung, components: Components) -> tuple[str, str]:
    """What a scope may call the reader of a rung."""
    return f"reader.{rung.value}", components.views.version(rung)


def _divergence(series_context: SeriesContext, components: Components, left_out: frozenset[Rung]) -> float:
    """The rank of the divergence of the view that the series has on the same news; 0 where there is none."""
    request = series_context.request
    is_known = components.views.has(request.series, request.question, Rung.EDGE, left_out)
    return components.forecaster.divergence(request.series) if is_known else 0.0


def _plan(
    regime: Regime,
    deadline_ms: float,
    news: NewsSelection,
    components: Components,
    context: RunContext,
    inputs: LadderInputs | UnsetType = UNSET,
) -> FidelityPlan:
    rungs, items = components.views.rungs, news.items
    chosen = choose_plan(
        regime,
        deadline_ms,
        rungs,
        inputs=inputs,
        suspicion=bool(news.suspicion),
        newest_item="" if inputs is UNSET else items[0].id,
        config=context.fidelity,
    )
    return cap_plan(chosen, components.news.max_routes(items), rungs - chosen.left_out) if items else chosen


def _budget(deadline_ms: float, left_ms: float, components: Components) -> ReadingBudget:
    return ReadingBudget(round(deadline_ms, 3), round(left_ms, 3), components.news.frontier.cents)
