"""Record, then release: no decision leaves before its entry is durable, and none leaves twice. The loop owns one.

Entries are committed in groups. As soon as a group is durable its decisions go to the subscriber; then their words are
made, and sink and watcher get them. A run goes on from its last saved state, so the decisions that were recorded after
it are made once more: `LedgerCursor` follows them in the ledger, they must come out the same and are not appended
again. What depends on more than the inputs (a view that a model read, an answer that came late) is taken from there and
not asked for again, so that the run comes to the same bytes. What was recorded but not yet released is released first.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import Decision, PolicyOutcome, Receipt
from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.domain.governance import Hold, SwapFacts
from htfi.domain.news_view import NewsView
from htfi.domain.plan import LadderInputs, Rung
from htfi.domain.time import NS_PER_MS
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.policy import judge
from htfi.narrative.merging import unmerged
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.governance_facts import subject_of
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.point_telemetry import NO_TELEMETRY, PointTelemetry
from htfi.pipeline.ports import DecisionLedger, DecisionSink
from htfi.pipeline.record.entry import (
    VERSION,
    decode_entry,
    encode_as,
    entry_version,
    is_entry_of,
    try_decode_entry,
)

Subscriber = Callable[[Receipt, DecidedSeries], None]
"""Gets each decision that is not withheld, with its receipt, as soon as it is durable: its forecast at once, the
decision and its words when it asks for them.
"""


Watcher = Callable[[DecidedSeries], None]
"""Gets each decision after its release, those withheld and those made again as well."""


def no_subscriber(receipt: Receipt, decided: DecidedSeries) -> None:
    """For a run whose decisions are read from its files alone."""


class LedgerCursor:
    """A position in the ledger: how many of its entries this run has made, or made again."""

    def __init__(self, ledger: DecisionLedger) -> None:
        self._ledger = ledger
        self.position = 0

    @property
    def is_replaying(self) -> bool:
        """Whether the ledger holds what this run decides next."""
        return self.position < self._ledger.size

    def advance(self, decided: DecidedSeries) -> bool:
        """Go past one decision; whether the ledger holds it already. Raises: IntegrityError where it holds another."""
        index = self.position
        self.position += 1
        if index >= self._ledger.size:
            return False
        recorded = self._ledger.entry(index)
        if not _holds(recorded, decided):
            raise IntegrityError(
                f"decision {index} ({decided.decision.id}) differs from its entry in the ledger: "
                "the inputs, the settings or the code changed since; use a new folder"
            )
        return True

    def next_decision(self, ahead: int = 0) -> Decision | None:
        """What the ledger holds where the next decision, or the one so far ahead of it, will stand."""
        index = self.position + ahead
        return decode_entry(self._ledger.entry(index)) if index < self._ledger.size else None

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

    def next_left_out(self, ahead: int, symbol: str, as_of_ns: int) -> frozenset[Rung] | None:
        """The rungs that that decision was planned without; None where the ledger does not hold it."""
        found = self.next_decision(ahead)
        if found is None or (found.symbol, found.as_of_ns) != (symbol, as_of_ns):
            return None
        return found.plan.left_out

    def next_view(self, ahead: int = 0) -> NewsView | None:
        """What was read for that decision, before other readings were merged into it."""
        found = self.next_decision(ahead)
        return unmerged_view(found) if found is not None else None

    def next_set_aside(self, ahead: int = 0) -> tuple[Hold, ...] | None:
        """What that decision's view was set aside for; None where the ledger does not hold it."""
        found = self.next_decision(ahead)
        if found is None:
            return None
        return () if found.governance is UNSET else found.governance.set_aside

    def next_swaps(self, ahead: int = 0) -> SwapFacts | UnsetType | None:
        """That decision's swap test, unset where it had none; None where the ledger does not hold it."""
        found = self.next_decision(ahead)
        if found is None:
            return None
        return UNSET if found.governance is UNSET else found.governance.swaps

    def next_release(self) -> Decision | None:
        """The next entry, where it releases a decision that had waited for people."""
        found = self.next_decision()
        return found if found is not None and found.is_checkpoint_release else None

    def next_amendment(self) -> tuple[Decision, NewsView] | None:
        """The next entry, where it is an amendment, and the view that it was made from. Raises: IntegrityError."""
        found = self.next_decision()
        if found is None or not found.amends or found.is_checkpoint_release:
            return None
        view = unmerged_view(found)
        if view is None:
            raise IntegrityError(f"{found.id} in the ledger amends {found.amends} without a view")
        return found, view


