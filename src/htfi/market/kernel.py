"""Per-symbol market state, one event at a time: the one core of event-by-event and batch. market.state drives it."""

from array import array
from collections.abc import Sequence
from typing import Any

from htfi.domain.decision import Regime
from htfi.domain.events import Bar, Quote, Trade
from htfi.domain.time import parse_duration
from htfi.market.bars import SOURCE, OpenBar
from htfi.market.book import Book
from htfi.market.config import CROSS_PATIENCE, MarketConfig
from htfi.market.regime import LEVELS
from htfi.market.samples import Samples
from htfi.market.series import FEATURES, Series, SeriesTable

COMPILED = not __file__.endswith(".py")
_TRADE, _BID, _ASK, _QUOTE = range(4)
TRADE_ROW, BID_ROW, ASK_ROW, QUOTE_ROW = (
    _TRADE,
    _BID,
    _ASK,
    _QUOTE,
)  # kernel.pxd hides its C names from Python
_NEVER_NS = 2**62
_NO_REFERENCE, _TRADES, _MIDS = range(3)
_NAN = float("nan")
_MAX_SIZE = 1e15
MIN_RETURNS = 10  # fewer make no realised measure
_SMALLEST, _LARGEST = 1e-12, 1e18  # a price outside is not a price
_NORMAL = LEVELS.index(Regime.NORMAL)
_QUOTE_FEATURES = ("spread_bps", "microprice_gap_bps", "ofi", "ofi_bar", "ofi_open_bar")
_FIRST_TICK_FEATURE = len(FEATURES)
_FIRST_REALISED_FEATURE = len(FEATURES) + len(_QUOTE_FEATURES)


class Symbol:
    """Everything known of one symbol. `reference` is the price that is sampled: the mid, or the last trade."""

    def __init__(self, name: str, config: MarketConfig) -> None:
        self.name = name
        steps_ns = [parse_duration(text) for text in config.scales]
        self.samples = Samples(steps_ns, config.scales.index(config.base_scale), config.window)
        self.book = Book(
            parse_duration(CROSS_PATIENCE),
            config.max_spread_fraction,
            parse_duration(config.ofi_half_life),
        )
        self.bars = [OpenBar(name, clock, rank) for rank, clock in enumerate(config.clocks)]
        self.last_ns = -_NEVER_NS  # the last event
        self.quote_ns = -_NEVER_NS
        self.trade_price = 0.0
        self.reference = 0.0
        self.reference_kind = _NO_REFERENCE

    def refer_to(self, now_ns: int, kind: int, price: float) -> None:
        """Set the price to sample; a change from trades to mids or back is not a return."""
        if kind != self.reference_kind:
            self.reference_kind = kind
            self.samples.begin(now_ns)
        self.reference = price

    def sample(self, now_ns: int) -> None:
        """Take the grid points up to `now_ns`, before anything at that instant is applied."""
        if now_ns >= self.samples.due_ns and self.reference_kind != _NO_REFERENCE:
            self.samples.catch_up(now_ns, self.reference)

    def state(self, rings: Any) -> list[Any]:
        return [
            [self.last_ns, self.quote_ns, self.trade_price, self.reference, self.reference_kind],
            self.book.state(),
            self.samples.state(rings),
            [bar.state() for bar in self.bars],
        ]

    def restore(self, state: list[Any], rings: Any) -> None:
        self.last_ns, self.quote_ns, self.trade_price, self.reference, self.reference_kind = state[0]
        self.book.restore(state[1])
        self.samples.restore(state[2], rings)
        for bar, saved in zip(self.bars, state[3], strict=True):
            bar.restore(saved)


