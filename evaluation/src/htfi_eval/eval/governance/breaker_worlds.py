"""Real and simulated markets as breakers see them: the live forecaster walks over bars, and faults are put in its way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from htfi.domain.decision import Regime, series_id
from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.breakers.observations import PointObservation, feature_column
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi.wiring.experts import open_experts
from htfi_eval.eval.prices import Prices

ChangeBars = Callable[
    [int, list[Bar]], list[Bar]
]  # a fault of the feed: (bar number since it began, bars) → bars

MODELS: Mapping[str, str] = {"fused": "1", "target": "mini-target-int8"}


@dataclass(slots=True)
class MarketWalk:
    """The market state and the forecaster of a desk's series, which walk over the bars of a panel.

    `saved` and `load` take it back to an instant, so that many faults begin from one past.
    """

    prices: Prices
    market: MarketState
    forecaster: Forecaster

    def step(self, bars: Sequence[Bar], available_ns: int) -> PointObservation | None:
        """What breakers see of the decisions on these bars; None while no series has a forecast."""
        if not bars:
            return None
        for bar in bars:
            self.market.close_bar(bar)
        regimes: list[Regime] = [self.market.regime(bar.symbol, bar.interval) for bar in bars]
        self.forecaster.observe(bars, regimes)
        names = [series_id(bar.symbol, bar.interval) for bar in bars]
        batch = self.forecaster.forecast(names)
        ready = np.flatnonzero(batch.ready).tolist()
        if not ready:
            return None
        batch = batch.take(ready)
        chosen = [bars[place] for place in ready]
        features = [self.market.features(bar.symbol, bar.interval) for bar in chosen]
        unknown = np.full(len(ready), np.nan)
        return PointObservation(
            as_of_ns=available_ns,
            series=[names[place] for place in ready],
            levels=batch.levels,
            horizons=batch.horizons,
            expert_names=batch.names,
            quantiles=batch.quantiles.copy(),
            experts=batch.experts.copy(),
            bar_start_ns=np.array([bar.start_ns for bar in chosen], np.int64),
            bar_end_ns=np.array([bar.end_ns for bar in chosen], np.int64),
            price=np.array([bar.close for bar in chosen]),
            log_return=feature_column(features, "return_last"),
            return_sigmas=feature_column(features, "return_sigmas"),
            range_last=feature_column(features, "range_last"),
            volume_ratio=feature_column(features, "volume_ratio"),
            quote_age_ns=unknown,
            quote_gap=unknown,
            quarantine_share=0.0,
            models=MODELS,
            views={},
        )

    def saved(self) -> dict[str, Any]:
        return {"market": self.market.state(), "forecaster": self.forecaster.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.market.restore(state["market"])
        self.forecaster.restore(state["forecaster"])


def open_walk(prices: Prices) -> MarketWalk:
    """A walk at the beginning of a panel, by the shipped forecaster."""
    config = ForecastConfig()
    return MarketWalk(
        prices, MarketState(MarketConfig()), Forecaster(config, open_experts(config, config.foundation))
    )


def walk_points(
    walk: MarketWalk, first: int, last: int, change: ChangeBars | None = None
) -> Iterator[PointObservation]:
    """The points of instants [first, last) of the panel, in order; `change` is a fault of the feed from `first` on."""
    for t in range(first, last):
        bars = walk.prices.bars(t)
        if change is not None:
            bars = change(t - first, bars)
        point = walk.step(bars, int(walk.prices.available_ns[t]))
        if point is not None:
            yield point
