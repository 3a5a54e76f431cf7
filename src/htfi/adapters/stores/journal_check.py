"""Compares decisions.jsonl with the ledger, line by line, and writes it again from the ledger where it differs.

A line is right where it is, byte for byte, the one that the ledger's entry gives; lines may be changed, missing, extra
or out of place. `compare_rows` is pure and takes constant memory. `htfi ledger verify` compares; a run that resumes
repairs, before it releases anything.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from htfi.adapters.stores.decisions import JOURNAL, journal_line, line_index, whole_lines
from htfi.domain.decision import Receipt, decode_decision
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import atomic_writer
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.ledger.tombstones import parse_tombstone
from htfi.pipeline.record.decoded_once import MAX_HELD, MAX_HELD_BYTES, Decode, decode_each
from htfi.pipeline.record.entry import encode_entry
from htfi.pipeline.record.words import WORDS

_MAX_NAMED = 1_000  # of a kind; more are counted only
_MAX_LISTED = 5

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ExpectedRows(Generic[Row]):
    """What a file should hold: `size` rows from `rows`, also by index with `at`; `index_of` reads a row's own claim.

    `is_recorded` says of a row behind the last entry whether some ledger may have held it.
    """

    size: int
    rows: Iterator[Row]
    at: Callable[[int], Row]
    index_of: Callable[[Row], int | None]
    is_recorded: Callable[[Row], bool]


@dataclass(slots=True)
class RowDifferences:
    """Rows of the file are counted from 1, entries from 0.

    `num_accounted` entries, from the first on, have a row or should have one before the last that has; those behind
    it may not have been released yet. `num_beyond` rows continue behind the last entry as if the ledger had held more.
    """

    num_rows: int = 0
    num_accounted: int = 0
    num_differing: int = 0
    num_missing: int = 0
    num_beyond: int = 0
    changed: dict[int, int] = field(default_factory=dict[int, int])  # entry → row
    moved: dict[int, int] = field(default_factory=dict[int, int])  # entry → row
    extra: list[int] = field(default_factory=list[int])  # rows
    missing: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # entries [start, stop)

    @property
    def description(self) -> str:
        """What differs, by number; empty where nothing does."""
        if not self.num_differing:
            return ""
        differences = [
            _row_numbers("is not as recorded", "are not as recorded", sorted(self.changed.values())),
            _row_numbers("is out of order", "are out of order", sorted(self.moved.values())),
            _row_numbers("is extra", "are extra", self.extra),
        ]
        gone = [entry for span in self.missing for entry in range(*span)[: _MAX_LISTED + 1]]
        gone = sorted(entry for entry in gone if entry not in self.moved)
        differences.append(
            _describe("entry", "entries", "has no line", "have no line", gone, self.num_missing)
        )
        return "; ".join(filter(None, differences))


def compare_rows(found: Iterator[Row], expected: ExpectedRows[Row]) -> RowDifferences:
    """Compare the rows of a file with those it should have."""
    differences = RowDifferences()
    want = next(expected.rows, None)
    at = 0  # of the entry whose row is wanted
    for row in found:
        differences.num_rows += 1
        if want is not None and row == want:
            at, want = at + 1, next(expected.rows, None)
            continue
        claimed = expected.index_of(row)
        differences.num_differing += 1
        is_known = claimed not in (None, at) and claimed < expected.size and row == expected.at(claimed)
        if is_known and claimed is not None and claimed > at:
            differences.num_missing += claimed - at
            if len(differences.missing) < _MAX_NAMED:
                differences.missing.append((at, claimed))
            while at <= claimed:
                at, want = at + 1, next(expected.rows, None)
        elif is_known and claimed is not None:
            _misplaced(differences, claimed)
        elif want is not None:
            if len(differences.changed) < _MAX_NAMED:
                differences.changed[at] = differences.num_rows
            at, want = at + 1, next(expected.rows, None)
        else:
            differences.num_beyond += (
                claimed == expected.size + differences.num_beyond and expected.is_recorded(row)
            )
            _record_row(differences.extra, differences.num_rows)
    differences.num_accounted = at
    return differences


def _misplaced(differences: RowDifferences, claimed: int) -> None:
    """A row that is as recorded, but comes behind its place."""
    if claimed in differences.changed:  # the row taken for it had only come between
        _record_row(differences.extra, differences.changed.pop(claimed))
    elif claimed not in differences.moved and any(
        start <= claimed < stop for start, stop in differences.missing
    ):
        differences.num_missing -= 1
        if len(differences.moved) < _MAX_NAMED:
            differences.moved[claimed] = differences.num_rows
    else:
        _record_row(differences.extra, differences.num_rows)


def _record_row(rows: list[int], row: int) -> None:
    if len(rows) < _MAX_NAMED:
        rows.append(row)


def _row_numbers(one: str, several: str, rows: Sequence[int]) -> str:
    return _describe("line", "lines", one, several, rows, len(rows))


def _describe(what: str, whats: str, one: str, several: str, numbers: Sequence[int], num: int) -> str:
    if not numbers or num <= 0:
        return ""
    spans: list[tuple[int, int]] = []
    for number in numbers[: _MAX_LISTED * 20]:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in spans[:_MAX_LISTED])
    num_shown = sum(b - a + 1 for a, b in spans[:_MAX_LISTED])
    more = f" and {num - num_shown:,} more" if num > num_shown else ""
    return f"{what if num == 1 else whats} {shown}{more} {one if num == 1 else several}"


_LINE_HEAD = b',"leaf_hash":"%s","decision":'


class _HeldStream:
    """A stream of entries that is read once and held, where it is a short one."""

    def __init__(self, stream: Callable[[], Iterator[tuple[bytes, bytes]]]) -> None:
        self._stream = stream
        self._held: list[tuple[bytes, bytes]] | None = None

    def __call__(self) -> Iterator[tuple[bytes, bytes]]:
        if self._held is not None:
            yield from self._held
            return
        seen: list[tuple[bytes, bytes]] = []
        left_bytes = MAX_HELD_BYTES
        for entry, leaf in self._stream():
            left_bytes -= len(entry)
            if left_bytes >= 0:
                seen.append((entry, leaf))
            else:
                seen.clear()
            yield entry, leaf
        if left_bytes >= 0:  # to the end, where the root was checked
            self._held = seen


@dataclass(frozen=True, slots=True)
class LedgerEntries:
    """The first `size` entries of a ledger: `stream` begins at the first each time, `at` gives one by its index.

    `decode` serves those who read decisions.
    """

    size: int
    stream: Callable[[], Iterator[tuple[bytes, bytes]]]  # entry, its leaf hash
    at: Callable[[int], bytes]
    decode: Decode = decode_each

    def held(self) -> "LedgerEntries":
        """The same for a reader of several passes: those of a short ledger are read and checked in the first."""
        return replace(self, stream=_HeldStream(self.stream)) if self.size <= MAX_HELD else self

    def entries(self) -> Iterator[tuple[Receipt, bytes]]:
        """Each entry with its receipt."""
        for index, (entry, leaf) in enumerate(self.stream()):
            yield Receipt(index, leaf.hex()), entry

    def entry(self, index: int) -> tuple[Receipt, bytes]:
        entry = self.at(index)
        gone = parse_tombstone(entry)
        return Receipt(index, (leaf_hash(entry) if gone is None else gone.leaf_hash).hex()), entry

    def lines(self) -> Iterator[bytes]:
        """The journal's lines as they should be."""
        for receipt, entry in self.entries():
            yield journal_line(receipt, entry)

    def line(self, index: int) -> bytes:
        return journal_line(*self.entry(index))