class Kernel:
    """All symbols and the clocks of their bars. Time never goes back: an event from before counts as now."""

    def __init__(self, config: MarketConfig) -> None:
        self.config = config
        self.session_gap_ns = parse_duration(config.session_gap)
        self.quote_stale_ns = parse_duration(config.quote_stale)
        self.max_venues = config.max_venues
        self.symbols: list[Symbol] = []
        self.index: dict[str, Symbol] = {}
        self.venues: dict[str, int] = {}
        self.open_bars: list[list[OpenBar]] = [[] for _ in config.clocks]
        self.end_ns = [_NEVER_NS for _ in config.clocks]
        self.due_ns = _NEVER_NS  # the earliest end of an open time bar
        self.now_ns = -_NEVER_NS
        self.num_bars = 0
        self.num_scales = len(config.scales)
        realised = (name for text in config.scales for name in (f"rv_{text}", f"bv_{text}"))
        # In the order in which a decision states them: those of the bars, then those of the ticks.
        self.feature_names = (*FEATURES, *_QUOTE_FEATURES, *realised, "jump_z")
        self._row = array("d", [_NAN]) * len(self.feature_names)  # the features that `features` reads

    def symbol(self, name: str) -> Symbol:
        """The symbol's state, made at first sight."""
        found = self.index.get(name)
        if found is None:
            found = Symbol(name, self.config)
            self.index[name] = found
            self.symbols.append(found)
        return found

    def venue(self, name: str) -> int:
        """The venue's code. Past `max_venues`, all further venues share the last one."""
        code = self.venues.get(name)
        if code is None:
            code = min(len(self.venues), self.max_venues - 1)
            if len(self.venues) < self.max_venues:
                self.venues[name] = code
        return code

    def observe(self, event: Trade | Quote) -> list[Bar]:
        """Take one event in. The bars that it closes: usually none."""
        symbol = self.symbol(event.symbol)
        if isinstance(event, Trade):
            return self.apply(symbol, event.available_at_ns, _TRADE, 0, event.price, event.size, _NAN, _NAN)
        bid, ask, bid_size, ask_size = event.bid, event.ask, event.bid_size, event.ask_size
        return self.apply(
            symbol,
            event.available_at_ns,
            _QUOTE,
            self.venue(event.venue),
            _NAN if bid is None else bid,
            _NAN if bid_size is None else bid_size,
            _NAN if ask is None else ask,
            _NAN if ask_size is None else ask_size,
        )

    def run(
        self,
        symbols: list[Symbol],
        venues: Sequence[int],
        ts: Sequence[int],
        kinds: Sequence[int],
        symbol_codes: Sequence[int],
        venue_codes: Sequence[int],
        prices: Sequence[float],
        sizes: Sequence[float],
        ask_prices: Sequence[float],
        ask_sizes: Sequence[float],
    ) -> list[Bar]:
        """Take in columns of events, in order. Shapes: columns [n]; `symbols`, `venues` translate the codes."""
        closed: list[Bar] = []
        has_asks = len(ask_prices) > 0
        for row in range(len(ts)):
            ask, ask_size = _NAN, _NAN
            if has_asks:
                ask, ask_size = ask_prices[row], ask_sizes[row]
            symbol = symbols[symbol_codes[row]]
            venue = venues[venue_codes[row]]
            bars = self.apply(symbol, ts[row], kinds[row], venue, prices[row], sizes[row], ask, ask_size)
            if bars:
                closed += bars
        return closed

    def apply(
        self,
        symbol: Symbol,
        at_ns: int,
        kind: int,
        venue: int,
        price: float,
        size: float,
        ask: float,
        ask_size: float,
    ) -> list[Bar]:
        """One event of any kind. `price` and `size` are the trade's, the bid's, or, in an ASK_ROW, the ask's."""
        if at_ns > self.now_ns:
            self.now_ns = at_ns
        now_ns = self.now_ns
        closed = self.close_due(now_ns) if now_ns >= self.due_ns else []
        if now_ns - symbol.last_ns > self.session_gap_ns:
            closed = closed + self._begin_session(symbol, now_ns)
        else:
            symbol.sample(now_ns)
        symbol.last_ns = now_ns
        if kind == _TRADE:
            if price >= _SMALLEST and price <= _LARGEST:
                filled = self._trade(symbol, now_ns, price, size)
                if filled:
                    closed = closed + filled
        elif kind == _BID:
            self._quote(symbol, now_ns, venue, price == price, False, price, size, _NAN, _NAN)
        elif kind == _ASK:
            self._quote(symbol, now_ns, venue, False, price == price, _NAN, _NAN, price, size)
        else:
            self._quote(symbol, now_ns, venue, price == price, ask == ask, price, size, ask, ask_size)
        return closed

    def _trade(self, symbol: Symbol, now_ns: int, price: float, size: float) -> list[Bar]:
        size = min(max(size, 0.0), _MAX_SIZE) if size == size else 0.0
        symbol.trade_price = price
        if symbol.reference_kind != _MIDS or now_ns - symbol.book.mid_ns > self.quote_stale_ns:
            symbol.refer_to(now_ns, _TRADES, price)
        closed: list[Bar] = []
        for bar in symbol.bars:
            was_open = bar.is_open
            is_full = bar.trade(now_ns, price, size)
            if not was_open and bar.is_timed:
                self._watch(bar)
            if is_full:
                closed.append(self._close(bar, now_ns))
        return closed

    def _quote(
        self,
        symbol: Symbol,
        now_ns: int,
        venue: int,
        has_bid: bool,
        has_ask: bool,
        bid: float,
        bid_size: float,
        ask: float,
        ask_size: float,
    ) -> None:
        book = symbol.book
        symbol.quote_ns = now_ns
        book.quote(now_ns, venue, has_bid, has_ask, bid, bid_size, ask, ask_size)
        if not book.is_sound:
            return
        symbol.refer_to(now_ns, _MIDS, book.mid)
        for bar in symbol.bars:
            bar.add_flow(book.flow, book.depth)
            if bar.is_timed and not bar.has_trades:
                was_open = bar.is_open
                bar.middle(now_ns, book.mid)
                if not was_open:
                    self._watch(bar)

    def _begin_session(self, symbol: Symbol, now_ns: int) -> list[Bar]:
        """After a gap: no quote stands, no return spans it, and bars that count trades end short at its start."""
        symbol.book.clear()
        symbol.reference_kind = _NO_REFERENCE
        closed: list[Bar] = []
        for bar in symbol.bars:
            if not bar.is_timed and bar.is_open:
                closed.append(self._close(bar, now_ns))
            bar.drop_flow()
        return closed

    def _watch(self, bar: OpenBar) -> None:
        """A time bar has opened: its clock's window ends with it. All open bars of a clock share one window."""
        end_ns = bar.start_ns + bar.step_ns
        self.open_bars[bar.rank].append(bar)
        self.end_ns[bar.rank] = end_ns
        if end_ns < self.due_ns:
            self.due_ns = end_ns

    def close_due(self, to_ns: int) -> list[Bar]:
        """Close the time bars that end by `to_ns`, by end, symbol and clock."""
        if to_ns > self.now_ns:
            self.now_ns = to_ns
        if to_ns < self.due_ns:
            return []
        due: list[tuple[int, str, int, OpenBar]] = []
        self.due_ns = _NEVER_NS
        for rank, end_ns in enumerate(self.end_ns):
            if end_ns <= to_ns:
                due += [(end_ns, bar.symbol, rank, bar) for bar in self.open_bars[rank]]
                self.open_bars[rank] = []
                self.end_ns[rank] = _NEVER_NS
            elif end_ns < self.due_ns:
                self.due_ns = end_ns
        due.sort(key=_order)
        closed: list[Bar] = []
        for end_ns, name, _, bar in due:
            symbol = self.index[name]
            symbol.sample(end_ns)
            closed.append(self._close(bar, end_ns))
        return closed

    def features(self, series: Series | None, name: str, rank: int) -> dict[str, float]:
        """The features of a series and of its symbol's ticks that are defined and finite, by name.

        `rank`: the clock whose order flow is asked, or −1.
        """
        for place in range(len(self._row)):
            self._row[place] = _NAN
        self._fill(series, self.index.get(name), rank, self._row, 0)
        found: dict[str, float] = {}
        for place in range(len(self._row)):
            value = self._row[place]
            if value - value == 0.0:
                found[self.feature_names[place]] = value
        return found

    def read_rows(
        self,
        table: SeriesTable,
        bars: Sequence[Bar],
        ranks: dict[str, int],
        at_ns: int,
        width: int,
        features: Any,
        levels: Any,
        quote_age_ns: Any,
        quote_mid: Any,
    ) -> None:
        """What is known at an instant of the series of n bars, each a row of the arrays.

        Shapes: features [n, `width`], flat, filled with NaN, of which `feature_names` come first; levels, quote_age_ns
        and quote_mid [n]. `ranks` are those of the clocks by interval. `quote_age_ns` is −1 where the symbol was never
        quoted, `quote_mid` NaN where no sound quotes came since the bar began or the bar is made of them.
        """
        for row, bar in enumerate(bars):
            name, interval = bar.symbol, bar.interval
            series = table.find(name, interval)
            symbol = self.index.get(name)
            self._fill(series, symbol, ranks.get(interval, -1), features, row * width)
            for place in range(row * width, row * width + len(self._row)):
                if features[place] - features[place] != 0.0:  # NaN or infinite: not defined
                    features[place] = _NAN
            level = self._level(symbol, -1 if series is None else series.level())
            levels[row] = _NORMAL if level < 0 else level
            quote_age_ns[row], quote_mid[row] = -1, _NAN
            if symbol is None:
                continue
            if symbol.quote_ns != -_NEVER_NS:
                quote_age_ns[row] = max(at_ns - symbol.quote_ns, 0)
            is_of_mids = bar.volume <= 0.0 and bar.source == SOURCE
            if symbol.book.is_sound and not is_of_mids and symbol.book.mid_ns >= bar.start_ns:
                quote_mid[row] = symbol.book.mid

    def _fill(self, series: Series | None, symbol: Symbol | None, rank: int, values: Any, at: int) -> None:
        """Write the features that are defined from a place of `values` on."""
        if series is not None:
            series.fill(values, at)
        if symbol is None:
            return
        at += _FIRST_TICK_FEATURE
        if symbol.book.is_sound:
            values[at] = symbol.book.spread_bps()
            values[at + 1] = symbol.book.microprice_gap_bps()
            values[at + 2] = symbol.book.imbalance(self.now_ns)
        if rank >= 0:
            bar: OpenBar = symbol.bars[rank]
            if bar.has_closed_flow:
                values[at + 3] = bar.closed_flow
            if bar.num_flows > 0:
                values[at + 4] = bar.open_flow()
        at += _FIRST_REALISED_FEATURE - _FIRST_TICK_FEATURE
        samples = symbol.samples
        for scale in range(self.num_scales):
            if samples.count(scale) >= MIN_RETURNS:
                values[at + 2 * scale] = samples.realised(scale)
                values[at + 2 * scale + 1] = samples.bipower(scale)
        if samples.has_jump_test():
            values[at + 2 * self.num_scales] = samples.jump_z()

    def level(self, name: str, bar_level: int) -> int:
        """The worse level of the symbol's ticks and `bar_level`, −1 where there are no bars; −1 for neither."""
        return self._level(self.index.get(name), bar_level)

    def _level(self, symbol: Symbol | None, bar_level: int) -> int:
        if symbol is None or symbol.samples.detector.count() == 0:
            return bar_level
        return max(symbol.samples.detector.level, bar_level)

    def state(self, rings: Any) -> dict[str, Any]:
        """Plain values; the returns in the windows are appended to `rings`."""
        return {
            "clocks": [self.now_ns, self.num_bars],
            "names": [symbol.name for symbol in self.symbols],
            "venues": list(self.venues),
            "symbols": [symbol.state(rings) for symbol in self.symbols],
        }

    def restore(self, state: dict[str, Any], rings: Any) -> None:
        """The inverse of `state`, on a fresh kernel."""
        self.now_ns, self.num_bars = state["clocks"]
        for name in state["venues"]:
            self.venue(name)
        each = len(rings) // max(len(state["names"]), 1)
        for place, name in enumerate(state["names"]):
            symbol = self.symbol(name)
            symbol.restore(state["symbols"][place], rings[place * each : (place + 1) * each])
            for bar in symbol.bars:
                if bar.is_timed and bar.is_open:
                    self._watch(bar)

    def _close(self, bar: OpenBar, available_at_ns: int) -> Bar:
        self.num_bars += 1
        return bar.closing(available_at_ns, self.num_bars)


def _order(item: tuple[int, str, int, OpenBar]) -> tuple[int, str, int]:
    return item[:3]
