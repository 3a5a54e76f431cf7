"""`htfi.open_run`: a recorded run that takes events as they are pushed and hands out its decisions.

The folder is that of `htfi run`: ledger, saved state, table. A run that is opened again goes on where it was closed.
"""

import asyncio
import threading
import time
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TypeVar, cast

from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Event, QuarantinedRow, TimePassed
from htfi.domain.time import NS_PER_DAY
from htfi.library.arguments import ORIGIN, Models, bar_interval, not_copied, with_models
from htfi.library.frames import FrameKind, frame_kind
from htfi.library.results import RowsSetAside
from htfi.library.tables import read_prices
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.scenarios.history import bar_length_ns
from htfi.wiring.derived_files import write_derived_files
from htfi.wiring.feeds import table_events
from htfi.wiring.pushed import PUSHED, PushedFeed, usable_event
from htfi.wiring.run import OpenRun
from htfi.wiring.run import open_run as open_recorded_run
from htfi.wiring.settings import load_settings, override

_MIDNIGHT = time_of_day()
_Result = TypeVar("_Result")
_ROW_TYPES = (Mapping, *Event.__args__)


class EventsNotTaken(UserWarning):
    """`Run.feed` was called and its decisions were not iterated over.

    Examples:
        >>> import tempfile, warnings
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with warnings.catch_warnings(record=True) as shown:
        ...     warnings.simplefilter("always")
        ...     with htfi.open_run(folder, interval="1d") as run:
        ...         _ = run.feed(bars)                        # nobody iterates over what it returns
        >>> shown[0].category.__name__
        'EventsNotTaken'
    """


