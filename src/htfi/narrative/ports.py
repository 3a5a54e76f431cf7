"""What the narrative room needs from outside: a reader of news. Wiring chooses which."""

from collections.abc import Sequence
from typing import Protocol

from htfi.domain.events import News
from htfi.narrative.view import View


class Reader(Protocol):
    """Turns recent news into a view. Same items, symbol and instant give the same view."""

    @property
    def version(self) -> str:
        """Name and version, for the record of a decision."""
        ...

    def read(self, items: Sequence[News], symbol: str, as_of_ns: int, deadline_ms: float) -> View:
        """The view of `items`, newest first. Raises: DeadlineExceeded, DependencyUnavailable."""
        ...
