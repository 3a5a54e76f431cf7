"""Interfaces that the main path needs. Adapters implement them; wiring connects them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from htfi.domain.decision import Decision, Receipt
from htfi.domain.events import FeedItem, QuarantinedRow

Position = dict[str, Any]  # plain JSON values
MakeDecision = Callable[[], Decision]


class EventFeed(Protocol):
    """Events of every source in order of `available_at_ns`, resumable at any item."""

    def __iter__(self) -> Iterator[FeedItem]: ...

    def position(self) -> Position:
        """Where to resume so that exactly the items not yet handed out follow."""
        ...

    def progress(self) -> float | None:
        """The fraction of the sources read so far, 0–1; None where the end is not known."""
        ...

    def stop(self) -> None:
        """End the iteration soon, also when it waits for a live source. Safe to call from a signal handler."""
        ...

    def close(self) -> None: ...


class RowQuarantine(Protocol):
    """Where rows that cannot be used are kept, each with its reason."""

    def set_aside(self, rejection: QuarantinedRow) -> None: ...

    def counts(self) -> dict[str, int]:
        """Rows set aside so far, by reason."""
        ...

    def counts_by_source(self) -> dict[str, dict[str, int]]:
        """The same of each source."""
        ...

    def example(self, source: str, reason: str) -> str:
        """The detail of the first such row since the start; '' where none is known."""
        ...

    def num_repaired(self) -> int:
        """Rows that became events with a repaired field; they are not among `counts`."""
        ...

    def position(self) -> Position: ...

    def close(self) -> None: ...


class DecisionLedger(Protocol):
    """The durable record. An entry that has a receipt survives the loss of power."""

    @property
    def size(self) -> int: ...

    def entry(self, index: int) -> bytes: ...

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        """Append all or none. Raises: LedgerUnavailable."""
        ...

    def tidy(self) -> None:
        """Do housekeeping that no decision waits for. Raises: LedgerUnavailable."""
        ...

    def close(self) -> None: ...


class DecisionSink(Protocol):
    """Where decisions go once they are recorded; a withheld one leaves a line without its forecast."""

    @property
    def num_released(self) -> int:
        """How many ledger entries, from the first on, it has dealt with. Kept for good."""
        ...

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None:
        """Take the next entry; `make` gives what it holds, with its words, where that is at hand."""
        ...

    def flush(self) -> None:
        """Hand what was taken to the operating system. Raises: DependencyUnavailable."""
        ...

    def close(self) -> None: ...


class SnapshotStore(Protocol):
    """One saved state, replaced as a whole or not at all."""

    def load(self) -> bytes | None: ...

    def save(self, data: bytes) -> None: ...