class Run:
    """A run that is open in a `with` or an `async with` block.

    Events are pushed in order of time. All of one call are visible together: the bars that end with its last event are
    decided when the call ends, so a later event must be later than they are.

    Examples:
        >>> import tempfile, warnings
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with warnings.catch_warnings(), htfi.open_run(folder, interval="1d") as run:
        ...     warnings.simplefilter("ignore", htfi.RowsSetAside)    # that a price is below zero, said once
        ...     decisions = list(run.feed([*bars, {"date": "2024-03-29", "symbol": "ACME", "close": -1}]))
        ...     run.num_decisions == len(decisions), run.set_aside
        (True, {'bad_price': 1})
    """

    def __init__(
        self, folder: Path, interval: str, opened: Callable[["Run"], AbstractContextManager[OpenRun]]
    ) -> None:
        self.pushed = PushedFeed()
        self._folder = folder
        self._interval = interval
        self._opened = opened
        self._context: AbstractContextManager[OpenRun] | None = None
        self._parser = RowParser(SourceSpec(PUSHED, zone="UTC", interval=interval), "price")
        self._is_daily = bar_length_ns(interval) >= NS_PER_DAY
        self._open: OpenRun | None = None
        self._opened_in = 0  # the thread that the ledger belongs to
        self._decided: list[DecidedSeries] = []
        self._num_not_begun = 0  # calls of `feed` whose decisions nobody has asked for
        self._known_reasons: set[str] = (
            set()
        )  # why events of this block were set aside, as far as it was said
        self._num_before: dict[
            str, dict[str, int]
        ] = {}  # events set aside before this block, by source and reason
        self._resumed_ns = 0
        self._next_save_s = 0.0
        self._thread: ThreadPoolExecutor | None = None

    @property
    def now_ns(self) -> int:
        """The instant up to which events were taken in: those up to here are not taken again."""
        return self._run.loop.now_ns

    @property
    def num_decisions(self) -> int:
        """How many forecasts the run has recorded, those before this start included."""
        return self._run.loop.recorder.num_decided

    @property
    def set_aside(self) -> dict[str, int]:
        """How many events were not used, by reason; quarantine.jsonl in the folder holds them."""
        return self._run.quarantine.counts()

    def feed(self, events: Any) -> Iterator[Decision]:
        """Push events, and get each decision when it is recorded and released.

        `events` is an iterable of dictionaries (the columns of a row) or of `htfi.domain.events`, one of them, or
        prices as `htfi.forecast` takes them. Nothing is taken in before the decisions are iterated over. What cannot be
        used is set aside, with a warning (`htfi.RowsSetAside`) the first time of each reason in a block.
        Raises: InvalidInput, LedgerUnavailable.
        """
        self._num_not_begun += 1
        return self._feed(events)

    def _feed(self, events: Any) -> Iterator[Decision]:
        self._num_not_begun -= 1
        yield from self._take_all(events)
        yield from self._pass_time()
        self._warn_of_events()

    async def afeed(self, events: Any) -> AsyncIterator[Decision]:
        """The same without blocking the event loop; `events` may also be an async iterable."""
        if isinstance(events, AsyncIterable):
            async for event in cast("AsyncIterable[Any]", events):
                for decision in await self._in_thread(lambda event=event: list(self._take_all(event))):
                    yield decision
        else:
            for decision in await self._in_thread(lambda: list(self._take_all(events))):
                yield decision
        for decision in await self._in_thread(lambda: list(self._pass_time())):
            yield decision
        self._warn_of_events()

    def record(self, decided: DecidedSeries) -> None:
        """Called by the run for each decision that is recorded and released."""
        self._decided.append(decided)

    @property
    def _run(self) -> OpenRun:
        if self._open is None:
            raise InvalidInput(f"the run in {self._folder} is not open: use it in a `with` block")
        return self._open

    def _parsed(self, events: Any) -> Iterator[Event | RepairedBar | QuarantinedRow]:
        if isinstance(events, _ROW_TYPES):
            events = [events]
        elif hasattr(events, "columns") or isinstance(events, str | Path) or _is_series(events):
            source = read_prices(events, interval=self._interval or None)
            for row in source.set_aside:
                if row.row:  # else it stands for several
                    yield QuarantinedRow(row.source, row.row, row.reason, row.detail, row.raw)
            yield from table_events(source.spec, source.tables, self._folder, self._run.quarantine)
            return
        if not isinstance(events, Iterable):
            raise InvalidInput(
                f"{events!r} is no event: push dictionaries, a table, or events of htfi.domain.events"
            )
        for event in cast("Iterable[Any]", events):
            if isinstance(event, Mapping):
                cells = cast("Mapping[Any, Any]", event).items()
                row = {str(name): _cell(cell, is_daily=self._is_daily) for name, cell in cells}
                parsed = self._parser.parse(row, self.pushed.num_rows + 1)
                if parsed is not None:
                    yield parsed
            elif isinstance(event, _ROW_TYPES):
                yield event
            else:
                raise InvalidInput(
                    f"{event!r:.80} is no event: push dictionaries, or events of htfi.domain.events"
                )

    def _take_all(self, events: Any) -> Iterator[Decision]:
        if self._run and threading.get_ident() != self._opened_in:
            raise InvalidInput(
                f"the run in {self._folder} was opened by another thread: push events from the one that opened it"
            )
        for event in self._parsed(events):
            yield from self._take(event)

    def _take(self, event: Event | RepairedBar | QuarantinedRow) -> Iterator[Decision]:
        run = self._run
        self.pushed.num_rows += 1
        usable = usable_event(event, run.quarantine)
        if usable is None:
            pass  # it is set aside
        elif usable.available_at_ns >= run.loop.now_ns:
            run.loop.step(usable)
            yield from self._new_decisions()
        elif usable.available_at_ns >= self._resumed_ns:
            detail = "an event of a later time was pushed before it"
            late = QuarantinedRow(PUSHED, usable.row, QuarantineReason.LATE.value, detail, repr(usable))
            run.quarantine.set_aside(late)
        if time.monotonic() >= self._next_save_s:
            self._save()

    def _pass_time(self) -> Iterator[Decision]:
        """Decide all that was pushed."""
        loop = self._run.loop
        if loop.now_ns:
            loop.step(TimePassed(loop.now_ns + 1))
        yield from self._new_decisions()

    def _new_decisions(self) -> Iterator[Decision]:
        decided, self._decided = self._decided, []
        for one in decided:
            yield one.worded()

    def _warn_of_events(self) -> None:
        """One line for the reasons that are new in this block, each with its first example."""
        kept = self._run.quarantine
        new = {
            reason: kept.example(source, reason)
            for source, reasons in kept.counts_by_source().items()
            for reason, num in reasons.items()
            if num > self._num_before.get(source, {}).get(reason, 0)
        }
        new = {reason: detail for reason, detail in new.items() if reason not in self._known_reasons}
        self._known_reasons |= new.keys()
        if new:
            named = "; ".join(f"{reason}: {detail}" if detail else reason for reason, detail in new.items())
            what = f"events were set aside: {named}; `run.set_aside` counts them, quarantine.jsonl holds them"
            warnings.warn(what, RowsSetAside, stacklevel=3)

    def _save(self) -> None:
        self._run.resume.save(self._run.loop, self._run.quarantine)
        self._next_save_s = time.monotonic() + self._run.snapshot_s

    def __repr__(self) -> str:
        return f"{'open' if self._open else 'closed'} run in {self._folder}"

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, "push its events where it was opened")

    def __enter__(self) -> "Run":
        if self._open is not None:
            raise InvalidInput(f"the run in {self._folder} is open: close its `with` block first")
        self._context = self._opened(self)
        self._open, self._opened_in = self._context.__enter__(), threading.get_ident()
        self._open.loop.begin()
        self._known_reasons, self._num_before = set(), self._open.quarantine.counts_by_source()
        self._resumed_ns = self._open.loop.now_ns
        self._next_save_s = time.monotonic() + self._open.snapshot_s
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error the state is not saved: the events since it was saved last are pushed again."""
        run, self._open = self._run, None
        context, self._context = self._context, None
        try:
            if error is None:
                if self._num_not_begun:
                    what = "events were pushed and not taken in: iterate over what run.feed(…) returns"
                    warnings.warn(what, EventsNotTaken, stacklevel=2)
                run.loop.end()
                run.resume.save(run.loop, run.quarantine, is_last=True)
                write_derived_files(run, self._folder)
        finally:
            if context is not None:
                context.__exit__(kind, error, trace)

    async def __aenter__(self) -> "Run":
        self._thread = ThreadPoolExecutor(1, "htfi-run")  # the ledger belongs to the thread that opened it
        return await self._in_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._in_thread(lambda: self.__exit__(kind, error, trace))
        finally:
            if self._thread is not None:
                self._thread.shutdown()

    async def _in_thread(self, act: Callable[[], _Result]) -> _Result:
        if self._thread is None:
            raise InvalidInput(f"the run in {self._folder} is not open: use it in an `async with` block")
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)


def _is_series(events: Any) -> bool:
    """Whether it is a Series of pandas, the closes of one symbol."""
    return frame_kind(events) is FrameKind.PANDAS


def _cell(cell: Any, *, is_daily: bool) -> Any:
    """A cell as a file would hold it: of daily bars, midnight without a zone is a date, as in tables."""
    if isinstance(cell, datetime):
        is_date = is_daily and cell.tzinfo is None and cell.time() == _MIDNIGHT
        return cell.date() if is_date else cell.isoformat()
    if isinstance(cell, date | str | int | float) or cell is None:
        return cell
    if isinstance(cell, list | tuple):  # the symbols of a news item
        return list(cast("Iterable[Any]", cell))
    return cell.item() if hasattr(cell, "item") else str(cell)


def open_run(
    folder: str | Path,
    *,
    models: Models | None = "default",
    interval: str | timedelta = "",
    settings: str | Path | None = None,
) -> Run:
    """A run in `folder`, new or taken up where it was left, to be used in a `with` or an `async with` block.

    `models` reads news: 'default' the shipped pair, folders (target, draft), or None for no language model. `interval`
    is the length of bars that are pushed without one, and of those built from ticks; `settings` a TOML file. In the
    block's head:
    Raises: InvalidInput, IntegrityError, LedgerUnavailable where another process has the folder.

    Examples:
        >>> import tempfile
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with htfi.open_run(folder, interval="1d") as run:
        ...     decisions = list(run.feed(bars))
        >>> decisions[-1].id
        'ACME/1d@2024-03-29T04:00:00Z'
    """
    chosen = with_models(load_settings(None if settings is None else Path(settings)), models)
    length = bar_interval(interval or None)
    if length:
        chosen = override(chosen, "market", ORIGIN, bar=length)
    place = Path(folder)
    return Run(
        place,
        length or "",
        lambda run: open_recorded_run(
            chosen, place, (), watch=run.record, pushed=run.pushed, with_models=models is not None
        ),
    )
