"""Decisions from numbers alone: on bars, without news, all series of a point at once. `decide` calls it.

What a release needs is made in columns; a decision as an object is made of its row when somebody asks for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.decision import (
    Decision,
    FidelityPlan,
    Forecast,
    NewsTilt,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    decision_id,
)
from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import PolicyColumns, PolicyFacts, apply_rules, judge_rows, quote_gap, with_holds
from htfi.narrative.rationale.choice import MAX_EQUAL_SPREAD, OPENINGS, choose_openings, with_known
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.rationale.writer import is_led_by_one, state_rationale
from htfi.narrative.recent_news import NO_NEWS
from htfi.pipeline.decided import DecidedRows, DecidedSeries
from htfi.pipeline.governance_facts import PointFacts
from htfi.pipeline.point import PointColumns
from htfi.pipeline.record.numeric import JudgedRows, Judgement, RecordedAxes, SharedFacts, encode_numeric
from htfi.pipeline.record.rows import RowColumns
from htfi.pipeline.series import SeriesContext

_FEW_SERIES = 4  # judged one by one: for so few, columns cost more than they save
_NO_OBJECTION = PolicyVerdict(PolicyOutcome.RELEASE, [])
_MOVES = ("return_last", "return_sigmas")
_FIRST = OPENINGS.index("first")


def is_numeric(series_context: SeriesContext) -> bool:
    """Whether the numbers alone decide a series: it is on a bar, and there is no news on it."""
    return (
        series_context.request.news is NO_NEWS
        and series_context.view is None
        and series_context.answered is None
        and series_context.request.plan.rung_after_release is None
    )


def decide_by_numbers(
    columns: PointColumns,
    shared: SharedFacts,
    governed: PointFacts,
    policy: PolicyConfig,
    *,
    is_recorded: bool = True,
) -> list[DecidedSeries]:
    """The decisions on series that are decided by numbers alone, each with a forecast of every expert of the batch.

    `governed` is what governance knows of each. Those that nothing keeps are not recorded.
    """
    decided = _NumericRows(columns, shared, _judged(columns, governed, policy, shared.models["policy"]))
    low, high = columns.forecasts.bands()
    rows = DecidedRows(
        columns.as_of_ns, columns.series, columns.last_prices(), columns.forecasts.quantiles, low, high,
        decided.decision_at,
    )  # fmt: skip
    entries: Sequence[bytes | None] = decided.entries() if is_recorded else [None] * len(columns)
    verdicts = [decided.judged.usual.verdict] * len(columns)
    for row, one in decided.judged.others.items():
        verdicts[row] = one.verdict
    return [
        DecidedSeries(rows, row, verdict, entry)
        for row, (verdict, entry) in enumerate(zip(verdicts, entries, strict=True))
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _NumericRows:
    """Decisions from numbers alone: what they are made of."""

    columns: PointColumns
    shared: SharedFacts
    judged: JudgedRows

    def entries(self) -> list[bytes]:
        """The entry of each. Raises: IntegrityError where a number is not finite."""
        columns, forecasts, market = self.columns, self.columns.forecasts, self.columns.market
        _, num_experts, num_horizons, num_levels = forecasts.experts.shape
        openings, shares = self._openings(), forecasts.first_shares()
        are_led = shares.max(axis=1) - shares.min(axis=1) >= MAX_EQUAL_SPREAD
        words = zip(openings.tolist(), CURRENT.widths(columns.previous_width.tolist()), strict=True)
        rows = RowColumns(
            bars=columns.bars,
            levels=market.levels,
            features=market.features.reshape(-1),
            quote_age_ns=market.quote_age_ns,
            quote_mid=market.quote_mid,
            quarantine_share=columns.quarantine_share,
            num_drivers=columns.drivers.counts,
            found=columns.drivers.found.reshape(-1),
            usual=columns.drivers.usual.reshape(-1),
            choices=self._choices(openings),
            are_led=are_led.view(np.uint8),
            previous_widths=["" if opening == _FIRST else width for opening, width in words],
            ticks=forecasts.expert_ticks().reshape(-1),
            quantiles=forecasts.quantiles.reshape(-1),
            weights=forecasts.weights.reshape(-1),
            calibration=forecasts.calibration.reshape(-1),
            num_experts=num_experts,
            num_horizons=num_horizons,
            num_levels=num_levels,
            num_zones=forecasts.weights.shape[3],
        )
        axes = RecordedAxes(forecasts.names, forecasts.horizons, forecasts.levels)
        return encode_numeric(self.shared, axes, market.names, self.judged, rows, self.decision_at)

    def _openings(self) -> NDArray[np.int8]:
        """The opening of each rationale [n], by its place in `choice.OPENINGS`."""
        columns, found = self.columns, np.empty(len(self.columns), np.int8)
        last_return, last_sigmas = (np.ascontiguousarray(columns.market.feature(name)) for name in _MOVES)
        shocks = columns.are_shocks().view(np.uint8)
        choose_openings(columns.widths(), columns.previous_width, last_return, last_sigmas, shocks, found)
        return found

    def _choices(self, openings: NDArray[np.int8]) -> NDArray[np.int8]:
        """The openings [n], with the sentence on what is known of the next bar where something is."""
        known = self.columns.known_events
        if not known:
            return openings
        choices = openings.copy()
        for row, found in known.items():
            choices[row] = with_known(int(openings[row]), found.factor)
        return choices

    def decision_at(self, row: int) -> Decision:
        """The decision of a row."""
        columns, shared, judgement = self.columns, self.shared, self.judged.at(row)
        bar, features = columns.bars[row], columns.market.features_at(row)
        forecast = columns.forecasts.item(row)
        return Decision(
            id=decision_id(columns.series[row], columns.as_of_ns),
            symbol=bar.symbol,
            interval=bar.interval,
            as_of_ns=columns.as_of_ns,
            last_price=bar.close,
            inputs=shared.inputs,
            settings_digest=shared.settings_digest,
            models=dict(shared.models),
            plan=columns.plan(row),
            regime=columns.market.regime(row),
            features=features,
            forecast=forecast,
            view=None,
            rationale=row_rationale(columns, row, forecast, columns.plan(row)),
            circumstances=columns.circumstances(row),
            verdict=judgement.verdict,
            governance=judgement.governance,
            known_events=columns.known_events.get(row, UNSET),
        )


class _NewsStated(TypedDict, total=False):
    """What a rationale states of news: see `state_rationale`."""

    headlines: Sequence[News]
    view: NewsView | None
    tilt: NewsTilt | None
    deepening: bool
    consulting: bool
    suspected: bool


def row_rationale(
    columns: PointColumns, row: int, forecast: Forecast, plan: FidelityPlan, **news: Unpack[_NewsStated]
) -> Rationale:
    """The rationale of a row's decision as it is stated: what its numbers say, and of news what is given."""
    low, high = forecast.central_band
    features = columns.market.features_at(row)
    return state_rationale(
        symbol=columns.bars[row].symbol,
        regime=columns.market.regime(row),
        width=high - low,
        as_of_ns=columns.as_of_ns,
        previous_width=columns.previous_width_at(row),
        last_return=features.get("return_last"),
        last_sigmas=features.get("return_sigmas"),
        drivers=columns.drivers_at(row),
        has_usual=columns.has_usual(row),
        is_led=is_led_by_one(forecast.first_shares.values()),
        plan=plan,
        known=columns.known_events.get(row, UNSET),
        **news,
    )


