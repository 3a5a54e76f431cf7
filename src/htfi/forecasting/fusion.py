"""One distribution from several: weighted sums of quantiles, the weights learnt online from their CRPS.

Forecaster learns and mixes; an auditor recomputes a record with `combine`.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact
from htfi.domain.decision import TICKS_PER_UNIT
from htfi.forecasting.columns import Columns
from htfi.forecasting.panel import Rows
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

_LOWEST = -1e300
_SMALLEST = 1e-6  # of a normalised loss: keeps the learning rate finite while all experts agree


def mix(quantiles: Array, weights: Array, calibration: Array, median: int) -> Array:
    """Σ w·q over experts, stretched about the median.

    Shapes: quantiles [..., K, H, Q], weights [..., K, H], calibration [..., H] → [..., H, Q].
    Guarantees: monotone along Q to the last bit, since every step is a rounded operation that never
    decreases in the quantile it is given. Experts stand in the order of their names: the bits of a sum
    depend on its order.
    """
    total = np.zeros_like(quantiles[..., 0, :, :])
    for k in range(quantiles.shape[-3]):
        total += weights[..., k, :, None] * quantiles[..., k, :, :]
    middle = total[..., median : median + 1]
    return on_grid(middle + calibration[..., None] * (total - middle))


def on_grid(returns: Array) -> Array:
    """The nearest whole ticks, as log returns: what a record can hold. Keeps order; NaN stays."""
    return np.rint(returns * TICKS_PER_UNIT) / TICKS_PER_UNIT


def combine(
    experts: Mapping[str, Sequence[Sequence[float]]],
    weights: Mapping[str, Sequence[float]],
    calibration: Sequence[float],
    levels: Sequence[float],
) -> list[list[float]]:
    """Recompute recorded quantiles [H, Q] from a record's experts, weights and calibration, bit for bit."""
    names = sorted(experts)
    quantiles = np.array([experts[name] for name in names], np.float64)
    shares = np.array([weights[name] for name in names], np.float64)
    return mix(quantiles, shares, np.array(calibration, np.float64), list(levels).index(0.5)).tolist()


class CrpsLearning:
    """Bernstein online aggregation of quantiles, per series and horizon (D5; docs/decisions/d05-fusion.md).

    The loss of expert k is the linearised CRPS Σ_q ω_q·2(1{y<q̄}−τ_q)·q_k (Berrisch and Ziel 2021), in units
    of the mix's own width; with it the aggregate competes with the best fixed mix, not only the best
    expert. Learning rates are per expert and second-order (Wintenberger 2017, eq. for adaptive rates);
    regrets fade with a half-life. A loss counts when it matures.
    """

    def __init__(
        self, levels: Sequence[float], num_experts: int, num_horizons: int, half_life: float
    ) -> None:
        self._levels = np.array(levels)
        self._cells = 2.0 * integration_weights(levels)
        self._keep = round(0.5 ** (1.0 / half_life), 12)
        self._log_k = math.log(num_experts) if num_experts > 1 else 0.0
        blank = np.zeros((num_experts, num_horizons))
        self.columns = Columns()
        self.columns.declare("regret", blank)
        self.columns.declare("square", blank)
        self.columns.declare("largest", blank)

    def learn(
        self, rows: Rows, experts: Array, mixed: Array, outcome: Array, matured: NDArray[np.bool_]
    ) -> None:
        """Take in outcomes [n, H] of forecasts by experts [n, K, H, Q] and their mix [n, H, Q].

        `matured` [n, H] says which to count; an expert that was NaN then is held to have done as the mix.
        """
        width = np.maximum(mixed[..., -1] - mixed[..., 0], 1e-12)
        slope = self._cells * ((outcome[..., None] < mixed) - self._levels) / width[..., None]  # [n, H, Q]
        gains = [(slope * (mixed - experts[:, k])).sum(axis=-1) for k in range(experts.shape[1])]
        regret: Array = np.stack(gains, axis=1)  # [n, K, H]
        regret = np.where(matured[:, None] & np.isfinite(regret), regret, 0.0)
        keep = np.where(matured, self._keep, 1.0)[:, None]
        columns = self.columns
        largest, square = columns["largest"][rows] * keep, columns["square"][rows] * keep
        scaled = self._rates(largest, square) * regret
        surprise = np.where(scaled < -0.5, 2.0 * np.maximum(largest, np.abs(regret)), 0.0)
        step = 0.5 * (regret * (1.0 - scaled) - surprise)
        columns["regret"][rows] = columns["regret"][rows] * keep + step
        columns["square"][rows] = square + regret * regret
        columns["largest"][rows] = np.maximum(largest, np.abs(regret))

    def weights(self, rows: Rows, ready: NDArray[np.bool_]) -> Array:
        """Weights [n, K, H], summing to 1 over the experts that are `ready` [n, K], 0 for the others."""
        columns = self.columns
        rates = self._rates(columns["largest"][rows], columns["square"][rows])
        score = np.where(ready[:, :, None], rates * columns["regret"][rows], _LOWEST)
        share = rates * exact.exp(score - score.max(axis=1, keepdims=True)) * ready[:, :, None]
        return share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)

    def _rates(self, largest: Array, square: Array) -> Array:
        return np.minimum(
            0.5 / np.maximum(largest, _SMALLEST), np.sqrt(self._log_k / np.maximum(square, _SMALLEST))
        )
