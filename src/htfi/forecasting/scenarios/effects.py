"""What a scenario does to the draws of today's forecast: known moves carried on by dependence, or tilted margins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.scenarios import Shock, condition
from htfi.forecasting.scenarios.today import Today

Array = NDArray[np.float64]

MOST_TOGETHER = 4
_NORMAL = NormalDist()


class Way(StrEnum):
    """How a scenario reached a series."""

    SHOCKED = "shocked"  # the scenario says how far it moves
    FACTOR = "factor"  # it stands for a factor of a named stress
    OWN_HISTORY = "own history"  # its own return in the window of the stress
    CARRIED = "carried"  # by how it has moved with those that are told
    READ = "read"  # the reader has a view on it
    SILENT = "silent"  # the reader sees nothing that concerns it
    RESPONSE = "response"  # by how it answered such surprises
    UNTOUCHED = "untouched"


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely moves at least as far are under today's forecast, over the horizon.

    `scores` [A] are the moves as normal scores. Where too many moved to ask of all together, `of` is whose move it is.
    """

    probability: float
    scores: tuple[float, ...]
    of: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """The draws of a scenario, log returns [S, n], and the way it reached each series [n]."""

    returns: Array
    ways: tuple[Way, ...]
    likelihood: Likelihood | None = None


def move_known(
    today: Today, places: Sequence[int], moves: Sequence[float], ways: Sequence[Way], first: int = 0
) -> Effect:
    """Series at `places` move by `moves` (log return over the horizon); all others as they go with them.

    The likelihood is of all moves together, or, of more than `MOST_TOGETHER`, of the one at `places[first]`.
    """
    at, told = np.array(places, np.intp), np.array(moves, np.float64)
    targets = today.to_scores(at, told)
    given = condition(today.dependence, today.scores, _of_series(today, at, targets), today.freedom)[0]
    returns = today.to_returns(given)
    returns[:, at] = told  # a move beyond all scores is still the move that was named
    reached = [Way.CARRIED] * len(today.series)
    for place, way in zip(places, ways, strict=True):
        reached[place] = way
    if len(at) > MOST_TOGETHER:
        alone = likelihood(today, at[[first]], targets[[first]])
        return Effect(returns, tuple(reached), replace(alone, of=today.series[places[first]]))
    return Effect(returns, tuple(reached), likelihood(today, at, targets))


def change_margins(today: Today, quantiles: Array, ways: Sequence[Way]) -> Effect:
    """The same draws under other quantiles [n, Q]: each series' own forecast changes, how they go together stays."""
    return Effect(today.to_returns(today.scores, quantiles), tuple(ways))


def spread(today: Today, places: Sequence[int], shift: Array) -> Array:
    """The shifts [n] of all series that go with those at `places`: E[z | what moved] in each series' own sigmas.

    A view moves the mean of the series that it is on; what it says of the others is what their correlation with
    these says, as a view on part of a market does in Black and Litterman (1992).
    """
    at = np.array(places, np.intp)
    factors = today.dependence.factors
    directions = np.zeros((len(today.series), len(at)))
    directions[at, np.arange(len(at))] = 1.0
    cross = factors.times(directions)  # [n, A]
    carried = cross @ np.linalg.solve(cross[at], shift[at] / today.sigma[at])
    found = carried * today.sigma
    found[at] = shift[at]
    return found


def likelihood(today: Today, places: NDArray[np.intp], targets: Array) -> Likelihood:
    """P(every one of these series moves at least as far, its own way), furthest first, each given those before it."""
    order = np.argsort(-np.abs(targets), kind="stable")
    probability = _NORMAL.cdf(-abs(float(targets[order[0]])))
    for done in range(1, len(order)):
        known, next_one = order[:done], order[done]
        shock = _of_series(today, places[known], targets[known])
        given = condition(today.dependence, today.scores, shock, today.freedom)[0][:, places[next_one]]
        sign = 1.0 if targets[next_one] >= 0.0 else -1.0
        share = float((sign * given >= abs(float(targets[next_one]))).mean())
        probability *= max(share, 0.5 / len(given))
    return Likelihood(probability, tuple(float(target) for target in targets))


def _of_series(today: Today, places: NDArray[np.intp], targets: Array) -> Shock:
    directions = np.zeros((len(places), len(today.series)))
    directions[np.arange(len(places)), places] = 1.0
    return Shock(directions, targets[None])
