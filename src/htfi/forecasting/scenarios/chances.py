"""The chance of an event under today's forecast: counted among its draws, and among past surprises put through it.

One value serves the words, the tables, the JSON and the page. Nothing is read off a curve's tail: what no draw reached
is rarer than one in as many.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.scenarios.today import Today

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chance:
    """In how many of today's draws it happens, and in how many of the past instants replayed under today's forecast."""

    num: int
    num_draws: int
    num_past: int
    num_instants: int

    @property
    def share(self) -> float | None:
        """0–1; None where no draw reached it: then it is rarer than 1/num_draws."""
        return self.num / self.num_draws if self.num else None


def chance_of_moves(today: Today, places: Sequence[int], moves: Sequence[float]) -> Chance:
    """Of all these series moving at least as far together, each its own way from its median.

    `moves` are log returns over the horizon.
    """
    at, ends = list(places), np.array(moves, np.float64)
    side = np.where(ends < today.median[at], -1.0, 1.0)

    def count(returns: Array) -> int:
        return int((side * (returns[:, at] - ends) >= 0.0).all(axis=1).sum())

    return Chance(count(today.returns), len(today.returns), count(today.replayed), len(today.replayed))


def chance_of_profit(profits: Array, replayed: Array, end: float) -> Chance:
    """Of a book ending as low as `end`, or as high where that is above the mean of its `profits` [S].

    `replayed` [T] are its profits in past instants.
    """
    side = -1.0 if end <= profits.mean() else 1.0

    def count(values: Array) -> int:
        return int((side * (values - end) >= 0.0).sum())

    return Chance(count(profits), len(profits), count(replayed), len(replayed))
