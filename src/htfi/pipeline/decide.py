"""Decisions from what the rooms know: plan, ask, weigh, explain, judge. The loop calls it for a moment's series."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from htfi.domain.decision import (
    BarCircumstances,
    Decision,
    DecisionInputs,
    FidelityPlan,
    Forecast,
    NewsView,
    Regime,
    Rung,
    series_id,
)
from htfi.domain.events import Bar
from htfi.domain.news import ReadingBudget
from htfi.domain.time import NS_PER_MS, format_ns
from htfi.forecasting.forecaster import ForecastBatch
from htfi.governance.policy import PolicyFacts, judge
from htfi.narrative.influence import bound_view, max_view_influence
from htfi.narrative.merging import merge_views
from htfi.narrative.question import Question
from htfi.narrative.rationale.drivers import find_drivers
from htfi.narrative.rationale.writer import write_rationale
from htfi.narrative.recent_news import NO_NEWS, NewsSelection
from htfi.narrative.routing import cap_plan
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.view_cache import ReadRequest
from htfi.pipeline.weighing import max_view_weight, opinion_of, report_divergence
from htfi.scheduling.fidelity import is_high_value, mark_high_value, plan, plan_deep_reads, rung_time_ms

BAND_LEVELS = (0.05, 0.95)  # the central 90% that rationale and policy speak of


def plan_readings(
    bars: Sequence[Bar], as_of_ns: int, rooms: Components, terms: RunContext
) -> list[ReadRequest]:
    """Gather the news on each bar's series and choose its rung.

    The deadline is the whole moment's, shared by the series that have news to read: few get the target, many the
    draft, and those for which nothing is left come first at a later moment.
    """
    gathered = [rooms.news.select(bar.symbol, as_of_ns) for bar in bars]
    questions = [
        (series_id(bar.symbol, bar.interval), _question(bar, as_of_ns, known, rooms))
        for bar, known in zip(bars, gathered, strict=True)
    ]
    deadlines_ms = [terms.pipeline.deadline_ms] * len(bars)
    left_ms = terms.pipeline.deadline_ms
    doubts = {
        place: rooms.news.reading_suspicion(known) for place, known in enumerate(gathered) if known.items
    }
    turns = rooms.views.reading_turns(questions, doubts)
    budgets_ms: dict[int, float] = {}
    plans: dict[int, FidelityPlan] = {}
    for turn, place in enumerate(turns):
        fair_ms = left_ms / (len(turns) - turn)
        deadlines_ms[place] = max(fair_ms, min(left_ms, terms.fidelity.edge_ms))
        budgets_ms[place] = left_ms
        chosen = plans[place] = _plan(bars[place], deadlines_ms[place], gathered[place], rooms, terms)
        if not rooms.views.has(*questions[place], chosen.rung):
            left_ms -= rung_time_ms(chosen.rung, terms.fidelity)
    return [
        ReadRequest(
            *questions[place],
            plans.get(place) or _plan(bars[place], deadlines_ms[place], known, rooms, terms),
            known,
            None
            if known is NO_NEWS
            else ReadingBudget(
                round(deadlines_ms[place], 3),
                round(budgets_ms.get(place, left_ms), 3),
                rooms.news.frontier_cents,
            ),
        )
        for place, known in enumerate(gathered)
    ]


def _question(bar: Bar, as_of_ns: int, known: NewsSelection, rooms: Components) -> Question:
    news = known.items
    context = (
        _scaled_context(series_id(bar.symbol, bar.interval), rooms, bar.symbol, bar.interval) if news else ()
    )
    return Question(bar.symbol, as_of_ns, bar.end_ns - bar.start_ns, news, context)


def _plan(
    bar: Bar, deadline_ms: float, known: NewsSelection, rooms: Components, terms: RunContext
) -> FidelityPlan:
    regime = rooms.market.regime(bar.symbol, bar.interval)
    suspicion = bool(known.suspicion)
    chosen = plan(regime, deadline_ms, rooms.views.rungs, suspicion=suspicion, config=terms.fidelity)
    if not known.items:
        return chosen
    return cap_plan(chosen, rooms.news.max_routes(known.items), rooms.views.rungs)


def merge_all_views(
    asked: Sequence[ReadRequest], views: Sequence[NewsView | None], rooms: Components
) -> list[NewsView | None]:
    """The views as far as their items are trusted, joined by the encoder's readings of what no model reads."""
    return [
        view if one.news is NO_NEWS else _merged_view(one, view, rooms)
        for one, view in zip(asked, views, strict=True)
    ]


def _merged_view(one: ReadRequest, view: NewsView | None, rooms: Components) -> NewsView | None:
    trust = rooms.news.mean_trust(view.cited) if view is not None else 1.0
    merged = merge_views(view, trust, rooms.news.encoder_parts(one.news), one.question.as_of_ns)
    return merged if merged is None else bound_view(merged, rooms.news.influence_limits(one.news))


def _scaled_context(series: str, rooms: Components, symbol: str, interval: str) -> tuple[float, ...]:
    """Recent returns in units of volatility, with the newest, which nothing has learnt from yet."""
    sigma = rooms.scaled_returns.sigma(series)
    last = rooms.market.features(symbol, interval).get("return_last")
    known = rooms.scaled_returns.recent(series)
    return (*known, last / sigma) if sigma and last is not None else known


