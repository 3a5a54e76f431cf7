"""Where a file made from the ledger is not what the ledger gives: lines changed, missing, extra or out of place.

Pure: `compare` takes what the file holds and what it should hold, one after the other, in constant memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_MAX_NAMED = 1_000  # of a kind; more are counted only
_MAX_TOLD = 5

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Expected(Generic[Row]):
    """What a file should hold: `size` rows from `rows`, also by index with `at`; `index_of` reads a row's own claim.

    `is_recorded` tells of a row behind the last entry whether some ledger may have held it.
    """

    size: int
    rows: Iterator[Row]
    at: Callable[[int], Row]
    index_of: Callable[[Row], int | None]
    is_recorded: Callable[[Row], bool]


@dataclass(slots=True)
class Differences:
    """Rows of the file are counted from 1, entries from 0.

    `num_accounted` entries, from the first on, have a row or should have one before the last that has; those behind
    it may not have been released yet. `num_beyond` rows go on behind the last entry as if the ledger had held more.
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
    def words(self) -> str:
        """What differs, by number; empty where nothing does."""
        if not self.num_differing:
            return ""
        told = [
            _rows("is not as recorded", "are not as recorded", sorted(self.changed.values())),
            _rows("stands out of order", "stand out of order", sorted(self.moved.values())),
            _rows("is extra", "are extra", self.extra),
        ]
        gone = [entry for span in self.missing for entry in range(*span)[: _MAX_TOLD + 1]]
        gone = sorted(entry for entry in gone if entry not in self.moved)
        told.append(_told("entry", "entries", "has no line", "have no line", gone, self.num_missing))
        return "; ".join(filter(None, told))


def compare(found: Iterator[Row], expected: Expected[Row]) -> Differences:
    """Hold what a file holds against what it should hold."""
    told = Differences()
    want = next(expected.rows, None)
    at = 0  # of the entry whose row is wanted
    for row in found:
        told.num_rows += 1
        if want is not None and row == want:
            at, want = at + 1, next(expected.rows, None)
            continue
        claimed = expected.index_of(row)
        told.num_differing += 1
        is_known = claimed not in (None, at) and claimed < expected.size and row == expected.at(claimed)
        if is_known and claimed is not None and claimed > at:
            told.num_missing += claimed - at
            if len(told.missing) < _MAX_NAMED:
                told.missing.append((at, claimed))
            while at <= claimed:
                at, want = at + 1, next(expected.rows, None)
        elif is_known and claimed is not None:
            _misplaced(told, claimed)
        elif want is not None:
            if len(told.changed) < _MAX_NAMED:
                told.changed[at] = told.num_rows
            at, want = at + 1, next(expected.rows, None)
        else:
            told.num_beyond += claimed == expected.size + told.num_beyond and expected.is_recorded(row)
            _note(told.extra, told.num_rows)
    told.num_accounted = at
    return told


def _misplaced(told: Differences, claimed: int) -> None:
    """A row that is as recorded, but comes behind its place."""
    if claimed in told.changed:  # the row taken for it had only come between
        _note(told.extra, told.changed.pop(claimed))
    elif claimed not in told.moved and any(start <= claimed < stop for start, stop in told.missing):
        told.num_missing -= 1
        if len(told.moved) < _MAX_NAMED:
            told.moved[claimed] = told.num_rows
    else:
        _note(told.extra, told.num_rows)


def _note(rows: list[int], row: int) -> None:
    if len(rows) < _MAX_NAMED:
        rows.append(row)


def _rows(one: str, several: str, rows: Sequence[int]) -> str:
    return _told("line", "lines", one, several, rows, len(rows))


def _told(what: str, whats: str, one: str, several: str, numbers: Sequence[int], num: int) -> str:
    if not numbers or num <= 0:
        return ""
    spans: list[tuple[int, int]] = []
    for number in numbers[: _MAX_TOLD * 20]:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in spans[:_MAX_TOLD])
    num_shown = sum(b - a + 1 for a, b in spans[:_MAX_TOLD])
    more = f" and {num - num_shown:,} more" if num > num_shown else ""
    return f"{what if num == 1 else whats} {shown}{more} {one if num == 1 else several}"
