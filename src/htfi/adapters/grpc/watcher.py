"""What watches over peers beside the requests: the transport calls it in its I/O thread."""

from collections.abc import Sequence
from typing import Protocol


class Watcher(Protocol):
    """Called in one thread and never twice at once. Must not wait. A body it rejects raises InvalidInput."""

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        """A stream to a node is up; `dialled` by us, or accepted."""
        ...

    def ended(self, stream: str, node: str, words: str) -> None: ...

    def heard(self, stream: str, node: str, body: bytes) -> None:
        """A body on Channel.WATCH. Raises: InvalidInput, and the frame is refused by name."""
        ...

    def seen(self, stream: str, node: str) -> None:
        """A frame on Channel.LINK came; once a tick and stream at most."""
        ...

    def due(self) -> Sequence[tuple[str, bytes]]:
        """(stream, sealed) to send now; called each tick."""
        ...


class Unwatched:
    """Nobody watches: bodies for the watch are passed over."""

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        del stream, node, dialled

    def ended(self, stream: str, node: str, words: str) -> None:
        del stream, node, words

    def heard(self, stream: str, node: str, body: bytes) -> None:
        del stream, node, body

    def seen(self, stream: str, node: str) -> None:
        del stream, node

    def due(self) -> Sequence[tuple[str, bytes]]:
        return ()
