"""Record, then release: no decision leaves before its entry is durable, and none leaves twice. The loop owns one.

Entries are committed in groups. What the ledger holds already when a run starts again must come out the same and is not
appended again (`Recovery`); what was recorded but not yet released is released first.
"""

from collections.abc import Callable
from typing import Any

from htfi.domain.decision import Decision, PolicyOutcome, Receipt, decode_decision, encode_decision
from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.domain.time import NS_PER_MS
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.ports import DecisionLedger, DecisionSink
from htfi.pipeline.recovery import Recovery


class DecisionRecorder:
    """Holds back at most `group_entries` decisions for at most `group_ms`; 0 ms commits at every decision point.

    `num_decided` and `num_withheld` count forecasts, `num_amended` the amendments of their views.
    """

    def __init__(
        self,
        ledger: DecisionLedger,
        sink: DecisionSink,
        *,
        group_entries: int,
        group_ms: float,
        elapsed_ns: Callable[[], int],
    ) -> None:
        self.ledger = ledger
        self.sink = sink
        self.recovery = Recovery(ledger)
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
        num_released, size = self.sink.num_released, self.ledger.size
        if num_released > size:
            raise IntegrityError(
                f"{num_released} decisions were released but the ledger holds only {size}: it was replaced or cut; "
                "restore it, or use a new folder"
            )
        for index in range(num_released, size):
            entry = self.ledger.entry(index)
            self.sink.release(Receipt(index, leaf_hash(entry).hex()), entry)
        self.sink.flush()

    @property
    def num_recorded(self) -> int:
        """How many entries of the ledger, from the first on, this run has made or made again."""
        return self.recovery.position

    def decision(self, index: int) -> Decision:
        """What this run has recorded at an index, durably or in the open group."""
        first_pending = self.num_recorded - len(self._pending)
        entry = self._pending[index - first_pending] if index >= first_pending else self.ledger.entry(index)
        return decode_decision(entry)

    def record(self, decision: Decision) -> int:
        """Take one decision into the open group, unless the ledger holds it already; its index.

        Raises: IntegrityError where the ledger holds another one there.
        """
        entry = encode_decision(decision)
        index = self.num_recorded
        if decision.amends:
            self.num_amended += 1
        else:
            self.num_decided += 1
            self.num_withheld += decision.verdict.outcome is PolicyOutcome.WITHHOLD
        if not self.recovery.advance(entry, decision.id):
            if not self._pending:
                self._oldest_ns = self.elapsed_ns()
            self._pending.append(entry)
        return index

    def maintain_ledger(self) -> None:
        """Let the ledger do its housekeeping, which no decision waits for. Raises: LedgerUnavailable."""
        try:
            self.ledger.tidy()
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; every decision so far is recorded and none was released unrecorded: "
                "mend it and give the same command again"
            ) from error

    def commit(self, *, now: bool = False) -> None:
        """Commit the open group when it is full, due or wanted `now`, and only then release it."""
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
            self.sink.release(receipt, entry)
        self.sink.flush()
        self._pending.clear()

    def state(self) -> dict[str, Any]:
        counts = {"decided": self.num_decided, "withheld": self.num_withheld, "amended": self.num_amended}
        return {"position": self.recovery.position, **counts}

    def restore(self, state: dict[str, Any]) -> None:
        self.recovery.position = state["position"]
        self.num_decided, self.num_withheld = state["decided"], state["withheld"]
        self.num_amended = state["amended"]
