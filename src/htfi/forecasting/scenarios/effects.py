"""What a scenario does to the draws of today's forecast, and how probable its moves are under that forecast.

Known moves are passed on by dependence, or margins are tilted. Probabilities are counted among the draws and among past
surprises under today's forecast, never read off a fitted tail: what no draw reached is rarer than one in as many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.transmission import shock_regression, transmit_shock
from htfi.forecasting.scenarios.baseline import BaselineForecast
from htfi.forecasting.scenarios.requests import MAX_SIGMAS

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EventProbability:
    """In how many of today's draws it happens, and in how many of the past instants replayed under today's forecast."""

    num: int
    num_draws: int
    num_past: int
    num_instants: int

    @property
    def share(self) -> float | None:
        """0–1; None where no draw reached it: then it is rarer than 1/num_draws."""
        return self.num / self.num_draws if self.num else None


def probability_of_moves(
    today: BaselineForecast, places: Sequence[int], moves: Sequence[float]
) -> EventProbability:
    """Of all these series moving at least as far together, each in its direction from its median.

    `moves` are log returns over the horizon.
    """
    at, ends = list(places), np.array(moves, np.float64)
    side = np.where(ends < today.median[at], -1.0, 1.0)

    def count(returns: Array) -> int:
        return int((side * (returns[:, at] - ends) >= 0.0).all(axis=1).sum())

    return EventProbability(
        count(today.returns), len(today.returns), count(today.replayed), len(today.replayed)
    )


def probability_of_profit(profits: Array, replayed: Array, end: float) -> EventProbability:
    """Of a book ending as low as `end`, or as high where that is above the mean of its `profits` [S].

    `replayed` [T] are its profits in past instants.
    """
    side = -1.0 if end <= profits.mean() else 1.0

    def count(values: Array) -> int:
        return int((side * (values - end) >= 0.0).sum())

    return EventProbability(count(profits), len(profits), count(replayed), len(replayed))


_MIN_SIGMA = 1e-9  # a log return; a forecast no wider is of a series that does not move


class TransmissionChannel(StrEnum):
    """How a scenario reached a series."""

    SHOCKED = "shocked"  # the scenario says how far it moves
    FACTOR = "factor"  # it represents a factor of a named stress
    OWN_HISTORY = "own history"  # its own return in the window of the stress
    DEPENDENCE = "carried"  # by its dependence on the series that are stated
    VIEW = "read"  # the reader has a view on it
    NO_VIEW = "silent"  # the reader sees nothing that concerns it
    RESPONSE = "response"  # by how it answered such surprises
    UNTOUCHED = "untouched"


@dataclass(frozen=True, slots=True)
class ScenarioEffect:
    """The draws of a scenario, log returns [S, n], and the channel that reached each series [n].

    `chance` is that of the moves that the scenario knows, all together; None where it knows of none.
    """

    returns: Array
    channels: tuple[TransmissionChannel, ...]
    probability: EventProbability | None = None


def apply_moves(
    today: BaselineForecast,
    places: Sequence[int],
    moves: Sequence[float],
    ways: Sequence[TransmissionChannel],
) -> ScenarioEffect:
    """Series at `places` move by `moves` (log return over the horizon); all others as they go with them.

    What the shock leaves open of another series has the shape of its own forecast, narrower for what goes with the
    shock closely, wider after a large one; beyond the outermost quantile its tail is not widened again, for the tail
    and the widening are of the same cause.
    """
    at, imposed = np.array(places, np.intp), np.array(moves, np.float64)
    median, sigma = today.median, today.sigma
    away = np.where(sigma[at] > _MIN_SIGMA, (imposed - median[at]) / np.maximum(sigma[at], _MIN_SIGMA), 0.0)
    targets = np.clip(away, -MAX_SIGMAS, MAX_SIGMAS)
    found = transmit_shock(today.dependence.factors, today.standardised_history, at, targets)
    rest = today.scores - today.scores[:, at] @ found.gain
    rest /= np.maximum(rest.std(axis=0), 1e-12)
    own = today.to_returns(rest)
    outermost = today.quantiles[:, 0], today.quantiles[:, -1]
    within = np.clip(own, *outermost)
    returns = median + today.sigma * found.shift
    returns = returns + np.sqrt(1.0 - found.explained) * (found.scale * (within - median) + own - within)
    returns[:, at] = imposed
    reached = [TransmissionChannel.DEPENDENCE] * len(today.series)
    for place, way in zip(places, ways, strict=True):
        reached[place] = way
    return ScenarioEffect(returns, tuple(reached), probability_of_moves(today, places, moves))


def apply_quantiles(
    today: BaselineForecast, quantiles: Array, ways: Sequence[TransmissionChannel]
) -> ScenarioEffect:
    """The same draws under other quantiles [n, Q]: each series' own forecast changes, how they go together stays."""
    return ScenarioEffect(today.to_returns(today.scores, quantiles), tuple(ways))


def spread_shift(today: BaselineForecast, places: Sequence[int], shift: Array) -> Array:
    """The shifts [n] of all series that go with those at `places`: E[z | what moved] in each series' own sigmas.

    A view moves the mean of its series; its effect on the others is what their correlation with
    these says, as a view on part of a market does in Black and Litterman (1992).
    """
    at = np.array(places, np.intp)
    gain, _ = shock_regression(today.dependence.factors, today.num_instants, at)
    found = (shift[at] / np.maximum(today.sigma[at], _MIN_SIGMA)) @ gain * today.sigma
    found[at] = shift[at]
    return found
