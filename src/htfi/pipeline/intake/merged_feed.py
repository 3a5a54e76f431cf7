"""The feed: several sources as one stream by `available_at_ns`, resumable anywhere, at a chosen speed if asked.

Ties go by the sources' order, then by row, so that the stream does not depend on how the files are cut into
blocks. Refused rows travel in their place and reach the quarantine when the stream reaches them. `htfi run --pace`
replays recorded time with `PacedFeed`, so that a person can watch a day go by.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from threading import Event as Bell

from htfi.domain.events import FeedItem, News, TimePassed
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.outer_feed import OuterFeed
from htfi.pipeline.intake.reorder import BEFORE_ALL_NS, RefusedItem, StreamItem, available_at
from htfi.pipeline.intake.source import OrderedSource
from htfi.pipeline.ports import EventFeed, Position, RowQuarantine

SILENCE_NS = 250 * NS_PER_MS


class MergedFeed:
    """Implements `EventFeed`. Live sources ring `bell` when they have rows.

    Where none has more, time passes at once after news, which may be answered then, and else after `SILENCE_NS`.
    """

    def __init__(
        self,
        sources: Sequence[OrderedSource],
        quarantine: RowQuarantine,
        bell: Bell,
        position: Position | None = None,
    ) -> None:
        self._sources = list(sources)
        self._quarantine = quarantine
        self._bell = bell
        self._stopped = False
        self._chunk: list[StreamItem] = []
        self._num_handed = 0  # of the chunk
        self._num_accounted = 0
        self._by_name = {source.name: source for source in self._sources}
        self._is_live = any(source.reader.live for source in self._sources)
        self.announce: Callable[[Sequence[News]], None] = lambda _: None
        """Learns of the news of files before it comes, in order. Only how soon an answer comes may depend on it."""
        self.on_silence: Callable[[], None] = lambda: None
        """Called between two items, every `SILENCE_NS` or sooner, while no source has one."""
        self.on_end: Callable[[], None] = lambda: None
        """Called when all sources have ended, before the iteration does."""
        self._silence_ns = SILENCE_NS  # after which time passes
        self._time_ns = BEFORE_ALL_NS if position is None else position["time_ns"]
        for source in self._sources:
            source.start(None if position is None else position["sources"].get(source.name))

    def __iter__(self) -> Iterator[FeedItem]:
        while not self._stopped:
            self._bell.clear()
            for source in self._sources:
                if not source.ready:
                    source.fill()
            until = self._until()
            self._mark_handed_out()
            self._chunk = self._take_until(until)
            self._num_handed = self._num_accounted = 0
            if self._chunk and not self._is_live:
                self.announce([item for item in self._chunk if isinstance(item, News)])
            for item in self._chunk:
                self._num_handed += 1
                if isinstance(item, RefusedItem):
                    self._quarantine.set_aside(item.rejection)
                elif isinstance(item, RepairedBar):
                    self._quarantine.set_aside(item.note)
                    yield item.bar
                else:
                    yield item
            if self._chunk:
                self._time_ns = max(self._time_ns, self._chunk[-1].available_at_ns)
                if self._is_live and any(type(item) is News for item in self._chunk):
                    self._silence_ns = 1
                continue
            if all(source.done and not source.ready for source in self._sources):
                self.on_end()
                return
            if until is not None and until[0] >= self._time_ns + self._silence_ns:
                self._time_ns, self._silence_ns = until[0], SILENCE_NS
                yield TimePassed(until[0])
            self.on_silence()
            self._bell.wait(SILENCE_NS / 1e9)

    def position(self) -> Position:
        self._mark_handed_out()
        return {
            "time_ns": self._time_ns,
            "sources": {source.name: source.position() for source in self._sources},
        }

    def progress(self) -> float | None:
        """The share of all rows handed out, over the sources that have an end; None without any."""
        self._mark_handed_out()
        sizes = [size for source in self._sources if (size := source.size()) is not None]
        if not sizes:
            return None
        return min(sum(done for done, _ in sizes) / max(sum(total for _, total in sizes), 1.0), 1.0)

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self._stopped = True
        for source in self._sources:
            source.reader.close()

    def _until(self) -> tuple[int, int] | None:
        """The instant and source order up to which every source has brought all; None for nothing at all."""
        bounds: list[tuple[int, int]] = []
        for order, source in enumerate(self._sources):
            if source.done:
                continue
            if source.ready:
                bounds.append((source.ready[-1].available_at_ns, order))
            elif source.known_until_ns is not None:
                bounds.append((source.known_until_ns, order))
            else:
                return None
        return min(bounds, default=(1 << 63, 0))

    def _take_until(self, until: tuple[int, int] | None) -> list[StreamItem]:
        if until is None:
            return []
        chunk: list[StreamItem] = []
        num_parts = 0
        for order, source in enumerate(self._sources):
            bisect = bisect_right if order <= until[1] else bisect_left
            cut = bisect(source.ready, until[0], key=available_at)
            if cut:
                chunk += source.ready[:cut]
                source.ready = source.ready[cut:]
                num_parts += 1
        if num_parts > 1:
            chunk.sort(key=available_at)  # stable: ties stay in the sources' order
        return chunk

    def _mark_handed_out(self) -> None:
        """Note for each source the last of its items that was handed out."""
        if self._num_accounted == self._num_handed:
            return
        for item in self._chunk[self._num_accounted : self._num_handed]:
            self._by_name[item.source].last = (item.available_at_ns, item.row)
        self._num_accounted = self._num_handed


MAX_WAIT_S = 1.0  # nights and weekends pass quickly


class PacedFeed(OuterFeed):
    """A feed whose items come `speed` times faster than they happened. Order and content stay as they are."""

    def __init__(
        self, feed: EventFeed, speed: float, elapsed_ns: Callable[[], int], sleep: Callable[[float], None]
    ) -> None:
        super().__init__(feed)
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

    def stop(self) -> None:
        self._stopped = True
        super().stop()
