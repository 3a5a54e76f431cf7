"""How often a target picks the draft's first, second, third token: learned per rank and gap. The tree asks it.

The gap is how far a token lies behind the draft's first, noise included, in logits (for the first: how far the second
lies behind it). It says far more than the rank: where it is small, draft and target part easily.
"""

from bisect import bisect
from collections.abc import Sequence
from math import exp

from htfi.decoding.ranking import Ranked

_EDGES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_MIDDLES = (0.03, 0.09, 0.19, 0.38, 0.75, 1.5, 3.0, 6.0)
_PRIOR_WEIGHT = 8.0  # cases that the guess below counts for
_DECAY = 0.998  # a case: a draft may be replaced, markets change


class RankOdds:
    """Counts decay, so that the last few hundred cases decide. Learns from settled tokens alone."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self._hits = [[_PRIOR_WEIGHT * _guess(rank, gap) for gap in _MIDDLES] for rank in range(num_ranks)]
        self._cases = [[_PRIOR_WEIGHT for _ in _MIDDLES] for _ in range(num_ranks)]

    def of(self, ranked: Ranked) -> list[float]:
        """The chance of each ranked token that the target picks it."""
        return [
            self._hits[rank][place] / self._cases[rank][place] for rank, place in enumerate(_places(ranked))
        ]

    def learn(self, ranked: Ranked, said: int) -> None:
        """The target picked `said` where the draft ranked so."""
        for rank, (token, place) in enumerate(zip(ranked.tokens, _places(ranked), strict=True)):
            self._hits[rank][place] = _DECAY * self._hits[rank][place] + (token == said)
            self._cases[rank][place] = _DECAY * self._cases[rank][place] + 1.0


def _places(ranked: Ranked) -> Sequence[int]:
    gaps = ranked.gaps
    return [bisect(_EDGES, gap) for gap in [gaps[1] if len(gaps) > 1 else 99.0, *gaps[1:]][: len(gaps)]]


def _guess(rank: int, gap: float) -> float:
    """Before anything is known: the first stays the more surely the farther the second is."""
    return 0.5 * exp(-gap) / rank if rank else 1.0 - 0.5 * exp(-gap)
