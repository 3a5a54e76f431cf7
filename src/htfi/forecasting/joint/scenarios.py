"""Joint scenarios: past surprises, or draws alike, put through today's quantiles; also given that something moves.

Portfolio evaluation and `htfi scenario` call it. Scores are normal scores throughout; a scenario is a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.joint.factors import FactorModel, fit_factors
from htfi.forecasting.joint.marginals import FURTHEST, Marginals, normal_scores

Array = NDArray[np.float64]

FEWEST_INSTANTS = 20
_SECANTS = 12
_FREEDOMS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 20.0, 30.0, 60.0)
_NUM_MATCHING = 2000


@dataclass(frozen=True, slots=True)
class Dependence:
    """What the past says of how series move together: complete scores [S, n], and their factor model.

    Each column of `scores` holds the same S values in another order, standard normal in all.
    """

    scores: Array
    factors: FactorModel

    @property
    def num_scenarios(self) -> int:
        return len(self.scores)


def learn_dependence(history: NDArray[np.floating], rng: np.random.Generator) -> Dependence:
    """From a history of scores [T, n] (`Forecaster.surprises`), NaN where absent.

    A missing score is drawn from the factor model given the others of its instant. With fewer than 20 instants, 20
    are drawn so. The dependence of one bar serves every horizon: on daily equities and currencies that of sums over
    5 bars scored no better.
    """
    factors = fit_factors(history)
    known = np.asarray(history, np.float64)
    if len(known) < FEWEST_INSTANTS:
        blank = np.full((FEWEST_INSTANTS - len(known), known.shape[1]), np.nan)
        known = np.concatenate([known, blank])
    filled = factors.fill(normal_scores(known, rng), rng)
    return Dependence(normal_scores(filled, rng), factors)


def draw_scores(
    dependence: Dependence, num: int, rng: np.random.Generator, degrees_of_freedom: float | None = None
) -> Array:
    """`num` rows [num, n] from the factor copula; with `degrees_of_freedom` a Student-t copula, whose series
    are extreme together more often. Antithetic: every draw comes with its mirror image. Margins are exact: ranked.
    """
    half = dependence.factors.draw((num + 1) // 2, rng)
    if degrees_of_freedom is not None:
        half /= np.sqrt(rng.chisquare(degrees_of_freedom, (len(half), 1)) / degrees_of_freedom)
    return normal_scores(np.concatenate([half, -half])[:num])


def fit_freedom(dependence: Dependence, rng: np.random.Generator) -> float | None:
    """Degrees of freedom at which a t copula of these factors has as many days on which all is extreme as the past.

    Matched is the variance over scenarios of the mean squared score, by simulation; None for a Gaussian: where the
    past has no more than that shows, and for a single series.
    """
    wanted = float((dependence.scores**2).mean(axis=1).var())
    seed = rng.integers(2**63)
    tried: list[tuple[float, float]] = []
    for freedom in (*_FREEDOMS, None):
        drawn = draw_scores(dependence, _NUM_MATCHING, np.random.default_rng(seed), freedom)
        tried.append((abs(float((drawn**2).mean(axis=1).var()) - wanted), freedom or 0.0))
    return min(tried)[1] or None if dependence.factors.num_series > 1 else None


def to_returns(scores: Array, quantiles: Array, levels: Sequence[float]) -> Array:
    """Log returns [..., S, n] of scenarios under today's quantiles [n, Q]: each series keeps its own forecast."""
    return Marginals(levels).returns(quantiles, scores)


@dataclass(frozen=True, slots=True)
class Shock:
    """What is supposed to happen: M cases that move the same A directions.

    Shapes: directions [A, n], each a weighted sum of scores (a single 1 for one series); targets [M, A], the values
    that these sums take.
    """

    directions: Array
    targets: Array


def series_shock(
    places: Sequence[int], moves: Array, quantiles: Array, levels: Sequence[float], *, in_sigmas: bool = False
) -> Shock:
    """Series at `places` [A] move by `moves` [M, A], in log return, or in sigmas of today's forecast (90% band / 3.29).

    `quantiles` [n, Q] are today's. A move beyond what the forecast can tell apart is held at ±8 scores.
    """
    moves = np.asarray(moves, np.float64)
    chosen = np.array(places, np.intp)
    if moves.ndim != 2 or moves.shape[1] != len(chosen) or len(set(places)) < len(chosen) or not len(chosen):
        raise InvalidInput("a shock gives one move for each of one or more series, none of them twice")
    if not np.isfinite(moves).all():
        raise InvalidInput("a shock must be finite")
    if in_sigmas:
        moves = moves * _sigmas(quantiles[chosen], levels)
    marginals = Marginals(levels)
    targets = [
        marginals.scores(np.tile(quantiles[place], (len(moves), 1)), moves[:, a])
        for a, place in enumerate(places)
    ]
    directions = np.zeros((len(chosen), len(quantiles)))
    directions[np.arange(len(chosen)), chosen] = 1.0
    return Shock(directions, np.stack(targets, axis=1))


