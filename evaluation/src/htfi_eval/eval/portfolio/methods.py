"""Ways to forecast several series together, ours and common ones, each as joint scenarios; `walk` calls them.

Each sees the same closed bars; `KnownHistory` holds only what is known at an instant.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.dependence import (
    DependenceModel,
    draw_scores,
    fit_degrees_of_freedom,
    learn_dependence,
    to_returns,
)

Array = NDArray[np.float64]

OURS, COPULA, INDEPENDENT = "joint scenarios", "t copula", "independent"
HISTORICAL, RISKMETRICS = "historical 250", "RiskMetrics"

NUM_SCENARIOS = 500
NUM_DRAWN = 2000  # a tail of 1% then holds 20
_WINDOW = 250
_DECAY = 0.94
_REFIT_EVERY = 5  # instants between fits of the dependence
_REFIT_FREEDOM_EVERY = 250


@dataclass(frozen=True, slots=True, eq=False)
class KnownHistory:
    """Known at one instant. Shapes: returns [T, n], log, up to it, 0 where a bar is missing; quantiles [n, H, Q],
    today's forecasts; surprises [T', n] past normal scores.
    """

    returns: Array
    quantiles: Array
    surprises: NDArray[np.floating]
    levels: tuple[float, ...]
    horizons: tuple[int, ...]


class JointMethod(Protocol):
    """Joint forecasts by one method."""

    name: str

    def see(self, seen: KnownHistory) -> None:
        """Take in the newest instant; each in order."""
        ...

    def scenarios(self, j: int) -> Array:
        """Log returns [S, n] over the j-th horizon, equally likely."""
        ...

    def profits(self, j: int, books: Array, scenarios: Array) -> Array:
        """Profits [B, S'] of books [B, n] (notionals), equally likely; from the scenarios, or exact where possible."""
        ...


def build_methods(seed: int) -> tuple[JointMethod, ...]:
    ours = _JointScenarios(seed)
    return (
        ours,
        _CopulaScenarios(seed, ours),
        _IndependentScenarios(seed, ours),
        _HistoricalScenarios(),
        _RiskMetrics(seed),
    )


class _ScenarioMethod:
    def profits(self, j: int, books: Array, scenarios: Array) -> Array:  # noqa: ARG002 - the port's
        return books @ np.expm1(scenarios).T


class _JointScenarios(_ScenarioMethod):
    """Past surprises, ranked, put through today's forecasts."""

    name = OURS

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._num = 0
        self.seen: KnownHistory
        self.dependence: DependenceModel

    def see(self, seen: KnownHistory) -> None:
        self.seen = seen
        if self._num % _REFIT_EVERY == 0:
            self.dependence = learn_dependence(seen.surprises[-NUM_SCENARIOS:], self._rng)
        self._num += 1

    def scenarios(self, j: int) -> Array:
        return self.through(self.dependence.scores, j)

    def through(self, scores: Array, j: int) -> Array:
        return to_returns(scores, self.seen.quantiles[:, j], self.seen.levels)


class _CopulaScenarios(_ScenarioMethod):
    """The same forecasts joined by a t copula with the factor model's correlations."""

    name = COPULA

    def __init__(self, seed: int, joint: _JointScenarios) -> None:
        self._seed, self._joint, self._num = seed, joint, 0
        self._scores = np.zeros((0, 0))
        self._freedom: float | None = None

    def see(self, seen: KnownHistory) -> None:  # noqa: ARG002 - the joint method beside it has seen it
        if self._num % _REFIT_FREEDOM_EVERY == 0:
            self._freedom = fit_degrees_of_freedom(self._joint.dependence, np.random.default_rng(self._seed))
        if self._num % _REFIT_EVERY == 0:
            rng = np.random.default_rng(self._seed + 1)  # the same random numbers at every fit
            self._scores = draw_scores(self._joint.dependence, NUM_DRAWN, rng, self._freedom)
        self._num += 1

    def scenarios(self, j: int) -> Array:
        return self._joint.through(self._scores, j)


class _IndependentScenarios(_ScenarioMethod):
    """The same forecasts with independent series: shows the effect of dependence."""

    name = INDEPENDENT

    def __init__(self, seed: int, joint: _JointScenarios) -> None:
        self._rng, self._joint = np.random.default_rng(seed + 2), joint
        self._scores = np.zeros((0, 0))

    def see(self, seen: KnownHistory) -> None:  # noqa: ARG002 - the joint method beside it has seen it
        self._scores = self._rng.permuted(self._joint.dependence.scores, axis=0)

    def scenarios(self, j: int) -> Array:
        return self._joint.through(self._scores, j)


class _HistoricalScenarios(_ScenarioMethod):
    """The returns of the last 250 days; over h days, overlapping sums."""

    name = HISTORICAL

    def see(self, seen: KnownHistory) -> None:
        self._seen = seen

    def scenarios(self, j: int) -> Array:
        h = self._seen.horizons[j]
        path = np.cumsum(self._seen.returns[-(_WINDOW + h) :], axis=0)
        return path[h:] - path[:-h]


class _RiskMetrics:
    """Gaussian with an exponentially weighted covariance, λ = .94 (RiskMetrics 1996), √h over h days."""

    name = RISKMETRICS

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed + 3)
        self._covariance = np.zeros((0, 0))
        self._noise = np.zeros((0, 0))
        self._num = 0
        middles = (np.arange(NUM_DRAWN) + 0.5) / NUM_DRAWN
        self._grid = np.array([NormalDist().inv_cdf(share) for share in middles.tolist()])

    def see(self, seen: KnownHistory) -> None:
        self._horizons = seen.horizons
        newest = seen.returns[self._num :]
        if self._num == 0:
            n = seen.returns.shape[1]
            self._covariance = np.zeros((n, n))
            half = self._rng.standard_normal((NUM_SCENARIOS // 2, n))
            self._noise = np.concatenate([half, -half])
        for row in newest:
            self._num += 1
            gain = max(1.0 - _DECAY, 1.0 / self._num)
            self._covariance += gain * (np.outer(row, row) - self._covariance)

    def scenarios(self, j: int) -> Array:
        jitter = np.diag(1e-12 + 1e-9 * np.diag(self._covariance))
        root = np.linalg.cholesky(self._covariance + jitter)
        return np.sqrt(self._horizons[j]) * (self._noise @ root.T)

    def profits(self, j: int, books: Array, scenarios: Array) -> Array:  # noqa: ARG002 - known in closed form
        variance = ((books @ self._covariance) * books).sum(axis=1)
        return np.sqrt(np.maximum(variance, 0.0) * self._horizons[j])[:, None] * self._grid
