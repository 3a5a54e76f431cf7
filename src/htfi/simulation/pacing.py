"""Replays recorded time at a chosen speed, so that a person can watch a day go by. `htfi run --pace` uses it."""

from collections.abc import Callable, Iterator

from htfi.domain.events import FeedItem
from htfi.domain.time import NS_PER_S
from htfi.pipeline.ports import EventFeed, Position

MAX_WAIT_S = 1.0  # nights and weekends pass quickly


class PacedFeed:
    """A feed whose items come `speed` times faster than they happened. Order and content stay as they are."""

    def __init__(
        self, feed: EventFeed, speed: float, elapsed_ns: Callable[[], int], sleep: Callable[[float], None]
    ) -> None:
        self._feed = feed
        self._speed = speed
        self._elapsed_ns = elapsed_ns
        self._sleep = sleep
        self._stopped = False

    def __iter__(self) -> Iterator[FeedItem]:
        due_ns, last_ns = self._elapsed_ns(), None
        for item in self._feed:
            if last_ns is not None and item.available_at_ns > last_ns:
                wait_ns = min((item.available_at_ns - last_ns) / self._speed, MAX_WAIT_S * NS_PER_S)
                due_ns = max(due_ns + wait_ns, self._elapsed_ns() - MAX_WAIT_S * NS_PER_S)
                behind_ns = due_ns - self._elapsed_ns()
                if behind_ns > 0 and not self._stopped:
                    self._sleep(behind_ns / NS_PER_S)
            last_ns = item.available_at_ns
            yield item

    def position(self) -> Position:
        return self._feed.position()

    def progress(self) -> float | None:
        return self._feed.progress()

    def stop(self) -> None:
        self._stopped = True
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()
