"""One row of untrusted cells becomes one event or one rejection, by the rules here. Readers call it.

`RowParser.parse` never raises on what a row holds. Fast column-wise paths hand it each row that they doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, Event, MacroAnnouncement, News, QuarantinedRow, Quote, Trade
from htfi.pipeline.intake.bar_spacing import BarSpacings, is_timed
from htfi.pipeline.intake.cells import (
    MAX_SERIES_CHARS,
    OTHER_PRICES,
    RepairedBar,
    Row,
    consistent_prices,
    list_repairs,
    read_flag,
    read_price,
    read_prices,
    read_size,
    read_symbol,
    read_symbols,
    read_tags,
    read_text,
    read_value,
    show_row,
)
from htfi.pipeline.intake.columns import ASK_SIDES, BID_SIDES, ColumnLayout, recognise_layout
from htfi.pipeline.intake.quarantine_reasons import (
    MAX_DETAIL_CHARS,
    QuarantineReason,
    RowRefused,
    retained_text,
)
from htfi.pipeline.intake.spec import KINDS, SourceSpec
from htfi.pipeline.intake.times import RowTimes

_MAX_LAYOUTS = 256


class RowParser:
    """Reads rows of one source. `layout` fixes the columns; without it each row's own keys are recognised.

    `sample` (a few first rows) decides what one row leaves open; `clocks` hold how long a file's bars are.
    """

    def __init__(
        self,
        spec: SourceSpec,
        symbol: str,
        layout: ColumnLayout | None = None,
        clocks: BarSpacings | None = None,
        sample: list[Row] | None = None,
    ) -> None:
        self.spec = spec
        self.source = spec.name
        self.layout = layout
        self.symbol = spec.symbol or symbol
        self.times = RowTimes(spec, clocks)
        self._sample = sample or []
        self._only = frozenset(spec.only)
        self._layouts: dict[tuple[str, ...], ColumnLayout | None] = {}
        self._build: dict[str, Callable[[Row, ColumnLayout, int, int | None], Event | None]] = {
            "trade": self._trade,
            "quote": self._quote,
            "news": self._news,
            "macro": self._macro,
        }

    def parse(
        self, row: Row, number: int, raw: str | bytes = "", arrival_ns: int | None = None
    ) -> Event | QuarantinedRow | None:
        """The event of a row; its rejection; or None for a row of a symbol that is not wanted.

        `number` is the row's place in its source, `arrival_ns` when it reached a live feed.
        """
        try:
            layout = self.layout or self._layout_of(row)
            if layout.kind == "bar":
                return self._bar(row, layout, number, arrival_ns, raw)
            cells = _with_made_cells(row, layout) if layout.made else row
            return self._build[layout.kind](cells, layout, number, arrival_ns)
        except RowRefused as refusal:
            return self.reject(number, refusal.reason, refusal.detail, raw or show_row(row))

    def peek(self, row: Row) -> tuple[str, str, int | date] | None:
        """Kind, symbol or series, and time of a row, if it has all three and is wanted."""
        try:
            layout = self.layout or self._layout_of(row)
            if layout.made:
                row = _with_made_cells(row, layout)
            name = layout.fields.get("series" if layout.kind == "macro" else "symbol")
            series = (read_symbol(row.get(name)) if name else self.symbol) if layout.kind != "news" else ""
            moment = self.times.stamp(row, layout)
        except RowRefused:
            return None
        if moment is None or (self._only and series not in self._only):
            return None
        return layout.kind, series, moment

    def peek_bar(self, row: Row) -> tuple[str, str, int | date] | None:
        """Symbol, stated interval and time of a row, if it is a bar whose interval is a span of time."""
        seen = self.peek(row)
        if seen is None or seen[0] != "bar":
            return None
        try:
            stated = self.times.stated(row, self.layout or self._layout_of(row))
        except RowRefused:
            return None
        return (seen[1], stated, seen[2]) if is_timed(stated) else None

    def reject(
        self, number: int, reason: QuarantineReason, detail: str, raw: str | bytes, num_bytes: int = 0
    ) -> QuarantinedRow:
        """`num_bytes` is the row's length where `raw` is only its beginning."""
        return QuarantinedRow(
            self.source, number, reason.value, detail[:MAX_DETAIL_CHARS], *retained_text(raw, num_bytes)
        )

    def _layout_of(self, row: Row) -> ColumnLayout:
        stated = "" if self.spec.kind else row.get("kind", row.get("type"))
        if stated is not None and stated != "":
            kind = stated.strip().lower() if isinstance(stated, str) else ""
            if kind not in KINDS and "kind" in row:
                raise RowRefused(
                    QuarantineReason.UNKNOWN_KIND, f"kind '{str(stated)[:40]}' is none of {', '.join(KINDS)}"
                )
        else:
            kind = ""
        key = (kind if kind in KINDS else "", *row)
        layout = self._layouts.get(key)
        if layout is None and key not in self._layouts:
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = self._recognise(row, key[0])
        if layout is None:
            raise RowRefused(
                QuarantineReason.UNKNOWN_KIND, f"no kind of event has the fields {', '.join(row) or '(none)'}"
            )
        return layout

    def _recognise(self, row: Row, kind: str) -> ColumnLayout | None:
        spec = replace(self.spec, kind=kind) if kind else self.spec
        alike = [other for other in self._sample if other.keys() == row.keys()]
        layout = recognise_layout(list(row), spec, alike or [row])
        if layout is not None and (missing := layout.missing_fields(spec)):
            raise RowRefused(QuarantineReason.MISSING_FIELD, f"a {layout.kind} needs {', '.join(missing)}")
        return layout

    def _trade(self, row: Row, layout: ColumnLayout, number: int, arrival_ns: int | None) -> Trade | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        available_ns, event_ns = self.times.row_times(row, layout, arrival_ns, self.times.days.close)
        price = read_price(row.get(fields["price"]), "price")
        size = read_size(row.get(fields["size"]), "size") if "size" in fields else 0.0
        venue = read_text(row, fields.get("venue"))
        return Trade(
            available_ns,
            event_ns,
            self.source,
            number,
            symbol,
            price,
            size,
            venue,
            read_text(row, fields.get("id")),
        )

    def _quote(self, row: Row, layout: ColumnLayout, number: int, arrival_ns: int | None) -> Quote | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        available_ns, event_ns = self.times.row_times(row, layout, arrival_ns, self.times.days.close)
        if "bid" in fields or "ask" in fields:
            bid, bid_size = self._side(row, fields, "bid")
            ask, ask_size = self._side(row, fields, "ask")
        else:
            price = read_price(row.get(fields["price"]), "price")
            size = read_size(row.get(fields["size"]), "size") if "size" in fields else None
            side = str(row.get(fields["side"])).strip().lower()
            if side not in BID_SIDES and side not in ASK_SIDES:
                raise RowRefused(
                    QuarantineReason.BAD_SIDE, f"side '{side[:40]}' is neither bid (b) nor ask (a)"
                )
            bid, bid_size, ask, ask_size = (
                (price, size, None, None) if side in BID_SIDES else (None, None, price, size)
            )
        if bid is None and ask is None:
            raise RowRefused(QuarantineReason.MISSING_FIELD, "neither bid nor ask has a price")
        if bid is not None and ask is not None and bid > ask:
            raise RowRefused(QuarantineReason.CROSSED_QUOTE, f"bid {bid} is above ask {ask}")
        venue, known_as = read_text(row, fields.get("venue")), read_text(row, fields.get("id"))
        return Quote(
            available_ns, event_ns, self.source, number, symbol, bid, bid_size, ask, ask_size, venue, known_as
        )

    def _bar(
        self, row: Row, layout: ColumnLayout, number: int, arrival_ns: int | None, raw: str | bytes
    ) -> Bar | None:
        fields = layout.fields
        symbol = self._symbol(row, fields.get("symbol"))
        if symbol is None:
            return None
        closed = read_price(row.get(fields["close"]), "close")
        cells = tuple(row.get(fields[name]) if name in fields else closed for name in OTHER_PRICES)
        stated = read_prices(cells)
        prices = consistent_prices(*stated, closed)
        volume = read_size(row.get(fields["volume"]), "volume") if "volume" in fields else 0.0
        interval, start_ns, end_ns, available_ns = self.times.bar_times(row, symbol, layout, arrival_ns)
        bar = (
            available_ns, end_ns, self.source, number, symbol, interval, start_ns, end_ns,
            *prices, closed, volume, read_text(row, fields.get("id")),
        )  # fmt: skip
        if prices == stated:
            return Bar(*bar)
        changed = list_repairs(cells, prices)
        detail = "; ".join(f"{change.field} was {change.was}, is {change.now}" for change in changed)
        note = QuarantinedRow(
            self.source,
            number,
            QuarantineReason.REPAIRED.value,
            detail[:MAX_DETAIL_CHARS],
            *retained_text(raw or show_row(row)),
            changed,
        )
        return RepairedBar(*bar, note=note)

    def _news(self, row: Row, layout: ColumnLayout, number: int, arrival_ns: int | None) -> News | None:
        fields = layout.fields
        symbols = read_symbols(row.get(fields["symbols"])) if "symbols" in fields else ()
        if not symbols and self.spec.symbol:
            symbols = (self.spec.symbol,)
        if self._only and not self._only.intersection(symbols):
            return None
        available_ns, event_ns = self.times.row_times(row, layout, arrival_ns, self.times.days.known)
        headline = read_text(row, fields["headline"])
        if not headline:
            raise RowRefused(QuarantineReason.MISSING_FIELD, "the headline is empty")
        known_as = read_text(row, fields.get("id")) or f"{self.source}:{number}"
        body, url = read_text(row, fields.get("body")), read_text(row, fields.get("url"))
        tags = self.spec.residency
        if "residency" in fields:
            tags = tuple(dict.fromkeys((*tags, *read_tags(row.get(fields["residency"])))))
        publisher = read_text(row, fields.get("publisher")) or self.spec.publisher
        corrects = read_text(row, fields.get("corrects"))
        retracts = bool(corrects) and read_flag(row, fields.get("retracts"))
        return News(
            available_ns, event_ns, self.source, number, known_as, headline, symbols, body, url, tags,
            publisher, corrects, retracts,
        )  # fmt: skip

    def _macro(
        self, row: Row, layout: ColumnLayout, number: int, arrival_ns: int | None
    ) -> MacroAnnouncement | None:
        fields = layout.fields
        series = read_text(row, fields["series"])
        if not series:
            raise RowRefused(QuarantineReason.MISSING_FIELD, "the series has no name")
        if len(series) > MAX_SERIES_CHARS or not series.isprintable():
            raise RowRefused(
                QuarantineReason.BAD_SYMBOL, f"a series has 1 to {MAX_SERIES_CHARS} printable characters"
            )
        if self._only and series not in self._only:
            return None
        available_ns, event_ns = self.times.row_times(row, layout, arrival_ns, self.times.days.known)
        value = read_value(row.get(fields["value"]), "value")
        return MacroAnnouncement(
            available_ns, event_ns, self.source, number, series, value, read_text(row, fields.get("id"))
        )

    def _symbol(self, row: Row, column: str | None) -> str | None:
        """The row's symbol, the source's where it has no such column, None for one that is not wanted."""
        if column is None:
            found = self.symbol
        else:
            value = row.get(column)
            if value is None or value == "":
                raise RowRefused(QuarantineReason.MISSING_FIELD, f"{column} is empty")
            found = read_symbol(value)
        if self._only and found not in self._only:
            return None
        return found

    def _side(self, row: Row, fields: Mapping[str, str], side: str) -> tuple[float | None, float | None]:
        value = row.get(fields[side]) if side in fields else None
        if value is None or value == "":
            return None, None
        size = row.get(fields[f"{side}_size"]) if f"{side}_size" in fields else None
        return read_price(value, side), None if size is None or size == "" else read_size(
            size, f"{side} size"
        )


def _with_made_cells(row: Row, layout: ColumnLayout) -> Row:
    """A row with the cells that its mapping's expressions make. Raises: RowRefused, of figures that are none."""
    try:
        return {**row, **{text: made.value(row) for text, made in layout.made.items()}}
    except InvalidInput as error:
        raise RowRefused(QuarantineReason.BAD_NUMBER, str(error)) from error
