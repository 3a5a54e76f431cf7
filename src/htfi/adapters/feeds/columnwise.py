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

from htfi.adapters.feeds.arrow import Batch, Column, Floats, NotColumnwise, instants, numbers, texts
from htfi.adapters.feeds.arrow import Instants as Stamps
from htfi.domain.bounds import MAX_PRICE, MAX_SIZE, MIN_PRICE, MIN_SIZE
from htfi.domain.events import Bar, Event, Quote, Trade
from htfi.domain.time import NS_PER_DAY
from htfi.pipeline.intake.cells import read_symbol
from htfi.pipeline.intake.clocks import Survey
from htfi.pipeline.intake.columns import ASK_SIDES, BID_SIDES, Layout
from htfi.pipeline.intake.intervals import is_timed
from htfi.pipeline.intake.reasons import Refusal
from htfi.pipeline.intake.repairs import WILD
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

Mask = NDArray[np.bool_]
Instants = NDArray[np.int64]
Build = Callable[[NDArray[np.intp] | slice, Sequence[int]], list[Event]]


class Columnwise:
    """Reads batches of one source whose columns are known."""

    def __init__(self, parser: RowParser, layout: Layout) -> None:
        self._parser = parser
        self._spec: SourceSpec = parser.spec
        self._layout = layout
        self._rules = parser.times
        self._read = {"trade": self._trades, "quote": self._quotes, "bar": self._bars}.get(layout.kind)

    def read(self, batch: Batch) -> tuple[Mask, Instants, Build] | None:
        """Which rows are clean, when each is known, and how to make events; None: read row by row.

        `Build` takes places in the batch and the row number of each.
        """
        if self._read is None:
            return None
        columns = {name: batch.column(column) for name, column in self._layout.fields.items()}
        try:
            return self._read(columns, batch.num_rows)
        except NotColumnwise:
            return None

    def _trades(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Instants, Build]:
        event_ns, available_ns, clean = self._times(columns)
        symbols, symbols_good = self._symbols(columns, num_rows)
        price = numbers(columns["price"])
        size = numbers(columns["size"]) if "size" in columns else Floats.of(np.zeros(num_rows))
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

    def _quotes(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Instants, Build]:
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

    def survey(self, batch: Batch, survey: Survey) -> bool:
        """Note when the bars of a batch begin; False where it has to be read row by row."""
        columns = {
            name: batch.column(column)
            for name, column in self._layout.fields.items()
            if column in batch.schema.names
        }
        try:
            stamped = self._stamps(columns)
            symbols = self._series(columns, batch.num_rows)
        except NotColumnwise:
            return False
        factor = NS_PER_DAY if stamped.dated else 1
        for symbol, stated, places in symbols:
            begins = stamped.ns[places][stamped.good[places]] * factor
            if is_timed(stated) and len(begins):
                survey.add_all((symbol, stated, stamped.dated), begins)
        return True

    def _bars(self, columns: dict[str, Column], num_rows: int) -> tuple[Mask, Instants, Build]:
        symbols, symbols_good = self._symbols(columns, num_rows)
        closed = numbers(columns["close"])
        opened, high, low = (
            numbers(columns[name]) if name in columns else closed for name in ("open", "high", "low")
        )
        volume = numbers(columns["volume"]) if "volume" in columns else Floats.of(np.zeros(num_rows))
        clean = symbols_good & _is_size(volume)
        for price in (opened, high, low, closed):
            clean &= _is_price(price) & (low.values <= price.values) & (price.values <= high.values)
        top, bottom = np.maximum(opened.values, closed.values), np.minimum(opened.values, closed.values)
        clean &= (high.values <= WILD * top) & (low.values * WILD >= bottom)
        intervals, start_ns, end_ns, known_ns, times_good = self._spans(columns, num_rows)
        available_ns = known_ns + self._spec.delay_ns
        if "available_at" in columns:
            stamped = instants(columns["available_at"], self._rules.zone, self._layout.available_unit)
            if stamped.dated:
                raise NotColumnwise
            available_ns = stamped.ns
            times_good = times_good & stamped.good
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

    def _times(self, columns: dict[str, Column]) -> tuple[Instants, Instants, Mask]:
        """Event times, times of availability, and where both are good."""
        if "ts" not in columns:
            raise NotColumnwise
        happened = instants(columns["ts"], self._rules.zone, self._layout.time_unit)
        if happened.dated or self._layout.clock:
            raise NotColumnwise
        if "available_at" not in columns:
            return happened.ns, happened.ns + self._spec.delay_ns, happened.good
        known = instants(columns["available_at"], self._rules.zone, self._layout.available_unit)
        if known.dated:
            raise NotColumnwise
        return happened.ns, known.ns, happened.good & known.good

    def _spans(
        self, columns: dict[str, Column], num_rows: int
    ) -> tuple[NDArray[np.object_], Instants, Instants, Instants, Mask]:
        """Interval, start, end, and when each bar is known before any delay, where the last says so."""
        stamped = self._stamps(columns)
        intervals = np.full(num_rows, "", object)
        lengths_ns, known_after_ns = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
        factor = NS_PER_DAY if stamped.dated else 1
        begins = stamped.ns * factor
        for symbol, stated, places in self._series(columns, num_rows):
            clock = self._rules.clocks and self._rules.clocks.of(symbol, stated, stamped.dated)
            if not clock or not is_timed(stated):
                continue  # left to the row parser
            parts, known_after_ns[places] = clock.find(begins[places])
            said = zip(clock.intervals, clock.refusals, strict=True)
            named = np.array(["" if refusal else interval for interval, refusal in said], object)
            intervals[places], lengths_ns[places] = named[parts], clock.lengths_ns[parts]
        good = stamped.good & (intervals != "")
        at_end = self._rules.stamps_end(self._layout)
        if at_end:
            known_after_ns = lengths_ns
        if not stamped.dated:
            starts = stamped.ns - lengths_ns if at_end else stamped.ns
            return intervals, starts, starts + lengths_ns, starts + known_after_ns, good
        lengths, knowns = (np.maximum(ns // NS_PER_DAY, 1) for ns in (lengths_ns, known_after_ns))
        first = stamped.ns - lengths + 1 if at_end else stamped.ns
        starts = _days(first, good, self._rules.days.start)
        ends = _days(first + lengths - 1, good, self._rules.days.close)
        return intervals, starts, ends, _days(first + knowns - 1, good, self._rules.days.close), good

    def _stamps(self, columns: dict[str, Column]) -> Stamps:
        if "ts" not in columns or self._layout.clock:
            raise NotColumnwise
        return instants(columns["ts"], self._rules.zone, self._layout.time_unit)

    def _series(
        self, columns: dict[str, Column], num_rows: int
    ) -> Iterator[tuple[str, str, NDArray[np.intp]]]:
        """Symbol, stated interval, and the places of the rows of each series that can be read."""
        codes = np.zeros(num_rows, np.int64)
        symbols, labels = [self._parser.symbol], [self._rules.interval]
        if "symbol" in columns:
            found = texts(columns["symbol"])
            symbols, codes = (
                [*(word.strip() for word in found.words), ""],
                found.codes % (len(found.words) + 1),
            )
        if "interval" in columns:
            found = texts(columns["interval"])
            labels = [*map(self._label, found.words), self._rules.interval]
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
        except Refusal:
            return None

    def _symbols(self, columns: dict[str, Column], num_rows: int) -> tuple[NDArray[np.object_], Mask]:
        if "symbol" not in columns:
            return np.full(num_rows, self._parser.symbol, object), np.ones(num_rows, bool)
        column = texts(columns["symbol"])
        return column.values, column.where(_is_symbol)


def _days(days: Instants, good: Mask, instant: Callable[[date], int]) -> Instants:
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
    nothing = Floats(np.full(num_rows, np.nan), np.ones(num_rows, bool))
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


def _is_price(column: Floats) -> Mask:
    return ~column.null & (column.values >= MIN_PRICE) & (column.values <= MAX_PRICE)


def _is_size(column: Floats) -> Mask:
    in_bounds = (column.values >= MIN_SIZE) & (column.values <= MAX_SIZE)
    return ~column.null & (in_bounds | (column.values == 0.0))


def _is_symbol(text: str) -> bool:
    try:
        return read_symbol(text) == text
    except Refusal:
        return False