def check_journal(
    folder: Path, entries: LedgerEntries, num_bytes: int | None = None
) -> RowDifferences | None:
    """What differs in the journal's first bytes; None where there is no journal. Raises: DependencyUnavailable,
    UnreadableEntry.
    """
    path = folder / JOURNAL
    if not path.exists():
        return None

    def is_recorded(line: bytes) -> bool:
        told = line.partition(b'"decision":')[2][:-2]
        forms = [told]
        with suppress(
            msgspec.DecodeError, UnicodeDecodeError
        ):  # of a version that this program does not know
            decision = decode_decision(told)
            forms += [encode_entry(decision, version) for version in WORDS]
        last = entries.at(entries.size - 1) if entries.size else b""
        heads = [_LINE_HEAD % leaf_hash(form).hex().encode() for form in forms]
        return any(head in line[: len(head) + 32] for head in heads) and last not in forms

    expected = ExpectedRows(entries.size, entries.lines(), entries.line, line_index, is_recorded)
    try:
        return compare_rows(whole_lines(path, num_bytes), expected)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error


def repair_journal(folder: Path, entries: LedgerEntries, num_released: int) -> str:
    """Write the journal again where it differs; what differed in words, empty where nothing did.

    `num_released` entries are known to be released: their lines are there afterwards, and no reader gets them again.
    A journal that continues behind the ledger's end is left as it is: there the ledger may be what was cut.
    Raises: IntegrityError where the ledger does not hold, DependencyUnavailable.
    """
    found = check_journal(folder, entries)
    if found is None:
        if not num_released:
            return ""
        found, words = RowDifferences(), "it is missing"
    elif found.num_beyond:
        return ""
    else:
        words = found.description
        if not words and found.num_accounted < num_released:
            words = f"its last {num_released - found.num_accounted:,} lines are missing"
    if not words:
        return ""
    path = folder / JOURNAL
    num = max(found.num_accounted, num_released)
    try:
        with atomic_writer(path) as file:
            for _, line in zip(range(num), entries.lines(), strict=False):
                file.write(line)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; what is recorded is safe in the ledger, "
            "free some disk space and run again"
        ) from error
    return words
