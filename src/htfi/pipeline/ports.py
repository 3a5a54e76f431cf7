"""What the main path needs from the world. Adapters implement these; wiring introduces them."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from htfi.domain.decision import Receipt
from htfi.domain.events import FeedItem, Rejection

Position = dict[str, Any]  # plain JSON values


class Feed(Protocol):
    """Events of every source in order of `available_at_ns`, resumable at any item."""

    def __iter__(self) -> Iterator[FeedItem]: ...

    def position(self) -> Position:
        """Where to resume so that exactly the items not yet handed out follow."""
        ...

    def close(self) -> None: ...


class Quarantine(Protocol):
    """Where rows that cannot be used are kept, each with its reason."""

    def set_aside(self, rejection: Rejection) -> None: ...

    def position(self) -> Position: ...


class Ledger(Protocol):
    """The durable record. An entry that has a receipt survives the loss of power."""

    @property
    def size(self) -> int: ...

    def entry(self, index: int) -> bytes: ...

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        """Append all or none. Raises: LedgerUnavailable."""
        ...


class Outlet(Protocol):
    """Where released decisions go. `num_released` counts the recorded entries it has dealt with, kept for good."""

    @property
    def num_released(self) -> int: ...

    def release(self, receipt: Receipt, entry: bytes) -> None: ...

    def close(self) -> None: ...
