"""The main path in memory, to which a program gives bars as they close, with nothing recorded."""

from collections.abc import Iterable
from typing import Any

from htfi.domain.events import Bar, TimePassed
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.feeds import table_events
from htfi.wiring.in_memory_run import MemoryQuarantine, NullSink
from htfi.wiring.loop import build_loop
from htfi.wiring.pushed import PushedFeed, usable_event
from htfi.wiring.settings import Settings
from htfi.wiring.spool_folder import spool_folder


class SteppedRun:
    """Bars in, the newest decision of each series (`newest`) out. What cannot be used is in `quarantine`."""

    def __init__(self, settings: Settings) -> None:
        self.newest: dict[str, DecidedSeries] = {}
        self.quarantine = MemoryQuarantine()
        nowhere = NullSink()
        self._loop = build_loop(settings, PushedFeed(), nowhere, nowhere, self._record, is_recorded=False)
        self._loop.begin()

    @property
    def series(self) -> list[str]:
        """Every series of which there was a bar, as 'SYMBOL/interval'."""
        return self._loop.components.forecaster.series

    def take_table(self, spec: SourceSpec, tables: dict[str, Any]) -> None:
        """Take in the bars of a table (arro3.core.Table), which begin after those before, and decide on each."""
        with spool_folder() as inbox:
            self._take(table_events(spec, tables, inbox, self.quarantine))

    def _take(self, events: Iterable[Any]) -> None:
        loop = self._loop
        for event in events:
            bar = usable_event(event, self.quarantine)
            if isinstance(bar, Bar):
                loop.step(bar)
        if loop.now_ns:
            loop.step(TimePassed(loop.now_ns + 1))

    def _record(self, decided: DecidedSeries) -> None:
        self.newest[decided.series] = decided
