"""Decisions from numbers alone: on bars, without news, all series of a point at once. `DecisionLoop` calls it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import UNSET, UnsetType

from htfi.domain.decision import (
    BarCircumstances,
    Decision,
    DecisionInputs,
    PolicyVerdict,
    Rationale,
    Regime,
    decision_id,
    series_id,
)
from htfi.domain.events import Bar
from htfi.forecasting.batch import ForecastBatch
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import PolicyColumns, PolicyFacts, apply_rules, judge_rows, quote_gap, with_holds
from htfi.market.bars import SOURCE as BUILT_BARS
from htfi.market.state import MarketState
from htfi.narrative.rationale.drivers import find_drivers
from htfi.narrative.rationale.writer import MAX_EQUAL_SPREAD, state_rationale
from htfi.narrative.recent_news import NO_NEWS
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.governed import Facts
from htfi.pipeline.record.numeric import NumericFacts, SharedFacts, encode_numeric
from htfi.pipeline.series import SeriesContext

_FEW_SERIES = 4  # judged one by one: for so few, columns cost more than they save


def is_numeric(series_context: SeriesContext) -> bool:
    """Whether the numbers alone decide a series: it is on a bar, and there is no news on it."""
    return (
        series_context.request.news is NO_NEWS
        and series_context.view is None
        and series_context.answered is None
        and series_context.request.plan.rung_after_release is None
    )


def decide_by_numbers(
    series: Sequence[SeriesContext],
    forecasts: ForecastBatch,
    inputs: DecisionInputs,
    governed: Sequence[Facts],
    components: Components,
    context: RunContext,
) -> list[DecidedSeries]:
    """The decisions on series that are decided by numbers alone, each with a forecast of every expert of the batch.

    `forecasts` has a row for each of them, `governed` what governance knows of it.
    """
    as_of_ns = series[0].request.question.as_of_ns
    shared = SharedFacts(as_of_ns, inputs, context.settings_digest, context.models)
    circumstances = [circumstances_of(one.bar, as_of_ns, components) for one in series]
    statements = _statements(series, forecasts, components)
    verdicts = [
        with_holds(verdict, facts)
        for verdict, facts in zip(
            _verdicts(series, forecasts, circumstances, as_of_ns, components.governance.policy, context),
            governed,
            strict=True,
        )
    ]

    def facts_at(place: int) -> NumericFacts:
        one = series[place]
        return NumericFacts(
            one.bar, one.request.plan, one.regime, one.features, circumstances[place], verdicts[place],
            statements[place](), governed[place],
        )  # fmt: skip

    rows = [facts_at(place) for place in range(len(series))] if context.is_recorded else None

    def decision_at(place: int) -> Decision:
        return _decision(facts_at(place) if rows is None else rows[place], shared, forecasts, place)

    entries: Sequence[bytes | None] = [None] * len(series)
    if rows is not None:
        entries = encode_numeric(shared, rows, forecasts, decision_at)
    low, high = (ends.tolist() for ends in forecasts.bands())
    return [
        DecidedSeries(
            one.request.series, as_of_ns, one.bar.close, verdicts[place], forecasts.quantiles[place],
            (low[place], high[place]), partial(decision_at, place), entries[place],
        )
        for place, one in enumerate(series)
    ]  # fmt: skip


def _decision(row: NumericFacts, shared: SharedFacts, forecasts: ForecastBatch, place: int) -> Decision:
    bar = row.bar
    return Decision(
        id=decision_id(series_id(bar.symbol, bar.interval), shared.as_of_ns),
        symbol=bar.symbol,
        interval=bar.interval,
        as_of_ns=shared.as_of_ns,
        last_price=bar.close,
        inputs=shared.inputs,
        settings_digest=shared.settings_digest,
        models=dict(shared.models),
        plan=row.plan,
        regime=row.regime,
        features=row.features,
        forecast=forecasts.item(place),
        view=None,
        rationale=row.rationale,
        circumstances=row.circumstances,
        verdict=row.verdict,
        governance=row.governance,
    )


def circumstances_of(bar: Bar, as_of_ns: int, components: Components) -> BarCircumstances:
    """What policy judges besides the forecast, as it is known when a bar is decided."""
    return BarCircumstances(
        bar_start_ns=bar.start_ns,
        bar_end_ns=bar.end_ns,
        quote_age_ns=components.market.quote_age_ns(bar.symbol, as_of_ns),
        quarantine_share=components.inputs.missing_share(),
        quote_mid=_quote_mid(bar, components.market),
    )


def _quote_mid(bar: Bar, market: MarketState) -> float | UnsetType:
    """The mid of the quotes, where sound ones came since the bar began and the bar is not made of them."""
    quoted = market.quoted_mid(bar.symbol)
    is_of_mids = bar.source == BUILT_BARS and bar.volume <= 0.0
    if quoted is None or is_of_mids or quoted.at_ns < bar.start_ns:
        return UNSET
    return quoted.mid


def _statements(
    series: Sequence[SeriesContext], forecasts: ForecastBatch, components: Components
) -> list[Callable[[], Rationale]]:
    """What makes each rationale, from what is known now: of decisions that nothing records few are asked for."""
    low, high = forecasts.bands()
    shares = forecasts.first_shares()
    is_led = (shares.max(axis=1) - shares.min(axis=1) >= MAX_EQUAL_SPREAD).tolist()
    found: list[Callable[[], Rationale]] = []
    for one, width, led in zip(series, (high - low).tolist(), is_led, strict=True):
        name = one.request.series
        usual = dict(components.typical_features.magnitudes(name))  # it learns from the next bar in place
        found.append(partial(_state, one, width, components.band_widths.get(name), usual, led))
    return found


def _state(
    one: SeriesContext, width: float, previous_width: float | None, usual: Mapping[str, float], is_led: bool
) -> Rationale:
    return state_rationale(
        symbol=one.bar.symbol,
        regime=one.regime,
        width=width,
        as_of_ns=one.request.question.as_of_ns,
        previous_width=previous_width,
        last_return=one.features.get("return_last"),
        last_sigmas=one.features.get("return_sigmas"),
        drivers=find_drivers(one.features, usual),
        has_usual=bool(usual),
        is_led=is_led,
        plan=one.request.plan,
    )


def _verdicts(
    series: Sequence[SeriesContext],
    forecasts: ForecastBatch,
    circumstances: Sequence[BarCircumstances],
    as_of_ns: int,
    policy: PolicyConfig,
    context: RunContext,
) -> list[PolicyVerdict]:
    low, high = forecasts.bands()
    width = high - low

    def facts_at(place: int) -> PolicyFacts:
        one, known = series[place], circumstances[place]
        return PolicyFacts(
            symbol=one.bar.symbol,
            regime=one.regime,
            quantiles=forecasts.quantiles[place].tolist(),
            band_width=float(width[place]),
            bar_age_ns=as_of_ns - one.bar.end_ns,
            bar_length_ns=one.bar.end_ns - one.bar.start_ns,
            quote_age_ns=known.quote_age_ns,
            last_return=one.features.get("return_last"),
            last_sigmas=one.features.get("return_sigmas"),
            quarantine_share=known.quarantine_share,
            quote_gap=quote_gap(one.bar.close, known),
            features=one.features,
        )

    version = context.models["policy"]
    if len(series) <= _FEW_SERIES:
        return [apply_rules(facts_at(place), policy, version) for place in range(len(series))]
    columns = PolicyColumns(
        symbols=[one.bar.symbol for one in series],
        is_shock=np.array([one.regime is Regime.SHOCK for one in series]),
        quantiles=forecasts.quantiles,
        band_width=width,
        bar_age_ns=np.array([as_of_ns - one.bar.end_ns for one in series], np.float64),
        bar_length_ns=np.array([one.bar.end_ns - one.bar.start_ns for one in series], np.float64),
        quote_age_ns=np.array([one.quote_age_ns or 0 for one in circumstances], np.float64),
        last_return=np.array([one.features.get("return_last", 0.0) for one in series]),
        last_sigmas=np.array([one.features.get("return_sigmas", 0.0) for one in series]),
        quarantine_share=circumstances[0].quarantine_share,
    )

    return judge_rows(columns, facts_at, policy, version)
