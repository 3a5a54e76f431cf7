"""Reads the news of files ahead in processes of its own, and is one of them (`python -m htfi.wiring.news_ahead`).

The children open encoder, heads and names as the run does. What they answer depends on the item alone, so decisions do
not depend on whether they live, nor on how many there are. The run prepares items itself while it would wait.
"""

import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set

import msgspec

from htfi.adapters.preparing.pool import PreparingPool, SharedPart
from htfi.adapters.preparing.process import serve
from htfi.domain.events import News
from htfi.narrative.preparing import MAX_TOGETHER, ItemPreparer, PreparedItem
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.wiring.cores import usable_cores
from htfi.wiring.settings import Settings, decode_settings, encode_settings, override

MIN_ITEMS = 128  # that a run announces at least, before a process is worth its start
MAX_PROCESSES = 3  # each takes some 100 MB of its own
_MIN_TOGETHER = 8  # items of the last slices: no process then waits long for another
_MAX_PUT = 16  # slices that may wait for a child, or whose answers wait for the run


class SentItems(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Items for a child, with the symbols of which the run has series since those before them."""

    items: Sequence[News]
    new_series: Sequence[str] = ()


_ENCODER = msgspec.msgpack.Encoder()
_SENT, _PREPARED = msgspec.msgpack.Decoder(SentItems), msgspec.msgpack.Decoder(list[PreparedItem])


def num_processes(settings: Settings) -> int:
    """How many processes may read the news of files ahead: one a core beside the run's own, where facts are read."""
    config, num = settings.encoding, len(usable_cores())
    return min(min(config.threads or num, num) - 1, MAX_PROCESSES) if config.model == "auto" else 0


def news_ahead(settings: Settings, news: NewsProcessor, notify: Callable[[str], None]) -> "NewsAhead | None":
    """What reads ahead for `news`; None where there is no core for it."""
    num, preparer = num_processes(settings), news.facts.preparer(news.sanitiser.undisguise)
    return None if num < 1 or preparer is None else NewsAhead(settings, preparer, num, notify)


class _Slice(SharedPart):
    """Items that are prepared together."""

    def __init__(self, items: Sequence[News]) -> None:
        super().__init__()
        self.items = items
        self.num_received = 0
        self.prepared: Sequence[PreparedItem] | None = None


class NewsAhead:
    """Behind `preparing.ItemsAhead`. The children start when enough items were announced."""

    def __init__(
        self, settings: Settings, preparer: ItemPreparer, num: int, notify: Callable[[str], None]
    ) -> None:
        """`num` children; `preparer` prepares in the run's own process."""
        self._settings, self._preparer, self._num, self._notify = settings, preparer, num, notify
        self._pool: PreparingPool[_Slice] | None = None
        self._num_announced = 0
        self._next: deque[News] = deque()  # announced, not received
        self._slices: deque[_Slice] = deque()  # of these
        self._num_put = 0  # of the slices
        self._series: Set[str] = frozenset()
        self._all_series: dict[str, None] = {}  # in the order in which they came
        self._num_known = [0] * num  # of these by each child

    def start(self) -> None:
        """Start the children, if they have not started."""
        if self._pool is None:
            command = [sys.executable, "-m", __name__]
            start = encode_settings(self._settings)
            self._pool = PreparingPool(command, start, self._num, self._encode, self._notify)

    def await_ready(self, most_s: float) -> bool:
        """Whether all children that live have opened what they need within this time."""
        until_s = time.monotonic() + most_s
        while time.monotonic() < until_s:
            if self._pool is not None and self._pool.is_ready:
                return True
            time.sleep(0.01)
        return False

    def expect(self, items: Sequence[News], series: Set[str]) -> bool:
        """See `ItemsAhead.expect`."""
        self._series = series
        self._num_announced += len(items)
        self._next, self._slices, self._num_put = deque[News](), deque[_Slice](), 0
        if self._pool is None:
            if self._num_announced < MIN_ITEMS:
                return False
            self.start()
        assert self._pool is not None
        self._pool.clear()
        if self._pool.has_failed:
            return False
        self._next.extend(items)
        self._slices.extend(map(_Slice, slices(items, self._num + 1)))
        self._put_more()
        return True

    def take(self, item: News) -> PreparedItem | None:
        """See `ItemsAhead.take`. Raises: DependencyUnavailable."""
        pool = self._pool
        if pool is None or item not in self._next:  # one that a person released was announced before
            return None
        while True:
            of = self._slices[0]
            place = of.num_received
            of.num_received += 1
            before = self._next.popleft()
            if of.num_received == len(of.items):
                self._slices.popleft()
                self._num_put -= 1
                if before != item:
                    pool.claim(of)  # it is passed over
                self._put_more()
            if before == item:
                return self._prepared(pool, of)[place]

    def close(self) -> None:
        """End the children."""
        if self._pool is not None:
            self._pool.close()

    def _prepared(self, pool: PreparingPool[_Slice], of: _Slice) -> Sequence[PreparedItem]:
        """What a child prepared, or what is prepared here. While a child has it, the next slice that none has is
        prepared. Raises: DependencyUnavailable.
        """
        while of.prepared is None:
            if of.answer is not None:
                of.prepared = _PREPARED.decode(of.answer)
            elif pool.claim(of):
                self._prepare(of)
            elif (other := pool.claim_next()) is not None:
                self._prepare(other)
            else:
                pool.wait(of)
        return of.prepared

    def _prepare(self, of: _Slice) -> None:
        of.prepared = self._preparer.prepare(of.items, self._series)

    def _put_more(self) -> None:
        """Put what comes next of what was announced before the children."""
        assert self._pool is not None
        if len(self._all_series) != len(self._series):
            self._all_series.update(dict.fromkeys(sorted(self._series)))
        while self._num_put < min(_MAX_PUT, len(self._slices)):
            self._pool.put(self._slices[self._num_put])
            self._num_put += 1

    def _encode(self, of: _Slice, child: int) -> bytes:
        """Called by the threads of the pool, one at a time."""
        series = list(self._all_series)
        new, self._num_known[child] = series[self._num_known[child] :], len(series)
        return _ENCODER.encode(SentItems(of.items, new))


def slices(items: Sequence[News], num_processes: int) -> Iterator[Sequence[News]]:
    """The items in order, in slices that become smaller at the end, so that all processes end at one time."""
    start = 0
    while start < len(items):
        num = (len(items) - start) // (2 * num_processes)
        end = start + min(max(num, _MIN_TOGETHER), MAX_TOGETHER)
        yield items[start:end]
        start = end


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person interrupts the run
    serve(_open_work)


def _open_work(start: bytes) -> Callable[[bytes], bytes]:
    from htfi.wiring.news import open_readers_of_items

    settings = override(decode_settings(start), "encoding", threads=1)
    texts, facts = open_readers_of_items(settings)
    undisguise = Sanitiser(settings.sanitiser).undisguise
    preparer = ItemPreparer(undisguise, texts, facts, SymbolReadings(settings.narrative))
    texts.read(["Shares rise as profit beats forecasts"])  # what is loaded late is loaded now

    series = set[str]()

    def work(request: bytes) -> bytes:
        sent = _SENT.decode(request)
        series.update(sent.new_series)
        return _ENCODER.encode(preparer.prepare(sent.items, series))

    return work


if __name__ == "__main__":
    main()
