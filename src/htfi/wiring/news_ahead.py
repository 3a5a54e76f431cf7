"""Reads the news of files ahead in a process of its own, and is that process (`python -m htfi.wiring.news_ahead`).

The child opens encoder, heads and names as the run does. What it answers depends on the item alone, so decisions do not
depend on whether it lives.
"""

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice

import msgspec

from htfi.adapters.preparing.process import PreparingProcess, serve
from htfi.domain.events import News
from htfi.narrative.preparing import MAX_TOGETHER, ItemPreparer, PreparedItem
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.wiring.cores import usable_cores
from htfi.wiring.settings import Settings, decode_settings, encode_settings, override

MIN_ITEMS = 128  # that a run announces at least, before a process is worth its start
MAX_SENT = 512  # items that wait for the child, or whose answers wait for the run


class SentItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item for the child, with the symbols of which the run has series since the one before it."""

    item: News
    new_series: tuple[str, ...] = ()


_ENCODER = msgspec.msgpack.Encoder()
_SENT, _PREPARED = msgspec.msgpack.Decoder(SentItem), msgspec.msgpack.Decoder(PreparedItem)


def reads_ahead(settings: Settings) -> bool:
    """Whether news of files may be read in another process: there is a core for it, and facts are read."""
    config, num = settings.encoding, len(usable_cores())
    return config.model == "auto" and min(config.threads or num, num) > 1


class NewsAhead:
    """Behind `preparing.ItemsAhead`. The child starts when enough items were announced."""

    def __init__(self, settings: Settings, notify: Callable[[str], None]) -> None:
        self._settings, self._notify = settings, notify
        self._process: PreparingProcess | None = None
        self._num_announced = 0
        self._next: deque[News] = deque()  # announced, not received
        self._num_sent = 0  # of these
        self._series: Set[str] = frozenset()
        self._sent_series = set[str]()  # those that the child knows of

    def expect(self, items: Sequence[News], series: Set[str]) -> bool:
        """See `ItemsAhead.expect`."""
        self._series = series
        self._num_announced += len(items)
        self._drop_answers(len(self._next))
        self._next = deque(items)
        if self._process is None:
            if self._num_announced < MIN_ITEMS:
                return False
            command = [sys.executable, "-m", __name__]
            self._process = PreparingProcess(command, encode_settings(self._settings), self._notify)
        if self._process.has_failed:
            return False
        self._send()
        return True

    def take(self, item: News) -> PreparedItem | None:
        """See `ItemsAhead.take`."""
        process = self._process
        if process is None or item not in self._next:  # one that a person released was announced before
            return None
        while True:
            is_sent = self._num_sent > 0
            before = self._next.popleft()
            answer = process.take() if is_sent else None
            self._num_sent -= is_sent
            if before == item:
                break
        if 2 * self._num_sent <= MAX_SENT:
            self._send()
        return None if answer is None else _PREPARED.decode(answer)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _drop_answers(self, num: int) -> None:
        """Take the answers to items that will not be received."""
        for _ in range(min(num, self._num_sent)):
            assert self._process is not None
            self._process.take()
        self._num_sent = 0

    def _send(self) -> None:
        """Send what comes next of what was announced, once the child can answer."""
        process = self._process
        if process is None or not process.is_ready:
            return
        for item in islice(self._next, self._num_sent, MAX_SENT):
            new = tuple(sorted(self._series - self._sent_series))
            self._sent_series.update(new)
            process.send(_ENCODER.encode(SentItem(item, new)))
            self._num_sent += 1


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person interrupts the run
    serve(_open_work, MAX_TOGETHER)


def _open_work(start: bytes) -> Callable[[Sequence[bytes]], Iterator[bytes]]:
    from htfi.wiring.news import open_readers_of_items

    settings = override(decode_settings(start), "encoding", threads=1)
    texts, facts = open_readers_of_items(settings)
    undisguise = Sanitiser(settings.sanitiser).undisguise
    preparer = ItemPreparer(undisguise, texts, facts, SymbolReadings(settings.narrative))
    texts.read(["Shares rise as profit beats forecasts"])  # what is loaded late is loaded now

    series = set[str]()

    def work(items: Sequence[bytes]) -> Iterator[bytes]:
        sent = [_SENT.decode(item) for item in items]
        series.update(symbol for one in sent for symbol in one.new_series)
        return map(_ENCODER.encode, preparer.prepare([one.item for one in sent], series))

    return work


if __name__ == "__main__":
    main()
