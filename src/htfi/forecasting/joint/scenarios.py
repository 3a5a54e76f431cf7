"""Joint scenarios: past surprises, or draws alike, put through today's quantiles; also given that something moves.

Portfolio evaluation and `htfi scenario` call it. Scores are normal scores throughout; a scenario is a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.joint.factors import FactorModel, fit_factors
from htfi.forecasting.joint.marginals import Marginals, normal_scores

Array = NDArray[np.float64]

FEWEST_INSTANTS = 20


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
    """From a history of scores [T, n] (`JointHistory.scores`), NaN where absent.

    A missing score is drawn from the factor model given the others of its instant. With fewer than 20 instants, 20
    are drawn so.
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


def to_returns(scores: Array, quantiles: Array, levels: Sequence[float]) -> Array:
    """Log returns [..., S, n] of scenarios under today's quantiles [n, Q]: each series keeps its own forecast."""
    return Marginals(levels).returns(quantiles, scores)


@dataclass(frozen=True, slots=True)
class Shock:
    """What is supposed to happen: M cases that move the same A directions.

    Shapes: directions [A, n], each a weighted sum of scores (one 1 for one series); targets [M, A], the value it
    takes, in standard deviations of a normal score.
    """

    directions: Array
    targets: Array


def series_shock(
    places: Sequence[int], moves: Array, quantiles: Array, levels: Sequence[float], *, in_sigmas: bool = False
) -> Shock:
    """Series at `places` move by `moves` [M, A] in log return, or in sigmas of today's forecast (90% band / 3.29).

    `quantiles` [n, Q] are today's. A move beyond what the forecast can tell apart is held at ±8 scores.
    """
    raise NotImplementedError


def condition(
    dependence: Dependence, scores: Array, shock: Shock, degrees_of_freedom: float | None = None
) -> Array:
    """Scenarios [M, S, n] of the same draws [S, n], given each case of the shock.

    Matheron's rule: z + ΣA'(AΣA')⁻¹(target − A·z), exact for the Gaussian factor copula: shifted mean, reduced
    variance, and the same dice as the unchanged scenarios, so that the difference is the shock's alone.
    With `degrees_of_freedom` ν the rest is widened by √((ν + d)/(ν + A)), d the squared size of the shock, as in a
    Student-t copula: a large shock makes everything more uncertain.
    """
    raise NotImplementedError
