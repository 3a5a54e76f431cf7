"""Whether what governance knew of each decision follows from the governance log. `htfi ledger verify` calls it."""

from collections import deque
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import CheckpointMoved
from htfi.governance.control.state import desks_of
from htfi.governance.fairness.swap_test import swap_problems
from htfi.pipeline.amendments import released_decision
from htfi.pipeline.audit.checkpoints import AuditedSignatures, CheckpointAuditor, WaitingDecisionRecord
from htfi.pipeline.audit.planned import PlannedHoldsAuditor
from htfi.pipeline.checkpoints import waits_for_people
from htfi.pipeline.governance_facts import subject_of
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.wording import with_words
from htfi.pipeline.swap_tests import model_swap_problems

_BEFORE_WITHHELD = (
    "as by development versions of htfi 0.1.0 that let such an amendment take the place of its decision: such a ledger "
    "cannot be derived again by this version, but by the one that made it; all else of it is verified without "
    "--recompute"
)


class GovernanceAuditor:
    """Derives the governance facts of decisions again, in the ledger's order.

    `entries` are those of the governance log with their leaf hashes (hex).
    """

    def __init__(
        self,
        policy: PolicyConfig,
        entries: Sequence[tuple[bytes, str]] = (),
        signatures: AuditedSignatures | None = None,
        *,
        max_group: int = 1,
    ) -> None:
        """Without `signatures` those of people's answers are not verified. `max_group` decisions are recorded together.

        Raises: IntegrityError where an entry is none of this version.
        """
        self._governance = RunGovernance(policy, NoGovernanceLog(entries))
        self._index = 0
        self._waiting: dict[str, Decision] = {}
        self._checkpoints = CheckpointAuditor(signatures)
        logged = self._governance.logged
        self._steps = deque(entry for entry in logged if isinstance(entry, CheckpointMoved))
        self._planned = PlannedHoldsAuditor(logged, max_group)

    @property
    def policy(self) -> PolicyConfig:
        """The limits in force for the decision that was looked at last."""
        return self._governance.policy

    def pass_over(self) -> None:
        """The next decision of the ledger was deleted."""
        self._index += 1
        self._checkpoints.has_gaps = True

    def problems(self, decision: Decision) -> list[str]:
        """What does not follow from the governance log; empty where all does."""
        index, self._index = self._index, self._index + 1
        found = self._step_problems(index)
        return found + self._decision_problems(decision, index) + self._planned.problems(decision, index)

    def last_problems(self) -> list[str]:
        """What does not follow of what was logged after the last decision."""
        return self._step_problems(None)

    def _step_problems(self, index: int | None) -> list[str]:
        """What does not follow of the steps in force for the decision at `index`, or of all that are left."""
        found: list[str] = []
        while self._steps and (index is None or self._steps[0].before <= index):
            found += self._checkpoints.problems(self._steps.popleft())
        return found

    def _decision_problems(self, decision: Decision, index: int) -> list[str]:
        if decision.is_checkpoint_release:
            return self._release_problems(decision, index)
        expected = self._governance.fact(index, subject_of(decision))
        if expected == decision.governance:
            if waits_for_people(decision, self.policy):
                self._note_waiting(decision)
            return self._swap_problems(decision)
        if decision.governance is UNSET:
            return ["it states nothing of governance, though the governance log has changes before it"]
        if expected is UNSET or expected.num_entries < decision.governance.num_entries:
            return [
                f"it names {decision.governance.num_entries} changes of governance, but the governance log has "
                f"{0 if expected is UNSET else expected.num_entries} before it: entries are gone"
            ]
        found = "what it states of governance does not follow from the governance log"
        stated = decision.governance
        if decision.amends and stated.is_view_set_aside and stated == replace(expected, holds=stated.holds):
            return [f"{found}; it amends by a view that is set aside and is not withheld, {_BEFORE_WITHHELD}"]
        return [found]

    def _note_waiting(self, decision: Decision) -> None:
        self._waiting[decision.id] = decision
        config = self._governance.checkpoints
        if config is not None:
            desks = desks_of(self._governance.state_now, decision.symbol)
            self._checkpoints.add_waiting(WaitingDecisionRecord(decision, config, desks))

    def _release_problems(self, decision: Decision, index: int) -> list[str]:
        """Whether people, or a deadline, released the decision that it names, and nothing else of it changed."""
        first = self._waiting.pop(decision.amends, None)
        if first is None and self._checkpoints.has_gaps:
            return []
        if first is None:
            return [f"it releases {decision.amends}, which did not wait for people or is released already"]
        try:
            expected = released_decision(first, self._governance, index)
        except IntegrityError:
            return [f"the governance log holds no answer that releases {first.id}"]
        changed = [
            name
            for name in Decision.__struct_fields__
            if getattr(with_words(expected), name) != getattr(with_words(decision), name)
        ]
        return [f"it is not {first.id} as it was answered: {', '.join(changed)}"] if changed else []

    def _swap_problems(self, decision: Decision) -> list[str]:
        """Whether the view was put to the swap test of the bundle in force, and its weight follows from it."""
        limits, governed = self._governance.fairness, decision.governance
        swaps = UNSET if governed is UNSET else governed.swaps
        if swaps is UNSET:
            is_due = limits is not None and decision.view is not None and bool(decision.view.direction)
            return ["its view was not put to the swap test of the bundle"] if is_due else []
        if limits is None:
            return ["its view was put to a swap test that no bundle asks for"]
        if (swaps.max_move_sigmas, swaps.min_weight) != (limits.max_move_sigmas, limits.min_weight):
            return ["the limits of its swap test are not those of the bundle"]
        return swap_problems(swaps) + model_swap_problems(decision)
