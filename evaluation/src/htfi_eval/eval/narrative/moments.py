"""Moments at which news were read: what prices alone forecast then, and what came. `narrative` judges by them.

Prices alone means the fused forecaster of `htfi run`, walked through all bars, asked where there was a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.question import Question
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Tell, Walk

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_RECENT_BARS = 20


@dataclass(frozen=True, slots=True)
class NewsTruth:
    """What news were worth, where that is known. `expected` and `came` are signed, in sigmas of one bar: what one who
    understands all that is shown expects, and what the dice made of it."""

    expected: float
    realised: float
    volatility_multiplier: float
    situation: str


@dataclass(frozen=True, slots=True)
class NewsQuestion:
    """A question about the series at `place` after instant `t` of `Prices`."""

    question: Question
    t: int
    place: int
    cluster: int
    truth: NewsTruth | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NewsMoments:
    """n moments in the order of time.

    Shapes: quantiles [n, H, Q] of prices alone and outcomes [n, H], in log returns; scales [n, H], the sigma that
    `quantiles` are as wide as; usual [n], the deviation
    of the last 20 returns; cluster [n], whose members share their luck; instant [n] and known [n, H]: when the
    forecast was made and when its outcome was known, both as numbers of one clock.
    """

    questions: tuple[Question, ...]
    truths: tuple[NewsTruth | None, ...]
    quantiles: Array
    outcomes: Array
    scales: Array
    recent_volatility: Array
    cluster: Whole
    instant: Whole
    known: Whole

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def sigma(self) -> Array:
        """Of one bar [n]."""
        return self.scales[:, 0]


def gather(
    prices: Prices, asked: Sequence[NewsQuestion], config: ForecastConfig, tell: Tell | None = None
) -> NewsMoments:
    """Walk through `prices` and keep what was forecast where something was asked.

    Left out is a moment before the first forecast, or with an outcome that lies beyond the data.
    Raises: InvalidInput where nothing is left.
    """
    by_instant: dict[int, list[NewsQuestion]] = {}
    for one in asked:
        by_instant.setdefault(one.t, []).append(one)
    ahead = _series(prices, config.horizons)
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    kept: list[tuple[NewsQuestion, Array, Array, Whole, float]] = []
    for instant in Walk(prices, config).instants(tell=tell):
        for one in by_instant.get(instant.t, ()):
            place = int(np.searchsorted(instant.places, one.place))
            if place == len(instant.places) or instant.places[place] != one.place:
                continue
            quantiles = instant.quantiles[0, place]
            series = ahead[one.place]
            outcomes, known = series.after(one.t)
            usual = series.deviation(one.t)
            if np.isfinite(quantiles).all() and np.isfinite(outcomes).all() and np.isfinite(usual):
                kept.append((one, quantiles, outcomes, known, usual))
    if not kept:
        raise InvalidInput(f"{prices.name}: no question has a forecast and an outcome: give a longer history")
    quantiles = np.array([row[1] for row in kept])
    return NewsMoments(
        tuple(row[0].question for row in kept),
        tuple(row[0].truth for row in kept),
        quantiles,
        np.array([row[2] for row in kept]),
        (quantiles[..., high] - quantiles[..., low]) / BAND_SIGMAS,
        np.array([row[4] for row in kept]),
        np.array([row[0].cluster for row in kept], np.int64),
        np.array([row[0].t for row in kept], np.int64),
        np.array([row[3] for row in kept], np.int64),
    )


def concatenated(parts: Sequence[NewsMoments]) -> NewsMoments:
    """One part after the other, as if each had begun when the last outcome of the one before was known."""
    begins = np.cumsum([0, *(int(part.known.max()) + 1 for part in parts[:-1])]).tolist()
    return NewsMoments(
        tuple(question for part in parts for question in part.questions),
        tuple(truth for part in parts for truth in part.truths),
        np.concatenate([part.quantiles for part in parts]),
        np.concatenate([part.outcomes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.recent_volatility for part in parts]),
        np.concatenate([part.cluster for part in parts]),
        np.concatenate([part.instant + begin for part, begin in zip(parts, begins, strict=True)]),
        np.concatenate([part.known + begin for part, begin in zip(parts, begins, strict=True)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _BarSeries:
    """One series' own bars: their instants in `Prices`, and log closes."""

    when: NDArray[np.intp]
    logs: Array
    horizons: Whole

    def after(self, t: int) -> tuple[Array, Whole]:
        """Log returns over the horizons from the bar at t, and the instants of the bars that complete them."""
        at = int(np.searchsorted(self.when, t)) + self.horizons
        inside = np.minimum(at, len(self.when) - 1)
        moves = self.logs[inside] - self.logs[at[0] - self.horizons[0]]
        return np.where(at == inside, moves, np.nan), self.when[inside].astype(np.int64)

    def deviation(self, t: int) -> float:
        """Of the last 20 returns up to the bar at t; NaN while there are fewer."""
        at = int(np.searchsorted(self.when, t))
        if at < _RECENT_BARS:
            return float("nan")
        return float(np.std(np.diff(self.logs[at - _RECENT_BARS : at + 1]), ddof=1))


def _series(prices: Prices, horizons: Sequence[int]) -> list[_BarSeries]:
    found: list[_BarSeries] = []
    for place in range(len(prices.symbols)):
        when = np.flatnonzero(np.isfinite(prices.close[:, place]))
        found.append(_BarSeries(when, np.log(prices.close[when, place]), np.array(horizons, np.int64)))
    return found
