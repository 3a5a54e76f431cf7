"""Many small least-squares fits at once, updated bar by bar; HAR keeps one per series and horizon."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import Columns
from htfi.forecasting.panel import Rows

Array = NDArray[np.float64]

_NOISE_PRIOR_VAR = 0.5
_NOISE_PRIOR_BARS = 20.0
_WIDEST = (
    6.0  # regressors, targets and forecasts, in logs, further than this from their level: a feed waking up
)


class DiscountedRegression:
    """Ridge regressions y = x·β drawn to a prior β, the past discounted by a half-life.

    Normal equations A β = c with A ← λA + xxᵀ + (1−λ)P and c ← λc + xy + (1−λ)Pβ₀, so that the prior
    keeps its weight P = prior_bars·I for ever: an unseen direction never becomes singular.
    """

    def __init__(self, num_targets: int, prior: Array, prior_bars: float, half_life_bars: float) -> None:
        k = len(prior)
        self._keep = round(0.5 ** (1.0 / half_life_bars), 12)
        self._prior, self._prior_bars = prior, prior_bars
        self._prior_gram = prior_bars * np.eye(k)
        self.columns = Columns()
        self.columns.declare("gram", np.broadcast_to(self._prior_gram, (num_targets, k, k)))
        self.columns.declare("moment", np.broadcast_to(prior_bars * prior, (num_targets, k)))
        self.columns.declare("beta", np.broadcast_to(prior, (num_targets, k)))
        self.columns.declare("noise", np.full(num_targets, _NOISE_PRIOR_VAR))
        self.columns.declare("num", np.zeros(num_targets))

    def learn(self, rows: Rows, x: Array, y: Array, known: NDArray[np.bool_]) -> None:
        """Take in x [n, H, K] with outcomes y [n, H] where `known` [n, H]."""
        columns = self.columns
        weight = known.astype(np.float64)
        keep = 1.0 - weight * (1.0 - self._keep)
        anew = weight * (1.0 - self._keep)
        y = np.where(known, y, 0.0)
        x = x * weight[:, :, None]
        miss = y - (x * columns["beta"][rows]).sum(axis=2)
        noise, num = columns["noise"][rows], columns["num"][rows]
        gain = weight * np.maximum(1.0 / (num + _NOISE_PRIOR_BARS), 1.0 - self._keep)
        columns["noise"][rows] = noise + gain * (miss * miss - noise)
        columns["num"][rows] = num + weight
        gram = columns["gram"][rows] * keep[:, :, None, None]
        gram += x[:, :, :, None] * x[:, :, None, :] + anew[:, :, None, None] * self._prior_gram
        moment = columns["moment"][rows] * keep[:, :, None]
        moment += x * y[:, :, None] + anew[:, :, None] * (self._prior_bars * self._prior)
        columns["gram"][rows], columns["moment"][rows] = gram, moment

    def fit(self, rows: NDArray[np.intp]) -> None:
        """Bring β of these rows up to date with what was learnt."""
        self.columns["beta"][rows] = solve(self.columns["gram"][rows], self.columns["moment"][rows])

    def predict(self, rows: Rows, x: Array) -> Array:
        """E[y] in logs plus half the noise variance, [n, H], for x [n, K]: log-normal mean."""
        fitted = (x[:, None, :] * self.columns["beta"][rows]).sum(axis=2)
        return fitted + 0.5 * self.columns["noise"][rows]


def solve(gram: Array, moment: Array) -> Array:
    """β [..., K] of gram [..., K, K] β = moment [..., K] for positive definite grams.

    Gauss-Jordan elimination in exactly rounded operations, not LAPACK, whose bits depend on the processor.
    """
    k = gram.shape[-1]
    a = np.concatenate([gram, moment[..., None]], axis=-1)
    a = np.ascontiguousarray(np.moveaxis(a, (-2, -1), (0, 1)))  # [K, K+1, ...]
    for i in range(k):
        pivot = a[i] / a[i, i]
        a -= a[:, i, None] * pivot
        a[i] = pivot
    return np.moveaxis(a[:, k], 0, -1)


def held(logs: Array) -> Array:
    """Logs about their level within ±6: beyond it a feed wakes from a flat stretch."""
    return np.minimum(np.maximum(logs, -_WIDEST), _WIDEST)
