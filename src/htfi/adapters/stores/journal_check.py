"""decisions.jsonl held against the ledger, line by line, and written again from it where it differs.

A line is right where it is, byte for byte, the one that the ledger's entry gives. `htfi ledger verify` compares; a run
that is taken up mends, before it releases anything.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from htfi.adapters.stores.decisions import JOURNAL, journal_line, line_index, whole_lines
from htfi.adapters.stores.differences import Differences, Expected, compare
from htfi.domain.decision import Receipt
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import replacing
from htfi.governance.ledger.merkle import leaf_hash

_HEAD = b',"leaf_hash":"%s","decision":'


@dataclass(frozen=True, slots=True)
class Entries:
    """The first `size` entries of a ledger: `stream` begins at the first each time, `at` gives one by its index."""

    size: int
    stream: Callable[[], Iterator[tuple[bytes, bytes]]]  # entry, its leaf hash
    at: Callable[[int], bytes]

    def lines(self) -> Iterator[bytes]:
        """The journal's lines as they should be."""
        for index, (entry, leaf) in enumerate(self.stream()):
            yield journal_line(Receipt(index, leaf.hex()), entry)

    def line(self, index: int) -> bytes:
        entry = self.at(index)
        return journal_line(Receipt(index, leaf_hash(entry).hex()), entry)


def check_journal(folder: Path, entries: Entries, num_bytes: int | None = None) -> Differences | None:
    """What differs in the journal's first bytes; None where there is no journal. Raises: DependencyUnavailable."""
    path = folder / JOURNAL

    def is_recorded(line: bytes) -> bool:
        decision = line.partition(b'"decision":')[2][:-2]
        head = _HEAD % leaf_hash(decision).hex().encode()
        last = entries.at(entries.size - 1) if entries.size else b""
        return head in line[: len(head) + 32] and decision != last

    expected = Expected(entries.size, entries.lines(), entries.line, line_index, is_recorded)
    try:
        return compare(whole_lines(path, num_bytes), expected)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error


def mend_journal(folder: Path, entries: Entries, num_released: int) -> str:
    """Write the journal anew where it differs; what differed in words, empty where nothing did.

    `num_released` entries are known to have been let out: their lines are there afterwards, and nobody gets them again.
    A journal that goes on behind the ledger's end is left as it is: there the ledger may be what was cut.
    Raises: IntegrityError where the ledger does not hold, DependencyUnavailable.
    """
    found = check_journal(folder, entries)
    if found is None:
        if not num_released:
            return ""
        found, words = Differences(), "it is missing"
    elif found.num_beyond:
        return ""
    else:
        words = found.words
        if not words and found.num_accounted < num_released:
            words = f"its last {num_released - found.num_accounted:,} lines are missing"
    if not words:
        return ""
    path = folder / JOURNAL
    num = max(found.num_accounted, num_released)
    try:
        with replacing(path) as file:
            for _, line in zip(range(num), entries.lines(), strict=False):
                file.write(line)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; what is recorded is safe in the ledger, "
            "make room and run again"
        ) from error
    return words
