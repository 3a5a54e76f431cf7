"""Joint scenarios: past surprises, or draws alike, put through today's quantiles.

Portfolio evaluation and `htfi scenario` call it. Scores are normal scores throughout; a scenario is a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.factors import FactorModel, fit_factors
from htfi.forecasting.joint.marginals import Marginals, normal_scores

Array = NDArray[np.float64]

FEWEST_INSTANTS = 20
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
