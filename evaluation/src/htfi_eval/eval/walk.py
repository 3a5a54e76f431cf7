"""Walks bars through the live forecaster, instant by instant, with peers; evaluations score the forecasts.

Each forecast is made before later data go in: the bars of an instant go in, in order of `available_at`, with the
regimes of the market package, as `pipeline.loop` does it. Outcomes are looked up only to score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime, series_id
from htfi.domain.events import Bar
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.config import SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.panel import BarBatch, Panel
from htfi.forecasting.ports import Expert
from htfi.library.charts.specs import TimeSpan
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi.wiring.experts import open_experts
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.prices import Prices

Array = NDArray[np.float64]
Places = NDArray[np.intp]

REGIMES = tuple(Regime)
FUSED = "fused"


@dataclass(frozen=True, slots=True, eq=False)
class RealisedOutcomes:
    """The outcomes to forecast, by the forecaster's own rules (session gaps, wild prints).

    Shapes: returns and variance [T, N], the cut return and Parkinson's variance of a bar; outcomes [T, N, H], the
    uncut log return over the next h bars of the series; realised [T, N, H], the sum of `variance` over them. NaN where
    there is none.
    """

    returns: Array
    variance: Array
    outcomes: Array
    realised: Array


class PeerForecaster(Protocol):
    """An external forecaster, or one of ours that is not in the mix."""

    @property
    def name(self) -> str: ...

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:
        """Quantiles [n, H, Q] after instant t of the series at `places`, the order of `batch`; NaN: none yet."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class WalkInstant:
    """All forecasts at instant t of the n series that had a bar.

    Shapes: places [n] in `Prices.symbols`; regimes [n] in REGIMES; quantiles [F, n, H, Q] in the order of
    `Walk.names`; is_chosen [F, n], whether that forecaster is one for such a series; weights [n, K, H] of the experts;
    stretch [n, H].
    """

    t: int
    places: Places
    regimes: NDArray[np.int8]
    quantiles: Array
    is_chosen: NDArray[np.bool_]
    weights: Array
    stretch: Array


class Walk:
    """One pass over the data. Names: the fused forecast, the experts, then the peers."""

    def __init__(
        self,
        prices: Prices,
        config: ForecastConfig,
        peers: Sequence[PeerForecaster] = (),
        experts: Sequence[Expert] | None = None,
        events: Sequence[ScheduledEvent] | None = None,
    ) -> None:
        """`experts`: those of the release by default. `events`: the calendar of our forecaster, by default that of
        `prices`; peers know of none."""
        self.prices = prices
        self.config = config
        chosen = open_experts(config, config.foundation) if experts is None else experts
        self.forecaster = Forecaster(config, chosen, prices.events if events is None else events)
        self.experts = tuple(sorted(expert.name for expert in chosen))
        self.peers = tuple(peers)
        self.names = (FUSED, *self.experts, *(peer.name for peer in peers))

    def instants(
        self, score_from: int = 0, progress: ProgressCallback | None = None
    ) -> Iterator[WalkInstant]:
        """Every instant with bars; those before `score_from` only train and are not yielded."""
        prices, forecaster, market = self.prices, self.forecaster, MarketState(MarketConfig())
        num, interval = len(prices.ends_ns), prices.interval
        levels = {regime: place for place, regime in enumerate(REGIMES)}
        names = [series_id(symbol, interval) for symbol in prices.symbols]
        rows = _SeriesOrder(len(names), self.config)
        for t in range(num):
            bars = prices.bars(t)
            if progress is not None:
                progress(t, num)
            if not bars:
                continue
            market.close_bars(bars)
            regimes = [market.regime(bar.symbol, interval) for bar in bars]
            forecaster.observe(bars, regimes)
            places = np.flatnonzero(np.isfinite(prices.close[t]))
            others = self._ask_peers(t, places, rows, bars)
            if t < score_from:
                continue
            here = [names[place] for place in places.tolist()]
            ours = forecaster.forecast(here)
            is_chosen = np.ones((len(self.names), len(places)), np.bool_)
            is_chosen[1 : 1 + len(self.experts)] = forecaster.choice_of(here).T
            at = [self.experts.index(name) for name in ours.names]  # those that some series' kind has
            experts = np.full((len(self.experts), *ours.quantiles.shape), np.nan)
            experts[at] = np.moveaxis(ours.experts, 1, 0)
            weights = np.zeros((len(places), len(self.experts), *ours.weights.shape[2:]))
            weights[:, at] = ours.weights
            quantiles = np.concatenate([ours.quantiles[None], experts, *others])
            yield WalkInstant(
                t,
                places,
                np.array([levels[regime] for regime in regimes], np.int8),
                quantiles,
                is_chosen,
                weights if weights.ndim == 3 else weights.mean(axis=3),
                ours.calibration,
            )

    def _ask_peers(self, t: int, places: Places, rows: "_SeriesOrder", bars: Sequence[Bar]) -> list[Array]:
        if not self.peers:
            return []
        batch = rows.panel.enter(bars)
        order = rows.order(places)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        assert batch is not None  # there are bars, and Prices has only valid prices
        return [peer.quantiles(t, places[order], batch)[back][None] for peer in self.peers]


