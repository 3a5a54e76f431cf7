"""Whether what governance knew of each decision follows from the governance log. `htfi ledger verify` calls it."""

from collections.abc import Sequence

from msgspec import UNSET

from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError
from htfi.governance.config import PolicyConfig
from htfi.governance.fairness.swap_test import swap_problems
from htfi.pipeline.amendments import released_decision
from htfi.pipeline.checkpoints import waits_for_people
from htfi.pipeline.governed import NoGovernanceLog, RunGovernance, subject_of
from htfi.pipeline.record.wording import with_words


class GovernanceAuditor:
    """Derives the governance facts of decisions again, in the ledger's order.

    `entries` are those of the governance log with their leaf hashes (hex).
    """

    def __init__(self, policy: PolicyConfig, entries: Sequence[tuple[bytes, str]] = ()) -> None:
        """Raises: IntegrityError where an entry is none of this version."""
        self._governance = RunGovernance(policy, NoGovernanceLog(entries))
        self._index = 0
        self._waiting: dict[str, Decision] = {}

    @property
    def policy(self) -> PolicyConfig:
        """The limits in force for the decision that was looked at last."""
        return self._governance.policy

    def pass_over(self) -> None:
        """The next decision of the ledger was deleted."""
        self._index += 1

    def problems(self, decision: Decision) -> list[str]:
        """What does not follow from the governance log; empty where all does."""
        index, self._index = self._index, self._index + 1
        if decision.is_checkpoint_release:
            return self._release_problems(decision, index)
        expected = self._governance.fact(index, subject_of(decision))
        if expected == decision.governance:
            if waits_for_people(decision, self.policy):
                self._waiting[decision.id] = decision
            return self._swap_problems(decision)
        if decision.governance is UNSET:
            return ["it states nothing of governance, though the governance log has changes before it"]
        if expected is UNSET or expected.num_entries < decision.governance.num_entries:
            return [
                f"it names {decision.governance.num_entries} changes of governance, but the governance log has "
                f"{0 if expected is UNSET else expected.num_entries} before it: entries are gone"
            ]
        return ["what it states of governance does not follow from the governance log"]

    def _release_problems(self, decision: Decision, index: int) -> list[str]:
        """Whether people, or a deadline, released the decision that it names, and nothing else of it changed."""
        first = self._waiting.pop(decision.amends, None)
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
        return swap_problems(swaps)
