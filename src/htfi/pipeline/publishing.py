"""What a bus gets of a record, and what a bus must be able to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """An entry of the ledger as it is published: its line of decisions.jsonl, and what a subscriber picks by."""

    index: int
    leaf_hash: str
    symbol: str  # of what was deleted ""
    interval: str
    outcome: str  # released, withheld or deleted
    content: bytes


class _TooLarge(msgspec.Struct):
    """In place of a line that a bus takes in no message."""

    index: int
    leaf_hash: str
    too_large: int  # bytes of the line


def content_within(line: PublishedLine, max_bytes: int) -> bytes:
    """The line, or a notice in its place where it is longer than a message may be."""
    if len(line.content) <= max_bytes:
        return line.content
    return msgspec.json.encode(_TooLarge(line.index, line.leaf_hash, len(line.content)))


class DecisionBus(Protocol):
    """Keeps the entries of one ledger, each once, in the ledger's order. Used by one thread."""

    def open(self, log: str) -> int:
        """Connect: the first index of the log that the bus does not hold.

        Raises: BusUnavailable, InvalidInput where it holds another log's.
        """
        ...

    def publish(self, lines: Sequence[PublishedLine]) -> None:
        """Hand over the lines that follow what it holds; they are on its disk afterwards.

        Raises: BusUnavailable, after which it is opened again.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Keep the connection meanwhile. Raises: BusUnavailable."""
        ...

    def close(self) -> None:
        """End the connection; it can be opened again."""
        ...
