"""One row of untrusted cells becomes one event or one rejection: every rule on values stands here. Readers call it.

`RowParser.parse` never raises on what a row holds. Fast column-wise paths hand it each row that they doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, Event, MacroRelease, News, Quote, Rejection, Trade
from htfi.domain.time import NS_PER_DAY, format_duration, parse_duration
from htfi.pipeline.intake.cells import (
    Row,
    amount,
    number_of,
    positive,
    read_symbol,
    read_symbols,
    show_row,
    text,
)
from htfi.pipeline.intake.columns import ASK_SIDES, BID_SIDES, Layout, recognise
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import KINDS, SourceSpec, read_interval
from htfi.pipeline.intake.stamps import DayRule, read_time

RAW_CHARS = 300
_MAX_LAYOUTS = 256
_DAY = format_duration(NS_PER_DAY)


class RowParser:
    """Reads rows of one source. `layout` fixes the columns; without it each row's own keys are recognised.

    `sample` (a few first rows) settles what one row alone cannot tell; `interval` is what was inferred for bars.
    """

    def __init__(
        self,
        spec: SourceSpec,
        symbol: str,
        layout: Layout | None = None,
        interval: str = "",
        sample: list[Row] | None = None,
    ) -> None:
        self.spec = spec
        self.source = spec.name
        self.layout = layout
        self.symbol = spec.symbol or symbol
        self.interval = read_interval(spec.interval) if spec.interval else interval
        self._sample = sample or []
        self.zone = spec.zone_info
        self._days = DayRule.of(spec)
        self._delay_ns = spec.delay_ns
        self._only = frozenset(spec.only)
        self._layouts: dict[tuple[str, ...], Layout | None] = {}
        self._build: dict[str, Callable[[Row, Layout, int, int | None], Event | None]] = {
            "trade": self._trade,
            "quote": self._quote,
            "bar": self._bar,
            "news": self._news,
            "macro": self._macro,
        }

    def parse(
        self, row: Row, number: int, raw: str | bytes = "", arrival_ns: int | None = None
    ) -> Event | Rejection | None:
        """The event of a row; its rejection; or None for a row of a symbol that is not wanted.

        `number` is the row's place in its source, `arrival_ns` when it reached a live feed.
        """
        try:
            layout = self.layout or self._layout_of(row)
            return self._build[layout.kind](row, layout, number, arrival_ns)
        except Refusal as refusal:
            return self.reject(number, refusal.reason, refusal.detail, raw or show_row(row))

    def peek(self, row: Row) -> tuple[str, str, int | date] | None:
        """Kind, symbol or series, and time of a row, if it has all three and is wanted."""
        try:
            layout = self.layout or self._layout_of(row)
            name = layout.fields.get("series" if layout.kind == "macro" else "symbol")
            series = (read_symbol(row.get(name)) if name else self.symbol) if layout.kind != "news" else ""
            moment = self._moment(row, layout)
        except Refusal:
            return None
        if moment is None or (self._only and series not in self._only):
            return None
        return layout.kind, series, moment

    def stamps_end(self, layout: Layout) -> bool:
        """Whether a bar's time is its end: as stated, else by the column's name."""
        return self.spec.bar_stamp == "end" or (not self.spec.bar_stamp and layout.stamps_end)

    def reject(self, number: int, reason: Reason, detail: str, raw: str | bytes) -> Rejection:
        text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
        return Rejection(self.source, number, reason.value, detail[:RAW_CHARS], text[:RAW_CHARS])

    def _layout_of(self, row: Row) -> Layout:
        stated = "" if self.spec.kind else row.get("kind", row.get("type"))
        if stated is not None and stated != "":
            kind = stated.strip().lower() if isinstance(stated, str) else ""
            if kind not in KINDS and "kind" in row:
                raise Refusal(Reason.UNKNOWN_KIND, f"kind '{str(stated)[:40]}' is none of {', '.join(KINDS)}")
        else:
            kind = ""
        key = (kind if kind in KINDS else "", *row)
        layout = self._layouts.get(key)
        if layout is None and key not in self._layouts:
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = self._recognise(row, key[0])
        if layout is None:
            raise Refusal(
                Reason.UNKNOWN_KIND, f"no kind of event has the fields {', '.join(row) or '(none)'}"
            )
        return layout

    def _recognise(self, row: Row, kind: str) -> Layout | None:
        spec = replace(self.spec, kind=kind) if kind else self.spec
        alike = [other for other in self._sample if other.keys() == row.keys()]
        layout = recognise(list(row), spec, alike or [row])
        if layout is not None and (missing := layout.missing()):
            raise Refusal(Reason.MISSING_FIELD, f"a {layout.kind} needs {', '.join(missing)}")
        return layout

    def _trade(self, row: Row, layout: Layout, number: int, arrival_ns: int | None) -> Trade | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        available_ns, event_ns = self._times(row, layout, arrival_ns, self._days.close)
        price = positive(row.get(fields["price"]), "price")
        size = amount(row.get(fields["size"]), "size") if "size" in fields else 0.0
        venue = text(row, fields.get("venue"))
        return Trade(
            available_ns,
            event_ns,
            self.source,
            number,
            symbol,
            price,
            size,
            venue,
            text(row, fields.get("id")),
        )

    def _quote(self, row: Row, layout: Layout, number: int, arrival_ns: int | None) -> Quote | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        available_ns, event_ns = self._times(row, layout, arrival_ns, self._days.close)
        if "bid" in fields or "ask" in fields:
            bid, bid_size = self._side(row, fields, "bid")
            ask, ask_size = self._side(row, fields, "ask")
        else:
            price = positive(row.get(fields["price"]), "price")
            size = amount(row.get(fields["size"]), "size") if "size" in fields else None
            side = str(row.get(fields["side"])).strip().lower()
            if side not in BID_SIDES and side not in ASK_SIDES:
                raise Refusal(Reason.BAD_SIDE, f"side '{side[:40]}' is neither bid (b) nor ask (a)")
            bid, bid_size, ask, ask_size = (
                (price, size, None, None) if side in BID_SIDES else (None, None, price, size)
            )
        if bid is None and ask is None:
            raise Refusal(Reason.MISSING_FIELD, "neither bid nor ask has a price")
        if bid is not None and ask is not None and bid > ask:
            raise Refusal(Reason.CROSSED_QUOTE, f"bid {bid} is above ask {ask}")
        venue, known_as = text(row, fields.get("venue")), text(row, fields.get("id"))
        return Quote(
            available_ns, event_ns, self.source, number, symbol, bid, bid_size, ask, ask_size, venue, known_as
        )

    def _bar(self, row: Row, layout: Layout, number: int, arrival_ns: int | None) -> Bar | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        closed = positive(row.get(fields["close"]), "close")
        opened, high, low = (
            positive(row.get(fields[name]), name) if name in fields else closed
            for name in ("open", "high", "low")
        )
        if high < low or not low <= opened <= high or not low <= closed <= high:
            raise Refusal(
                Reason.BAD_BAR,
                f"open {opened}, high {high}, low {low}, close {closed}: not low ≤ open, close ≤ high",
            )
        volume = amount(row.get(fields["volume"]), "volume") if "volume" in fields else 0.0
        moment = self._moment(row, layout)
        interval = self._interval(row, fields.get("interval"), moment)
        start_ns, end_ns = self._span(moment, interval, layout, arrival_ns)
        available_ns = self._available(row, layout)
        if available_ns is None:
            available_ns = end_ns + self._delay_ns
        if arrival_ns is not None and self.spec.by_arrival:
            available_ns = arrival_ns
        elif available_ns < end_ns:
            raise Refusal(
                Reason.BAD_TIME, "the bar would be known before it ends: check available_at and bar_stamp"
            )
        return Bar(
            available_ns, end_ns, self.source, number, symbol, interval, start_ns, end_ns,
            opened, high, low, closed, volume, text(row, fields.get("id")),
        )  # fmt: skip

    def _news(self, row: Row, layout: Layout, number: int, arrival_ns: int | None) -> News | None:
        fields = layout.fields
        symbols = read_symbols(row.get(fields["symbols"])) if "symbols" in fields else ()
        if not symbols and self.spec.symbol:
            symbols = (self.spec.symbol,)
        if self._only and not self._only.intersection(symbols):
            return None
        available_ns, event_ns = self._times(row, layout, arrival_ns, self._days.known)
        headline = text(row, fields["headline"])
        if not headline:
            raise Refusal(Reason.MISSING_FIELD, "the headline is empty")
        known_as = text(row, fields.get("id")) or f"{self.source}:{number}"
        body, url = text(row, fields.get("body")), text(row, fields.get("url"))
        return News(available_ns, event_ns, self.source, number, known_as, headline, symbols, body, url)

    def _macro(self, row: Row, layout: Layout, number: int, arrival_ns: int | None) -> MacroRelease | None:
        fields = layout.fields
        series = text(row, fields["series"])
        if not series:
            raise Refusal(Reason.MISSING_FIELD, "the series has no name")
        if self._only and series not in self._only:
            return None
        available_ns, event_ns = self._times(row, layout, arrival_ns, self._days.known)
        value = number_of(row.get(fields["value"]), "value", Reason.BAD_NUMBER)
        return MacroRelease(
            available_ns, event_ns, self.source, number, series, value, text(row, fields.get("id"))
        )

    def _symbol(self, row: Row, column: str | None) -> str | None:
        """The row's symbol, the source's where it has no such column, None for one that is not wanted."""
        if column is None:
            found = self.symbol
        else:
            value = row.get(column)
            if value is None or value == "":
                raise Refusal(Reason.MISSING_FIELD, f"{column} is empty")
            found = read_symbol(value)
        if self._only and found not in self._only:
            return None
        return found

    def _side(self, row: Row, fields: Mapping[str, str], side: str) -> tuple[float | None, float | None]:
        value = row.get(fields[side]) if side in fields else None
        if value is None or value == "":
            return None, None
        size = row.get(fields[f"{side}_size"]) if f"{side}_size" in fields else None
        return positive(value, side), None if size is None or size == "" else amount(size, f"{side} size")

    def _moment(self, row: Row, layout: Layout) -> int | date | None:
        """What the time column says; None where the row has none."""
        column = layout.fields.get("ts")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        if layout.clock and isinstance(clock := row.get(layout.clock), str) and ":" in clock:
            value = f"{value} {clock.strip()}"
        return read_time(value, self.zone, layout.time_unit)

    def _available(self, row: Row, layout: Layout) -> int | None:
        column = layout.fields.get("available_at")
        value = row.get(column) if column is not None else None
        if value is None or value == "":
            return None
        found = read_time(value, self.zone, layout.available_unit)
        return found if isinstance(found, int) else self._days.known(found)

    def _times(
        self, row: Row, layout: Layout, arrival_ns: int | None, of_day: Callable[[date], int]
    ) -> tuple[int, int]:
        """When the row became known and when it happened."""
        moment = self._moment(row, layout)
        known_ns = self._available(row, layout)
        event_ns = of_day(moment) if isinstance(moment, date) else moment
        if arrival_ns is not None and self.spec.by_arrival:
            return arrival_ns, arrival_ns if event_ns is None else event_ns
        if event_ns is None:
            event_ns = known_ns
        if event_ns is None:
            raise Refusal(Reason.MISSING_FIELD, "the row has no time")
        return event_ns + self._delay_ns if known_ns is None else known_ns, event_ns

    def _interval(self, row: Row, column: str | None, moment: int | date | None) -> str:
        stated = row.get(column) if column is not None else None
        if stated is None or stated == "":
            dated = isinstance(moment, date) and not self.spec.interval
            found = _DAY if dated else self.interval
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
        """Start and end of a bar. Without a stated stamp, a column named for the end holds the end, any other the start."""
        if moment is None:
            if arrival_ns is None:
                raise Refusal(Reason.MISSING_FIELD, "the row has no time")
            moment = arrival_ns
        length_ns = 0 if ":" in interval else parse_duration(interval)
        at_end = self.stamps_end(layout)
        if isinstance(moment, date):
            days = max(length_ns // NS_PER_DAY, 1)
            last = moment if at_end or days == 1 else date.fromordinal(moment.toordinal() + days - 1)
            first = date.fromordinal(last.toordinal() - days + 1)
            return self._days.start(first), self._days.close(last)
        return (moment - length_ns, moment) if at_end else (moment, moment + length_ns)
