"""What a planner of draft lengths is given and reports, fixed lengths, and a bandit.

No planner reads a clock or random numbers: round reports are all that it knows, and `plan` changes nothing.

An arm of the bandit is a length for all rows. Its value is ΣTime/ΣTokens, not a mean of ratios, since that is what a
whole answer takes (similar to UCB-SpecStop, arXiv 2606.20591); both sums fade, so it follows drift. Time per token is
nearly unimodal in length, so besides plain decoding only the best arm and its neighbours are tried (unimodal bandits,
Combes and Proutière, arXiv 1405.5096).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from htfi.domain.errors import InvalidInput


class LengthRequest(NamedTuple):
    """A row of the coming pass, for which at most `max_length` tokens may be drafted.

    The least of: the request's own cap (0: no drafting), the rest of the answer less one (the pass itself gives one),
    and the room for its keys and values.
    """

    kind: str
    max_length: int


class RoundReport(NamedTuple):
    """One row of a round. `drafted`, `accepted`: chosen tokens (a tree's depth) without forced ones.

    The others concern the whole round: `draft_ms` waiting for drafts, `verify_ms` everything else, `rows` of the
    target's pass, and `tokens` new to its widest row, pending ones included.
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

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        """A length ≤ max_length for each row of the coming pass."""
        ...

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        """Reports on the rows of one pass."""
        ...


class FrozenPlanner:
    """Plans as another planner does before it has learnt anything, so that a recorded run drafts the same again."""

    def __init__(self, planner: DraftLengthPlanner) -> None:
        self.name = f"{planner.name}, frozen"
        self._planner = planner

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        return self._planner.plan(requests)

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        pass


class FixedLengthPlanner:
    """Always `length` tokens, within the rows' bounds."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise InvalidInput("draft length: give a number ≥ 0")
        self.name = f"fixed {length}"
        self._length = length

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        return [max(min(self._length, ask.max_length), 0) for ask in requests]

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
    """Statistics for batches of one size, in powers of two; `next` is the arm to play."""

    arms: list[_Arm]
    next: int


class BanditPlanner:
    """UCB on time per token. `caution` widens the bounds; rounds `memory_rounds` ago weigh 1/e.

    It learns from measured time, so its plans do not replay: the setting `nominal` is for that
    (`FrozenPlanner` over fixed pass costs).
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

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        length = self._lengths[self._arms_for(len(requests)).next]
        return [max(min(length, ask.max_length), 0) for ask in requests]

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        if not rounds:
            return
        arm_set = self._arms_for(rounds[0].rows)
        depth = max(row.drafted for row in rounds)
        played = max((at for at, length in enumerate(self._lengths) if length <= depth), default=0)
        for arm in arm_set.arms:
            arm.ms *= self._keep
            arm.tokens *= self._keep
            arm.num_tried *= self._keep
        arm = arm_set.arms[played]
        arm.ms += rounds[0].draft_ms + rounds[0].verify_ms
        arm.tokens += sum(1 + row.accepted for row in rounds)
        arm.num_tried += 1.0
        arm_set.next = self._best(arm_set.arms)

    def _best(self, arms: Sequence[_Arm]) -> int:
        """The arm that may be the fastest: the least lower bound on time per token among the candidates."""
        tried = [at for at, arm in enumerate(arms) if arm.num_tried > 0.0]
        leader = min(tried, key=lambda at: arms[at].ms / arms[at].tokens)
        total = math.log(1.0 + sum(arm.num_tried for arm in arms))
        best, least = leader, math.inf
        for at in sorted({0, max(leader - 1, 0), leader, min(leader + 1, len(arms) - 1)}):
            arm = arms[at]
            if arm.num_tried < 1.0:
                return at
            # the standard deviation of a round's tokens is about their mean, so the bound is relative
            bound = 1.0 - self._caution * math.sqrt(total / arm.num_tried)
            index = max(arm.ms, _MIN_MS) / arm.tokens * bound
            if index < least:
                best, least = at, index
        return best

    def _arms_for(self, rows: int) -> _ArmSet:
        load = rows.bit_length()
        if load not in self._loads:
            arms = [_Arm() for _ in self._lengths]
            self._loads[load] = _ArmSet(arms, len(arms) // 2)
        return self._loads[load]
