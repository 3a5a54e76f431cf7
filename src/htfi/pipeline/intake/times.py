"""When a row happened, when it became known, and what span of time a bar covers. The row parsers call it."""

from collections.abc import Callable
from datetime import date

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, format_duration, parse_duration
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import Layout
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import SourceSpec, read_interval
from htfi.pipeline.intake.stamps import DayRule, read_time

DAY = format_duration(NS_PER_DAY)


class Times:
    """The rules of one source. `interval` is the length of its bars, '' where nobody stated it."""

    def __init__(self, spec: SourceSpec, interval: str) -> None:
        self.zone = spec.zone_info
        self.days = DayRule.of(spec)
        self.interval = read_interval(spec.interval) if spec.interval else interval
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

    def of_bar(self, row: Row, layout: Layout, arrival_ns: int | None) -> tuple[str, int, int, int]:
        """Interval, start, end, and when the bar became known."""
        moment = self.moment(row, layout)
        interval = self._interval_of(row, layout.fields.get("interval"), moment)
        start_ns, end_ns = self._span(moment, interval, layout, arrival_ns)
        if arrival_ns is not None and self._by_arrival:
            if arrival_ns < end_ns - self._tolerance_ns:
                raise Refusal(Reason.BAD_TIME, "the bar arrived before its end: it is not finished")
            return interval, start_ns, end_ns, arrival_ns
        known_ns = self.available(row, layout)
        if known_ns is None:
            known_ns = end_ns + self._delay_ns
        if known_ns < end_ns:
            raise Refusal(
                Reason.BAD_TIME, "the bar would be known before its end: check its times and bar_stamp"
            )
        return interval, start_ns, end_ns, known_ns

    def stamps_end(self, layout: Layout) -> bool:
        """Whether a bar's time is its end: as stated, else by the column's name."""
        return self._spec.bar_stamp == "end" or (not self._spec.bar_stamp and layout.stamps_end)

    def _interval_of(self, row: Row, column: str | None, moment: int | date | None) -> str:
        stated = row.get(column) if column is not None else None
        if stated is None or stated == "":
            dated = isinstance(moment, date) and not self._spec.interval
            found = DAY if dated else self.interval
            if not found:
                raise Refusal(
                    Reason.BAD_INTERVAL, "a bar's length cannot be told from its rows: state `interval`"
                )
            return found
        try:
            return read_interval(str(stated))
        except InvalidInput as error:
            raise Refusal(Reason.BAD_INTERVAL, str(error)) from error

    def _span(
        self, moment: int | date | None, interval: str, layout: Layout, arrival_ns: int | None
    ) -> tuple[int, int]:
        """Start and end of a bar; one without a time ended when it arrived."""
        length_ns = 0 if ":" in interval else parse_duration(interval)
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