def weigh_views(
    bars: Sequence[Bar],
    places: Sequence[int],
    asked: Sequence[ReadRequest],
    views: Sequence[NewsView | None],
    batch: ForecastBatch,
    rooms: Components,
) -> None:
    """Let the views change the forecasts at these places of `batch`, as far as their readers have earned it."""
    opinions = {
        place: opinion_of(
            view,
            one.question.as_of_ns,
            one.question.bar_ns,
            rooms.market.features(bars[place].symbol, bars[place].interval).get("return_last"),
            max_view_influence(view, rooms.news.influence_limits(one.news)),
        )._replace(most_weight=max_view_weight(one, rooms.news.suspicion_monitor.config))
        for place, one, view in zip(places, asked, views, strict=True)
        if view is not None and view.confidence > 0.0
    }
    rooms.forecaster.apply_opinions(batch, opinions)
    report_divergence(places, asked, views, batch, rooms)


def plan_deep_readings(
    places: Sequence[int],
    asked: Sequence[ReadRequest],
    views: Sequence[NewsView | None],
    batch: ForecastBatch,
    rooms: Components,
    terms: RunContext,
) -> tuple[list[ReadRequest], int]:
    """The same series with their plans, those to be read again in depth having one that says so; and how many were
    left out for want of time. What is worth a frontier model, where there is money for one, is read by it first.
    """
    if Rung.DEEP not in rooms.views.rungs:
        return list(asked), 0
    divergences = [0.0] * len(asked)
    plans = [one.plan for one in asked]
    for turn, (place, one, view) in enumerate(zip(places, asked, views, strict=True)):
        if view is None or view.provisional or rooms.views.has(one.series, one.question, Rung.DEEP):
            continue
        if rooms.news.is_worth_frontier(one.news):
            divergences[turn], plans[turn] = 1.0, mark_high_value(one.plan)
        elif (tilt := batch.tilts.get(place)) is not None:
            divergences[turn] = tilt.divergence_rank
    bars_ms = [one.question.bar_ns / NS_PER_MS for one in asked]
    most = rooms.news.num_affordable(len(asked))
    chosen, num_left_out = plan_deep_reads(plans, divergences, bars_ms, terms.fidelity, most)
    rooms.news.charge_readings(len(chosen))
    return [
        one._replace(plan=chosen[turn]) if turn in chosen else one for turn, one in enumerate(asked)
    ], num_left_out


def make_decision(
    bar: Bar,
    asked: ReadRequest,
    view: NewsView | None,
    batch: ForecastBatch,
    place: int,
    inputs: DecisionInputs,
    rooms: Components,
    terms: RunContext,
) -> Decision:
    """The decision on `bar`'s series, whose forecast stands at `place` in `batch`."""
    symbol, interval = bar.symbol, bar.interval
    series, question, chosen = asked.series, asked.question, asked.plan
    as_of_ns = question.as_of_ns
    regime = rooms.market.regime(symbol, interval)
    features = rooms.market.features(symbol, interval)
    forecast = batch.item(place)
    low, high = central_band(forecast)
    usual = rooms.typical_features.magnitudes(series)
    rationale = write_rationale(
        symbol=symbol,
        interval=interval,
        regime=regime,
        last_price=bar.close,
        low=low,
        high=high,
        as_of_ns=as_of_ns,
        coverage=BAND_LEVELS[1] - BAND_LEVELS[0],
        previous_width=rooms.band_widths.get(series),
        last_return=features.get("return_last"),
        last_sigmas=features.get("return_sigmas"),
        drivers=find_drivers(features, usual),
        has_usual=bool(usual),
        weights={name: weights[0] for name, weights in forecast.shares.items()},
        headlines=rooms.news.items(view.cited) if view else (),
        view=view,
        tilt=forecast.tilt,
        deepening=chosen.then is Rung.DEEP and not is_high_value(chosen),
        consulting=is_high_value(chosen),
        suspected=bool(asked.news.suspicion),
    )
    circumstances = BarCircumstances(
        bar_start_ns=bar.start_ns,
        bar_end_ns=bar.end_ns,
        quote_age_ns=rooms.market.quote_age_ns(symbol, as_of_ns),
        missing_share=rooms.inputs.missing_share(),
    )
    verdict = judge(policy_facts(symbol, as_of_ns, regime, features, forecast, circumstances), terms.policy)
    rooms.band_widths[series] = high - low
    return Decision(
        id=f"{series}@{_instant_text(as_of_ns)}",
        symbol=symbol,
        interval=interval,
        as_of_ns=as_of_ns,
        last_price=bar.close,
        inputs=inputs,
        settings_digest=terms.settings_digest,
        models=terms.models,
        plan=chosen,
        regime=regime,
        features=features,
        forecast=forecast,
        view=view,
        rationale=rationale,
        circumstances=circumstances,
        verdict=verdict,
        hearing=rooms.news.news_context(asked.news, chosen, asked.budget),
    )


@lru_cache(maxsize=8)  # all series of a moment share it
def _instant_text(as_of_ns: int) -> str:
    return format_ns(as_of_ns)


def policy_facts(
    symbol: str,
    as_of_ns: int,
    regime: Regime,
    features: Mapping[str, float],
    forecast: Forecast,
    circumstances: BarCircumstances,
) -> PolicyFacts:
    """What policy judges by, all of it in the record, so that a verdict can be reached again."""
    low, high = central_band(forecast)
    return PolicyFacts(
        symbol=symbol,
        regime=regime,
        quantiles=forecast.quantiles,
        band_width=high - low,
        bar_age_ns=as_of_ns - circumstances.bar_end_ns,
        bar_length_ns=circumstances.bar_end_ns - circumstances.bar_start_ns,
        quote_age_ns=circumstances.quote_age_ns,
        last_return=features.get("return_last"),
        last_sigmas=features.get("return_sigmas"),
        quarantine_share=circumstances.missing_share,
    )


def central_band(forecast: Forecast) -> tuple[float, float]:
    """The ends of the central 90% at the first horizon, as log returns."""
    nearest, levels = forecast.quantiles[0], forecast.levels
    return nearest[levels.index(BAND_LEVELS[0])], nearest[levels.index(BAND_LEVELS[1])]
