"""Entropy-aware rejection, a lossy option: where both models are unsure alike, what was accepted is drawn anew.

The walk under the rejection rule asks it when it is told to, never of itself. It DISTORTS the law: probabilities
that forecasts were calibrated on no longer hold for its output, so no forecast distribution may be drawn with it.
Source: EASD, arXiv 2512.23765. Used for lengths instead of verdicts, entropy costs nothing (see `accept_tree`).
"""

from dataclasses import dataclass

import numpy as np

from htfi.decoding.noise import Doubles
from htfi.domain import exact
from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class EntropyAware:
    """Doubt a token where both laws have more entropy than `threshold_nats` and share at least the fraction
    `overlap` of their `top_n` likeliest tokens. Lossy: opt in by name."""

    threshold_nats: float = 2.0
    top_n: int = 10
    overlap: float = 0.8

    def __post_init__(self) -> None:
        if not self.threshold_nats >= 0.0:
            raise InvalidInput("entropy-aware threshold_nats: take a number ≥ 0")
        if self.top_n < 1:
            raise InvalidInput("entropy-aware top_n: take at least 1")
        if not 0.0 <= self.overlap <= 1.0:
            raise InvalidInput("entropy-aware overlap: take a fraction between 0 and 1")

    def doubts(self, target: Doubles, draft: Doubles) -> bool:
        """Whether a token accepted under these laws [C] is to be suppressed and drawn anew."""
        if min(entropy_nats(target), entropy_nats(draft)) <= self.threshold_nats:
            return False
        num = min(self.top_n, len(target))
        shared = np.intersect1d(_likeliest(target, num), _likeliest(draft, num))
        return len(shared) >= self.overlap * num


def entropy_nats(law: Doubles) -> float:
    """Entropy of a law [C]; 0 for a point mass."""
    held = law[law > 0.0]
    return float(-np.cumsum(held * exact.log(held))[-1])


def suppressed(target: Doubles, place: int) -> Doubles:
    """The target's weights [C] without one token; as they are where it is the only one."""
    rest = target.copy()
    rest[place] = 0.0
    return rest if rest.any() else target


def _likeliest(law: Doubles, num: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.argsort(-law, kind="stable")[:num]
