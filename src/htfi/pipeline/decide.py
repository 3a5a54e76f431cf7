"""Decisions from what the rooms know: plan, ask, weigh, explain, judge. The loop calls it for a moment's series."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from htfi.domain.decision import (
    Circumstances,
    Decision,
    Forecast,
    Inputs,
    Plan,
    Regime,
    Rung,
    View,
    series_id,
)
from htfi.domain.events import Bar
from htfi.domain.news import Means
from htfi.domain.time import NS_PER_MS, format_ns
from htfi.forecasting.forecaster import ForecastBatch
from htfi.governance.policy import Facts, judge
from htfi.narrative.drivers import drivers
from htfi.narrative.leverage import bounded, may_move
from htfi.narrative.merging import merge
from htfi.narrative.notes import NOTHING, Gathered
from htfi.narrative.question import Question
from htfi.narrative.rationale import write_rationale
from htfi.narrative.routing import capped
from htfi.pipeline.reading import Asked
from htfi.pipeline.rooms import Rooms, Terms
from htfi.pipeline.suspicion import most_weight, note_divergence
from htfi.pipeline.weighing import opinion_of
from htfi.scheduling.fidelity import cost_ms, for_its_worth, go_deeper, is_for_worth, plan

BAND = (0.05, 0.95)  # the central 90% that rationale and policy speak of


def ask_all(bars: Sequence[Bar], as_of_ns: int, rooms: Rooms, terms: Terms) -> list[Asked]:
    """Gather the news on each bar's series and choose its rung.

    The deadline is the whole moment's, shared by the series that have news to read: few get the target, many the
    draft, and those for which nothing is left come first at a later moment.
    """
    gathered = [rooms.desk.gather(bar.symbol, as_of_ns) for bar in bars]
    questions = [
        (series_id(bar.symbol, bar.interval), _question(bar, as_of_ns, known, rooms))
        for bar, known in zip(bars, gathered, strict=True)
    ]
    deadlines_ms = [terms.pipeline.deadline_ms] * len(bars)
    left_ms = terms.pipeline.deadline_ms
    doubts = {place: rooms.desk.doubt(known) for place, known in enumerate(gathered) if known.items}
    turns = rooms.readings.turns(questions, doubts)
    budgets_ms: dict[int, float] = {}
    plans: dict[int, Plan] = {}
    for turn, place in enumerate(turns):
        fair_ms = left_ms / (len(turns) - turn)
        deadlines_ms[place] = max(fair_ms, min(left_ms, terms.fidelity.edge_ms))
        budgets_ms[place] = left_ms
        chosen = plans[place] = _plan(bars[place], deadlines_ms[place], gathered[place], rooms, terms)
        if not rooms.readings.has(*questions[place], chosen.rung):
            left_ms -= cost_ms(chosen.rung, terms.fidelity)
    return [
        Asked(
            *questions[place],
            plans.get(place) or _plan(bars[place], deadlines_ms[place], known, rooms, terms),
            known,
            None
            if known is NOTHING
            else Means(
                round(deadlines_ms[place], 3),
                round(budgets_ms.get(place, left_ms), 3),
                rooms.desk.frontier_cents,
            ),
        )
        for place, known in enumerate(gathered)
    ]


def _question(bar: Bar, as_of_ns: int, known: Gathered, rooms: Rooms) -> Question:
    news = known.items
    context = _moves(series_id(bar.symbol, bar.interval), rooms, bar.symbol, bar.interval) if news else ()
    return Question(bar.symbol, as_of_ns, bar.end_ns - bar.start_ns, news, context)


def _plan(bar: Bar, deadline_ms: float, known: Gathered, rooms: Rooms, terms: Terms) -> Plan:
    regime = rooms.market.regime(bar.symbol, bar.interval)
    suspicion = bool(known.suspicion)
    chosen = plan(regime, deadline_ms, rooms.readings.rungs, suspicion=suspicion, config=terms.fidelity)
    if not known.items:
        return chosen
    return capped(chosen, rooms.desk.routes(known.items), rooms.readings.rungs)


def merge_all(asked: Sequence[Asked], views: Sequence[View | None], rooms: Rooms) -> list[View | None]:
    """The views as far as their items are trusted, joined by the encoder's readings of what no model reads."""
    return [
        view if one.gathered is NOTHING else _merged(one, view, rooms)
        for one, view in zip(asked, views, strict=True)
    ]


def _merged(one: Asked, view: View | None, rooms: Rooms) -> View | None:
    trust = rooms.desk.trust(view.cited) if view is not None else 1.0
    merged = merge(view, trust, rooms.desk.noted_parts(one.gathered), one.question.as_of_ns)
    return merged if merged is None else bounded(merged, rooms.desk.shares(one.gathered))


def _moves(series: str, rooms: Rooms, symbol: str, interval: str) -> tuple[float, ...]:
    """Recent returns in units of volatility, with the newest, which nothing has learnt from yet."""
    sigma = rooms.scaled.sigma(series)
    last = rooms.market.features(symbol, interval).get("return_last")
    known = rooms.scaled.of(series)
    return (*known, last / sigma) if sigma and last is not None else known


