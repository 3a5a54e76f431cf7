"""The series of a decision point as columns: what the main path decides from, a row for each that has a forecast.

The steps read it; series with news, and those that news triggers, have a `SeriesContext` beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.decision import (
    BarCircumstances,
    FeatureDriver,
    FidelityPlan,
    Forecast,
    KnownEvents,
    Regime,
    Rung,
)
from htfi.domain.events import Bar
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.between_bars import shorten
from htfi.market.regime import LEVELS
from htfi.market.state import MarketColumns
from htfi.narrative.rationale.drivers import MAX_DRIVERS
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.news_triggers import AnsweredSeries
from htfi.pipeline.series import DecisionPoint
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import choose_plan

_SHOCK = LEVELS.index(Regime.SHOCK)


@dataclass(frozen=True, slots=True, eq=False)
class Drivers:
    """The features of n series that stand out, as `FeatureBaseline.find_drivers` gives them.

    Shapes: found, usual [n, 3]; counts [n], −1 where nothing is usual yet.
    """

    found: NDArray[np.int64]
    usual: NDArray[np.float64]
    counts: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class PointColumns:
    """n series that are decided together, each with the bar that closed (between two bars its newest).

    `previous_width` [n] is that of the band before, in log return, NaN where there was none. `plans` are those of
    decisions from numbers alone, by the regime's level; `quarantine_share` is the part of the sources' latest rows set
    aside, 0–1. `known_events` are what was known of the next bars, by row.
    """

    as_of_ns: int
    bars: Sequence[Bar]
    series: Sequence[str]
    forecasts: ForecastBatch
    market: MarketColumns
    drivers: Drivers
    previous_width: NDArray[np.float64]
    plans: tuple[FidelityPlan, ...]
    quarantine_share: float
    answered: Sequence[AnsweredSeries] = ()  # each of a point between two bars
    known_events: Mapping[int, KnownEvents] = field(default_factory=dict[int, KnownEvents])  # by row

    def __len__(self) -> int:
        return len(self.bars)

    def take(self, rows: Sequence[int], forecasts: ForecastBatch) -> "PointColumns":
        """Of these series alone, in this order, with these forecasts of them."""
        if len(rows) == len(self.bars):
            return self if forecasts is self.forecasts else replace(self, forecasts=forecasts)
        at, drivers = np.array(rows, np.intp), self.drivers
        return replace(
            self,
            bars=[self.bars[row] for row in rows],
            series=[self.series[row] for row in rows],
            forecasts=forecasts,
            market=self.market.take(at),
            drivers=Drivers(drivers.found[at], drivers.usual[at], drivers.counts[at]),
            previous_width=self.previous_width[at],
            answered=[self.answered[row] for row in rows] if self.answered else (),
            known_events={
                place: self.known_events[row] for place, row in enumerate(rows) if row in self.known_events
            },
        )

    def last_prices(self) -> list[float]:
        """That each forecast starts from [n], in the units of the feed."""
        return [one.last_price for one in self.answered] or [bar.close for bar in self.bars]

    def widths(self) -> NDArray[np.float64]:
        """The width of each forecast's 90% band [n], in log return."""
        low, high = self.forecasts.bands()
        return high - low

    def are_shocks(self) -> NDArray[np.bool_]:
        """Where the regime is a shock [n]."""
        shocks: NDArray[np.bool_] = self.market.levels == _SHOCK
        return shocks

    def forecast(self, row: int) -> Forecast:
        """The forecast of one series in the record's form."""
        return self.forecasts.take([row]).item(0)

    def plan(self, row: int) -> FidelityPlan:
        """That of a decision from numbers alone."""
        return self.plans[int(self.market.levels[row])]

    def circumstances(self, row: int) -> BarCircumstances:
        """What policy judges besides the forecast, as it is known when a bar is decided."""
        bar, mid = self.bars[row], float(self.market.quote_mid[row])
        age_ns = int(self.market.quote_age_ns[row])
        return BarCircumstances(
            bar_start_ns=bar.start_ns,
            bar_end_ns=bar.end_ns,
            quote_age_ns=age_ns if age_ns >= 0 else None,
            quarantine_share=self.quarantine_share,
            quote_mid=mid if mid == mid else UNSET,
        )

    def previous_width_at(self, row: int) -> float | None:
        width = float(self.previous_width[row])
        return width if width == width else None

    def has_usual(self, row: int) -> bool:
        """Whether there is something usual to compare the features of a series with."""
        return bool(self.drivers.counts[row] >= 0)

    def drivers_at(self, row: int) -> list[FeatureDriver]:
        """The features of one series that stand out, those furthest from usual first."""
        found: list[FeatureDriver] = []
        for place in range(max(int(self.drivers.counts[row]), 0)):
            column, usual = int(self.drivers.found[row, place]), float(self.drivers.usual[row, place])
            value = float(self.market.features[row, column])
            found.append(FeatureDriver(self.market.names[column], value, usual, abs(value) / usual))
        return found


def open_point(point: DecisionPoint, components: Components, context: RunContext) -> PointColumns | None:
    """Take in the bars that closed; what is known of the series that have a forecast, None where none has.

    Between two bars it is the standing forecast, from the last price to the same ends.
    """
    bars = point.bars
    if not point.answered:
        components.market.close_bars(bars)
    market = components.market.read(bars, point.as_of_ns)
    if not point.answered:
        components.forecaster.observe(bars, market.regimes())
    forecasts = components.forecaster.forecast_bars(bars)
    if point.answered:
        shorten(forecasts, [answered.trigger.elapsed_bars for answered in point.answered])
    ready = np.flatnonzero(forecasts.ready).tolist()
    if not ready:
        return None
    columns = read_columns(bars, point.as_of_ns, market, forecasts, components, context, point.answered)
    return columns.take(ready, forecasts.take(ready))


def read_columns(
    bars: Sequence[Bar],
    as_of_ns: int,
    market: MarketColumns,
    forecasts: ForecastBatch,
    components: Components,
    context: RunContext,
    answered: Sequence[AnsweredSeries] = (),
) -> PointColumns:
    """What is known of series that are decided now. Market and forecasts have a row for each bar."""
    series, widths = components.forecaster.names_of(forecasts.rows), components.band_widths
    return PointColumns(
        as_of_ns=as_of_ns,
        bars=bars,
        series=series,
        forecasts=forecasts,
        market=market,
        drivers=_find_drivers(series, market, components),
        previous_width=np.array([widths.get(name, np.nan) for name in series]),
        plans=_plans(context.pipeline.deadline_ms, components.views.rungs, context.fidelity),
        quarantine_share=components.inputs.missing_share(),
        answered=answered,
        known_events={} if answered else components.forecaster.known_events(forecasts.rows),
    )


@lru_cache(maxsize=16)
def _plans(deadline_ms: float, rungs: frozenset[Rung], config: FidelityConfig) -> tuple[FidelityPlan, ...]:
    """The plan of a decision without news, by the regime's level."""
    return tuple(choose_plan(level, deadline_ms, rungs, config=config) for level in LEVELS)


def _find_drivers(series: Sequence[str], market: MarketColumns, components: Components) -> Drivers:
    n = len(series)
    found, usual, counts = (
        np.zeros((n, MAX_DRIVERS), np.int64),
        np.zeros((n, MAX_DRIVERS)),
        np.empty(n, np.int8),
    )
    components.typical_features.find_drivers(
        series, market.names, market.features.reshape(-1), found.reshape(-1), usual.reshape(-1), counts
    )
    return Drivers(found, usual, counts)
