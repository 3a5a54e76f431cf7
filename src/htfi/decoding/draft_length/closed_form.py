"""Draft lengths that maximise expected tokens per expected ms: the planners 'measured' and 'nominal'.

With `NominalPassCosts` a plan depends on accepted tokens alone, so a replay drafts the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.decoding.draft_length.admission import RoundCost, admit_draft_slots
from htfi.decoding.draft_length.pass_costs import (
    DRAFT_PRIOR,
    LearnedPassCosts,
    NominalPassCosts,
    PassCostEstimator,
)
from htfi.decoding.draft_length.planner import LengthRequest, RoundReport
from htfi.domain.errors import InvalidInput

_INITIAL_BUDGET, _MAX_BUDGET = (
    6.0,
    12.0,
)  # in plain rounds: what speculation on a kind may lose at first, and at most
_MIN_BUDGET = -1.0  # the largest debt of a kind: plain decoding for some hundred rounds
_PROBE_ROUNDS, _PROBE_LENGTH = 4, 2
_MAX_PROBE_COST = 10.0  # plain rounds that one probe counts for, at most
_EXPLORATION_LENGTHS = (
    4,
    8,
    4,
    2,
    4,
    8,
    4,
    2,
    4,
    8,
    4,
    6,
)  # tried first, whatever the priors, to learn costs
_PERTURB_EVERY_ROUNDS = 8
_PLAIN_ROUNDS = 64
_MIN_MS = 1e-4


@dataclass(frozen=True, slots=True)
class DraftLengthConfig:
    """`margin`: by how much speculation must be expected to beat plain decoding. `probe_share`: the share of a kind's
    time that speculation may lose against plain decoding. `plain_above_rows`: plain decoding for larger batches, a hard
    rule; without it lengths shrink as rows join. `replan_rounds`: how long a plan is kept.
    """

    max_length: int = 16
    margin: float = 0.06
    probe_share: float = 0.01
    plain_above_rows: int | None = None
    replan_rounds: int = 32

    def __post_init__(self) -> None:
        if self.max_length < 0 or self.replan_rounds < 1:
            raise InvalidInput("decoding.draft_length: max_draft_length must be ≥ 0, replan_rounds ≥ 1")
        if not 0.0 <= self.margin < 1.0 or not 0.0 <= self.probe_share <= 0.5:
            raise InvalidInput("decoding.draft_length: margin must lie in [0, 1), probe_share in [0, 0.5]")


class ThroughputPlanner:
    """Lengths from acceptance curves and pass costs; plain decoding is one of them.

    A batch is priced as the one pass that it is, so lengths shrink as rows join. Whatever the estimates promise, each
    kind of request has an exploration budget: rounds pay in half of `probe_share` of their time, speculation adds its
    gain over plain decoding or subtracts its loss, and a kind with an empty budget is decoded plainly. The other half
    pays for trying speculation again where it did not pay, a few rounds at a time. What the draft reads to catch up,
    above all a prompt, is a cost of probes; if answers are speculated on anyway, it counts as reading.
    """

    name = "closed form"

    def __init__(
        self,
        verifying: PassCostEstimator | None = None,
        drafting: PassCostEstimator | None = None,
        survival: AcceptanceCurves | None = None,
        config: DraftLengthConfig | None = None,
    ) -> None:
        self.config = config or DraftLengthConfig()
        self.verifying = verifying or LearnedPassCosts()
        self.drafting = drafting or LearnedPassCosts(DRAFT_PRIOR)
        self.survival = survival or AcceptanceCurves(max(self.config.max_length, 1))
        self._widening = 1.0  # tokens read per drafted one: forced ones, and a tree's siblings
        self._plain_tokens = 1.0
        self._exploration_budget: dict[str, float] = {}  # in plain tokens' time, hence for any batch size
        self._num_rounds: dict[int, int] = {}  # by rows of the pass, in powers of two
        self._num_plain: dict[int, int] = {}
        self._measures = not isinstance(self.verifying, NominalPassCosts)
        self._num_learnt = 0
        self._num_explored = 0 if self._measures else len(_EXPLORATION_LENGTHS)
        self._was_drafting = False
        self._since_plain = 0
        self._probing = 0  # remaining rounds of a probe
        self._probe_budget, self._probe_price = 0.0, 1.0  # in plain rounds
        self._replan_at = 1
        self._length_tables: dict[str, list[int]] = {}
        self._round_costs: dict[int, RoundCost] = {}

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        exploring = self._num_explored < len(_EXPLORATION_LENGTHS)
        caps = self._caps(requests, exploring)
        if not any(caps):
            return caps
        if exploring:
            return [min(_EXPLORATION_LENGTHS[self._num_explored], cap) for cap in caps]
        if self._measures and self._is_plain_pass_due(len(requests)):
            return [0] * len(caps)
        lengths = self._best(requests, caps)
        if not any(lengths):
            return self._probe(requests, caps)
        if self._measures and self._num_learnt % _PERTURB_EVERY_ROUNDS == _PERTURB_EVERY_ROUNDS - 1:
            return self._perturbed(lengths, caps)
        return lengths

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        if not rounds:
            return
        _, _, _, draft_ms, verify_ms, rows, tokens = rounds[0]
        depth = max(row.drafted for row in rounds)
        self.verifying.learn(rows, tokens, verify_ms)
        at = rows.bit_length()
        self._num_rounds[at] = self._num_rounds.get(at, 0) + 1
        self._probing = max(self._probing - 1, 0)
        self._probe_budget = min(self._probe_budget + self.config.probe_share / 2.0, _MAX_PROBE_COST)
        exploring = self._num_explored < len(_EXPLORATION_LENGTHS)
        if depth:
            if self._was_drafting:
                self._num_explored += 1
                self.drafting.learn(sum(row.drafted > 0 for row in rounds), depth, draft_ms)
            elif not exploring:
                self._charge_probe(rounds)
            self._widening += 0.1 * ((tokens - 1) / depth - self._widening)
        else:
            self._num_plain[at] = self._num_plain.get(at, 0) + 1
            self._plain_tokens += 0.1 * (tokens - self._plain_tokens)
        self._was_drafting = depth > 0
        self._since_plain = self._since_plain + 1 if depth else 0
        for row in rounds:
            self.survival.learn(row.kind, row.drafted, row.accepted)
        if not exploring:
            self._update_budget(rounds)
        self._num_learnt += 1
        if self._num_learnt >= self._replan_at:
            self._replan_at += min(self.config.replan_rounds, 1 + self._num_learnt // 4)
            self._length_tables.clear()
            self._round_costs.clear()

    def round_cost(self, rows: int) -> RoundCost:
        """The cost of rounds of `rows` rows by their longest draft, up to the longest of all."""
        known = self._round_costs.get(rows)
        if known is None:
            known = self._round_costs[rows] = self._round_cost(rows, self.config.max_length)
        return known

    def _caps(self, requests: Sequence[LengthRequest], exploring: bool) -> list[int]:
        """What each row may draft: by its own cap, the batch size, and its kind's exploration budget."""
        off, longest = self.config.plain_above_rows, self.config.max_length
        if off is not None and len(requests) > off:
            return [0] * len(requests)
        budget = self._exploration_budget
        return [
            max(min(cap, longest), 0) if exploring or budget.get(kind, 0.0) >= 0.0 else 0
            for kind, cap in requests
        ]

    def _is_plain_pass_due(self, rows: int) -> bool:
        """Whether to measure a plain pass: often at first, then now and then."""
        at = rows.bit_length()
        return self._since_plain >= _PLAIN_ROUNDS or self._num_rounds.get(at, 0) >= 2 << self._num_plain.get(
            at, 0
        )

    def _best_lengths(self, kind: str) -> list[int]:
        """The best length up to each cap, for a pass of one row."""
        best_by_cap = self._length_tables.get(kind)
        if best_by_cap is None:
            width_ms = self.round_cost(1).width_ms
            tokens, length, best_by_cap = 1.0, 0, [0]
            least = (1.0 + self.config.margin) / width_ms[0]
            for length_tried, survives in enumerate(self.survival.curve(kind)[: self.config.max_length], 1):
                tokens += survives
                if tokens / width_ms[length_tried] > least:
                    length, least = length_tried, tokens / width_ms[length_tried]
                best_by_cap.append(length)
            self._length_tables[kind] = best_by_cap
        return best_by_cap

    def _best(self, requests: Sequence[LengthRequest], caps: Sequence[int]) -> list[int]:
        return (
            [self._best_lengths(requests[0].kind)[caps[0]]]
            if len(caps) == 1
            else self._batch_lengths(requests, caps)
        )

    def _batch_lengths(self, requests: Sequence[LengthRequest], caps: Sequence[int]) -> list[int]:
        price = self.round_cost(len(requests))
        curve = self.survival.curve
        admitted = admit_draft_slots([curve(kind) for kind, _ in requests], caps, price)
        least = (1.0 + self.config.margin) * len(requests) / price.width_ms[0]
        return admitted.lengths if admitted.tokens_per_ms > least else [0] * len(requests)

    def _perturbed(self, lengths: Sequence[int], caps: Sequence[int]) -> list[int]:
        """Alternately longer and shorter than the best: lengths that are never tried have unknown costs."""
        if self._num_learnt // _PERTURB_EVERY_ROUNDS % 2:
            return [length and max(length - 1, 1) for length in lengths]
        return [
            length and min(length + max(length // 2, 1), cap)
            for length, cap in zip(lengths, caps, strict=True)
        ]

    def _probe(self, requests: Sequence[LengthRequest], caps: Sequence[int]) -> list[int]:
        """If plain decoding is expected to be better: a few rounds of two tokens, once the probe budget allows."""
        if not self._probing and self._probe_budget < self._probe_price:
            return [0] * len(requests)
        return [min(cap, _PROBE_LENGTH) for cap in caps]

    def _charge_probe(self, rounds: Sequence[RoundReport]) -> None:
        """The first draft after plain rounds: reading what it missed is a probe's main cost."""
        requests = [LengthRequest(row.kind, self.config.max_length) for row in rounds]
        if any(self._best(requests, self._caps(requests, False))):
            return  # no probe: speculation is expected to be better
        _, _, _, draft_ms, verify_ms, rows, _ = rounds[0]
        price = self.round_cost(rows)
        ms = (
            draft_ms + verify_ms
            if self._measures
            else price.width_ms[min(_PROBE_LENGTH, len(price.width_ms) - 1)]
        )
        self._probe_price = max(min(ms / price.width_ms[0] - 1.0, _MAX_PROBE_COST), 0.0)
        self._probe_budget -= self._probe_price
        self._probing = _PROBE_ROUNDS - 1

    def _update_budget(self, rounds: Sequence[RoundReport]) -> None:
        """Book a round, in the time of plain ones, to the kinds that drafted; they bear the others' delay."""
        budget, share = self._exploration_budget, self.config.probe_share / 2.0
        drafted = [row.drafted for row in rounds]
        num_drafting = sum(num > 0 for num in drafted)
        if not num_drafting:
            for row in rounds:
                budget[row.kind] = min(budget.get(row.kind, _INITIAL_BUDGET) + share, _MAX_BUDGET)
            return
        price = self.round_cost(len(rounds))
        longest = min(max(drafted), len(price.width_ms) - 1)
        charge = (price.width_ms[longest] + price.slot_ms * sum(drafted)) / price.width_ms[0]
        for row in rounds:
            left = budget.get(row.kind, _INITIAL_BUDGET) + share * charge
            if row.drafted:
                left += row.accepted - (charge - 1.0) * len(rounds) / num_drafting
            budget[row.kind] = max(min(left, _MAX_BUDGET), _MIN_BUDGET)

    def _round_cost(self, rows: int, longest: int) -> RoundCost:
        slot_ms = 0.0
        if rows > 1 and longest:
            alone, all_rows = self.drafting.estimate(1, longest), self.drafting.estimate(rows, longest)
            slot_ms = (all_rows - alone) / ((rows - 1) * longest)
        width_ms = [max(self.verifying.estimate(rows, max(round(self._plain_tokens), 1)), _MIN_MS)]
        for width in range(1, longest + 1):
            verify = self.verifying.estimate(rows, 1 + round(self._widening * width))
            draft = max(self.drafting.estimate(1, width) - slot_ms * width, 0.0)
            width_ms.append(max(verify + draft, width_ms[-1]))
        return RoundCost(width_ms, slot_ms)