def _judged(columns: PointColumns, governed: PointFacts, policy: PolicyConfig, version: str) -> JudgedRows:
    """What policy and governance say of each."""
    objections = _objections(columns, policy, version)

    def judgement(row: int) -> Judgement:
        facts, events = governed.at(row), columns.known_events.get(row, UNSET)
        return Judgement(with_holds(objections.get(row, _NO_OBJECTION), facts), facts, events)

    usual = Judgement(with_holds(_NO_OBJECTION, governed.usual), governed.usual)
    apart = sorted({*objections, *governed.others, *columns.known_events})
    return JudgedRows(usual, {row: judgement(row) for row in apart})


def _objections(columns: PointColumns, policy: PolicyConfig, version: str) -> Mapping[int, PolicyVerdict]:
    """The verdicts on those that a rule objects to, by row."""
    forecasts, market = columns.forecasts, columns.market
    width = columns.widths()

    def facts_at(row: int) -> PolicyFacts:
        bar, known, features = columns.bars[row], columns.circumstances(row), market.features_at(row)
        return PolicyFacts(
            symbol=bar.symbol,
            regime=market.regime(row),
            quantiles=forecasts.quantiles[row].tolist(),
            band_width=float(width[row]),
            bar_age_ns=columns.as_of_ns - bar.end_ns,
            bar_length_ns=bar.end_ns - bar.start_ns,
            quote_age_ns=known.quote_age_ns,
            last_return=features.get("return_last"),
            last_sigmas=features.get("return_sigmas"),
            quarantine_share=known.quarantine_share,
            quote_gap=quote_gap(bar.close, known),
            features=features,
        )

    if len(columns) <= _FEW_SERIES:
        verdicts = ((row, apply_rules(facts_at(row), policy, version)) for row in range(len(columns)))
        return {row: verdict for row, verdict in verdicts if verdict != _NO_OBJECTION}
    last_return, last_sigmas = (np.nan_to_num(market.feature(name), nan=0.0) for name in _MOVES)
    return judge_rows(
        PolicyColumns(
            symbols=[bar.symbol for bar in columns.bars],
            is_shock=columns.are_shocks(),
            quantiles=forecasts.quantiles,
            band_width=width,
            bar_age_ns=np.array([columns.as_of_ns - bar.end_ns for bar in columns.bars], np.float64),
            bar_length_ns=np.array([bar.end_ns - bar.start_ns for bar in columns.bars], np.float64),
            quote_age_ns=np.maximum(market.quote_age_ns, 0).astype(np.float64),
            last_return=last_return,
            last_sigmas=last_sigmas,
            quarantine_share=columns.quarantine_share,
        ),
        facts_at,
        policy,
        version,
    )
