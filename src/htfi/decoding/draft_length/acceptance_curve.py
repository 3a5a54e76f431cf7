"""How many drafted tokens are accepted in a row, by kind of request, learnt online. Planner and alarm use it.

Acceptance depends on the position and comes in good and bad stretches, so each position has a rate: of being accepted
if all before it were. Little-known kinds are assumed to be like the others, and little-known positions like their kind.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from htfi.domain.errors import InvalidInput

_MIN_RATE, _MAX_RATE = 0.002, 0.998  # bounds of rates: nothing is certain


@dataclass(slots=True)
class _Counts:
    """Positions tried and accepted, fading; `num_rounds` fades too."""

    tried: list[float]
    accepted: list[float]
    num_rounds: float = 0.0
    curve: list[float] | None = field(default=None)


class AcceptanceCurves:
    """a_j = P(the first j drafted tokens are all accepted), j = 1 … max_places, by kind.

    `prior_rate` is a position's rate without data and weighs like `prior_weight` tokens; rounds `memory_rounds` ago
    weigh 1/e.
    """

    def __init__(
        self,
        max_places: int = 16,
        prior_rate: float = 0.8,
        prior_weight: float = 4.0,
        memory_rounds: float = 200.0,
    ) -> None:
        if max_places < 1 or not 0.0 < prior_rate < 1.0 or prior_weight <= 0.0 or memory_rounds < 1.0:
            raise InvalidInput("survival: max_places and memory_rounds ≥ 1, prior_rate in (0, 1), weight > 0")
        self.max_places = max_places
        self._prior_rate = prior_rate
        self._prior_weight = prior_weight
        self._keep = math.exp(-1.0 / memory_rounds)
        self._all = self._fresh()
        self._kinds: dict[str, _Counts] = {}

    def learn(self, kind: str, drafted: int, accepted: int) -> None:
        """One round: `accepted` ≤ `drafted` tokens. Positions after the first rejection, or the end, were not tried."""
        drafted = min(drafted, self.max_places)
        if drafted < 1:
            return
        counts = self._kinds.get(kind)
        if counts is None:
            counts = self._kinds[kind] = self._fresh()
        accepted = min(max(accepted, 0), drafted)
        num_tried = min(accepted + 1, drafted)
        for each in (counts, self._all):
            self._count(each, num_tried, accepted)

    def curve(self, kind: str) -> list[float]:
        """a_1 … a_max, never rising."""
        counts = self._kinds.get(kind, self._all)
        if counts.curve is None:
            survives = 1.0
            counts.curve = []
            for rate in self.rates(kind):
                survives *= rate
                counts.curve.append(survives)
        return counts.curve

    def rates(self, kind: str) -> list[float]:
        """Per position, the chance of being accepted if all before were."""
        weight = self._prior_weight
        pooled = self._level(self._all, self._prior_rate)
        at_place = [
            _shrunk(accepted, tried, pooled, weight)
            for accepted, tried in zip(self._all.accepted, self._all.tried, strict=True)
        ]
        counts = self._kinds.get(kind)
        if counts is None:
            return at_place
        level = _logit(self._level(counts, pooled)) - _logit(pooled)
        return [
            _shrunk(accepted, tried, _logistic(_logit(usual) + level), weight)
            for accepted, tried, usual in zip(counts.accepted, counts.tried, at_place, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        """Everything learnt, for JSON."""
        return {
            kind: [counts.num_rounds, counts.tried, counts.accepted]
            for kind, counts in (("", self._all), *((f"={name}", of) for name, of in self._kinds.items()))
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`. Raises InvalidInput if it has another shape."""
        read: dict[str, _Counts] = {}
        try:
            for kind, (num_rounds, tried, accepted) in state.items():
                counts = _Counts([float(n) for n in tried], [float(n) for n in accepted], float(num_rounds))
                if not len(counts.tried) == len(counts.accepted) == self.max_places:
                    raise ValueError
                read[kind] = counts
            everything = read.pop("")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"survival: the saved state does not have {self.max_places} places; start without it"
            ) from error
        self._all = everything
        self._kinds = {kind[1:]: counts for kind, counts in read.items()}

    def _count(self, counts: _Counts, num_tried: int, num_accepted: int) -> None:
        keep = self._keep
        counts.num_rounds = counts.num_rounds * keep + 1.0
        tried, accepted = counts.tried, counts.accepted
        for place in range(num_tried):  # a position forgets only when it is tried: deep ones seldom are
            tried[place] = tried[place] * keep + 1.0
            accepted[place] = accepted[place] * keep + (place < num_accepted)
        counts.curve = None

    def _level(self, counts: _Counts, prior: float) -> float:
        return _shrunk(sum(counts.accepted), sum(counts.tried), prior, self._prior_weight)

    def _fresh(self) -> _Counts:
        return _Counts([0.0] * self.max_places, [0.0] * self.max_places)


def _shrunk(accepted: float, tried: float, prior: float, weight: float) -> float:
    return min(max((accepted + prior * weight) / (tried + weight), _MIN_RATE), _MAX_RATE)


def _logit(rate: float) -> float:
    return math.log(rate / (1.0 - rate))


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))
