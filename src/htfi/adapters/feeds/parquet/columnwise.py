"""A Parquet batch column by column: clean rows straight into events, doubtful ones left to the row parser.

The masks here are conservative: they may doubt a good row and never pass a bad one, so that the rules on
values stand in `pipeline.intake` alone. A property test holds the two ways together.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.feeds.parquet.arrow_columns import (
    Batch,
    Column,
    ColumnNeedsRowParser,
    FloatColumn,
    numbers,
    texts,
    timestamps,
)
from htfi.adapters.feeds.parquet.arrow_columns import TimestampColumn as Stamps
from htfi.domain.events import MAX_PRICE, MAX_SIZE, MIN_PRICE, MIN_SIZE, Bar, Event, Quote, Trade
from htfi.domain.time import NS_PER_DAY
from htfi.pipeline.intake.bar_spacing import BarSurvey, is_timed
from htfi.pipeline.intake.cells import MAX_PRICE_RATIO, read_symbol
from htfi.pipeline.intake.columns import ASK_SIDES, BID_SIDES, ColumnLayout
from htfi.pipeline.intake.quarantine_reasons import RowRefused
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

Mask = NDArray[np.bool_]
Nanoseconds = NDArray[np.int64]
EventBuilder = Callable[[NDArray[np.intp] | slice, Sequence[int]], list[Event]]


class ColumnwiseParser:
    """Reads batches of one source whose columns are known."""

    def __init__(self, parser: RowParser, layout: ColumnLayout) -> None:
        self._parser = parser
        self._spec: SourceSpec = parser.spec
        self._layout = layout
        self._rules = parser.times
        self._read = {"trade": self._trades, "quote": self._quotes, "bar": self._bars}.get(layout.kind)

    def read(self, batch: Batch) -> tuple[Mask, Nanoseconds, EventBuilder] | None:
        """Which rows are clean, when each is known, and how to make events; None: read row by row.

        The `EventBuilder` takes places in the batch and the row number of each.
        """
        if self._read is None:
            return None
        columns = {name: batch.column(column) for name, column in self._layout.fields.items()}
        try:
            return self._read(columns, batch.num_rows)
        except ColumnNeedsRowParser:
            return None

    def _trades(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Nanoseconds, EventBuilder]:
        event_ns, available_ns, clean = self._times(columns)
        symbols, symbols_good = self._symbols(columns, num_rows)
        price = numbers(columns["price"])
        size = numbers(columns["size"]) if "size" in columns else FloatColumn.of(np.zeros(num_rows))
        clean = clean & symbols_good & _is_price(price) & _is_size(size)
        venue, known_as = _text(columns.get("venue"), num_rows), _text(columns.get("id"), num_rows)
        source = repeat(self._parser.source)

        def build(at: NDArray[np.intp] | slice, rows: Sequence[int]) -> list[Event]:
            return list(map(
                Trade, available_ns[at].tolist(), event_ns[at].tolist(), source, rows, symbols[at].tolist(),
                price.values[at].tolist(), size.values[at].tolist(), venue[at].tolist(),
                known_as[at].tolist(),
            ))  # fmt: skip

        return clean, available_ns, build

    def _quotes(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Nanoseconds, EventBuilder]:
        event_ns, available_ns, clean = self._times(columns)
        symbols, symbols_good = self._symbols(columns, num_rows)
        if "bid" in columns or "ask" in columns:
            sides, sides_good = _two_sides(columns, num_rows)
        else:
            sides, sides_good = _one_side(columns, num_rows)
        clean = clean & symbols_good & sides_good
        venue, known_as = _text(columns.get("venue"), num_rows), _text(columns.get("id"), num_rows)
        source = repeat(self._parser.source)

        def build(at: NDArray[np.intp] | slice, rows: Sequence[int]) -> list[Event]:
            bid, bid_size, ask, ask_size = (side[at].tolist() for side in sides)
            return list(map(
                Quote, available_ns[at].tolist(), event_ns[at].tolist(), source, rows, symbols[at].tolist(),
                bid, bid_size, ask, ask_size, venue[at].tolist(), known_as[at].tolist(),
            ))  # fmt: skip

        return clean, available_ns, build

    def measure_bar_intervals(self, batch: Batch, survey: BarSurvey) -> bool:
        """Note when the bars of a batch begin; False where it has to be read row by row."""
        columns = {
            name: batch.column(column)
            for name, column in self._layout.fields.items()
            if column in batch.column_names
        }
        try:
            stamped = self._timestamps(columns)
            symbols = self._series(columns, batch.num_rows)
        except ColumnNeedsRowParser:
            return False
        factor = NS_PER_DAY if stamped.is_date else 1
        for symbol, stated, places in symbols:
            begins = stamped.ns[places][stamped.is_valid[places]] * factor
            if is_timed(stated) and len(begins):
                survey.add_all((symbol, stated, stamped.is_date), begins)
        return True

    def _bars(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Nanoseconds, EventBuilder]:
        symbols, symbols_good = self._symbols(columns, num_rows)
        closed = numbers(columns["close"])
        opened, high, low = (
            numbers(columns[name]) if name in columns else closed for name in ("open", "high", "low")
        )
        volume = numbers(columns["volume"]) if "volume" in columns else FloatColumn.of(np.zeros(num_rows))
        clean = symbols_good & _is_size(volume)
        for price in (opened, high, low, closed):
            clean &= _is_price(price) & (low.values <= price.values) & (price.values <= high.values)
        top, bottom = np.maximum(opened.values, closed.values), np.minimum(opened.values, closed.values)
        clean &= (high.values <= MAX_PRICE_RATIO * top) & (low.values * MAX_PRICE_RATIO >= bottom)
        intervals, start_ns, end_ns, known_ns, times_good = self._bar_times(columns, num_rows)
        available_ns = known_ns + self._spec.delay_ns
        if "available_at" in columns:
            stamped = timestamps(columns["available_at"], self._rules.zone, self._layout.available_unit)
            if stamped.is_date:
                raise ColumnNeedsRowParser
            available_ns = stamped.ns
            times_good = times_good & stamped.is_valid
        clean = clean & times_good & (available_ns >= end_ns)
        known_as = _text(columns.get("id"), num_rows)
        source = repeat(self._parser.source)

        def build(at: NDArray[np.intp] | slice, rows: Sequence[int]) -> list[Event]:
            ends = end_ns[at].tolist()
            return list(map(
                Bar, available_ns[at].tolist(), ends, source, rows, symbols[at].tolist(),
                intervals[at].tolist(), start_ns[at].tolist(), ends, opened.values[at].tolist(),
                high.values[at].tolist(), low.values[at].tolist(), closed.values[at].tolist(),
                volume.values[at].tolist(), known_as[at].tolist(),
            ))  # fmt: skip

        return clean, available_ns, build

    def _times(self, columns: dict[str, Column]) -> tuple[Nanoseconds, Nanoseconds, Mask]:
        """Event times, times of availability, and where both are good."""
        if "ts" not in columns:
            raise ColumnNeedsRowParser
        happened = timestamps(columns["ts"], self._rules.zone, self._layout.time_unit)
        if happened.is_date or self._layout.clock:
            raise ColumnNeedsRowParser
        if "available_at" not in columns:
            return happened.ns, happened.ns + self._spec.delay_ns, happened.is_valid
        known = timestamps(columns["available_at"], self._rules.zone, self._layout.available_unit)
        if known.is_date:
            raise ColumnNeedsRowParser
        return happened.ns, known.ns, happened.is_valid & known.is_valid

    def _bar_times(
        self, columns: dict[str, Column], num_rows: int
    ) -> tuple[NDArray[np.object_], Nanoseconds, Nanoseconds, Nanoseconds, Mask]:
        """Interval, start, end, and when each bar is known before any delay, where the last says so."""
        stamped = self._timestamps(columns)
        intervals = np.full(num_rows, "", object)
        lengths_ns, known_after_ns = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
        factor = NS_PER_DAY if stamped.is_date else 1
        begins = stamped.ns * factor
        for symbol, stated, places in self._series(columns, num_rows):
            clock = self._rules.clocks and self._rules.clocks.of(symbol, stated, stamped.is_date)
            if not clock or not is_timed(stated):
                continue  # left to the row parser
            parts, known_after_ns[places] = clock.find(begins[places])
            pairs = zip(clock.intervals, clock.refusals, strict=True)
            named = np.array(["" if refusal else interval for interval, refusal in pairs], object)
            intervals[places], lengths_ns[places] = named[parts], clock.lengths_ns[parts]
        good = stamped.is_valid & (intervals != "")
        at_end = self._rules.stamps_end(self._layout)
        if at_end:
            known_after_ns = lengths_ns
        if not stamped.is_date:
            starts = stamped.ns - lengths_ns if at_end else stamped.ns
            return intervals, starts, starts + lengths_ns, starts + known_after_ns, good
        lengths, knowns = (np.maximum(ns // NS_PER_DAY, 1) for ns in (lengths_ns, known_after_ns))
        first = stamped.ns - lengths + 1 if at_end else stamped.ns
        starts = _days(first, good, self._rules.days.start)
        ends = _days(first + lengths - 1, good, self._rules.days.close)
        return intervals, starts, ends, _days(first + knowns - 1, good, self._rules.days.close), good

    def _timestamps(self, columns: dict[str, Column]) -> Stamps:
        if "ts" not in columns or self._layout.clock:
            raise ColumnNeedsRowParser
        return timestamps(columns["ts"], self._rules.zone, self._layout.time_unit)

    def _series(
        self, columns: dict[str, Column], num_rows: int
    ) -> Iterator[tuple[str, str, NDArray[np.intp]]]:
        """Symbol, stated interval, and the places of the rows of each series that can be read."""
        codes = np.zeros(num_rows, np.int64)
        symbols, labels = [self._parser.symbol], [self._rules.interval]
        if "symbol" in columns:
            found = texts(columns["symbol"])
            symbols, codes = (
                [*(word.strip() for word in found.distinct), ""],
                found.codes % (len(found.distinct) + 1),
            )
        if "interval" in columns:
            found = texts(columns["interval"])
            labels = [*map(self._label, found.distinct), self._rules.interval]
            codes = codes * len(labels) + found.codes % len(labels)
        order = np.argsort(codes, kind="stable")
        cuts = np.flatnonzero(np.diff(codes[order])) + 1
        for places in np.split(order, cuts) if num_rows else ():
            symbol, label = divmod(int(codes[places[0]]), len(labels))
            stated = labels[label]
            if _is_symbol(symbols[symbol]) and stated is not None:
                yield symbols[symbol], stated, places

    def _label(self, word: str) -> str | None:
        """The interval that a cell states; None where the row parser has to say why it states none."""
        try:
            return self._rules.read_stated(word, "")
        except RowRefused:
            return None

    def _symbols(self, columns: dict[str, Column], num_rows: int) -> tuple[NDArray[np.object_], Mask]:
        if "symbol" not in columns:
            return np.full(num_rows, self._parser.symbol, object), np.ones(num_rows, bool)
        column = texts(columns["symbol"])
        return column.values, column.where(_is_symbol)


def _days(days: Nanoseconds, good: Mask, instant: Callable[[date], int]) -> Nanoseconds:
    """The instant of each day, counted from 1970, where it is good."""
    found = np.zeros_like(days)
    several, places = np.unique(days[good], return_inverse=True)
    dates = several.astype("datetime64[D]").tolist()
    found[good] = np.array([instant(day) for day in dates], np.int64)[places]
    return found


def _one_side(columns: dict[str, Column], num_rows: int) -> tuple[list[NDArray[Any]], Mask]:
    """Bid, bid size, ask, ask size of quotes that carry one side each."""
    price = numbers(columns["price"])
    size = numbers(columns["size"]) if "size" in columns else None
    side = texts(columns["side"])
    is_bid, is_ask = (
        side.where(lambda word: word.lower() in BID_SIDES),
        side.where(lambda word: word.lower() in ASK_SIDES),
    )
    clean = _is_price(price) & (is_bid | is_ask)
    nothing = np.full(num_rows, None, object)
    sizes: NDArray[Any] = nothing
    if size is not None:
        clean = clean & _is_size(size)
        sizes = size.values.astype(object)
    prices = price.values.astype(object)
    return [
        np.where(is_bid, prices, nothing), np.where(is_bid, sizes, nothing),
        np.where(is_bid, nothing, prices), np.where(is_bid, nothing, sizes),
    ], clean  # fmt: skip


def _two_sides(columns: dict[str, Column], num_rows: int) -> tuple[list[NDArray[Any]], Mask]:
    """Bid, bid size, ask, ask size of quotes; a side without a price is None."""
    nothing = FloatColumn(np.full(num_rows, np.nan), np.ones(num_rows, bool))
    bid, bid_size, ask, ask_size = (
        numbers(columns[name]) if name in columns else nothing
        for name in ("bid", "bid_size", "ask", "ask_size")
    )
    clean = ~(bid.null & ask.null) & ~(bid.values > ask.values)  # a null side is NaN, above nothing
    for price, size in ((bid, bid_size), (ask, ask_size)):
        clean &= price.null | (_is_price(price) & (size.null | _is_size(size)))
    return [
        bid.objects(), bid_size.objects(bid.null), ask.objects(), ask_size.objects(ask.null)
    ], clean  # fmt: skip


def _text(column: Column | None, num_rows: int) -> NDArray[np.object_]:
    if column is None:
        return np.full(num_rows, "", object)
    return texts(column).values


def _is_price(column: FloatColumn) -> Mask:
    return ~column.null & (column.values >= MIN_PRICE) & (column.values <= MAX_PRICE)


def _is_size(column: FloatColumn) -> Mask:
    in_bounds = (column.values >= MIN_SIZE) & (column.values <= MAX_SIZE)
    return ~column.null & (in_bounds | (column.values == 0.0))


def _is_symbol(text: str) -> bool:
    try:
        return read_symbol(text) == text
    except RowRefused:
        return False
