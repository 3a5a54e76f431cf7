"""Holds the bodies of items that concern no series of the run yet, in bounded memory, for when it has one."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

MAX_UNREAD_CHARS = 2_000_000  # of all bodies together: some five thousand leads


class UnreadBodies:
    """Bodies by the id of their item; of too many characters the longest held go first."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, str] = OrderedDict()
        self._num_chars = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def items(self) -> Iterable[tuple[str, str]]:
        """Ids and bodies, the longest held first."""
        return self._bodies.items()

    def hold(self, name: str, body: str) -> None:
        """Hold a body until it is dropped, or until there are too many."""
        self.drop(name)
        self._bodies[name] = body
        self._num_chars += len(body)
        while self._num_chars > MAX_UNREAD_CHARS:
            self.drop(next(iter(self._bodies)))

    def drop(self, name: str) -> None:
        """Hold an item's body no longer, if it is held."""
        self._num_chars -= len(self._bodies.pop(name, ""))

    def state(self) -> list[tuple[str, str]]:
        return list(self._bodies.items())

    def restore(self, state: Sequence[Sequence[str]]) -> None:
        self._bodies.clear()
        self._num_chars = 0
        for name, body in state:
            self.hold(name, body)
