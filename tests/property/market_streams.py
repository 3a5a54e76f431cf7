"""Random tick streams, as events and as columns, and ways to run a market over them. The market's tests share it."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from htfi.domain.events import Bar, Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import ASK_ROW, BID_ROW, QUOTE_ROW, TRADE_ROW, TickBatch
from htfi.pipeline.run_state import encode_state

START_NS = 1_381_152_600 * 10**9 + 123_456_789
SYMBOLS = ("AA", "BB", "CC")
VENUES = ("N", "Q", "P", "Z", "K", "B")
CONFIG = MarketConfig(bar="60s,7s,volume:1000,dollar:50000", window=8, max_venues=5)

Row = tuple[int, int, int, int, float, float, float, float]

_waits_ns = st.sampled_from(
    [0, 0, 1, 10**6, 3 * 10**8, 10**9, 7 * 10**9, 61 * 10**9, 400 * 10**9, 5 * 3600 * 10**9]
)
_prices = st.one_of(
    st.integers(9_990, 10_010).map(lambda ticks: ticks / 100),
    st.sampled_from([0.0, -1.0, math.nan, 1e-9, 1.0, 1e9, 1e30, math.inf]),
)
_sizes = st.sampled_from([0.0, 1.0, 100.0, 100.0, 333.0, 1e6, 1e30, math.nan, -5.0])


@st.composite
def streams(draw: st.DrawFn, max_rows: int = 80) -> list[Row]:
    """Rows in order of time, with everything that can go wrong in a field."""
    kinds = st.sampled_from([TRADE_ROW, BID_ROW, ASK_ROW, QUOTE_ROW])
    places = st.tuples(
        _waits_ns, kinds, st.integers(0, 2), st.integers(0, 5), _prices, _sizes, _prices, _sizes
    )
    at_ns = START_NS
    rows: list[Row] = []
    for wait_ns, kind, symbol, venue, price, size, ask, ask_size in draw(st.lists(places, max_size=max_rows)):
        at_ns += wait_ns
        rows.append((at_ns, kind, symbol, venue, price, size, ask, ask_size))
    return rows


def walk(seed: int, num_rows: int, max_wait_ns: int = 4 * 10**8) -> list[Row]:
    """A lively market: prices that walk, quotes around them at every venue, now and then crossed."""
    rng = np.random.default_rng(seed)
    prices = [100.0, 50.0, 20.0]
    at_ns = START_NS
    rows: list[Row] = []
    for _ in range(num_rows):
        at_ns += int(rng.integers(0, max_wait_ns))
        symbol, venue = int(rng.integers(3)), int(rng.integers(6))
        prices[symbol] *= math.exp(2e-4 * rng.standard_normal())
        kind = int(rng.integers(4))
        price = round(
            prices[symbol] + 0.01 * (int(rng.integers(-1, 3)) if kind == ASK_ROW else -int(rng.integers(3))),
            2,
        )
        rows.append((at_ns, kind, symbol, venue, price, 100.0 * int(rng.integers(0, 9)), price + 0.02, 300.0))
    return rows


def to_event(row: Row) -> Trade | Quote:
    at_ns, kind, symbol, venue, price, size, ask, ask_size = row
    head = (at_ns, at_ns, "test", 1, SYMBOLS[symbol])
    bid, bid_size, ask_, ask_size_ = (
        None if math.isnan(value) else value for value in (price, size, ask, ask_size)
    )
    if kind == TRADE_ROW:
        return Trade(*head, price, size, VENUES[venue])
    if kind == BID_ROW:
        return Quote(*head, bid, bid_size, None, None, VENUES[venue])
    if kind == ASK_ROW:
        return Quote(*head, None, None, bid, bid_size, VENUES[venue])
    return Quote(*head, bid, bid_size, ask_, ask_size_, VENUES[venue])


def to_batch(rows: Sequence[Row]) -> TickBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 8
    types = (np.int64, np.uint8, np.int32, np.int32, np.float64, np.float64, np.float64, np.float64)
    return TickBatch(
        SYMBOLS, VENUES, *(np.array(column, kind) for column, kind in zip(columns, types, strict=True))
    )


def run_events(market, rows: Sequence[Row]) -> list[Bar]:
    """Event by event, as the loop does it. The bars that closed."""
    bars: list[Bar] = []
    for row in rows:
        event = to_event(row)
        for closed in (market.advance(event.available_at_ns), market.observe(event)):
            for bar in closed:
                market.close_bars([bar])
                bars.append(bar)
    return bars


def acquaint(market) -> None:
    """Make symbols and venues known in the order that a batch names them, so that codes agree."""
    market.observe_batch(to_batch([]))


def snapshot(market) -> bytes:
    """Everything the market knows, to the bit."""
    return encode_state(market.state())
