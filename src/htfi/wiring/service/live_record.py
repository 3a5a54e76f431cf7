"""What a service knows of a run's record: the newest lines, where each series stands, who waits for the next.

All of it belongs to the event loop's thread; the follower's thread hands lines over. What is older than the lines kept
here is read from the ledger, so that no subscriber, however slow, holds memory: it is an index, nothing more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from htfi.domain.errors import HtfiError, NotFound
from htfi.wiring.service.record import RecordedLine, RecordFollower, ServedRecordReader, ledger_size
from htfi.wiring.service.submitted_news import MAX_USES, ItemUse

_NUM_KEPT = 4_096  # newest lines
_NUM_INDEXED = 20_000  # newest entries whose series are known from the start
_GROUP = 256  # lines read for a subscriber at once
_NUM_WOKEN = 8  # of those who wait, in one turn of the loop: after it what they wrote is sent
T = TypeVar("T")


@dataclass(slots=True)
class SeriesRecord:
    """A series' place in the record."""

    num: int = 0  # of its decisions that were read
    newest_index: int = 0
    newest: RecordedLine | None = None  # that was released
    body: bytes | None = None  # of the newest, once somebody has asked for it


@dataclass(slots=True)
class LineGroup:
    """Lines that follow each other; where they are new, one object for all who follow."""

    first: int  # index of the first line
    lines: Sequence[bytes]
    events: bytes | None = None  # as they are sent, once somebody has asked for it


class LiveRecord:
    """Follows the run in `folder`. `open` starts it in the running event loop, `close` ends it."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        """`report` gets what ends the reading."""
        self.folder, self._report = folder, report
        self.series: dict[str, SeriesRecord] = {}
        self.size = 0  # the index of the next line
        self.failure: HtfiError | None = None
        self._size_at_start = 0
        self.uses: dict[str, list[ItemUse]] = {}  # of posted news, the first decisions that knew of each
        self._kept: deque[bytes] = deque(maxlen=_NUM_KEPT)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="record reader")
        self._reader: ServedRecordReader | None = None
        self._follower: RecordFollower | None = None
        self._group = LineGroup(0, ())  # the newest that was handed to one who follows
        self._waiting: dict[asyncio.Future[bool], None] = {}  # in the order in which they came
        self._to_wake: deque[asyncio.Future[bool]] = deque()
        self._is_closed = False

    def open(self) -> None:
        """Raises: as `ledger_size`."""
        loop = asyncio.get_running_loop()
        self._size_at_start = ledger_size(self.folder)
        self.size = max(self._size_at_start - _NUM_INDEXED, 0)

        def deliver(lines: Sequence[RecordedLine]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._take, lines)

        def fail(error: HtfiError) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._fail, error)

        self._follower = RecordFollower(self.folder, self.size, deliver, fail)

    def end_streams(self) -> None:
        """Nothing more is handed to those who follow."""
        self._is_closed = True
        self._wake()

    async def close(self) -> None:
        self.end_streams()
        if self._follower is not None:
            await asyncio.to_thread(self._follower.close)
        if self._reader is not None:
            await self._in_reader(self._reader.close)
        self._executor.shutdown()

    async def caught_up(self) -> None:
        """Wait until what had been recorded at the start is read, or cannot be. Raises: what ended the reading."""
        while self.size < self._size_at_start and self.failure is None and not self._is_closed:
            await self._next_change()
        self.check_read()

    def check_read(self) -> None:
        """Raises: what ended the reading; what is newest is not known since."""
        if self.failure is not None:
            raise self.failure

    def released(self, series: str) -> tuple[SeriesRecord, RecordedLine]:
        """A series and its newest released decision. Raises: NotFound, as `check_read`."""
        self.check_read()
        known = self.series.get(series)
        if known is None or known.newest is None:
            raise NotFound(f"there is no released forecast of {series} yet: GET /v1/series lists the series")
        return known, known.newest

    async def ask(self, question: Callable[[ServedRecordReader], T]) -> T:
        """What the reader answers, in its own thread. Raises: as the question does."""

        def answer() -> T:
            if self._reader is None:
                self._reader = ServedRecordReader(self.folder)
            return question(self._reader)

        return await self._in_reader(answer)

    async def follow(self, index: int, patience_s: float | None = None) -> AsyncIterator[LineGroup]:
        """Lines from an index on, then each as it comes, until the service closes; no lines where none came for so
        long. Raises: what ended the record's reading.
        """
        while not self._is_closed:
            if index >= self.size:
                self.check_read()
                if not await self._next_change(patience_s):
                    yield LineGroup(index, ())
                continue
            kept_from = self.size - len(self._kept)
            if index >= kept_from:
                group = self._kept_group(index, kept_from)
            else:
                stop = min(kept_from, index + _GROUP)
                found = await self.ask(partial(ServedRecordReader.lines, start=index, stop=stop))
                group = LineGroup(index, [one.line for one in found])
            yield group
            index += len(group.lines)

    def _kept_group(self, index: int, kept_from: int) -> LineGroup:
        num, group = min(self.size - index, _GROUP), self._group
        if (group.first, len(group.lines)) != (index, num):
            lines = [self._kept[place - kept_from] for place in range(index, index + num)]
            group = self._group = LineGroup(index, lines)
        return group

    def _take(self, lines: Sequence[RecordedLine]) -> None:
        for one in lines:
            self._kept.append(one.line)
            self.size = one.index + 1
            if not one.series:
                continue
            for name, use in one.posted:
                self._note_use(name, use)
            known = self.series.get(one.series)
            if known is None:
                known = self.series[one.series] = SeriesRecord()
            known.num, known.newest_index = known.num + 1, one.index
            if one.decision is not None:
                known.newest, known.body = one, None
        self._wake()

    def _note_use(self, name: str, use: ItemUse) -> None:
        uses = self.uses.setdefault(name, [])
        if len(uses) < MAX_USES:
            uses.append(use)
        if len(self.uses) > _NUM_INDEXED:
            del self.uses[next(iter(self.uses))]

    def _fail(self, error: HtfiError) -> None:
        self.failure = error
        self._report(f"{self.folder}: {error}")
        self._wake()

    def _wake(self) -> None:
        """Wake all who wait, in the order in which they came, a part in each turn of the loop."""
        is_waking = bool(self._to_wake)
        self._to_wake.extend(self._waiting)
        self._waiting.clear()
        if not is_waking:
            self._wake_some()

    def _wake_some(self) -> None:
        for _ in range(min(_NUM_WOKEN, len(self._to_wake))):
            waiting = self._to_wake.popleft()
            if not waiting.done():
                waiting.set_result(True)
        if self._to_wake:
            asyncio.get_running_loop().call_soon(self._wake_some)

    async def _next_change(self, patience_s: float | None = None) -> bool:
        """Wait for more lines, a failure or the end; False where none of them came for so long."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        self._waiting[waiting] = None
        timer = None if patience_s is None else loop.call_later(patience_s, _give_up, waiting)
        try:
            return await waiting
        finally:
            self._waiting.pop(waiting, None)
            if timer is not None:
                timer.cancel()

    async def _in_reader(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, act)


def _give_up(waiting: asyncio.Future[bool]) -> None:
    if not waiting.done():
        waiting.set_result(False)
