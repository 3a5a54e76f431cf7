"""Recovery after a crash: what the ledger holds already is decided again and must come out the same.

A run goes on from its last saved state, so the decisions that were recorded after it are made once more. `Recovery`
follows them in the ledger. What depends on more than the inputs (a view that a model read, an answer that came late) is
taken from there and not asked for again, so that the run comes to the same bytes.
"""

from msgspec import UNSET

from htfi.domain.decision import Decision, NewsView, decode_decision
from htfi.domain.errors import IntegrityError
from htfi.domain.plan import LadderInputs
from htfi.narrative.merging import unmerged
from htfi.pipeline.ports import DecisionLedger


class Recovery:
    """A position in the ledger: how many of its entries this run has made, or made again."""

    def __init__(self, ledger: DecisionLedger) -> None:
        self._ledger = ledger
        self.position = 0

    @property
    def is_under_way(self) -> bool:
        """Whether the ledger holds what this run decides next."""
        return self.position < self._ledger.size

    def advance(self, entry: bytes, decision_id: str) -> bool:
        """Go past one decision; whether the ledger holds it already. Raises: IntegrityError where it holds another."""
        index = self.position
        self.position += 1
        if index >= self._ledger.size:
            return False
        if self._ledger.entry(index) != entry:
            raise IntegrityError(
                f"decision {index} ({decision_id}) comes out differently from its entry in the ledger: "
                "the inputs, the settings or the code changed since; use a new folder"
            )
        return True

    def next_decision(self, ahead: int = 0) -> Decision | None:
        """What the ledger holds where the next decision, or the one so far ahead of it, will stand."""
        index = self.position + ahead
        return decode_decision(self._ledger.entry(index)) if index < self._ledger.size else None

    def next_inputs(self, ahead: int, symbol: str, as_of_ns: int) -> LadderInputs | None:
        """What the ladder saw for that decision, where it is of this symbol and instant: it is not measured again."""
        found = self.next_decision(ahead)
        if (
            found is None
            or (found.symbol, found.as_of_ns) != (symbol, as_of_ns)
            or found.plan.inputs is UNSET
        ):
            return None
        return found.plan.inputs

    def next_view(self, ahead: int = 0) -> NewsView | None:
        """What was read for that decision, before other readings were merged into it."""
        found = self.next_decision(ahead)
        return unmerged_view(found) if found is not None else None

    def next_amendment(self) -> tuple[Decision, NewsView] | None:
        """The next entry, where it is an amendment, and the view that it was made from. Raises: IntegrityError."""
        found = self.next_decision()
        if found is None or not found.amends:
            return None
        view = unmerged_view(found)
        if view is None:
            raise IntegrityError(f"{found.id} in the ledger amends {found.amends} without a view")
        return found, view


def unmerged_view(decision: Decision) -> NewsView | None:
    """What was read for a decision, before other readings were merged into it; None where nothing was."""
    return unmerged(decision.view) if decision.view is not None else None
