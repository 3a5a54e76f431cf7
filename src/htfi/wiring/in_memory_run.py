"""The main path over files or tables, in memory, with nothing recorded: the library and `htfi scenario` ask for it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from htfi.domain.decision import Receipt, Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News, QuarantinedRow, TimePassed
from htfi.domain.time import SystemClock
from htfi.narrative.ports import NewsReader
from htfi.pipeline.intake.outer_feed import OuterFeed
from htfi.pipeline.intake.quarantine_reasons import describe_refused_source
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.ports import EventFeed, MakeDecision, Position
from htfi.pipeline.recorder import Watcher
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import Settings, override
from htfi.wiring.spool_folder import spool_folder

MAX_KEPT_ROWS = 10_000  # of each reason: some 5 MB


@dataclass(frozen=True, slots=True)
class InMemoryRun:
    """The loop at the end of its files, how much it read, and the rows that it set aside, by reason."""

    settings: Settings
    loop: DecisionLoop
    num_bars: int
    num_ticks: int
    quarantine: dict[str, list[QuarantinedRow]]  # the first of each reason, MAX_KEPT_ROWS at most
    num_quarantined: dict[str, int]
    num_repaired: int

    def refusal_text(self, files: str, symbol: str | None = None) -> str:
        """Why there is no forecast, in one line."""
        needed = self.settings.forecasting.history_bars
        aside = sum(self.num_quarantined.values())
        reasons = ", ".join(f"{reason} ({num:,})" for reason, num in self.num_quarantined.items())
        also = f"; {aside:,} rows were set aside: {reasons}" if aside else ""
        if self.num_bars:
            return f"{files} holds {self.num_bars:,} bars: a forecast needs {needed} of one series at least{also}"
        if self.num_ticks:
            return (
                f"{files} holds {self.num_ticks:,} ticks, too few bars of {self.settings.market.bar}: a forecast needs "
                f"{needed}; name a shorter interval{also}"
            )
        if aside:
            most = max(self.num_quarantined, key=self.num_quarantined.__getitem__)
            return describe_refused_source(files, self.num_quarantined, self.quarantine[most][0].detail)
        wanted = f" of {symbol}" if symbol else ""
        return f"{files} holds no price{wanted} that can be used: a forecast needs {needed} bars{also}"


def run_in_memory(
    settings: Settings,
    files: Sequence[str],
    mapping: Path | None,
    watch: Watcher,
    *,
    interval: str | None = None,
    readers: Mapping[Rung, NewsReader] | None = None,
) -> InMemoryRun:
    """Run the main path to the end of the files. Raises: InvalidInput, also for a source that has no end."""
    if interval is not None:
        settings = override(settings, "market", bar=interval)
    specs = resolve(files, mapping, interval=interval or "")
    live = next((file for file, spec in zip(files, specs, strict=False) if spec.live), None)
    if live is not None:
        raise InvalidInput(f"{live} is a live source: `htfi run {live}` forecasts streams")
    return run_sources(settings, specs, watch, readers=readers)


def run_sources(
    settings: Settings,
    specs: Sequence[SourceSpec],
    watch: Watcher,
    *,
    readers: Mapping[Rung, NewsReader] | None = None,
    tables: Mapping[str, Any] = MappingProxyType({}),
    after_item: Callable[[DecisionLoop], None] = lambda _: None,
) -> InMemoryRun:
    """Run the main path to the end of these sources; `tables` (arro3.core.Table) are those in memory, by name.

    Raises: InvalidInput, DependencyUnavailable.
    """
    tray, nowhere = MemoryQuarantine(), NullSink()
    with spool_folder() as inbox:
        opened = open_feed(specs, inbox=inbox, quarantine=tray, clock=SystemClock(), tables=tables)
        feed = _CountingFeed(opened)
        try:
            loop = build_loop(
                settings, feed, nowhere, nowhere, watch, readers, is_recorded=False, digest_file=None
            )
            loop.run(partial(after_item, loop))
        finally:
            feed.close()
    return InMemoryRun(
        settings, loop, feed.num_bars, feed.num_ticks, tray.by_reason, tray.counts(), tray.num_repaired()
    )


class MemoryQuarantine:
    """A quarantine in memory: the first rows of each reason, and how many there were by source."""

    def __init__(self) -> None:
        self.by_reason: dict[str, list[QuarantinedRow]] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._num_repaired = 0

    def set_aside(self, rejection: QuarantinedRow) -> None:
        if rejection.repairs:
            self._num_repaired += 1
            return
        rows = self.by_reason.setdefault(rejection.reason, [])
        if len(rows) < MAX_KEPT_ROWS:
            rows.append(rejection)
        counts = self._counts.setdefault(rejection.source, {})
        counts[rejection.reason] = counts.get(rejection.reason, 0) + 1

    def counts(self) -> dict[str, int]:
        return {
            reason: sum(counts.get(reason, 0) for counts in self._counts.values())
            for reason in self.by_reason
        }

    def counts_by_source(self) -> dict[str, dict[str, int]]:
        return {source: dict(counts) for source, counts in self._counts.items()}

    def example(self, source: str, reason: str) -> str:
        return next((row.detail for row in self.by_reason.get(reason, ()) if row.source == source), "")

    def num_repaired(self) -> int:
        return self._num_repaired

    def position(self) -> Position:
        return {}

    def close(self) -> None: ...


class _CountingFeed(OuterFeed):
    """A feed that counts what passes."""

    def __init__(self, feed: EventFeed) -> None:
        super().__init__(feed)
        self.num_bars = 0
        self.num_ticks = 0

    def __iter__(self) -> Iterator[FeedItem]:
        for item in self._feed:
            if isinstance(item, Bar):
                self.num_bars += 1
            elif not isinstance(item, News | TimePassed):
                self.num_ticks += 1
            yield item


class NullSink:
    """Null ledger and null sink: they discard everything."""

    size = 0
    num_released = 0

    def entry(self, index: int) -> bytes:
        raise InvalidInput(f"there is no entry {index}: nothing is recorded")

    def tidy(self) -> None: ...

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        return [Receipt(0, "")] * len(entries)

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...
