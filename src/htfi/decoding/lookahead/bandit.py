"""Draft lengths by trial: a bandit on time per token, which assumes neither survival nor costs. A look-ahead to choose.

An arm is a length for all rows. Its figure is ΣTime/ΣTokens, not a mean of ratios, since that is what a whole answer
takes (in the manner of UCB-SpecStop, arXiv 2606.20591); both sums fade, so it follows drift. Time per token is nearly
unimodal in length, so beside plain decoding only the best arm and its neighbours are tried (unimodal bandits,
Combes and Proutière, arXiv 1405.5096).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.lookahead.plan import Ask, Round
from htfi.domain.errors import InvalidInput

_LEAST_MS = 1e-6


@dataclass(slots=True)
class _Arm:
    ms: float = 0.0
    tokens: float = 0.0
    num_tried: float = 0.0


@dataclass(slots=True)
class _Arms:
    """What is known for batches of one size, in powers of two; `next` is the arm to play."""

    arms: list[_Arm]
    next: int


class Bandit:
    """UCB on time per token. `caution` widens the bounds; what lies `memory_rounds` back weighs 1/e.

    It learns from measured time, so its plans do not replay: give recorded runs `ClosedForm` with `NominalCosts`.
    """

    name = "bandit"
    LENGTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16)

    def __init__(
        self,
        lengths: Sequence[int] = LENGTHS,
        caution: float = 0.2,
        memory_rounds: float = 200.0,
    ) -> None:
        if not lengths or list(lengths) != sorted(set(lengths)) or lengths[0] < 0:
            raise InvalidInput("bandit: give rising lengths ≥ 0")
        if caution < 0.0 or memory_rounds < 1.0:
            raise InvalidInput("bandit: caution must be ≥ 0, memory_rounds ≥ 1")
        self._lengths = list(lengths)
        self._caution = caution
        self._keep = math.exp(-1.0 / memory_rounds)
        self._loads: dict[int, _Arms] = {}

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        length = self._lengths[self._at(len(asks)).next]
        return [max(min(length, ask.cap), 0) for ask in asks]

    def learn(self, rounds: Sequence[Round]) -> None:
        if not rounds:
            return
        of = self._at(rounds[0].rows)
        depth = max(row.drafted for row in rounds)
        played = max((at for at, length in enumerate(self._lengths) if length <= depth), default=0)
        for arm in of.arms:
            arm.ms *= self._keep
            arm.tokens *= self._keep
            arm.num_tried *= self._keep
        arm = of.arms[played]
        arm.ms += rounds[0].draft_ms + rounds[0].verify_ms
        arm.tokens += sum(1 + row.accepted for row in rounds)
        arm.num_tried += 1.0
        of.next = self._best(of.arms)

    def _best(self, arms: Sequence[_Arm]) -> int:
        """The arm that may be the quickest: of those in question, the least lower bound on time per token."""
        tried = [at for at, arm in enumerate(arms) if arm.num_tried > 0.0]
        leader = min(tried, key=lambda at: arms[at].ms / arms[at].tokens)
        total = math.log(1.0 + sum(arm.num_tried for arm in arms))
        best, least = leader, math.inf
        for at in sorted({0, max(leader - 1, 0), leader, min(leader + 1, len(arms) - 1)}):
            arm = arms[at]
            if arm.num_tried < 1.0:
                return at
            # a round's tokens scatter about as widely as their mean is large, so the bound is relative
            bound = 1.0 - self._caution * math.sqrt(total / arm.num_tried)
            index = max(arm.ms, _LEAST_MS) / arm.tokens * bound
            if index < least:
                best, least = at, index
        return best

    def _at(self, rows: int) -> _Arms:
        load = rows.bit_length()
        if load not in self._loads:
            arms = [_Arm() for _ in self._lengths]
            self._loads[load] = _Arms(arms, len(arms) // 2)
        return self._loads[load]
