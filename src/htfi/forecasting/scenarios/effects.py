"""What a scenario does to the draws of today's forecast: known moves carried on by dependence, or tilted margins."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.transmission import regression, transmit
from htfi.forecasting.scenarios.chances import Chance, chance_of_moves
from htfi.forecasting.scenarios.shocks import MAX_SIGMAS
from htfi.forecasting.scenarios.today import Today

Array = NDArray[np.float64]

_STILL = 1e-9  # a log return; a forecast no wider is of a series that does not move


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
class Effect:
    """The draws of a scenario, log returns [S, n], and the way it reached each series [n].

    `chance` is that of the moves that the scenario knows, all together; None where it knows of none.
    """

    returns: Array
    ways: tuple[Way, ...]
    chance: Chance | None = None


def move_known(today: Today, places: Sequence[int], moves: Sequence[float], ways: Sequence[Way]) -> Effect:
    """Series at `places` move by `moves` (log return over the horizon); all others as they go with them.

    What the shock leaves open of another series has the shape of its own forecast, narrower for what goes with the
    shock closely, wider after a large one; beyond the outermost quantile its tail is not widened again, for the tail
    and the widening are of the same cause.
    """
    at, told = np.array(places, np.intp), np.array(moves, np.float64)
    median, sigma = today.median, today.sigma
    away = np.where(sigma[at] > _STILL, (told - median[at]) / np.maximum(sigma[at], _STILL), 0.0)
    targets = np.clip(away, -MAX_SIGMAS, MAX_SIGMAS)
    found = transmit(today.dependence.factors, today.standardised, at, targets)
    rest = today.scores - today.scores[:, at] @ found.gain
    rest /= np.maximum(rest.std(axis=0), 1e-12)
    own = today.to_returns(rest)
    outermost = today.quantiles[:, 0], today.quantiles[:, -1]
    within = np.clip(own, *outermost)
    returns = median + today.sigma * found.shift
    returns = returns + np.sqrt(1.0 - found.explained) * (found.scale * (within - median) + own - within)
    returns[:, at] = told
    reached = [Way.CARRIED] * len(today.series)
    for place, way in zip(places, ways, strict=True):
        reached[place] = way
    return Effect(returns, tuple(reached), chance_of_moves(today, places, moves))


def change_margins(today: Today, quantiles: Array, ways: Sequence[Way]) -> Effect:
    """The same draws under other quantiles [n, Q]: each series' own forecast changes, how they go together stays."""
    return Effect(today.to_returns(today.scores, quantiles), tuple(ways))


def spread(today: Today, places: Sequence[int], shift: Array) -> Array:
    """The shifts [n] of all series that go with those at `places`: E[z | what moved] in each series' own sigmas.

    A view moves the mean of the series that it is on; what it says of the others is what their correlation with
    these says, as a view on part of a market does in Black and Litterman (1992).
    """
    at = np.array(places, np.intp)
    gain, _ = regression(today.dependence.factors, today.num_instants, at)
    found = (shift[at] / np.maximum(today.sigma[at], _STILL)) @ gain * today.sigma
    found[at] = shift[at]
    return found
