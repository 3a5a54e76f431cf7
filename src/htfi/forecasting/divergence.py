"""How rare a divergence of narrative from numbers is, by its narrator's opinions before. Hearing keeps and asks it.

The rank of one is the share of those before that were smaller: of 0.95 and above there is at most one in twenty. At
first it is that among opinions on simulated markets (`REFERENCE`), which count as `PRIOR_OPINIONS`.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import exact

Array = NDArray[np.float64]

PRIOR_OPINIONS = 20.0
HALF_LIFE_OPINIONS = 1_000.0
MOST_NARRATORS = 64  # kept, those heard last
STEPS = 1_000  # divergence and rank are told apart by thousandths
_LN2 = 0.6931471805599453
_LEAST = 1e-6  # of an opinion: what has faded further is forgotten

# The shipped target's opinions at its word: (divergence, share of opinions below it), on straight lines between.
# Measured on 64 simulated worlds that no evaluation uses (seed 1500000000).
REFERENCE = (
    (0.0, 0.0), (0.001, 0.37), (0.1, 0.37), (0.2, 0.41), (0.3, 0.41), (0.4, 0.49), (0.5, 0.57), (0.55, 0.77),
    (0.6, 0.79), (0.65, 0.89), (0.7, 0.91), (0.75, 0.955), (0.8, 0.995), (1.0, 1.0),
)  # fmt: skip


class Divergences:
    """Divergences 0–1 so far, by narrator, the older the fainter, in bounded memory."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, Array] = OrderedDict()  # [STEPS + 1], heard last at the end

    def ranks(self, narrators: Sequence[str], divergences: Sequence[float]) -> list[float]:
        """The rank of each among those learnt so far, 0 to 0.999 in whole thousandths, rounded down.

        Guarantees: of one narrator's, the larger divergence never has the smaller rank.
        """
        below = {name: self._below(name) for name in dict.fromkeys(narrators)}
        return [
            _rank(below[name], _step(divergence))
            for name, divergence in zip(narrators, divergences, strict=True)
        ]

    def learn(self, narrators: Sequence[str], divergences: Sequence[float]) -> None:
        """Take in opinions, in order."""
        by_narrator: dict[str, list[int]] = {}
        for name, divergence in zip(narrators, divergences, strict=True):
            by_narrator.setdefault(name, []).append(_step(divergence))
        for name, steps in by_narrator.items():
            counts = self._counts.get(name)
            if counts is None:
                counts = np.zeros(STEPS + 1)
            counts = counts * float(exact.exp(np.array([-_LN2 * len(steps) / HALF_LIFE_OPINIONS]))[0])
            counts[counts < _LEAST] = 0.0
            np.add.at(counts, steps, 1.0)
            self._counts[name] = counts
            self._counts.move_to_end(name)
            if len(self._counts) > MOST_NARRATORS:
                self._counts.popitem(last=False)

    def _below(self, narrator: str) -> Array:
        """For each step the share of opinions below it."""
        counts = self._counts.get(narrator)
        if counts is None:
            return _REFERENCE
        total = np.cumsum(counts)
        return (PRIOR_OPINIONS * _REFERENCE + (total - counts)) / (PRIOR_OPINIONS + total[-1])

    def state(self) -> dict[str, Any]:
        return {
            name: [[step, float(counts[step])] for step in np.flatnonzero(counts).tolist()]
            for name, counts in self._counts.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._counts = OrderedDict()
        for name, kept in state.items():
            counts = self._counts[name] = np.zeros(STEPS + 1)
            for step, count in kept:
                counts[step] = count


def _step(divergence: float) -> int:
    return min(max(int(divergence * STEPS), 0), STEPS)


def _rank(below: Array, step: int) -> float:
    return min(int(float(below[step]) * STEPS), STEPS - 1) / STEPS


def _reference() -> Array:
    at, shares = zip(*REFERENCE, strict=True)
    return np.interp(np.arange(STEPS + 1) / STEPS, at, shares)


_REFERENCE = _reference()