class _SeriesOrder:
    """A second panel, and the order of its series: that of their first bars."""

    def __init__(self, num_series: int, config: ForecastConfig) -> None:
        self.panel = Panel(config.horizons, SESSION_GAP_BARS, config.covariates)
        self._row = np.full(num_series, -1)
        self._num = 0

    def order(self, places: Places) -> Places:
        """The places in the batch of each of `places`."""
        fresh = places[self._row[places] < 0]
        self._row[fresh] = self._num + np.arange(len(fresh))
        self._num += len(fresh)
        return np.argsort(self._row[places], kind="stable")


def measure_outcomes(prices: Prices, config: ForecastConfig) -> RealisedOutcomes:
    """The outcomes of the forecasts. It looks ahead: only for scoring."""
    num, width = prices.close.shape
    horizons = config.horizons
    returns, variance = np.full((num, width), np.nan), np.full((num, width), np.nan)
    back = np.full((num, width, len(horizons)), np.nan)
    rows = _SeriesOrder(width, config)
    for t in range(num):
        batch = rows.panel.enter(prices.bars(t))
        if batch is not None:
            places = np.flatnonzero(np.isfinite(prices.close[t]))
            at = places[rows.order(places)]
            returns[t, at], variance[t, at], back[t, at] = batch.returns, batch.variance, batch.outcomes
    outcomes, realised = np.full_like(back, np.nan), np.full_like(back, np.nan)
    for n in range(width):
        when = np.flatnonzero(np.isfinite(returns[:, n]))
        total = np.concatenate([[0.0], np.cumsum(variance[when, n])])
        for j, h in enumerate(horizons):
            if len(when) > h:
                outcomes[when[:-h], n, j] = back[when[h:], n, j]
                realised[when[:-h], n, j] = total[h + 1 :] - total[1:-h]
    return RealisedOutcomes(returns, variance, outcomes, realised)


CRISES = (
    TimeSpan("2008", "2008-09-01", "2009-06-30"),  # Lehman, to the end of the recession (NBER)
    TimeSpan("2011", "2011-08-01", "2011-12-31"),  # the downgrade of the United States, the euro
    TimeSpan("2015", "2015-08-01", "2016-02-29"),  # the renminbi, oil
    TimeSpan("2020", "2020-02-15", "2020-06-30"),  # Covid
)


def within(prices: Prices, span: TimeSpan, first: int = 0) -> NDArray[np.bool_]:
    """Which instants from `first` on are in the span, [T]."""
    days = prices.ends_ns[first:].astype("datetime64[ns]").astype("datetime64[D]")
    return np.logical_and(days >= np.datetime64(span.first), days <= np.datetime64(span.last))
