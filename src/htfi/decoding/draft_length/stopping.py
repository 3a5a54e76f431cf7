"""Whether a draft under way goes on, by the entropy of what comes next. Strategies that draft token by token ask.

The question is put BEFORE the token at a place is drawn, so the answer cannot depend on what the token is: to drop a
token for what it is would bias every rule but the shared noise. Optional, as entropy takes time to compute.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol

from htfi.domain.errors import InvalidInput

_EDGES_NATS = (0.02, 0.1, 0.25, 0.5, 0.8, 1.2, 1.6, 2.0, 2.5, 3.2, 4.5)
_MIDDLES_NATS = (0.0, 0.05, 0.17, 0.37, 0.65, 1.0, 1.4, 1.8, 2.2, 2.8, 3.8, 6.0)


class Stopping(Protocol):
    """Decides place by place; `hurdle` is the survival that a place must have to pay (`ClosedForm.hurdle`)."""

    def goes_on(self, entropies_nats: Sequence[float], hurdle: float) -> bool:
        """Whether to draw one token more. Entropies of the draft's law at all places so far, this one last."""
        ...

    def learn(self, entropies_nats: Sequence[float], accepted: int) -> None:
        """What came of a draft: entropies at its places, and how many of them were accepted."""
        ...


class Threshold:
    """Stops where the draft is less sure than `limit_nats`, whatever the hurdle."""

    def __init__(self, limit_nats: float) -> None:
        if not limit_nats >= 0.0:
            raise InvalidInput("stopping: the limit must be a number of nats ≥ 0")
        self._limit_nats = limit_nats

    def goes_on(self, entropies_nats: Sequence[float], hurdle: float) -> bool:
        del hurdle
        return entropies_nats[-1] <= self._limit_nats

    def learn(self, entropies_nats: Sequence[float], accepted: int) -> None:
        pass


class EntropyStop:
    """Goes on while the chance that all places so far survive, given their entropies, passes the hurdle.

    The rate of each range of entropy is learnt and fades; rates are made to fall with entropy (isotonic).
    Before anything was seen a rate is exp(−H/5): the match rate of two like models under shared noise.
    """

    def __init__(self, prior_weight: float = 8.0, memory_tokens: float = 4000.0) -> None:
        if prior_weight <= 0.0 or memory_tokens < 1.0:
            raise InvalidInput("stopping: prior_weight must be > 0, memory_tokens ≥ 1")
        self._keep = math.exp(-len(_MIDDLES_NATS) / memory_tokens)
        self._prior = [math.exp(-middle / 5.0) for middle in _MIDDLES_NATS]
        self._weight = prior_weight
        self._tried = [0.0] * len(_MIDDLES_NATS)
        self._accepted = [0.0] * len(_MIDDLES_NATS)
        self._rates: list[float] | None = None

    def survives(self, entropy_nats: float) -> float:
        """The chance that a token drawn where the draft's law has this entropy is accepted."""
        if self._rates is None:
            weights = [tried + self._weight for tried in self._tried]
            sums = [
                accepted + self._weight * prior
                for accepted, prior in zip(self._accepted, self._prior, strict=True)
            ]
            self._rates = _falling(
                [each / weight for each, weight in zip(sums, weights, strict=True)], weights
            )
        return self._rates[bisect_left(_EDGES_NATS, entropy_nats)]

    def goes_on(self, entropies_nats: Sequence[float], hurdle: float) -> bool:
        reach = 1.0
        for entropy_nats in entropies_nats:
            reach *= self.survives(entropy_nats)
        return reach > hurdle

    def learn(self, entropies_nats: Sequence[float], accepted: int) -> None:
        for place, entropy_nats in enumerate(entropies_nats[: accepted + 1]):
            at = bisect_left(_EDGES_NATS, entropy_nats)
            self._tried[at] = self._tried[at] * self._keep + 1.0
            self._accepted[at] = self._accepted[at] * self._keep + (place < accepted)
        self._rates = None


def _falling(rates: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The never-rising sequence nearest to `rates` in weighted least squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for rate, weight in zip(rates, weights, strict=True):
        block = (rate, weight, 1)
        while blocks and blocks[-1][0] < block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            mean = (before[0] * before[1] + block[0] * block[1]) / total
            block = (mean, total, before[2] + block[2])
        blocks.append(block)
    return [rate for rate, _, num in blocks for _ in range(num)]
