"""One distribution from several: weighted sums of quantiles, the weights learnt online from their CRPS.

Forecaster learns and mixes; an auditor recomputes a record with `combine`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact
from htfi.domain.decision import TICKS_PER_UNIT
from htfi.forecasting.columns import Columns
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

ZONES = (0.05, 0.5, 0.95)  # lower tail, middle, upper tail: an expert may be good at one and not another
_LOWEST = -1e300
_SMALLEST = 1e-6  # of a normalised loss: keeps the learning rate finite while all experts agree
_WEIGHT_UNITS = 1e6  # weights are recorded in whole millionths


def zone_shares(levels: Sequence[float]) -> Array:
    """How much of each zone a level is [Z, Q]: hats about the zones' levels, flat beyond, summing to 1 over zones."""
    unit = np.eye(len(ZONES))
    return np.array([np.interp(levels, ZONES, unit[z]) for z in range(len(ZONES))])


def mix(quantiles: Array, weights: Array, calibration: Array, levels: Sequence[float]) -> Array:
    """Σ w·q over experts, put in order, then stretched about the median.

    Shapes: quantiles [..., K, H, Q], weights [..., K, H, Z], calibration [..., H] → [..., H, Q].
    Guarantees: never decreasing along Q, to the last bit: where weights that differ by zone make neighbours cross,
    they are sorted, which CRPS never holds against a forecast (Chernozhukov et al. 2010); the stretch rounds in the
    order of what it is given. Experts stand in the order of their names: the bits of a sum depend on its order.
    """
    shares = zone_shares(levels)
    total = np.zeros_like(quantiles[..., 0, :, :])
    for k in range(quantiles.shape[-3]):
        total += _by_level(weights[..., k, :, :], shares) * quantiles[..., k, :, :]
    total.sort(axis=-1)
    median = list(levels).index(0.5)
    middle = total[..., median : median + 1]
    return on_grid(middle + calibration[..., None] * (total - middle))


def _by_level(weights: Array, shares: Array) -> Array:
    """Weights [..., Z] at each level [..., Q], summed in the order of the zones."""
    at = np.zeros((*weights.shape[:-1], shares.shape[1]))
    for z in range(shares.shape[0]):
        at += weights[..., z, None] * shares[z]
    return at


def on_grid(returns: Array) -> Array:
    """The nearest whole ticks, as log returns: what a record can hold. Keeps order; NaN stays."""
    return np.rint(returns * TICKS_PER_UNIT) / TICKS_PER_UNIT


def combine(
    experts: Mapping[str, Sequence[Sequence[float]]],
    weights: Mapping[str, Sequence[Sequence[float]]],
    calibration: Sequence[float],
    levels: Sequence[float],
) -> list[list[float]]:
    """Recompute recorded quantiles [H, Q] from a record's experts, weights and calibration, bit for bit."""
    names = sorted(experts)
    quantiles = np.array([experts[name] for name in names], np.float64)
    shares = np.array([weights[name] for name in names], np.float64)
    return mix(quantiles, shares, np.array(calibration, np.float64), levels).tolist()