def basket_shock(
    dependence: Dependence,
    scores: Array,
    weights: Array,
    moves: Array,
    quantiles: Array,
    levels: Sequence[float],
) -> Shock:
    """A weighted sum of series, `weights` [n] on their log returns, moves by `moves` [M] in log return.

    A market that is no series of its own can be shocked so. Each score counts with today's sigma; how far the sum
    of scores must go is found by secants, until the basket moves by so much in the mean of scenarios from `scores`.
    Raises: InvalidInput where the basket does not move at all.
    """
    weights, moves = np.asarray(weights, np.float64), np.asarray(moves, np.float64)
    direction = weights * _sigmas(quantiles, levels)
    deviation = float(
        np.sqrt(max(float(direction @ dependence.factors.times(direction[:, None])[:, 0]), 0.0))
    )
    if not deviation > 0.0 or moves.ndim != 1 or not np.isfinite(moves).all():
        raise InvalidInput(
            "a basket that is to be shocked needs weights on series that move, and finite moves"
        )
    directions = direction[None] / deviation

    def mean_moves(targets: Array) -> Array:
        given = condition(dependence, scores, Shock(directions, targets[:, None]))
        return (to_returns(given, quantiles, levels) @ weights).mean(axis=1)

    before = np.zeros_like(moves)
    moved_before = mean_moves(before)
    targets = np.clip(moves / deviation, -FURTHEST, FURTHEST)
    for _ in range(_SECANTS):
        moved = mean_moves(targets)
        slope = (moved - moved_before) / np.where(targets == before, 1.0, targets - before)
        usable = slope > 0.05 * deviation
        step = np.where(usable, (moves - moved) / np.where(usable, slope, 1.0), 0.0)
        before, moved_before = targets, moved
        targets = np.clip(targets + step, -FURTHEST, FURTHEST)
    return Shock(directions, targets[:, None])


def factor_shock(dependence: Dependence, factor: int, sigmas: Array) -> Shock:
    """A factor of the model (0 the strongest) moves by `sigmas` [M], as far as the series can tell its value."""
    model = dependence.factors
    if not 0 <= factor < model.loadings.shape[1]:
        raise InvalidInput(f"the model has factors 0 to {model.loadings.shape[1] - 1}, not {factor}")
    weighted = model.loadings / model.specific[:, None]
    inner = np.eye(model.loadings.shape[1]) + model.loadings.T @ weighted
    direction = (weighted @ np.linalg.inv(inner))[:, factor]  # Σ⁻¹B, by Woodbury
    deviation = float(np.sqrt(max(float(direction @ model.loadings[:, factor]), 0.0)))
    if not deviation > 0.0:
        raise InvalidInput(f"factor {factor} moves no series")
    return Shock(direction[None] / deviation, np.asarray(sigmas, np.float64)[:, None])


def condition(
    dependence: Dependence, scores: Array, shock: Shock, degrees_of_freedom: float | None = None
) -> Array:
    """Scenarios [M, S, n] of the same draws [S, n], given each case of the shock.

    Matheron's rule: z + ΣA'(AΣA')⁻¹(target − A·z), exact for the Gaussian factor copula: shifted mean, reduced
    variance, and the same dice as the unchanged scenarios, so that the difference is the shock's alone.
    With `degrees_of_freedom` ν the rest is widened by √((ν + d)/(ν + A)), d the squared size of the shock, as in a
    Student-t copula: a large shock makes everything more uncertain, a small one less.
    """
    directions, targets = shock.directions, shock.targets
    spread = dependence.factors.times(directions.T)  # [n, A]
    gram = directions @ spread
    gram[np.diag_indices(len(gram))] *= 1.0 + 1e-9
    gain = np.linalg.solve(gram, spread.T)  # [A, n]
    rest = scores - (scores @ directions.T) @ gain
    cases = (targets @ gain)[:, None]  # [M, 1, n]
    if degrees_of_freedom is None:
        return cases + rest
    size = (targets * np.linalg.solve(gram, targets.T).T).sum(axis=1)
    widening = np.sqrt((degrees_of_freedom + size) / (degrees_of_freedom + len(directions)))
    return cases + widening[:, None, None] * rest


def _sigmas(quantiles: Array, levels: Sequence[float]) -> Array:
    low, high = list(levels).index(0.05), list(levels).index(0.95)
    return (quantiles[:, high] - quantiles[:, low]) / BAND_SIGMAS
