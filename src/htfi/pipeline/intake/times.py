"""When a row happened, when it became known, and what span of time a bar covers. The row parsers call it."""

from collections.abc import Callable
from datetime import date
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, format_duration, parse_duration
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.clocks import Clocks, begin_ns
from htfi.pipeline.intake.columns import Layout
from htfi.pipeline.intake.intervals import is_timed, read_interval
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.intake.stamps import DayRule, read_time

DAY = format_duration(NS_PER_DAY)
_NOT_STATED = "a bar of a stream must state its length, which its rows tell too late: state `interval`"


class Times:
    """The rules of one source. `interval` is the length of its bars as its mapping states it, '' where it does not.

    `clocks` are what a survey of a file found; a stream has none and is taken at its word.
    """

    def __init__(self, spec: SourceSpec, clocks: Clocks | None = None) -> None:
        self.zone = spec.zone_info
        self.days = DayRule.of(spec)
        self.interval = read_interval(spec.interval) if spec.interval else ""
        self.clocks = clocks
        self._spec = spec
        self._delay_ns = spec.delay_ns
        self._tolerance_ns = spec.tolerance_ns
        self._by_arrival = spec.by_arrival

    def moment(self, row: Row, layout: Layout) -> int | date | None:
        """What the time column says; None where the row has none."""
        column = layout.fields.get("ts")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        if layout.clock and isinstance(clock := row.get(layout.clock), str) and ":" in clock:
            value = f"{value} {clock.strip()}"
        return read_time(value, self.zone, layout.time_unit)

    def available(self, row: Row, layout: Layout) -> int | None:
        column = layout.fields.get("available_at")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        found = read_time(value, self.zone, layout.available_unit)
        return found if isinstance(found, int) else self.days.known(found)

    def of(
        self, row: Row, layout: Layout, arrival_ns: int | None, of_day: Callable[[date], int]
    ) -> tuple[int, int]:
        """When the row became known and when it happened."""
        moment = self.moment(row, layout)
        if arrival_ns is None and isinstance(moment, int) and "available_at" not in layout.fields:
            return moment + self._delay_ns, moment
        known_ns = self.available(row, layout)
        event_ns = of_day(moment) if isinstance(moment, date) else moment
        if arrival_ns is not None and self._by_arrival:
            if event_ns is None:
                return arrival_ns, arrival_ns
            # A date tells only the day: its usual hour may lie after the row has come.
            return arrival_ns, min(event_ns, arrival_ns) if isinstance(moment, date) else event_ns
        if event_ns is None:
            event_ns = known_ns
        if event_ns is None:
            raise Refusal(Reason.MISSING_FIELD, "the row has no time")
        return event_ns + self._delay_ns if known_ns is None else known_ns, event_ns

    def of_bar(
        self, row: Row, symbol: str, layout: Layout, arrival_ns: int | None
    ) -> tuple[str, int, int, int]:
        """Interval, start, end, and when the bar became known."""
        moment = self.moment(row, layout)
        stated = self.stated(row, layout)
        interval, longest_ns = self._length(symbol, stated, moment, arrival_ns)
        length_ns = parse_duration(interval) if is_timed(interval) else 0
        start_ns, end_ns = self._span(moment, length_ns, layout, arrival_ns)
        if arrival_ns is not None and self._by_arrival:
            if arrival_ns < end_ns - self._tolerance_ns:
                raise Refusal(Reason.BAD_TIME, "the bar arrived before its end: it is not finished")
            return interval, start_ns, end_ns, arrival_ns
        known_ns = self.available(row, layout)
        if known_ns is None:
            sure_ns = end_ns
            if longest_ns > length_ns and not self.stamps_end(layout):
                _, sure_ns = self._span(moment, longest_ns, layout, arrival_ns)
            known_ns = sure_ns + self._delay_ns
        if known_ns < end_ns:
            raise Refusal(
                Reason.BAD_TIME, "the bar would be known before its end: check its times and bar_stamp"
            )
        return interval, start_ns, end_ns, known_ns

    def stamps_end(self, layout: Layout) -> bool:
        """Whether a bar's time is its end: as stated, else by the column's name."""
        return self._spec.bar_stamp == "end" or (not self._spec.bar_stamp and layout.stamps_end)

    def stated(self, row: Row, layout: Layout) -> str:
        """The interval that a row states, else the mapping's; '' where neither does. Raises: Refusal."""
        column = layout.fields.get("interval")
        return self.read_stated(row.get(column), column) if column is not None else self.interval

    def read_stated(self, value: Any, column: str) -> str:
        """The interval of a cell. One that cannot be read is passed over only where the mapping states another."""
        if value is None or value == "" or value != value:
            return self.interval
        text = f"{value:g}" if isinstance(value, float) else str(value)
        try:
            return read_interval(text)
        except InvalidInput as error:
            if self.interval and "interval" not in self._spec.columns:
                return self.interval
            raise Refusal(Reason.BAD_INTERVAL, f"{column}: {error}") from error

    def _length(
        self, symbol: str, stated: str, moment: int | date | None, arrival_ns: int | None
    ) -> tuple[str, int]:
        """The interval of a bar, and the longest that it may be, which is 0 where it is the interval."""
        dated = isinstance(moment, date)
        if self.clocks is None or moment is None or (stated and not is_timed(stated)):
            if not stated and dated and arrival_ns is not None and self._by_arrival:
                return DAY, 0  # it has ended when it arrives, however long it is
            if not stated:
                raise Refusal(Reason.BAD_INTERVAL, _NOT_STATED)
            return stated, 0
        clock = self.clocks.of(symbol, stated, dated)
        if clock is None:
            if stated:
                return stated, 0
            raise Refusal(
                Reason.BAD_INTERVAL, f"the length of bars of {symbol} cannot be told: state `interval`"
            )
        part, known_after_ns = clock.find_one(begin_ns(moment))
        if clock.refusals[part]:
            raise Refusal(Reason.BAD_INTERVAL, clock.refusals[part])
        return clock.intervals[part], known_after_ns

    def _span(
        self, moment: int | date | None, length_ns: int, layout: Layout, arrival_ns: int | None
    ) -> tuple[int, int]:
        """Start and end of a bar; one without a time ended when it arrived."""
        if moment is None:
            if arrival_ns is None:
                raise Refusal(Reason.MISSING_FIELD, "the row has no time")
            return arrival_ns - length_ns, arrival_ns
        at_end = self.stamps_end(layout)
        if isinstance(moment, date):
            days = max(length_ns // NS_PER_DAY, 1)
            last = moment if at_end or days == 1 else date.fromordinal(moment.toordinal() + days - 1)
            first = date.fromordinal(last.toordinal() - days + 1)
            return self.days.start(first), self.days.close(last)
        return (moment - length_ns, moment) if at_end else (moment, moment + length_ns)
