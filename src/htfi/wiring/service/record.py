"""The record of a run as `htfi serve` reads it: entries as lines and decisions, proofs and tiles; and what comes after.

Nothing here writes. A reader and the follower have a connection each, opened in the thread that uses it.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from htfi.adapters.stores.decisions import journal_line
from htfi.domain.decision import Decision, PolicyOutcome, Receipt
from htfi.domain.errors import DependencyUnavailable, HtfiError, IntegrityError, InvalidInput, UnreadableEntry
from htfi.governance.ledger.export import encode_proof, prove_consistency, prove_inclusion
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.merkle import HASH_BYTES, leaf_hash
from htfi.governance.ledger.tiles import TILE_WIDTH, entry_bundle
from htfi.governance.ledger.tombstones import is_tombstone, parse_tombstone
from htfi.pipeline.record.entry import decode_entry, entry_id
from htfi.wiring.ledger import DATABASE, is_running, open_ledger_readonly
from htfi.wiring.service.submitted_news import ItemUse, uses_of

_TURN_S = 0.002  # between looks at whether the ledger has grown
_WAIT_S = 0.05  # between looks at whether there is a ledger
_GROUP = 512  # entries handed over at once


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """An entry as it is served: the line of decisions.jsonl, and the decision where it may be shown."""

    index: int
    line: bytes  # JSON without its end
    series: str  # of a decision that was deleted ""
    decision: Decision | None  # None of what is withheld or was deleted
    posted: Sequence[tuple[str, ItemUse]] = ()  # items that were posted, by id, and what it made of them

    @classmethod
    def of(cls, index: int, entry: bytes) -> "RecordedLine":
        """Raises: UnreadableEntry."""
        gone = parse_tombstone(entry)
        leaf = leaf_hash(entry) if gone is None else gone.leaf_hash
        receipt = Receipt(index, leaf.hex())
        if gone is not None:
            return cls(index, journal_line(receipt, entry).rstrip(), "", None)
        try:
            decision = decode_entry(entry)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableEntry(index, error) from error
        line = journal_line(receipt, entry, decision).rstrip()
        is_released = decision.verdict.outcome is not PolicyOutcome.WITHHOLD
        uses = uses_of(index, decision)
        return cls(index, line, decision.series, decision if is_released else None, uses)


class ServedRecordReader:
    """Reads a run's ledger for those who ask. Belongs to the thread that made it."""

    def __init__(self, folder: Path) -> None:
        """Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
        self._folder = folder
        self.log = open_ledger_readonly(folder)

    @property
    def size(self) -> int:
        return self.log.size

    def line(self, index: int) -> RecordedLine:
        """Raises: InvalidInput, IntegrityError."""
        return RecordedLine.of(index, self.log.entry(index))

    def lines(self, start: int, stop: int) -> list[RecordedLine]:
        """Of [start, stop). Raises: IntegrityError."""
        return [
            RecordedLine.of(index, entry) for index, entry in enumerate(self.log.entries(start, stop), start)
        ]

    def ids(self, start: int, stop: int) -> list[str]:
        """The ids of the decisions of [start, stop); '' of what was deleted."""
        return ["" if is_tombstone(one) else entry_id(one) or "" for one in self.log.entries(start, stop)]

    def inclusion_proof(self, index: int, size: int | None) -> bytes:
        """As JSON. Raises: InvalidInput."""
        return encode_proof(prove_inclusion(self.log, index, size))

    def consistency_proof(self, old_size: int, size: int) -> bytes:
        """As JSON. Raises: InvalidInput."""
        return encode_proof(prove_consistency(self.log, old_size, size))

    def checkpoint(self) -> tuple[int, str]:
        """The newest signed checkpoint with its cosignatures: its size, and the note."""
        checkpoint, note = self.log.checkpoint()
        return checkpoint.size, str(note)

    @property
    def verifier_key(self) -> str:
        return str(self.log.key)

    def hash_tile(self, level: int, index: int, width: int) -> bytes | None:
        """The first `width` hashes of a tile; None where the log has not so many."""
        if (index * TILE_WIDTH + width) << 8 * level > self._signed_size():
            return None
        return self.log.tile(level, index)[: width * HASH_BYTES]

    def entry_tile(self, index: int, width: int) -> bytes | None:
        """The first `width` entries of a bundle; None where there are not so many, or one was deleted."""
        start = index * TILE_WIDTH
        if start + width > self._signed_size():
            return None
        entries = list(self.log.entries(start, start + width))
        return None if any(map(is_tombstone, entries)) else entry_bundle(entries)

    def _signed_size(self) -> int:
        return self.log.checkpoint()[0].size

    def close(self) -> None:
        self.log.close()


Deliver = Callable[[Sequence[RecordedLine]], None]
Fail = Callable[[HtfiError], None]


class RecordFollower:
    """Hands over each entry of a run's ledger once, in order, from index `first` on, in a thread of its own.

    It waits for a ledger that is not there yet. `deliver` and `fail` are called in its thread; after `fail` nothing
    follows. What is read is checked against the leaf hashes that are kept for it.
    """

    def __init__(self, folder: Path, first: int, deliver: Deliver, fail: Fail) -> None:
        self._folder, self._next = folder, first
        self._deliver, self._fail = deliver, fail
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="record follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread's end."""
        self._closing.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not (self._folder / DATABASE).exists():
                if self._closing.wait(_WAIT_S):
                    return
            with closing(self._opened()) as log:
                while not self._closing.is_set():
                    if not self._read(log):
                        self._closing.wait(_TURN_S)
        except HtfiError as error:
            self._fail(error)

    def _opened(self) -> LogReader:
        """A database that its run is about to fill is opened once it can be read."""
        for _ in range(100):
            try:
                return open_ledger_readonly(self._folder)
            except (IntegrityError, InvalidInput, DependencyUnavailable):
                if self._closing.wait(_WAIT_S):
                    break
        return open_ledger_readonly(self._folder)

    def _read(self, log: LogReader) -> bool:
        """Hand over what there is, a group at most; whether there was something."""
        stop = min(log.size, self._next + _GROUP)
        if stop <= self._next:
            return False
        lines: list[RecordedLine] = []
        try:
            for index, entry in enumerate(log.entries(self._next, stop), self._next):
                lines.append(RecordedLine.of(index, entry))
        finally:
            self._deliver(lines)  # also those before one that cannot be read
        self._next = stop
        return True


def is_followed_run_live(folder: Path) -> bool:
    """Whether a process writes the ledger of a folder."""
    return (folder / DATABASE).exists() and is_running(folder)


def ledger_size(folder: Path) -> int:
    """How many entries there are now; 0 where there is no ledger yet."""
    if not (folder / DATABASE).exists():
        return 0
    with closing(open_ledger_readonly(folder)) as log:
        return log.size
