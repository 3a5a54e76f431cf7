"""The volatility in whose units a model reads and draws returns, and how it goes on along a path."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch

Array = NDArray[np.float64]

_PLAIN_MEAN_BARS = 1.0  # until 1/gain bars are in, a component is a plain mean


@dataclass(frozen=True, eq=False)
class Units:
    """σ² = Σ shares · v, where each component follows v ← v + gain · (x − v), x a bar's variance.

    Shapes: gains and shares [J], the shares summing to 1. `reads` names what a closed bar tells of its variance:
    'squares' of returns, as models of our family were taught, or 'ranges' (Parkinson's, in units of squared returns
    by `BarBatch.variance`). Along a drawn path only returns are known, so their squares move every component.
    """

    gains: Array
    shares: Array
    reads: str = "squares"

    def bar_variance(self, bars: BarBatch) -> Array:
        """What these bars tell of their variance: [n]."""
        return bars.variance if self.reads == "ranges" else bars.returns * bars.returns

    def after(self, components: Array, variance: Array, age: NDArray[np.int64]) -> Array:
        """Components [n, J] after bars of such variance [n] and age [n]."""
        gain = np.maximum(_PLAIN_MEAN_BARS / (age[:, None] + 1.0), self.gains)
        return components + gain * (variance[:, None] - components)

    def sigma(self, components: Array) -> Array:
        """Volatility of the next bar [...], from components [..., J]."""
        return np.maximum(np.sqrt((components * self.shares).sum(axis=-1)), SIGMA_FLOOR)

    def along(self, components: Array, returns: Array) -> Array:
        """Components [..., J] after drawn returns [...]."""
        square = (returns * returns)[..., None]
        return components + self.gains * (square - components)


def ewma_units(decay: float = 0.94) -> Units:
    """Those of training: RiskMetrics 1996."""
    return Units(np.array([1.0 - decay]), np.array([1.0]))


def long_memory_units(reads: str) -> Units:
    """Means over 2.5 … 320 bars with the logarithmically falling shares of Zumbach (RiskMetrics 2006)."""
    bars = [2.5 * 2.0**k for k in range(8)]
    shares = [1.0 - math.log(of) / math.log(600.0) for of in bars]
    return Units(
        np.array([round(1.0 - math.exp(-1.0 / of), 12) for of in bars]),
        np.array([round(share / sum(shares), 12) for share in shares]),
        reads,
    )
