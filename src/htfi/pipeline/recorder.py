"""Record, then release: no decision leaves before its entry is durable, and none leaves twice. The loop owns one.

Entries are committed in groups. After a crash the loop decides again from its last snapshot; what the ledger
already holds must come out the same and is not appended again, and what was recorded but not yet released
is released first. What depends on more than the inputs (a view that was late) is taken from there: `recorded`.
"""

from collections.abc import Callable

from htfi.domain.decision import Decision, PolicyOutcome, Receipt, decode_decision, encode_decision
from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.domain.time import NS_PER_MS
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.ports import DecisionLedger, DecisionSink


class DecisionRecorder:
    """Holds back at most `group_entries` decisions for at most `group_ms`; 0 ms commits at every moment.

    `num_decided` and `num_withheld` count forecasts, `num_amended` the decisions that only tell the news of one anew.
    """

    def __init__(
        self,
        ledger: DecisionLedger,
        outlet: DecisionSink,
        *,
        group_entries: int,
        group_ms: float,
        elapsed_ns: Callable[[], int],
    ) -> None:
        self.ledger = ledger
        self.outlet = outlet
        self.num_decided = 0
        self.num_withheld = 0
        self.num_amended = 0
        self._group_entries = group_entries
        self._group_ns = round(group_ms * NS_PER_MS)
        self.elapsed_ns = elapsed_ns
        self._pending: list[bytes] = []
        self._oldest_ns = 0

    def release_recorded(self) -> None:
        """Release what was recorded when the last run ended before it could. Raises: IntegrityError."""
        num_released, size = self.outlet.num_released, self.ledger.size
        if num_released > size:
            raise IntegrityError(
                f"{num_released} decisions were released but the ledger holds only {size}: it was replaced or cut; "
                "restore it, or use a new folder"
            )
        for index in range(num_released, size):
            entry = self.ledger.entry(index)
            self.outlet.release(Receipt(index, leaf_hash(entry).hex()), entry)
        self.outlet.flush()

    @property
    def num_recorded(self) -> int:
        """How many entries of the ledger, from the first on, this run has made or made again."""
        return self.num_decided + self.num_amended

    @property
    def is_redeciding(self) -> bool:
        """Whether the ledger holds what comes next: it was made before a crash."""
        return self.num_recorded < self.ledger.size

    def find_recorded(self, ahead: int = 0) -> Decision | None:
        """What the ledger holds already where the next entry, or the one so far ahead of it, will stand."""
        index = self.num_recorded + ahead
        return decode_decision(self.ledger.entry(index)) if index < self.ledger.size else None

    def decision(self, index: int) -> Decision:
        """What this run has recorded at an index, durably or in the open group."""
        pending = self.num_recorded - len(self._pending)
        entry = self._pending[index - pending] if index >= pending else self.ledger.entry(index)
        return decode_decision(entry)

    def record(self, decision: Decision) -> int:
        """Take one decision into the open group, or check it against the entry that holds it already; its index."""
        entry = encode_decision(decision)
        index = self.num_recorded
        if decision.amends:
            self.num_amended += 1
        else:
            self.num_decided += 1
            self.num_withheld += decision.verdict.outcome is PolicyOutcome.WITHHOLD
        if index < self.ledger.size:
            if self.ledger.entry(index) != entry:
                raise IntegrityError(
                    f"decision {index} ({decision.id}) comes out differently from its entry in the ledger: "
                    "the inputs, the settings or the code changed since; use a new folder"
                )
            return index
        if not self._pending:
            self._oldest_ns = self.elapsed_ns()
        self._pending.append(entry)
        return index

    def maintain_ledger(self) -> None:
        """Let the ledger do what no decision waits for. Raises: LedgerUnavailable."""
        try:
            self.ledger.tidy()
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; every decision so far is recorded and none was released unrecorded: "
                "mend it and give the same command again"
            ) from error

    def commit(self, *, now: bool = False) -> None:
        """Commit the open group when it is full, due or wanted `now`, and only then let it out."""
        if not self._pending:
            return
        due = self.elapsed_ns() - self._oldest_ns >= self._group_ns
        if not (now or due or len(self._pending) >= self._group_entries):
            return
        try:
            receipts = self.ledger.append(self._pending)
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; {len(self._pending)} decisions are held back, none was released unrecorded: "
                "mend it and give the same command again"
            ) from error
        for receipt, entry in zip(receipts, self._pending, strict=True):
            self.outlet.release(receipt, entry)
        self.outlet.flush()
        self._pending.clear()