class CrpsLearning:
    """Bernstein online aggregation of quantiles, per series, horizon and zone (docs/decisions/d05-fusion.md).

    The loss of expert k in zone z is the linearised CRPS Σ_q φ_zq ω_q·2(1{y<q̄}−τ_q)·q_k (Berrisch and Ziel 2021), in
    units of the mix's own width; with it the aggregate competes with the best fixed mix, not only the best
    expert. Each expert stands twice: once for all times, once for the regime of the day, asleep in others (Freund et
    al. 1997), so that weights turn with the regime and each regime learns from what it has seen. Learning rates
    are second-order (Wintenberger 2017, eq. for adaptive rates); regrets fade with a half-life. A loss counts when it
    matures, for the regime it was forecast in.
    """

    def __init__(
        self, levels: Sequence[float], num_experts: int, num_horizons: int, num_regimes: int, half_life: float
    ) -> None:
        self._levels = np.array(levels)
        self._shares = zone_shares(levels)
        self._cells = 2.0 * integration_weights(levels)
        self._keep = round(0.5 ** (1.0 / half_life), 12)
        self._log_k = round(math.log(2 * num_experts), 12) if num_experts > 1 else 0.0
        blank = np.zeros((1 + num_regimes, num_experts, num_horizons, len(ZONES)))
        self.columns = Columns()
        for name in ("regret", "square", "largest"):
            self.columns.declare(name, blank)

    def learn(
        self,
        index: NDArray[np.intp],
        experts: Array,
        mixed: Array,
        outcome: Array,
        matured: NDArray[np.bool_],
        regimes: NDArray[np.int64],
    ) -> None:
        """Take in outcomes [n, H] of forecasts by experts [n, K, H, Q] and their mix [n, H, Q], made in `regimes`
        [n, H].

        `matured` [n, H] says which to count; an expert that was NaN then is held to have done as the mix.
        """
        width = np.maximum(mixed[..., -1] - mixed[..., 0], 1e-12)
        slope = self._cells * ((outcome[..., None] < mixed) - self._levels) / width[..., None]  # [n, H, Q]
        gains = slope[:, None] * (mixed[:, None] - experts)  # [n, K, H, Q]
        regret = np.stack([(gains * share).sum(axis=-1) for share in self._shares], axis=-1)  # [n, K, H, Z]
        counted = matured[:, None, :, None]
        regret = np.where(counted & np.isfinite(regret), regret, 0.0)
        keep = np.where(counted, self._keep, 1.0)
        for horizon in range(matured.shape[1]):
            for awake in (np.zeros_like(index), 1 + regimes[:, horizon]):
                at = (index, awake, slice(None), horizon)
                self._step(at, regret[:, :, horizon], keep[:, :, horizon])

    def _step(self, at: tuple[Any, ...], regret: Array, keep: Array) -> None:
        columns = self.columns
        largest, square = columns["largest"][at] * keep, columns["square"][at] * keep
        scaled = self._rates(largest, square) * regret
        surprise = np.where(scaled < -0.5, 2.0 * np.maximum(largest, np.abs(regret)), 0.0)
        step = 0.5 * (regret * (1.0 - scaled) - surprise)
        columns["regret"][at] = columns["regret"][at] * keep + step
        columns["square"][at] = square + regret * regret
        columns["largest"][at] = np.maximum(largest, np.abs(regret))

    def weights(self, index: NDArray[np.intp], ready: NDArray[np.bool_], regimes: NDArray[np.int64]) -> Array:
        """Weights [n, K, H, Z] in `regimes` [n], summing to 1 over those `ready` [n, K], 0 for others."""
        columns = self.columns
        awake = np.stack([np.zeros_like(regimes), 1 + regimes], axis=1)  # [n, 2]
        at = (index[:, None], awake)
        rates = self._rates(columns["largest"][at], columns["square"][at])  # [n, 2, K, H, Z]
        heard = ready[:, None, :, None, None]
        score = np.where(heard, rates * columns["regret"][at], _LOWEST)
        share = rates * exact.exp(score - score.max(axis=(1, 2), keepdims=True)) * heard
        both = share[:, 0] + share[:, 1]
        return _in_units(both / np.maximum(both.sum(axis=1, keepdims=True), 1e-300))

    def _rates(self, largest: Array, square: Array) -> Array:
        return np.minimum(
            0.5 / np.maximum(largest, _SMALLEST), np.sqrt(self._log_k / np.maximum(square, _SMALLEST))
        )


def _in_units(weights: Array) -> Array:
    """Weights [n, K, H, Z] in whole units, the largest taking up what rounding left."""
    num = np.rint(weights * _WEIGHT_UNITS)
    rest = (_WEIGHT_UNITS - num.sum(axis=1, keepdims=True)) * (weights.sum(axis=1, keepdims=True) > 0.0)
    first = np.arange(weights.shape[1])[None, :, None, None] == num.argmax(axis=1)[:, None]
    return (num + np.where(first, rest, 0.0)) / _WEIGHT_UNITS
