"""decisions.jsonl, the released decisions as lines, written by the loop's outlet; and the same lines made from entries.

One line for every ledger entry, in the ledger's order, so that the last line is the release cursor. No reader takes
what the file says for a decision: each makes its line from the ledger's entry.

  released   {"index":N,"leaf_hash":"…","decision":{the entry as JSON}}
  kept back  {"index":N,"leaf_hash":"…","withheld":true,"id":…,"last_price":…,"reasons":[…]}: no forecast
  deleted    {"index":N,"leaf_hash":"…","deleted":"decision"}: its retention, of that class, has ended
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from htfi.adapters.stores.released_lines import FollowingReader, ReleasedLines
from htfi.domain.decision import Decision, DecisionTrigger, PolicyOutcome, PolicyVerdict, Receipt, Regime
from htfi.domain.errors import DependencyUnavailable, IntegrityError, UnreadableEntry
from htfi.domain.files import open_private
from htfi.governance.ledger.tombstones import parse_tombstone
from htfi.pipeline.ports import MakeDecision
from htfi.pipeline.record.decoded_once import Decode, DecodedOnce, decode_each
from htfi.pipeline.record.entry import entry_json

JOURNAL = "decisions.jsonl"

# Quotes inside JSON strings are escaped and no other object begins so: this finds the verdict.
_VERDICT = b'"verdict":{"outcome":"'
_WITHHELD_MARK = b'"withheld":true'
_WITHHELD_MARK_WITHIN = 160  # bytes: index and leaf hash end well before
_INDEX = re.compile(rb'\{"index":(\d{1,18}),')
_BUFFER_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16


class ReleasedLine(msgspec.Struct, frozen=True):
    """A line that carries a decision."""

    index: int
    leaf_hash: str
    decision: Decision


class WithheldLine(msgspec.Struct, frozen=True):
    """A line for a decision that policy kept back: what it was about and why, without the forecast."""

    index: int
    leaf_hash: str
    withheld: bool
    id: str
    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    regime: Regime
    reasons: list[str]
    trigger: DecisionTrigger | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_between_bars(self) -> bool:
        """Whether it was made between two bars, because of news."""
        return self.trigger is not msgspec.UNSET


class _WithheldFields(msgspec.Struct):
    """The part of an entry that a withheld line shows."""

    id: str
    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    regime: Regime
    verdict: PolicyVerdict
    trigger: DecisionTrigger | msgspec.UnsetType = msgspec.UNSET


_WITHHELD_FIELDS_DECODER = msgspec.json.Decoder(_WithheldFields)


class DecisionJournal:
    """Appends decisions to `folder`/decisions.jsonl; the file alone says how many have been dealt with.

    Lines go to the operating system at `flush`, once a group, and to the disk at `close`: what a crash takes
    from the tail, the next run writes again from the ledger. `lines` are for those who read along; `mirror`, best
    unbuffered, receives each line once, after the file has it, at its reader's pace. A reader who left ends the run:
    `flush` raises BrokenPipeError. `held` gets the decisions of which lines were made. Raises: DependencyUnavailable
    where the file cannot be opened or written.
    """

    def __init__(self, folder: Path, mirror: BinaryIO | None = None, held: DecodedOnce | None = None) -> None:
        self._path = folder / JOURNAL
        self._held = held
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._open = False
        try:
            self._file = open_private(self._path, os.O_RDWR | os.O_APPEND)
            self._open = True
            self._num_released = _truncate_partial_line(self._file, self._path)
        except OSError as error:
            self._abandon()
            raise DependencyUnavailable(f"{self._path}: cannot be opened: {error.strerror}") from error
        except IntegrityError:
            self._abandon()
            raise
        size = os.fstat(self._file).st_size
        self.lines = ReleasedLines(self._path, size)
        self.mirror = None if mirror is None else FollowingReader(self.lines, size, mirror)

    @property
    def num_released(self) -> int:
        return self._num_released

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None:
        """Take the next entry of the ledger. Raises: IntegrityError when it is not the next one."""
        if receipt.index != self._num_released:
            raise IntegrityError(
                f"{self._path}: entry {receipt.index} cannot follow {self._num_released - 1}: "
                "the journal and the ledger are of different runs"
            )
        decision = make() if make is not None else None
        line = journal_line(receipt, entry, decision)
        if decision is not None and self._held is not None:
            self._held.hold(receipt, entry, decision)
        self._pending.append(line)
        self._pending_bytes += len(line)
        self._num_released += 1
        if self._pending_bytes >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand the lines taken so far to the operating system, and let those read them who read along."""
        if not self._pending:
            return
        group = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        try:
            _write_all(partial(os.write, self._file), group)
        except OSError as error:
            # A part of a line may stand in the file; nothing may follow it, and the next open cuts it off.
            self._abandon()
            raise DependencyUnavailable(
                f"{self._path}: cannot be written: {error.strerror}; what is recorded is safe in the ledger, "
                "run again once there is disk space"
            ) from error
        self.lines.grow(len(group))
        if self.mirror is not None:
            self.mirror.check()

    def close(self) -> None:
        """Flush, wait for the disk, and let go of the file. Safe to call twice."""
        if not self._open:
            return
        try:
            with suppress(BrokenPipeError):
                self.flush()
            os.fsync(self._file)
        except OSError as error:
            raise DependencyUnavailable(f"{self._path}: cannot be synced: {error.strerror}") from error
        finally:
            self._abandon()
            self.lines.end()

    def _abandon(self) -> None:
        if self._open:
            self._open = False
            os.close(self._file)


