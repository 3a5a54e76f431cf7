"""Whether one forecaster's losses are lower than another's, or only by chance: Diebold and Mariano's test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]

_TINY = 1e-300
_FRACTION_TERMS = 300
_FRACTION_EXACT = 1e-15


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Mean loss of one forecaster less that of another, with its error.

    Units: those of the loss. `statistic` is Diebold and Mariano's, below 0 where the first is better; `p` is one-sided
    for that: the chance of a statistic as low were both equally good. NaN for all where there are
    fewer than two dates or nothing varies.
    """

    mean: float
    error: float
    statistic: float
    p: float

    @property
    def interval95(self) -> tuple[float, float]:
        return self.mean - 1.959964 * self.error, self.mean + 1.959964 * self.error


def mean_by_date(losses: Array) -> Array:
    """Panel losses [T, N] as one mean per date that has any, [≤ T]: series of one date are no independent trials."""
    known = np.isfinite(losses)
    num = known.sum(axis=1)
    return np.where(known, losses, 0.0).sum(axis=1)[num > 0] / num[num > 0]


def diebold_mariano(first: Array, second: Array, horizon: int) -> LossDifference:
    """Diebold-Mariano on losses [T, N] (or [T]) of forecasts `horizon` bars ahead, where both have one.

    Source: Diebold and Mariano (1995), errors by Newey and West (1987) with Bartlett weights, the small-sample
    factor and Student's t of Harvey, Leybourne and Newbold (1997).
    """
    if first.shape != second.shape:
        raise InvalidInput(f"losses of shapes {first.shape} and {second.shape}: compare the same forecasts")
    gaps = first - second
    return loss_difference(mean_by_date(gaps if gaps.ndim == 2 else gaps[:, None]), horizon)


def loss_difference(differences: Array, horizon: int) -> LossDifference:
    """The same on loss differences [T], one a date, in order of time."""
    num = len(differences)
    if num < 2:
        return LossDifference(float("nan"), *(float("nan"),) * 3)
    mean = float(differences.mean())
    variance = long_run_variance(differences, bandwidth(num, horizon))
    if not variance > 0.0:
        return LossDifference(mean, *(float("nan"),) * 3)
    error = math.sqrt(variance / num)
    small = (num + 1 - 2 * horizon + horizon * (horizon - 1) / num) / num
    statistic = mean / error * math.sqrt(max(small, 1.0 / num))
    return LossDifference(mean, error, statistic, student_cdf(statistic, num - 1))


def bandwidth(num: int, horizon: int) -> int:
    """Lags of the long-run variance: Newey and West's rule, and twice the overlap of h-bar outcomes if that is more.

    Bartlett's weights halve what lies at half the bandwidth, so the overlap itself would be counted too little.
    """
    rule = math.floor(4.0 * (num / 100.0) ** (2.0 / 9.0))
    return min(max(rule, 2 * (horizon - 1)), num - 1)


def long_run_variance(values: Array, lags: int) -> float:
    """γ₀ + 2 Σ (1 − k/(L+1)) γ_k of values [T]; never below zero."""
    away = values - values.mean()
    total = float((away * away).sum())
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1.0)) * float((away[lag:] * away[:-lag]).sum())
    return max(total / len(values), 0.0)


def holm(chances: Sequence[float]) -> list[float]:
    """P-values held to the chance of even one false finding among all (Holm 1979). NaN stays and is not counted."""
    order, known = _ranked(chances)
    corrected, highest = list(chances), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (known - rank) * chances[place]))
        corrected[place] = highest
    return corrected


def benjamini_hochberg(chances: Sequence[float]) -> list[float]:
    """P-values held to the expected share of false findings (Benjamini and Hochberg 1995). NaN stays."""
    order, known = _ranked(chances)
    corrected, lowest = list(chances), 1.0
    for rank in range(known - 1, -1, -1):
        lowest = min(lowest, chances[order[rank]] * known / (rank + 1))
        corrected[order[rank]] = lowest
    return corrected


def student_cdf(value: float, freedom: float) -> float:
    """P(T ≤ value) of Student's t, to about 12 digits."""
    if math.isnan(value):
        return value
    tail = 0.5 * _incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + value * value))
    return tail if value < 0.0 else 1.0 - tail


def _ranked(chances: Sequence[float]) -> tuple[list[int], int]:
    order = [place for place in range(len(chances)) if not math.isnan(chances[place])]
    return sorted(order, key=lambda place: chances[place]), len(order)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised I_x(a, b), by Lentz's continued fraction on the side where it converges."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _FRACTION_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < _FRACTION_EXACT:
            break
    return math.exp(scale) * value / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
