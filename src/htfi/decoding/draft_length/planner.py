"""What a plan of look-ahead is asked and told, and the simplest one: always the same length.

No planner reads a clock or draws at random: what it is told of rounds is all it knows, and `plan` changes nothing.

Draft lengths by trial: a bandit on time per token, which assumes neither survival nor costs. A look-ahead to choose.

An arm is a length for all rows. Its figure is ΣTime/ΣTokens, not a mean of ratios, since that is what a whole answer
takes (in the manner of UCB-SpecStop, arXiv 2606.20591); both sums fade, so it follows drift. Time per token is nearly
unimodal in length, so beside plain decoding only the best arm and its neighbours are tried (unimodal bandits,
Combes and Proutière, arXiv 1405.5096).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from htfi.domain.errors import InvalidInput


class LengthRequest(NamedTuple):
    """A row of the coming pass: `cap` tokens may be drafted for it at most.

    The least of: the request's own cap (0: it opted out), what is left of the answer less one (the pass itself
    gives one), and the room that its keys and values have.
    """

    kind: str
    max_length: int


class RoundReport(NamedTuple):
    """What came of one row of a round. `drafted`, `accepted`: chosen tokens (a tree's depth), forced ones aside.

    The others are the whole round's, alike for all its rows: `draft_ms` waiting for drafts, `verify_ms` all the rest,
    `rows` of the target's pass, and `tokens` new to its widest row, the pending ones included.
    """

    kind: str
    drafted: int
    accepted: int
    draft_ms: float
    verify_ms: float
    rows: int
    tokens: int


class DraftLengthPlanner(Protocol):
    """Plans how far to draft for each row; 0 is plain decoding."""

    @property
    def name(self) -> str: ...

    def plan(self, asks: Sequence[LengthRequest]) -> list[int]:
        """A length ≤ cap for each row of the coming pass."""
        ...

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        """What came of the rows of one pass."""
        ...


class FrozenPlanner:
    """Plans as another planner does before it has learnt anything, so that a recorded run drafts the same again."""

    def __init__(self, planner: DraftLengthPlanner) -> None:
        self.name = f"{planner.name}, frozen"
        self._planner = planner

    def plan(self, asks: Sequence[LengthRequest]) -> list[int]:
        return self._planner.plan(asks)

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        pass


class FixedLengthPlanner:
    """Always `length` tokens, as far as caps allow."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise InvalidInput("look-ahead length: take a number ≥ 0")
        self.name = f"fixed {length}"
        self._length = length

    def plan(self, asks: Sequence[LengthRequest]) -> list[int]:
        return [max(min(self._length, ask.max_length), 0) for ask in asks]

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        pass


_MIN_MS = 1e-6


@dataclass(slots=True)
class _Arm:
    ms: float = 0.0
    tokens: float = 0.0
    num_tried: float = 0.0


@dataclass(slots=True)
class _ArmSet:
    """What is known for batches of one size, in powers of two; `next` is the arm to play."""

    arms: list[_Arm]
    next: int


class BanditPlanner:
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
        self._loads: dict[int, _ArmSet] = {}

    def plan(self, asks: Sequence[LengthRequest]) -> list[int]:
        length = self._lengths[self._at(len(asks)).next]
        return [max(min(length, ask.max_length), 0) for ask in asks]

    def learn(self, rounds: Sequence[RoundReport]) -> None:
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
            index = max(arm.ms, _MIN_MS) / arm.tokens * bound
            if index < least:
                best, least = at, index
        return best

    def _at(self, rows: int) -> _ArmSet:
        load = rows.bit_length()
        if load not in self._loads:
            arms = [_Arm() for _ in self._lengths]
            self._loads[load] = _ArmSet(arms, len(arms) // 2)
        return self._loads[load]
