"""Entries of a ledger that a reader of decisions passes over: it says what was left out, and why."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from htfi.domain.counts import counted
from htfi.domain.decision import Decision
from htfi.domain.errors import UnreadableEntry
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.pipeline.record.entry import decode_entry, try_decode_entry


@dataclass(slots=True)
class UnreadEntries:
    """Entries that were deleted when their retention ended, and entries that are no decision of this version."""

    num_deleted: int = 0
    num_unknown: int = 0
    first_unknown: int = 0  # its place, where there is any

    def decisions(self, entries: Iterable[bytes], first: int = 0) -> Iterator[tuple[int, Decision]]:
        """The decisions that entries from place `first` on hold, each with its place; the others are counted."""
        for place, entry in enumerate(entries, first):
            if (found := try_decode_entry(entry)) is not None:
                yield place, found
            else:
                self.add(place, entry)

    def add(self, place: int, entry: bytes) -> None:
        """Count an entry that is passed over."""
        if is_tombstone(entry):
            self.num_deleted += 1
            return
        if not self.num_unknown:
            self.first_unknown = place
        self.num_unknown += 1

    def sentences(self) -> list[str]:
        """What was left out and why, a sentence each, none where nothing was."""
        found: list[str] = []
        if self.num_unknown:
            found.append(
                f"{_left_out(self.num_unknown)}: not a decision of this version, the first at "
                f"{self.first_unknown}: update htfi"
            )
        if self.num_deleted:
            found.append(f"{_left_out(self.num_deleted)}: deleted when their retention ended")
        return found


def newest_decision(log: LogReader, size: int) -> Decision | None:
    """The newest of a ledger's first `size` entries that was not deleted; None where there is none. Raises:
    UnreadableEntry, where it is no decision of this version.
    """
    for index in range(size - 1, -1, -1):
        entry = log.entry(index)
        if is_tombstone(entry):
            continue
        try:
            return decode_entry(entry)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableEntry(index, error) from error
    return None


def _left_out(num: int) -> str:
    return counted(num, "entry was left out", "entries were left out")