def unmerged_view(decision: Decision) -> NewsView | None:
    """What was read for a decision, before other readings were merged into it; None where nothing was."""
    return unmerged(decision.view) if decision.view is not None else None


def _holds(entry: bytes, decided: DecidedSeries) -> bool:
    """Whether an entry of any version holds this decision."""
    if entry_version(entry) == VERSION:
        return entry == decided.entry
    return is_entry_of(entry, decided.decision)


_PendingEntry = tuple[bytes, DecidedSeries]  # the entry of a decision of the open group


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
        governance: RunGovernance,
        subscriber: Subscriber = no_subscriber,
        watcher: Watcher = lambda _: None,
        is_recorded: bool = True,
        telemetry: PointTelemetry = NO_TELEMETRY,
    ) -> None:
        """A ledger goes on in the version of its last entry; those of a new one are of the newest."""
        self.ledger = ledger
        self.sink = sink
        self.watcher = watcher
        self.subscriber = subscriber
        self._telemetry = telemetry
        self._governance = governance
        self.subscribes_again = False  # whether the subscriber also gets decisions that are made again
        self._is_recorded = is_recorded  # else entries are empty, and the ledger discards them
        self._version = entry_version(ledger.entry(ledger.size - 1)) if ledger.size else VERSION
        self.cursor = LedgerCursor(ledger)
        self.num_decided = 0
        self.num_withheld = 0
        self.num_amended = 0
        self._group_entries = group_entries
        self._group_ns = round(group_ms * NS_PER_MS)
        self.elapsed_ns = elapsed_ns
        self._pending: list[_PendingEntry] = []
        self._oldest_ns = 0
        self._num_changes = 0  # of governance, when the open group began

    def release_recorded(self) -> None:
        """Release what was recorded when the last run ended before it could. Raises: IntegrityError."""
        num_released, size = self.sink.num_released, self.ledger.size
        if num_released > size:
            raise IntegrityError(
                f"{num_released:,} decisions were released, but the ledger holds only {size:,}: it was replaced "
                "or cut; "
                "restore it, or use a new folder"
            )
        for index in range(num_released, size):
            entry = self.ledger.entry(index)
            self.sink.release(Receipt(index, leaf_hash(entry).hex()), entry)
        self.sink.flush()

    def catch_up(self, first: int) -> None:
        """Give the subscriber what the ledger holds from an index on, before the run goes on; then it gets the rest.

        Raises: IntegrityError where an entry is no decision.
        """
        for index in range(first, self.ledger.size):
            entry = self.ledger.entry(index)
            decision = try_decode_entry(entry)
            if decision is None:
                raise IntegrityError(f"entry {index} of the ledger does not hold a decision of this version")
            if decision.verdict.outcome is not PolicyOutcome.WITHHOLD:
                self.subscriber(Receipt(index, leaf_hash(entry).hex()), DecidedSeries.of(decision))

    @property
    def num_recorded(self) -> int:
        """How many entries of the ledger, from the first on, this run has made or made again."""
        return self.cursor.position

    def decision(self, index: int) -> Decision:
        """What this run has recorded at an index, durably or in the open group."""
        first_pending = self.num_recorded - len(self._pending)
        if index >= first_pending:
            return self._pending[index - first_pending][1].worded()
        return decode_entry(self.ledger.entry(index))

    def record(self, decided: DecidedSeries) -> int:
        """Take one decision into the open group, unless the ledger holds it already; its index.

        Raises: IntegrityError where the ledger holds another one there.
        """
        index = self.num_recorded
        if decided.amends:
            self.num_amended += not decided.decision.is_checkpoint_release
        else:
            self.num_decided += 1
            self.num_withheld += decided.verdict.outcome is PolicyOutcome.WITHHOLD
        if self.cursor.advance(decided):
            if decided.verdict.outcome is PolicyOutcome.WITHHOLD:
                self._ask_people([(index, decided)])
            elif self.subscribes_again:
                self.subscriber(Receipt(index, leaf_hash(self.ledger.entry(index)).hex()), decided)
            self.watcher(decided)
            return index
        self._add([decided])
        return index

    def record_all(self, decided: Sequence[DecidedSeries]) -> int:
        """`record` for decisions of one instant, in order; the index of the first."""
        first = self.num_recorded
        num_again = min(max(self.ledger.size - first, 0), len(decided))
        for one in decided[:num_again]:
            self.record(one)
        rest = decided[num_again:]
        if rest:
            self.num_decided += len(rest)
            self.num_withheld += sum([one.verdict.outcome is PolicyOutcome.WITHHOLD for one in rest])
            self.cursor.position += len(rest)
            self._add(rest)
        return first

    def _add(self, decided: Sequence[DecidedSeries]) -> None:
        """Take decisions into the open group."""
        if not self._pending:
            self._oldest_ns = self.elapsed_ns()
            self._num_changes = self._governance.num_logged
        self._pending += zip(self._entries_of(decided), decided, strict=True)

    def maintain_ledger(self) -> None:
        """Let the ledger do its housekeeping, which no decision waits for. Raises: LedgerUnavailable."""
        try:
            self.ledger.tidy()
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; every decision so far is recorded and none was released unrecorded: "
                "solve this and run the same command again"
            ) from error

    def commit(self, *, now: bool = False) -> None:
        """Commit the open group when it is full, due or wanted `now`, and only then release it."""
        if not self._pending:
            return
        due = self.elapsed_ns() - self._oldest_ns >= self._group_ns
        if not (now or due or len(self._pending) >= self._group_entries):
            return
        self._governance.take_requests(self.ledger.size, self._pending[0][1].as_of_ns)
        if self._governance.num_logged != self._num_changes:
            self._judge_again()
        self._telemetry.appending()
        try:
            receipts = self.ledger.append([entry for entry, _ in self._pending])
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; {len(self._pending)} decisions are held back, none was released unrecorded: "
                "solve this and run the same command again"
            ) from error
        self._telemetry.appended()
        released, self._pending = self._pending, []
        withheld: list[tuple[int, DecidedSeries]] = []
        for receipt, (_, decided) in zip(receipts, released, strict=True):
            if decided.verdict.outcome is not PolicyOutcome.WITHHOLD:
                self.subscriber(receipt, decided)
            else:
                withheld.append((receipt.index, decided))
        for receipt, (entry, decided) in zip(receipts, released, strict=True):
            self.sink.release(receipt, entry, decided.worded)
        self.sink.flush()
        self._telemetry.released(released)
        self._ask_people(withheld)
        for _, decided in released:
            self.watcher(decided)

    def _ask_people(self, withheld: Sequence[tuple[int, DecidedSeries]]) -> None:
        """Ask about those of recorded decisions, each with its index, that wait for people."""
        if withheld and self._governance.checkpoints is not None:
            recorded = [(index, decided.decision) for index, decided in withheld]
            self._governance.ask_people(recorded, self.ledger.size)

    def _judge_again(self) -> None:
        """Judge what waits by what governance knows by now: it may have been stopped since."""
        first = self.ledger.size
        for place, (_, before) in enumerate(self._pending):
            decision = before.decision
            facts = self._governance.fact(first + place, subject_of(decision))
            if facts == decision.governance:
                continue
            governed = replace(decision, governance=facts)
            decided = DecidedSeries.of(replace(governed, verdict=judge(governed, self._governance.policy)))
            if not decided.amends:
                self.num_withheld += decided.verdict.outcome is PolicyOutcome.WITHHOLD
                self.num_withheld -= before.verdict.outcome is PolicyOutcome.WITHHOLD
            (entry,) = self._entries_of([decided])
            self._pending[place] = entry, decided

    def _entries_of(self, decided: Sequence[DecidedSeries]) -> list[bytes]:
        if not self._is_recorded:
            return [b""] * len(decided)
        if self._version == VERSION:
            return [one.entry for one in decided]
        return [encode_as(one.decision, self._version) for one in decided]

    def state(self) -> dict[str, Any]:
        counts = {"decided": self.num_decided, "withheld": self.num_withheld, "amended": self.num_amended}
        return {"position": self.cursor.position, **counts}

    def restore(self, state: dict[str, Any]) -> None:
        self.cursor.position = state["position"]
        self.num_decided, self.num_withheld = state["decided"], state["withheld"]
        self.num_amended = state["amended"]
