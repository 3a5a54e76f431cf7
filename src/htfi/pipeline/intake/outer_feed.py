"""What a feed around another feed has in common with it: all but the items that it hands out."""

from collections.abc import Iterator

from htfi.domain.events import FeedItem
from htfi.pipeline.ports import EventFeed, Position


class OuterFeed:
    """Implements `EventFeed` around another; subclasses change what the iteration hands out, or see it pass."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    def __iter__(self) -> Iterator[FeedItem]:
        return iter(self._feed)

    def position(self) -> Position:
        return self._feed.position()

    def progress(self) -> float | None:
        return self._feed.progress()

    def stop(self) -> None:
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()
