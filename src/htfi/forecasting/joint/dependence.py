"""How series move together: a factor model of normal scores, and joint scenarios from its copula or the past.

Scores are normal scores throughout; a scenario is a row. Portfolio evaluation and `htfi scenario` use it. Pure; LAPACK
is allowed here, since nothing of it enters a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.joint.history import MarginalMap, normal_scores

Array = NDArray[np.float64]

MAX_FACTORS = 20
_MAX_EXPLAINED = 0.995  # of a series' variance that factors may explain
_PRIOR_INSTANTS = 30.0  # a series seen so often is believed by half, for the rest it is an average one
_FILL_ITERATIONS = 3
_DIAGONAL_ITERATIONS = 20
_DIAGONAL_SERIES = 400  # beyond so many the diagonal hardly matters


@dataclass(frozen=True, slots=True)
class FactorModel:
    """Scores z = B·f + e with independent standard normal factors: correlation B·Bᵀ + diag(specific).

    Shapes: loadings [n, K], the strongest factor first, each with the sign that most series follow; specific [n],
    the variance that is a series' own. Each series has variance 1.
    """

    loadings: Array
    specific: Array

    @property
    def num_series(self) -> int:
        return len(self.specific)

    def multiply(self, directions: Array) -> Array:
        """The correlation matrix times `directions` [n, M], without forming it."""
        return self.loadings @ (self.loadings.T @ directions) + self.specific[:, None] * directions

    def draw(self, num: int, rng: np.random.Generator) -> Array:
        """Scores [num, n] of the Gaussian with this correlation."""
        factors = rng.standard_normal((num, self.loadings.shape[1]))
        own = rng.standard_normal((num, self.num_series))
        own *= np.sqrt(self.specific)
        own += factors @ self.loadings.T
        return own

    def fill(self, scores: Array, rng: np.random.Generator | None = None) -> Array:
        """`scores` [T, n] with NaN replaced: by draws given what is there, or by their means without `rng`."""
        known = np.isfinite(scores)
        if known.all():
            return scores.copy()
        filled = np.where(known, scores, 0.0)
        num_factors = self.loadings.shape[1]
        for t in np.flatnonzero(~known.all(axis=1)).tolist():
            here, gone = known[t], ~known[t]
            weighted = self.loadings[here] / self.specific[here, None]
            precision = np.eye(num_factors) + self.loadings[here].T @ weighted
            mean = np.asarray(np.linalg.solve(precision, weighted.T @ scores[t, here]), np.float64)
            filled[t, gone] = self.loadings[gone] @ mean
            if rng is None:
                continue
            root = np.asarray(np.linalg.cholesky(np.linalg.inv(precision)), np.float64)
            filled[t, gone] += self.loadings[gone] @ (root @ rng.standard_normal(num_factors))
            filled[t, gone] += np.sqrt(self.specific[gone]) * rng.standard_normal(int(gone.sum()))
        return filled


def fit_factors(scores: NDArray[np.floating], num_factors: int | None = None) -> FactorModel:
    """The factor model of scores [T, n], NaN where absent; T or n may be the larger.

    Scores are ranked first, so that a series whose forecasts were too narrow does not lead. As many factors as
    stand above what noise would show (Marchenko and Pastur 1967), at least one, unless `num_factors` says.
    Probabilistic PCA (Tipping and Bishop 1999), then for few series principal-axis rounds on the diagonal; gaps
    are filled by the model in between. A series with few scores is drawn towards the average series.
    Raises: InvalidInput for scores without a series.
    """
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise InvalidInput("a factor model needs scores of at least one series")
    seen = np.isfinite(scores)
    ranked = normal_scores(np.asarray(scores, np.float64))
    num_instants, num_series = ranked.shape
    if num_instants < 3 or num_series == 1:
        return FactorModel(np.zeros((num_series, 1)), np.ones(num_series))
    gaps = not bool(seen.all())
    filled = np.where(seen, ranked, 0.0)
    model = _components(filled, num_factors)
    for _ in range(_FILL_ITERATIONS if gaps else 0):
        filled = model.fill(np.where(seen, ranked, np.nan))
        model = _components(filled, num_factors)
    if num_series <= _DIAGONAL_SERIES:
        model = _principal_axes(filled, model)
    return _shrink_to_average(model, seen.sum(axis=0))


def _components(scores: Array, num_factors: int | None) -> FactorModel:
    """Probabilistic PCA of complete scores [T, n] by the smaller of the two Gram matrices."""
    num_instants, num_series = scores.shape
    wide = num_series > num_instants
    gram = scores @ scores.T if wide else scores.T @ scores
    values, vectors = np.linalg.eigh(gram / num_instants)
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = (1.0 + np.sqrt(num_series / num_instants)) ** 2
    most = min(MAX_FACTORS, num_series - 1, num_instants - 1)
    k = int((values > edge).sum()) if num_factors is None else num_factors
    k = max(1, min(k, most))
    noise = max((float(num_series) - float(values[:k].sum())) / (num_series - k), 0.0)
    strength = np.sqrt(np.maximum(values[:k] - noise, 0.0))
    if wide:
        scale = np.sqrt(np.maximum(values[:k], 1e-12) * num_instants)
        vectors = scores.T @ vectors[:, :k] / scale
    return _bounded(vectors[:, :k] * strength)


def _principal_axes(scores: Array, model: FactorModel) -> FactorModel:
    """Loadings whose products match the correlations off the diagonal: the diagonal is the model's own."""
    correlation = scores.T @ scores / len(scores)
    k = model.loadings.shape[1]
    for _ in range(_DIAGONAL_ITERATIONS):
        np.fill_diagonal(correlation, (model.loadings**2).sum(axis=1))
        values, vectors = np.linalg.eigh(correlation)
        model = _bounded(vectors[:, : -k - 1 : -1] * np.sqrt(np.maximum(values[: -k - 1 : -1], 0.0)))
    return model