def weigh_all(
    bars: Sequence[Bar],
    places: Sequence[int],
    asked: Sequence[Asked],
    views: Sequence[View | None],
    batch: ForecastBatch,
    rooms: Rooms,
) -> None:
    """Let the views change the forecasts at these places of `batch`, as far as their readers have earned it."""
    opinions = {
        place: opinion_of(
            view,
            one.question.as_of_ns,
            one.question.bar_ns,
            rooms.market.features(bars[place].symbol, bars[place].interval).get("return_last"),
            may_move(view, rooms.desk.shares(one.gathered)),
        )._replace(most_weight=most_weight(one, rooms.desk.secure.config))
        for place, one, view in zip(places, asked, views, strict=True)
        if view is not None and view.confidence > 0.0
    }
    rooms.forecaster.weigh(batch, opinions)
    note_divergence(places, asked, views, batch, rooms)


def deepen_all(
    places: Sequence[int],
    asked: Sequence[Asked],
    views: Sequence[View | None],
    batch: ForecastBatch,
    rooms: Rooms,
    terms: Terms,
) -> tuple[list[Asked], int]:
    """The same series with their plans, those to be read again in depth having one that says so; and how many were
    left out for want of time. What is worth a frontier model, where there is money for one, is read by it first.
    """
    if Rung.DEEP not in rooms.readings.rungs:
        return list(asked), 0
    divergences = [0.0] * len(asked)
    plans = [one.plan for one in asked]
    for turn, (place, one, view) in enumerate(zip(places, asked, views, strict=True)):
        if view is None or view.provisional or rooms.readings.has(one.series, one.question, Rung.DEEP):
            continue
        if rooms.desk.worth_frontier(one.gathered):
            divergences[turn], plans[turn] = 1.0, for_its_worth(one.plan)
        elif (tilt := batch.tilts.get(place)) is not None:
            divergences[turn] = tilt.divergence_rank
    bars_ms = [one.question.bar_ns / NS_PER_MS for one in asked]
    most = rooms.desk.num_affordable(len(asked))
    chosen, num_left_out = go_deeper(plans, divergences, bars_ms, terms.fidelity, most)
    rooms.desk.spend(len(chosen))
    return [
        one._replace(plan=chosen[turn]) if turn in chosen else one for turn, one in enumerate(asked)
    ], num_left_out


def decide_series(
    bar: Bar,
    asked: Asked,
    view: View | None,
    batch: ForecastBatch,
    place: int,
    inputs: Inputs,
    rooms: Rooms,
    terms: Terms,
) -> Decision:
    """The decision on `bar`'s series, whose forecast stands at `place` in `batch`."""
    symbol, interval = bar.symbol, bar.interval
    series, question, chosen = asked.series, asked.question, asked.plan
    as_of_ns = question.as_of_ns
    regime = rooms.market.regime(symbol, interval)
    features = rooms.market.features(symbol, interval)
    forecast = batch.item(place)
    low, high = band(forecast)
    usual = rooms.usual.of(series)
    rationale = write_rationale(
        symbol=symbol,
        interval=interval,
        regime=regime,
        last_price=bar.close,
        low=low,
        high=high,
        as_of_ns=as_of_ns,
        coverage=BAND[1] - BAND[0],
        previous_width=rooms.widths.get(series),
        last_return=features.get("return_last"),
        last_sigmas=features.get("return_sigmas"),
        drivers=drivers(features, usual),
        has_usual=bool(usual),
        weights={name: weights[0] for name, weights in forecast.shares.items()},
        headlines=rooms.desk.items(view.cited) if view else (),
        view=view,
        tilt=forecast.tilt,
        deepening=chosen.then is Rung.DEEP and not is_for_worth(chosen),
        consulting=is_for_worth(chosen),
        suspected=bool(asked.gathered.suspicion),
    )
    circumstances = Circumstances(
        bar_start_ns=bar.start_ns,
        bar_end_ns=bar.end_ns,
        quote_age_ns=rooms.market.quote_age_ns(symbol, as_of_ns),
        missing_share=rooms.inputs.missing_share(),
    )
    verdict = judge(facts(symbol, as_of_ns, regime, features, forecast, circumstances), terms.policy)
    rooms.widths[series] = high - low
    return Decision(
        id=f"{series}@{_instant(as_of_ns)}",
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
        hearing=rooms.desk.hearing(asked.gathered, chosen, asked.means),
    )


@lru_cache(maxsize=8)  # all series of a moment share it
def _instant(as_of_ns: int) -> str:
    return format_ns(as_of_ns)


def facts(
    symbol: str,
    as_of_ns: int,
    regime: Regime,
    features: Mapping[str, float],
    forecast: Forecast,
    circumstances: Circumstances,
) -> Facts:
    """What policy judges by, all of it in the record, so that a verdict can be reached again."""
    low, high = band(forecast)
    return Facts(
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


def band(forecast: Forecast) -> tuple[float, float]:
    """The ends of the central 90% at the first horizon, as log returns."""
    nearest, levels = forecast.quantiles[0], forecast.levels
    return nearest[levels.index(BAND[0])], nearest[levels.index(BAND[1])]
