"""Messages of a bus as the intake sees them: each has a place that its bus keeps, so that none is taken twice."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from htfi.domain.errors import DependencyUnavailable


class BusUnavailable(DependencyUnavailable):
    """The bus cannot be reached now, or the connection has broken: it is tried again."""


class Message(NamedTuple):
    """`place` grows within a partition: the sequence of a stream, the offset of a topic's partition."""

    partition: int
    place: int
    content: bytes


class MessageSource(Protocol):
    """A bus that keeps its messages. Used by one thread."""

    @property
    def is_partitioned(self) -> bool:
        """Whether there may be several partitions, each with places of its own."""
        ...

    def connect(self, after: Mapping[int, int]) -> None:
        """Connect; messages come after these places, by partition, each partition in order.

        Raises: BusUnavailable, InvalidInput, IntegrityError where the bus no longer holds what was taken from it.
        """
        ...

    def receive(self, timeout_s: float) -> Sequence[Message]:
        """What has come; waits so long at most. Raises: BusUnavailable."""
        ...

    def acknowledge(self) -> None:
        """All that was received is on disk. Raises: BusUnavailable."""
        ...

    def has_ended(self, after: Mapping[int, int]) -> bool:
        """Whether all that was asked for came; False of a source without an end."""
        ...

    def close(self) -> None:
        """End the connection; it can be made again."""
        ...
