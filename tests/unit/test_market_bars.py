"""The rules of bars at their edges: windows, nights, mids, fills and order."""

from math import exp

import pytest

from htfi.domain.events import Bar, Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState

S = 10**9
MINUTE = 60 * S
OPEN = 1_381_152_600 * S // MINUTE * MINUTE


def trade(at_ns: int, price: float, size: float = 100.0, symbol: str = "AA") -> Trade:
    return Trade(at_ns, at_ns, "test", 1, symbol, price, size, "N")


def quote(at_ns: int, bid: float, ask: float, symbol: str = "AA") -> Quote:
    return Quote(at_ns, at_ns, "test", 1, symbol, bid, 100.0, ask, 100.0, "N")


def test_bar_holds_its_start_and_not_its_end() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(trade(OPEN, 10.0))
    market.observe(trade(OPEN + MINUTE - 1, 11.0))
    (bar,) = market.advance(OPEN + MINUTE)
    market.observe(trade(OPEN + MINUTE, 12.0))
    assert (bar.start_ns, bar.end_ns, bar.open, bar.close, bar.volume) == (
        OPEN,
        OPEN + MINUTE,
        10.0,
        11.0,
        200.0,
    )
    assert (bar.available_at_ns, bar.interval, bar.source, bar.row) == (OPEN + MINUTE, "60s", "market", 1)
    assert market.advance(OPEN + 2 * MINUTE)[0].open == 12.0


def test_advance_before_the_end_closes_nothing() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(trade(OPEN, 10.0))
    assert market.advance(OPEN + MINUTE - 1) == []


def test_windows_without_a_price_make_no_bars() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(trade(OPEN, 10.0))
    assert len(market.advance(OPEN + 100 * MINUTE)) == 1
    assert market.advance(OPEN + 200 * MINUTE) == []


def test_bars_come_by_end_then_symbol_then_clock() -> None:
    market = MarketState(MarketConfig(bar="60s,30s"))
    for symbol in ("CC", "AA", "BB"):
        market.observe(trade(OPEN + 40 * S, 10.0, symbol=symbol))
    market.observe(trade(OPEN + 41 * S, 10.0, symbol="AA"))
    bars = market.advance(OPEN + 10 * MINUTE)
    assert [(bar.symbol, bar.interval) for bar in bars] == [
        (symbol, interval) for symbol in ("AA", "BB", "CC") for interval in ("60s", "30s")
    ]


def test_observe_closes_what_nobody_advanced() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(trade(OPEN, 10.0))
    (bar,) = market.observe(trade(OPEN + MINUTE, 11.0))
    assert bar.close == 10.0


def test_symbol_with_quotes_only_gets_bars_of_mids() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    for second, middle in ((0, 10.0), (10, 10.5), (20, 9.5), (30, 10.2)):
        market.observe(quote(OPEN + second * S, middle - 0.01, middle + 0.01))
    (bar,) = market.advance(OPEN + MINUTE)
    assert (bar.open, bar.high, bar.low, bar.close, bar.volume) == pytest.approx((10.0, 10.5, 9.5, 10.2, 0.0))


def test_first_trade_clears_the_bar_of_mids_and_ends_them_for_good() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(quote(OPEN, 8.0, 8.1))
    market.observe(trade(OPEN + S, 10.0))
    market.observe(quote(OPEN + 2 * S, 12.0, 12.1))
    (bar,) = market.advance(OPEN + MINUTE)
    assert (bar.open, bar.high, bar.low, bar.close) == (10.0, 10.0, 10.0, 10.0)
    market.observe(quote(OPEN + 61 * S, 12.0, 12.1))
    assert market.advance(OPEN + 2 * MINUTE) == []


def test_volume_bar_ends_with_the_trade_that_fills_it_whole() -> None:
    market = MarketState(MarketConfig(bar="volume:1000"))
    assert list(market.observe(trade(OPEN, 10.0, 900.0))) == []
    (bar,) = market.observe(trade(OPEN + S, 11.0, 5000.0))
    assert (bar.start_ns, bar.end_ns, bar.available_at_ns, bar.volume) == (OPEN, OPEN + S, OPEN + S, 5900.0)
    (bar,) = market.observe(trade(OPEN + 2 * S, 12.0, 1000.0))
    assert (bar.open, bar.start_ns) == (12.0, OPEN + 2 * S)


def test_dollar_bar_counts_money() -> None:
    market = MarketState(MarketConfig(bar="dollar:2500"))
    assert list(market.observe(trade(OPEN, 10.0, 200.0))) == []
    (bar,) = market.observe(trade(OPEN, 10.0, 50.0))
    assert bar.interval == "dollar:2500"


def test_night_ends_a_volume_bar_short() -> None:
    market = MarketState(MarketConfig(bar="volume:1000"))
    market.observe(trade(OPEN, 10.0))
    (bar,) = market.observe(trade(OPEN + 5 * 3600 * S, 20.0))
    assert (bar.close, bar.end_ns, bar.available_at_ns) == (10.0, OPEN, OPEN + 5 * 3600 * S)


def test_night_is_no_return_of_samples() -> None:
    market = MarketState(MarketConfig(scales=("1s",), base_scale="1s"))
    for k in range(20):
        market.observe(trade(OPEN + k * S, 10.0))
    for k in range(20):
        market.observe(trade(OPEN + 17 * 3600 * S + k * S, 20.0))
    assert market.features("AA", "60s")["rv_1s"] == 0.0


def fed(start_ns: int, length_ns: int, opened: float, closed: float, interval: str) -> Bar:
    end_ns = start_ns + length_ns
    high, low = max(opened, closed), min(opened, closed)
    return Bar(end_ns, end_ns, "test", 1, "AA", interval, start_ns, end_ns, opened, high, low, closed, 100.0)


@pytest.mark.parametrize(("interval", "expected"), [("60s", 0.1), ("1d", 1.1)])
def test_return_spans_a_night_of_daily_bars_alone(interval: str, expected: float) -> None:
    market = MarketState(MarketConfig())
    market.close_bars([fed(OPEN, MINUTE, 1.0, 1.0, interval)])
    market.close_bars([fed(OPEN + 17 * 3600 * S, MINUTE, exp(1.0), exp(1.1), interval)])
    assert market.features("AA", interval)["return_last"] == pytest.approx(expected)


def test_clock_that_steps_back_counts_as_now() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    market.observe(trade(OPEN + MINUTE, 10.0))
    market.observe(trade(OPEN, 11.0))
    (bar,) = market.advance(OPEN + 2 * MINUTE)
    assert (bar.start_ns, bar.close) == (OPEN + MINUTE, 11.0)