class NullJournal:
    """Null sink of a run without decisions.jsonl: what the ledger holds counts as released, and nothing is written."""

    def __init__(self, num_recorded: int) -> None:
        self.num_released = num_recorded

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None:
        del entry, make
        self.num_released = receipt.index + 1

    def flush(self) -> None: ...

    def close(self) -> None: ...


def whole_lines(journal: Path, num_bytes: int | None = None) -> Iterator[bytes]:
    """The journal's lines as they stand, of its first bytes only, without an unfinished last one. Raises: OSError."""
    left = journal.stat().st_size if num_bytes is None else num_bytes
    with journal.open("rb") as file:
        for line in file:
            left -= len(line)
            if left < 0 or not line.endswith(b"\n"):
                return
            yield line


def is_withheld(line: bytes) -> bool:
    """Whether a journal line keeps its decision back."""
    return _WITHHELD_MARK in line[:_WITHHELD_MARK_WITHIN]


def line_index(line: bytes) -> int | None:
    """The index that a line says it has; None where it says none."""
    found = _INDEX.match(line)
    return int(found[1]) if found else None


def line_subject(line: ReleasedLine | WithheldLine) -> Decision | WithheldLine:
    """What a line is about, whether it carries a forecast or not."""
    return line.decision if isinstance(line, ReleasedLine) else line


def line_of(receipt: Receipt, entry: bytes, decode: Decode = decode_each) -> ReleasedLine | WithheldLine:
    """What the line of an entry says. Raises: UnreadableEntry."""
    try:
        decision = decode(receipt, entry)
    except msgspec.DecodeError as error:
        raise UnreadableEntry(receipt.index, error) from error
    if decision.verdict.outcome is not PolicyOutcome.WITHHOLD:
        return ReleasedLine(receipt.index, receipt.leaf_hash, decision)
    return WithheldLine(
        receipt.index, receipt.leaf_hash, True, decision.id, decision.symbol, decision.interval, decision.as_of_ns,
        decision.last_price, decision.regime, decision.verdict.reasons, decision.trigger,
    )  # fmt: skip


def journal_line(receipt: Receipt, entry: bytes, decision: Decision | None = None) -> bytes:
    """The line of an entry, its end included; `decision` is what the entry holds, where that is at hand.

    Raises: UnreadableEntry.
    """
    head = b'{"index":%d,"leaf_hash":"%s",' % (receipt.index, receipt.leaf_hash.encode())
    if (gone := parse_tombstone(entry)) is not None:
        return b'%s"deleted":%s}\n' % (head, msgspec.json.encode(gone.retention_class))
    try:
        told = entry_json(entry, decision)
    except msgspec.DecodeError as error:
        raise UnreadableEntry(receipt.index, error) from error
    verdict = told.rfind(_VERDICT) + len(_VERDICT)
    if not told.startswith(PolicyOutcome.WITHHOLD.encode(), verdict):
        return b'%s"decision":%s}\n' % (head, told)
    about = _WITHHELD_FIELDS_DECODER.decode(told)
    fields = {
        "id": about.id,
        "symbol": about.symbol,
        "interval": about.interval,
        "as_of_ns": about.as_of_ns,
        "last_price": about.last_price,
        "regime": about.regime,
        "reasons": about.verdict.reasons,
    }
    if about.trigger is not msgspec.UNSET:
        fields["trigger"] = about.trigger
    return b"%s%s,%s\n" % (head, _WITHHELD_MARK, msgspec.json.encode(fields)[1:])


def _truncate_partial_line(file: int, path: Path) -> int:
    """Cut off a last line that has no end, and return the index after the last whole line."""
    size = os.fstat(file).st_size
    end = _after_last_newline(file, size)
    if end < size:
        os.ftruncate(file, end)
    return _next_index(file, end, path)


def _next_index(file: int, end: int, path: Path) -> int:
    """The index after that of the line which ends at offset `end`."""
    if end == 0:
        return 0
    start = _after_last_newline(file, end - 1)
    index = line_index(os.pread(file, min(end - start, _WITHHELD_MARK_WITHIN), start))
    if index is None:
        raise IntegrityError(
            f"{path}, last line: is not a decision: move the file away, and `htfi run` writes it again"
        )
    return index + 1


def _after_last_newline(file: int, end: int) -> int:
    """The offset just behind the last newline before `end`; 0 when there is none."""
    while end > 0:
        start = max(0, end - _TAIL_BYTES)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write_all(write: Callable[[memoryview], int], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[write(rest) :]
