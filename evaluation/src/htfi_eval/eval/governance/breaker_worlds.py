"""Markets as breakers see them: the live forecaster over bars, and streams of real readings of simulated news."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from msgspec.structs import replace as replace_struct
from numpy.typing import NDArray

from htfi.decoding.config import DecodingConfig
from htfi.domain.decision import Regime, series_id
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.breakers.observations import (
    BreakerObservation,
    NewsObservation,
    PointObservation,
    ViewObservation,
    feature_column,
    observe_view,
)
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi.narrative.readers import ModelReader
from htfi.wiring.experts import open_experts
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.readers import open_model_pair, open_speculative
from htfi.wiring.settings import load_settings
from htfi_eval.eval.narrative.simulated import questions
from htfi_eval.eval.prices import Prices
from htfi_train.simulation.simulated_market import simulate_market

Rng = np.random.Generator
ChangeBars = Callable[[int, list[Bar]], list[Bar]]  # (instants since the fault began, bars) → bars

MODELS: Mapping[str, str] = {"fused": "2", "reader.speculative": "mini-target-int8"}
_DEADLINE_MS = 60_000.0
_BATCH = 64
_SIGMA = 0.01
_NORMAL_LEVELS = (
    -2.326,
    -1.645,
    -1.282,
    -0.842,
    -0.524,
    -0.253,
    0.0,
    0.253,
    0.524,
    0.842,
    1.282,
    1.645,
    2.326,
)


class World(Protocol):
    """Events that can be taken back, so that several faults begin from one past."""

    def ahead(self, num: int, change: ChangeBars | None = None) -> Iterator[BreakerObservation]:
        """The observations of the next `num` instants; `change` is a fault of the feed."""
        ...

    def saved(self) -> Any: ...

    def load(self, state: Any) -> None: ...


class MarketWorld:
    """A panel's bars through the market state and the shipped forecaster, without news."""

    def __init__(self, prices: Prices) -> None:
        config = ForecastConfig()
        self.prices = prices
        self._market = MarketState(MarketConfig())
        self._forecaster = Forecaster(config, open_experts(config, config.foundation))
        self._at = 0

    @property
    def num_left(self) -> int:
        return len(self.prices.ends_ns) - self._at

    def ahead(self, num: int, change: ChangeBars | None = None) -> Iterator[BreakerObservation]:
        for number in range(num):
            bars, available_ns = self.prices.bars(self._at), int(self.prices.available_ns[self._at])
            self._at += 1
            point = self._step(bars if change is None else change(number, bars), available_ns)
            if point is not None:
                yield point

    def _step(self, bars: Sequence[Bar], available_ns: int) -> PointObservation | None:
        """What breakers see of the decisions on these bars; None while no series has a forecast."""
        if not bars:
            return None
        self._market.close_bars(bars)
        regimes: list[Regime] = [self._market.regime(bar.symbol, bar.interval) for bar in bars]
        self._forecaster.observe(bars, regimes)
        names = [series_id(bar.symbol, bar.interval) for bar in bars]
        batch = self._forecaster.forecast(names)
        ready = np.flatnonzero(batch.ready).tolist()
        if not ready:
            return None
        batch = batch.take(ready)
        chosen = [bars[place] for place in ready]
        features = [self._market.features(bar.symbol, bar.interval) for bar in chosen]
        unknown = np.full(len(ready), np.nan)
        return PointObservation(
            as_of_ns=available_ns,
            series=[names[place] for place in ready],
            levels=batch.levels,
            horizons=batch.horizons,
            expert_names=batch.names,
            quantiles=batch.quantiles,
            experts=batch.experts,
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

    def saved(self) -> Any:
        return self._market.state(), self._forecaster.state(), self._at

    def load(self, state: Any) -> None:
        market, forecaster, self._at = state
        self._market.restore(market)
        self._forecaster.restore(forecaster)


@dataclass(frozen=True, slots=True)
class PooledReading:
    """A real reading of simulated news, and the return in sigmas of the bar that followed."""

    view: ViewObservation
    next_sigmas: float


def read_pool(seed: int, num: int) -> list[PooledReading]:
    """Readings of simulated markets' news by the shipped target with its draft. Raises: what opening them raises."""
    asked: list[Any] = []
    sigmas: list[float] = []
    number = 0
    while len(asked) < num:
        world = simulate_market(seed, number)
        number += 1
        for one in questions([world]):
            asked.append(one.question)
            sigmas.append(float(world.scaled[one.t + 1, one.place]))
    settings = load_settings()
    config = DecodingConfig()
    target, draft = open_model_pair(ModelsConfig())
    generator = open_speculative(ModelsConfig(), target, draft, config)
    reader = ModelReader(generator, settings.narrative, target.trust, meaning=target.meaning)
    pool: list[PooledReading] = []
    for begin in range(0, num, _BATCH):
        part = asked[begin : min(begin + _BATCH, num)]
        for question, view in zip(part, reader.read(part, _DEADLINE_MS), strict=True):
            pool.append(PooledReading(observe_view(view, question.as_of_ns), sigmas[len(pool)]))
    return pool


class ReadingWorld:
    """A desk whose series have readings drawn from a pool, followed by the returns that followed them there.

    At each daily instant two series have a new view on an item of their own; one in four instants reads items of the
    instant before again. Items are quarantined with a chance that itself changes slowly, and sources contradict each
    other now and then. At one instant in sixty an item concerns the whole market: it moves up to a third of the series
    while nobody confirms it, and any number of them where others report the same.
    """

    def __init__(self, pool: Sequence[PooledReading], seed: int, num_series: int = 20) -> None:
        self._pool = list(pool)
        self._rng = np.random.default_rng(seed)
        self._names = [f"W{place:02d}/1d" for place in range(num_series)]
        self._at = 0
        self._due: dict[int, float] = {}  # series → return in sigmas that follows its view
        self._again: dict[int, ViewObservation] = {}
        self._quarantined = 0.03
        self._wide_share = 0.0  # of the series that an item on the whole market moves now

    def ahead(self, num: int, change: ChangeBars | None = None) -> Iterator[BreakerObservation]:
        del change  # there is no feed
        for _ in range(num):
            self._at += 1
            yield from self._news()
            yield self._point()

    def _news(self) -> Iterator[NewsObservation]:
        rng, now_ns = self._rng, self._at * NS_PER_DAY
        self._quarantined = float(np.clip(self._quarantined * np.exp(0.05 * rng.normal()), 0.01, 0.06))
        for place in range(int(rng.poisson(6))):
            name = f"n{self._at}.{place}"
            held = bool(rng.random() < self._quarantined)
            yield NewsObservation(now_ns, name, "feed", ("W00",), held, 0.0 if held else 1.0, name)
        self._wide_share = 0.0
        if rng.random() < 1.0 / 60.0:
            num_alike = int(rng.choice([1, 3]))
            self._wide_share = float(rng.uniform(0.0, 1.0 / 3.0 if num_alike == 1 else 1.0))
            name = f"wide{self._at}"
            yield NewsObservation(now_ns, name, "feed", (), False, 1.0, name, num_alike)

    def _point(self) -> PointObservation:
        rng, num = self._rng, len(self._names)
        sigmas = rng.standard_t(5, num) * np.sqrt(0.6)
        for place, moved in self._due.items():
            sigmas[place] = moved
        self._due.clear()
        views: dict[int, ViewObservation] = {}
        if self._again and rng.random() < 0.25:
            views |= self._again
        self._again = {}
        for place in rng.choice(num, 2, replace=False).tolist():
            drawn = self._pool[int(rng.integers(len(self._pool)))]
            view = replace_struct(
                drawn.view,
                cited=(f"n{self._at}.{place}",),
                contradiction=float(rng.random()) if rng.random() < 0.05 else 0.0,
                moved=min(0.05 * abs(drawn.view.shift_sigmas), 0.2),
            )
            views[place], self._again[place], self._due[place] = view, view, drawn.next_sigmas
        for place in np.flatnonzero(rng.random(num) < self._wide_share).tolist():
            drawn = self._pool[int(rng.integers(len(self._pool)))]
            views[place] = replace_struct(drawn.view, cited=(f"wide{self._at}",), moved=0.05)
            self._due[place] = drawn.next_sigmas
        returns = _SIGMA * sigmas
        levels = _SIGMA * np.array(_NORMAL_LEVELS)
        spread = np.exp(0.15 * rng.normal(size=(num, 3)))
        unknown = np.full(num, np.nan)
        end_ns = np.full(num, self._at * NS_PER_DAY, np.int64)
        return PointObservation(
            as_of_ns=self._at * NS_PER_DAY, series=self._names, levels=LEVELS, horizons=(1,),
            expert_names=("ewma", "market_har", "random_walk"), quantiles=np.tile(levels, (num, 1, 1)),
            experts=spread[:, :, None, None] * levels, bar_start_ns=end_ns - NS_PER_DAY, bar_end_ns=end_ns,
            price=np.full(num, 100.0), log_return=returns, return_sigmas=np.abs(sigmas),
            range_last=np.abs(returns) * rng.uniform(1.0, 2.0, num), volume_ratio=rng.uniform(0.5, 1.5, num),
            quote_age_ns=unknown, quote_gap=unknown, quarantine_share=0.0, models=MODELS, views=views,
        )  # fmt: skip

    def saved(self) -> Any:
        return self._rng.bit_generator.state, self._at, dict(self._due), dict(self._again), self._quarantined

    def load(self, state: Any) -> None:
        self._rng.bit_generator.state, self._at = state[0], state[1]
        self._due, self._again, self._quarantined = dict(state[2]), dict(state[3]), state[4]


def intraday_prices(seed: int, num_series: int = 20, num_bars: int = 800) -> Prices:
    """One-minute closes of simulated sessions: returns that share a market factor and a volatility that changes."""
    rng = np.random.default_rng(seed)
    minute_ns = NS_PER_DAY // 1440
    log_scale = np.empty(num_bars)
    log_scale[0] = 0.0
    for t in range(1, num_bars):
        log_scale[t] = 0.98 * log_scale[t - 1] + 0.07 * rng.normal()
    shared = rng.standard_t(5, num_bars)[:, None]
    own = rng.standard_t(5, (num_bars, num_series))
    returns = 4e-4 * np.exp(log_scale)[:, None] * (0.6 * shared + 0.8 * own) * np.sqrt(0.6)
    close = 100.0 * np.exp(np.cumsum(returns, axis=0))
    opened = close * np.exp(-returns)
    wiggle = 1.0 + 2e-4 * np.abs(rng.normal(size=close.shape))
    ends_ns = 1_400_000_000 * 10**9 + (np.arange(num_bars, dtype=np.int64) + 1) * minute_ns
    names = tuple(f"M{place:02d}" for place in range(num_series))
    high: NDArray[np.float64] = np.maximum(close, opened) * wiggle
    low: NDArray[np.float64] = np.minimum(close, opened) / wiggle
    return Prices("minutes", names, "60s", ends_ns, ends_ns, opened, high, low, close)