def _shrink_to_average(model: FactorModel, num_seen: NDArray[np.intp]) -> FactorModel:
    trust = (num_seen / (num_seen + _PRIOR_INSTANTS))[:, None]
    usual = (trust * model.loadings).sum(axis=0) / max(float(trust.sum()), 1e-12)
    full = num_seen >= 10 * _PRIOR_INSTANTS
    return _bounded(np.where(full[:, None], model.loadings, trust * model.loadings + (1.0 - trust) * usual))


def _bounded(loadings: Array) -> FactorModel:
    explained = (loadings**2).sum(axis=1)
    loadings = loadings * np.where(loadings.sum(axis=0) < 0.0, -1.0, 1.0)
    scale = np.sqrt(np.minimum(1.0, _MAX_EXPLAINED / np.maximum(explained, 1e-300)))
    loadings = loadings * scale[:, None]
    return FactorModel(loadings, 1.0 - (loadings**2).sum(axis=1))


MIN_INSTANTS = 20
_DEGREES_OF_FREEDOM = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 20.0, 30.0, 60.0)
_NUM_MATCHING = 2000


@dataclass(frozen=True, slots=True)
class DependenceModel:
    """How series moved together in the past: complete scores [S, n], and their factor model.

    Each column of `scores` holds the same S values in another order, standard normal in all.
    """

    scores: Array
    factors: FactorModel


def learn_dependence(history: NDArray[np.floating], rng: np.random.Generator) -> DependenceModel:
    """From a history of scores [T, n] (`Forecaster.surprises`), NaN where absent.

    A missing score is drawn from the factor model given the others of its instant. With fewer than 20 instants, 20
    are drawn so. The dependence of one bar serves every horizon: on daily equities and currencies that of sums over
    5 bars scored no better.
    """
    factors = fit_factors(history)
    known = np.asarray(history, np.float64)
    if len(known) < MIN_INSTANTS:
        blank = np.full((MIN_INSTANTS - len(known), known.shape[1]), np.nan)
        known = np.concatenate([known, blank])
    filled = factors.fill(normal_scores(known, rng), rng)
    return DependenceModel(normal_scores(filled, rng), factors)


def draw_scores(
    dependence: DependenceModel, num: int, rng: np.random.Generator, degrees_of_freedom: float | None = None
) -> Array:
    """`num` rows [num, n] from the factor copula; with `degrees_of_freedom` a Student-t copula, whose series
    are extreme together more often. Antithetic: every draw comes with its mirror image. Margins are exact: ranked.
    """
    half = dependence.factors.draw((num + 1) // 2, rng)
    if degrees_of_freedom is not None:
        half /= np.sqrt(rng.chisquare(degrees_of_freedom, (len(half), 1)) / degrees_of_freedom)
    return normal_scores(np.concatenate([half, -half])[:num])


def fit_degrees_of_freedom(dependence: DependenceModel, rng: np.random.Generator) -> float | None:
    """Degrees of freedom at which a t copula of these factors has as many days on which all is extreme as the past.

    Matched is the variance over scenarios of the mean squared score, by simulation; None for a Gaussian: where the
    past has no more than that shows, and for a single series.
    """
    wanted = float((dependence.scores**2).mean(axis=1).var())
    seed = rng.integers(2**63)
    tried: list[tuple[float, float]] = []
    for freedom in (*_DEGREES_OF_FREEDOM, None):
        drawn = draw_scores(dependence, _NUM_MATCHING, np.random.default_rng(seed), freedom)
        tried.append((abs(float((drawn**2).mean(axis=1).var()) - wanted), freedom or 0.0))
    return min(tried)[1] or None if dependence.factors.num_series > 1 else None


def to_returns(scores: Array, quantiles: Array, levels: Sequence[float]) -> Array:
    """Log returns [..., S, n] of scenarios under today's quantiles [n, Q]: each series keeps its own forecast."""
    return MarginalMap(levels).returns(quantiles, scores)
