"""The steps from a point's readings as planned to decisions: read, weigh, judge. Each passes a series' record once."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import (
    Decision,
    DecisionInputs,
    DecisionTrigger,
    PolicyOutcome,
    PolicyVerdict,
    Rung,
    decision_id,
    news_decision_id,
)
from htfi.domain.governance import Hold, SwapFacts
from htfi.domain.news_view import NewsView
from htfi.governance.checkpoints.reasons import clear_rows
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.policy import judge
from htfi.narrative.influence import bound_view, max_view_influence
from htfi.narrative.recent_news import NO_NEWS
from htfi.narrative.triggering import VERSION as TRIGGERS_VERSION
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.governance_facts import Facts
from htfi.pipeline.numeric import decide_by_numbers, is_numeric, row_rationale
from htfi.pipeline.point import PointColumns
from htfi.pipeline.record.numeric import SharedFacts
from htfi.pipeline.recorder import LedgerCursor
from htfi.pipeline.series import SeriesContext
from htfi.pipeline.subjects import CheckedColumns, hold_subject
from htfi.pipeline.swap_tests import SWAPS_KEY, SWAPS_VERSION
from htfi.pipeline.view_cache import ReadRequest
from htfi.pipeline.weighing import fair_opinion, join_parts, max_view_weight, opinion_of, report_divergence
from htfi.scheduling.fidelity import is_high_value, is_silent

_NOT_JUDGED = PolicyVerdict(PolicyOutcome.WITHHOLD, [])


def read_news(
    series: Sequence[SeriesContext], components: Components, cursor: LedgerCursor
) -> list[SeriesContext]:
    """A view for each series with news: prepared, recorded before a crash, cached, or read now by a model.

    It is joined by the encoder's readings of what no model reads, and counts as far as its items are trusted.
    """
    prepared = components.prepared
    if not prepared.is_on and all(one.request.news is NO_NEWS for one in series):
        return list(series)
    served = [
        prepared.serve(series_context.request, cursor.next_view(series_context.row))
        for series_context in series
    ]
    views = components.views.read(served)
    found = [
        replace(series_context, request=request, view=_merged_view(request, view, components))
        for series_context, request, view in zip(series, served, views, strict=True)
    ]
    fairness = components.governance.fairness
    if fairness is None:
        return found
    return [replace(one, swaps=_swap_facts(one, components, fairness, cursor)) for one in found]


def _swap_facts(
    series_context: SeriesContext, components: Components, fairness: FairnessConfig, cursor: LedgerCursor
) -> SwapFacts | UnsetType:
    """The swap test of a view, unset where there is none; what the ledger holds of it stands."""
    if series_context.view is None:
        return UNSET
    recorded = cursor.next_swaps(series_context.row)
    if recorded is not None:
        return recorded
    request, view = series_context.request, series_context.view
    return components.swap_tests.run(request, view, components.news, components.views, fairness)


def _merged_view(request: ReadRequest, view: NewsView | None, components: Components) -> NewsView | None:
    news = components.news
    if request.news is NO_NEWS or is_silent(request.plan):
        return view
    question = request.question
    parts = news.contents.item_parts(request.news, question.as_of_ns, question.bar_ns)
    merged = join_parts(view, parts, request.news.readings, news, question.as_of_ns)
    return merged if merged is None else bound_view(merged, news.contents.influence_limits(request.news))


def weigh_views(
    series: Sequence[SeriesContext],
    columns: PointColumns,
    components: Components,
    first: int,
    cursor: LedgerCursor,
) -> list[SeriesContext]:
    """The forecasts of series with news, changed by the views as far as the track records of their readers allow.

    The views of readers that governance holds back from decision `first` on change nothing: the numbers decide. Where
    the ledger holds the decision, its view is weighed or set aside as it was, whatever came after that.
    """
    held = _held_views(series, columns, components, first, cursor)
    opinions = {
        series_context.row: fair_opinion(
            opinion_of(
                series_context.view,
                series_context.request.question.as_of_ns,
                series_context.request.question.bar_ns,
                series_context.features.get("return_last"),
                max_view_influence(
                    series_context.view,
                    components.news.contents.influence_limits(series_context.request.news),
                ),
            ),
            series_context.swaps,
        )._replace(
            max_weight=max_view_weight(series_context.request, components.news.suspicion_monitor.config)
        )
        for series_context in series
        if series_context.view is not None
        and series_context.view.confidence > 0.0
        and series_context.row not in held
    }
    components.forecaster.apply_opinions(columns.forecasts, opinions, is_tracked=not columns.answered)
    weighed = [
        one
        if is_numeric(one)
        else replace(one, forecast=columns.forecast(one.row), set_aside=held.get(one.row, ()))
        for one in series
    ]
    report_divergence(weighed, components.news)
    return weighed


def _held_views(
    series: Sequence[SeriesContext],
    columns: PointColumns,
    components: Components,
    first: int,
    cursor: LedgerCursor,
) -> dict[int, tuple[Hold, ...]]:
    """Why views are not weighed, by row."""
    found: dict[int, tuple[Hold, ...]] = {}
    for one in series:
        if one.view is None:
            continue
        recorded = cursor.next_set_aside(one.row)
        subject = hold_subject(columns, one.row, one)
        held = components.governance.view_holds(first, subject) if recorded is None else recorded
        if held:
            found[one.row] = held
    return found


def decide_series(
    columns: PointColumns,
    series: Sequence[SeriesContext],
    first: int,
    components: Components,
    context: RunContext,
) -> list[DecidedSeries]:
    """The decisions on all series of a point, in their order: those from numbers alone are made together.

    `series` are those with a context. The decision on the first row will stand at index `first` of the ledger.
    """
    governance = components.governance
    shared = SharedFacts(
        columns.as_of_ns, components.inputs.close(), context.settings_digest, context.models, columns.plans
    )
    contexts = {one.row: one for one in series if not is_numeric(one)}
    governed = governance.facts(
        first,
        len(columns),
        lambda row: hold_subject(columns, row, contexts.get(row)),
        lambda config: clear_rows(CheckedColumns(columns, contexts), config).tolist(),
        frozenset(row for row, one in contexts.items() if one.set_aside),
    )
    decided: dict[int, DecidedSeries] = {}
    numeric = [row for row in range(len(columns)) if row not in contexts]
    for rows, batch in columns.forecasts.by_experts(numeric):
        made = decide_by_numbers(
            columns.take(rows, batch),
            shared,
            governed.take(rows),
            governance.policy,
            is_recorded=context.is_recorded,
        )
        decided.update(zip(rows, made, strict=True))
    for row, one in contexts.items():
        decided[row] = DecidedSeries.of(
            make_decision(one, columns, shared.inputs, governed.at(row), components, context)
        )
    return [decided[row] for row in range(len(columns))]


def make_decision(
    series_context: SeriesContext,
    columns: PointColumns,
    inputs: DecisionInputs,
    governed: Facts,
    components: Components,
    context: RunContext,
) -> Decision:
    """The decision on a series, judged by policy, with its rationale as it is stated, without words."""
    bar, request, features = series_context.bar, series_context.request, series_context.features
    row, as_of_ns, plan = series_context.row, columns.as_of_ns, request.plan
    forecast = series_context.forecast or columns.forecast(row)
    rationale = row_rationale(
        columns,
        row,
        forecast,
        plan,
        headlines=components.news.held.items(series_context.view.cited) if series_context.view else (),
        view=series_context.view,
        tilt=forecast.tilt,
        deepening=plan.rung_after_release is Rung.DEEP and not is_high_value(plan),
        consulting=is_high_value(plan),
        suspected=bool(request.news.suspicion),
    )
    answered = series_context.answered
    models = context.models if answered is None else context.models | {"triggers": TRIGGERS_VERSION}
    models = models if series_context.swaps is UNSET else models | {SWAPS_KEY: SWAPS_VERSION}
    decision = Decision(
        id=(decision_id if answered is None else news_decision_id)(request.series, as_of_ns),
        symbol=bar.symbol,
        interval=bar.interval,
        as_of_ns=as_of_ns,
        last_price=series_context.last_price,
        inputs=inputs,
        settings_digest=context.settings_digest,
        models=models,
        plan=plan,
        regime=series_context.regime,
        features=features,
        forecast=forecast,
        view=series_context.view,
        rationale=rationale,
        circumstances=columns.circumstances(row),
        verdict=_NOT_JUDGED,
        news_context=components.news.contents.news_context(request.news, plan, request.budget),
        trigger=UNSET if answered is None else DecisionTrigger.NEWS,
        news_trigger=UNSET if answered is None else answered.trigger,
        governance=governed,
        known_events=columns.known_events.get(row, UNSET),
    )
    return replace(decision, verdict=judge(decision, components.governance.policy))
