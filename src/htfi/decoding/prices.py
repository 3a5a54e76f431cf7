"""Returns as tokens: scaled by EWMA volatility, then binned with fine resolution in the tails.

z_t = r_t / σ_t, σ²_{t+1} = λ σ²_t + (1 − λ) r²_t: the volatility before a return scales it, so nothing looks ahead.
Prompts, paths and training use it. Source of λ = 0.94: RiskMetrics, Technical Document, 1996.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htfi.domain.errors import InvalidInput

DECAY = 0.94
MIN_SIGMA = 1e-8  # a ten-thousandth of a basis point: below it a series counts as constant
NUM_START_RETURNS = 8
NUM_RECENT_RETURNS = 32

Doubles = NDArray[np.float64]


@dataclass(frozen=True)  # no slots: the cached properties below need a __dict__
class PriceBins:
    """Bins of z at equal steps of asinh(z / bend): even near zero, proportional to z beyond `bend`.

    The middle bin lies around zero; the outermost two reach from ±`limit` to infinity. A bin is represented by its root
    mean square under a Student-t of 4 degrees of freedom and unit variance, so that binning keeps the variance of
    fat-tailed returns; the middle bin by zero.
    """

    num_bins: int = 129
    limit: float = 12.0
    bend: float = 1.0

    def __post_init__(self) -> None:
        if self.num_bins < 3 or self.num_bins % 2 == 0:
            raise InvalidInput(f"price bins: {self.num_bins} bins; give an odd number of at least 3")
        if not (0.0 < self.limit < math.inf and 0.0 < self.bend < math.inf):
            raise InvalidInput("price bins: limit and bend must be positive and finite")

    @property
    def middle(self) -> int:
        return self.num_bins // 2

    @cached_property
    def edges(self) -> Doubles:
        """The inner edges, rising: [num_bins − 1]. Bin i lies between edges[i − 1] and edges[i]."""
        return np.concatenate([-self._outward[::-1], self._outward])

    @cached_property
    def centres(self) -> Doubles:
        """The value that represents each bin: [num_bins], rising and symmetric."""
        outer = _student_rms(np.append(self._outward, math.inf))
        return np.concatenate([-outer[::-1], [0.0], outer])

    def to_bins(self, z: ArrayLike) -> NDArray[np.int64]:
        """Bin of each value, in the shape given. Raises InvalidInput at NaN and infinity."""
        values = _finite(z, "price bins")
        away: NDArray[np.int64] = np.searchsorted(self._outward, np.abs(values), side="right")
        return self.middle + np.sign(values).astype(np.int64) * away

    @cached_property
    def _outward(self) -> Doubles:
        steps: Doubles = np.arange(self.middle, dtype=np.float64) + 0.5
        step = math.asinh(self.limit / self.bend) / (self.middle - 0.5)
        # Rounded, so that machines whose sinh differs in the last bit have the same bins.
        return (self.bend * np.sinh(steps * step)).round(9)


class ScaledReturns:
    """For each series, the latest scaled returns and the running volatility, for prompts and paths."""

    def __init__(
        self, num_kept: int = NUM_RECENT_RETURNS, num_start: int = NUM_START_RETURNS, decay: float = DECAY
    ) -> None:
        self._num_kept, self._num_start, self._decay = num_kept, num_start, decay
        self._starts: dict[str, list[float]] = {}
        self._variances: dict[str, float] = {}
        self._z: dict[str, list[float]] = {}

    def recent(self, series: str) -> tuple[float, ...]:
        """The latest scaled returns, oldest first; empty until the first volatility is known."""
        return tuple(self._z.get(series, ()))

    def sigma(self, series: str) -> float:
        """Volatility for the next log return; zero until it is known."""
        return math.sqrt(self._variances.get(series, 0.0))

    def learn(self, series: str, log_return: float) -> None:
        """Add one log return. The first ones, at least one of which must move, only set the volatility."""
        if not math.isfinite(log_return):
            raise InvalidInput(f"returns of {series}: {log_return} is not finite")
        variance = self._variances.get(series)
        if variance is None:
            self._begin(series, log_return)
            return
        z = self._z[series]
        z.append(log_return / math.sqrt(variance))
        if len(z) > self._num_kept:
            del z[0]
        moved = self._decay * variance + (1.0 - self._decay) * log_return * log_return
        self._variances[series] = max(moved, MIN_SIGMA * MIN_SIGMA)

    def state(self) -> dict[str, Any]:
        return {
            "starts": {name: list(start) for name, start in self._starts.items()},
            "variances": dict(self._variances),
            "z": {name: list(z) for name, z in self._z.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._starts = {name: list(start) for name, start in state["starts"].items()}
        self._variances = dict(state["variances"])
        self._z = {name: list(z) for name, z in state["z"].items()}

    def _begin(self, series: str, log_return: float) -> None:
        start = self._starts.setdefault(series, [])
        start.append(log_return)
        del start[: -self._num_start]
        variance = sum(r * r for r in start) / len(start)
        if len(start) == self._num_start and variance > MIN_SIGMA * MIN_SIGMA:
            self._variances[series] = variance
            self._z[series] = []
            del self._starts[series]


def _finite(values: ArrayLike | Sequence[float], what: str) -> Doubles:
    checked = np.asarray(values, np.float64)
    if not np.all(np.isfinite(checked)):
        raise InvalidInput(f"{what}: a value is not finite; leave out gaps first")
    return checked


def _student_rms(edges: Doubles) -> Doubles:
    """Root mean square between neighbouring edges under a Student-t(4) of unit variance.

    With s = t / sqrt(4 + t²) the distribution is 1/2 + 3/4 (s − s³/3), and the integral of t² from 0 is s³.
    """
    t = edges * math.sqrt(2.0)
    s = np.ones_like(t)
    finite = np.isfinite(t)
    s[finite] = t[finite] / np.sqrt(4.0 + t[finite] ** 2)
    cubes = np.diff(s**3)
    mass = 0.75 * (np.diff(s) - cubes / 3.0)
    return np.sqrt(cubes / 2.0 / mass)
