"""How far to draft: pure planners of draft lengths, asked by the author before each round and told what came of it.

No planner reads a clock or draws at random: what it is told of rounds is all it knows, and `plan` changes nothing.
With `NominalCosts` a plan depends on accepted tokens alone, so a replay drafts the same again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from htfi.decoding.admission import RoundPrice, admit
from htfi.decoding.costs import DRAFT_PRIOR, Costs, PassCosts
from htfi.decoding.survival import Survival
from htfi.domain.errors import InvalidInput


class Ask(NamedTuple):
    """A row of the coming pass: `cap` tokens may be drafted for it at most.

    The least of: the request's own cap (0: it opted out), what is left of the answer less one (the pass itself
    gives one), and the room that its keys and values have.
    """

    kind: str
    cap: int


class Round(NamedTuple):
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


class Lookahead(Protocol):
    """Plans how far to draft for each row; 0 is plain decoding."""

    @property
    def name(self) -> str: ...

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        """A length ≤ cap for each row of the coming pass."""
        ...

    def learn(self, rounds: Sequence[Round]) -> None:
        """What came of the rows of one pass."""
        ...


class Fixed:
    """Always `length` tokens, as far as caps allow."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise InvalidInput("look-ahead length: take a number ≥ 0")
        self.name = f"fixed {length}"
        self._length = length

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return [max(min(self._length, ask.cap), 0) for ask in asks]

    def learn(self, rounds: Sequence[Round]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class LookaheadConfig:
    """`margin`: by how much speculation must promise to beat plain before it is taken up. `probe_share`: the
    share of time that trying the other way may lose. `off_above_rows`: plain for larger batches, a hard rule for
    those who want one; without it lengths shrink as rows join. `replan_rounds`: how long a plan is kept."""

    max_length: int = 16
    margin: float = 0.02
    probe_share: float = 0.01
    off_above_rows: int | None = None
    replan_rounds: int = 8

    def __post_init__(self) -> None:
        if self.max_length < 0 or self.replan_rounds < 1:
            raise InvalidInput("look-ahead: max_length must be ≥ 0, replan_rounds ≥ 1")
        if not 0.0 <= self.margin < 1.0 or not 0.0 <= self.probe_share <= 0.5:
            raise InvalidInput("look-ahead: margin must lie in [0, 1), probe_share in [0, 0.5]")


class ClosedForm:
    """Lengths that maximise expected tokens per expected ms, from survival and costs; plain is one of them.

    A batch is priced as the one pass that it is, so lengths shrink as rows join. What is not done is not learnt, so
    now and then the other way is tried, out of a purse into which `probe_share` of the time goes.
    """

    name = "closed form"

    def __init__(
        self,
        verifying: Costs | None = None,
        drafting: Costs | None = None,
        survival: Survival | None = None,
        config: LookaheadConfig | None = None,
    ) -> None:
        self.config = config or LookaheadConfig()
        self.verifying = verifying or PassCosts()
        self.drafting = drafting or PassCosts(DRAFT_PRIOR, steady=False)
        self.survival = survival or Survival(max(self.config.max_length, 1))
        self._widening = 1.0  # tokens read for each one drafted: forced ones, and a tree's siblings
        self._plain_tokens = 1.0
        self._plans: dict[tuple[Ask, ...], tuple[list[int], float]] = {}
        self._num_rounds = 0
        self._planned_at = 0

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return list(self._best(tuple(asks))[0])

    def learn(self, rounds: Sequence[Round]) -> None:
        if not rounds:
            return
        depth = max(row.drafted for row in rounds)
        _, _, _, draft_ms, verify_ms, rows, tokens = rounds[0]
        self.verifying.learn(rows, tokens, verify_ms)
        if depth:
            self.drafting.learn(sum(row.drafted > 0 for row in rounds), depth, draft_ms)
            self._widening += 0.1 * ((tokens - 1) / depth - self._widening)
        else:
            self._plain_tokens += 0.1 * (tokens - self._plain_tokens)
        for row in rounds:
            self.survival.learn(row.kind, row.drafted, row.accepted)
        self._num_rounds += 1
        if self._num_rounds >= self._planned_at + min(self.config.replan_rounds, 1 + self._num_rounds // 4):
            self._planned_at = self._num_rounds
            self._plans.clear()

    def _best(self, asks: tuple[Ask, ...]) -> tuple[list[int], float]:
        found = self._plans.get(asks)
        if found is None:
            found = self._plans[asks] = self._solved(asks)
        return found

    def _solved(self, asks: tuple[Ask, ...]) -> tuple[list[int], float]:
        off = self.config.off_above_rows is not None and len(asks) > self.config.off_above_rows
        caps = [0 if off else max(min(ask.cap, self.config.max_length), 0) for ask in asks]
        price = self.price(len(asks), max(caps, default=0))
        curves = {ask.kind: self.survival.curve(ask.kind) for ask in asks}
        admitted = admit([curves[ask.kind] for ask in asks], caps, price)
        if admitted.tokens_per_ms < (1.0 + self.config.margin) * len(asks) / price.width_ms[0]:
            return [0] * len(asks), len(asks) / price.width_ms[0]
        return admitted.lengths, admitted.tokens_per_ms

    def price(self, rows: int, longest: int) -> RoundPrice:
        """What rounds of `rows` rows cost, by the longest draft among them."""
        slot_ms = 0.0
        if rows > 1 and longest:
            alone, all_rows = self.drafting.estimate(1, longest), self.drafting.estimate(rows, longest)
            slot_ms = (all_rows - alone) / ((rows - 1) * longest)
        width_ms = [self.verifying.estimate(rows, max(round(self._plain_tokens), 1))]
        for width in range(1, longest + 1):
            verify = self.verifying.estimate(rows, 1 + round(self._widening * width))
            draft = max(self.drafting.estimate(1, width) - slot_ms * width, 0.0)
            width_ms.append(max(verify + draft, width_ms[-1]))
        return RoundPrice(width_ms, slot_ms)


class Unlearning:
    """Plans as another does before it has seen anything: what a recorded run drafts tells nothing of earlier rounds."""

    def __init__(self, plan: Lookahead) -> None:
        self.name = f"{plan.name}, unlearning"
        self._plan = plan

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return self._plan.plan(asks)

    def learn(self, rounds: Sequence[Round]) -> None:
        pass
