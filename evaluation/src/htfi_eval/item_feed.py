"""Owns the feed of items that are in memory."""

from collections.abc import Iterable, Iterator

from htfi.domain.events import FeedItem
from htfi.pipeline.ports import Position


class ItemFeed:
    """Implements `EventFeed`: the items as they come. It cannot be resumed."""

    def __init__(self, items: Iterable[FeedItem] = ()) -> None:
        self._items = items

    def __iter__(self) -> Iterator[FeedItem]:
        return iter(self._items)

    def position(self) -> Position:
        return {}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None: ...

    def close(self) -> None: ...
