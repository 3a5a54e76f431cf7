"""Features hold finite numbers whatever comes in; settings and batches say what is wrong with them."""

import math

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.domain.events import Bar, MacroAnnouncement, Quote, Trade
from htfi.market.config import MarketConfig, is_intraday, parse_clock
from htfi.market.state import ASK_ROW, BID_ROW, QUOTE_ROW, TRADE_ROW, MarketState, TickBatch, macro_feature

S = 10**9
OPEN = 1_381_152_600 * S


def test_extremes_leave_every_feature_finite() -> None:
    market = MarketState(MarketConfig(bar="60s,volume:10"))
    prices = [1e-12, 1e18, 100.0, math.nan, math.inf, -1.0, 0.0, 5e-324]
    sizes = [0.0, 1e300, math.nan, math.inf, -1.0, 1.0]
    rng = np.random.default_rng(1)
    for k in range(3_000):
        at_ns = OPEN + k * S
        price, size, other = (float(rng.choice(x)) for x in (prices, sizes, prices))
        market.close_bars(market.advance(at_ns))
        event = Trade(at_ns, at_ns, "test", 1, "AA", price, size, "N")
        if k % 2:
            event = Quote(at_ns, at_ns, "test", 1, "AA", price, size, other, size, "NQ"[k % 3 % 2])
        market.close_bars(market.observe(event))
        for interval in ("60s", "volume:10"):
            assert all(math.isfinite(value) for value in market.features("AA", interval).values())


def test_flat_bars_have_features_and_no_volume_ratio() -> None:
    market = MarketState(MarketConfig())
    for k in range(30):
        market.close_bars([Bar(k * S, k * S, "test", k + 1, "X", "1s", k * S, k * S + S, 5.0, 5.0, 5.0, 5.0)])
    features = market.features("X", "1s")
    assert features["range_vol"] == features["ewma_vol"] == features["return_last"] == 0.0
    assert features["vol_ratio"] == 1.0
    assert "volume_ratio" not in features


def test_unknown_series_has_macro_values_alone() -> None:
    market = MarketState(MarketConfig())
    market.observe(MacroAnnouncement(OPEN, OPEN, "test", 1, "US.CPI-YoY", 3.2))
    market.observe(MacroAnnouncement(OPEN, OPEN, "test", 2, "US.CPI-YoY", 3.1))
    market.observe(MacroAnnouncement(OPEN, OPEN, "test", 3, "broken", math.nan))
    assert market.features("AA", "60s") == {"macro_us_cpi_yoy": 3.1}
    assert macro_feature("Fed funds, target") == "macro_fed_funds_target"


def test_first_daily_bar_has_a_range_and_no_return() -> None:
    market = MarketState(MarketConfig())
    market.close_bars([Bar(S, S, "test", 1, "SPX", "1d", 0, S, 10.0, 11.0, 9.0, 10.5, 7.0)])
    assert set(market.features("SPX", "1d")) == {"range_last", "range_vol"}


def test_order_flow_of_the_closed_bar_and_of_the_open_one_are_apart() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    start = OPEN // (60 * S) * 60 * S
    for second, size in ((0, 100.0), (1, 300.0), (61, 200.0)):
        at_ns = start + second * S
        market.advance(at_ns)
        market.observe(Quote(at_ns, at_ns, "test", 1, "AA", 9.99, size, 10.01, 100.0, "N"))
    features = market.features("AA", "60s")
    assert features["ofi_bar"] == pytest.approx(200.0 / 150.0)
    assert features["ofi_open_bar"] == pytest.approx(-100.0 / 150.0)


def test_thousands_of_symbols_are_kept_apart() -> None:
    market = MarketState(MarketConfig(bar="60s"))
    for k in range(3_000):
        market.observe(Trade(OPEN, OPEN, "test", 1, f"S{k}", 1.0 + k, 100.0))
    bars = market.advance(OPEN + 60 * S)
    assert {(bar.symbol, bar.close) for bar in bars} == {(f"S{k}", 1.0 + k) for k in range(3_000)}


def test_state_of_other_settings_is_refused() -> None:
    state = MarketState(MarketConfig(bar="60s")).state()
    with pytest.raises(IntegrityError, match="other bars or scales"):
        MarketState(MarketConfig(bar="30s")).restore(state)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bar": "volume:"}, "volume:5000"),
        ({"bar": "dollar:0"}, "above 0"),
        ({"bar": "60s,60s"}, "twice"),
        ({"bar": "soon"}, "not a duration"),
        ({"scales": ()}, "scales"),
        ({"scales": ("1s", "1000ms")}, "scales"),
        ({"base_scale": "2s"}, "base_scale"),
        ({"window": 3}, "window"),
        ({"max_spread_fraction": 0.0}, "max_spread_fraction"),
        ({"max_venues": 0}, "max_venues"),
        ({"session_gap": "0s"}, "not a duration"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MarketConfig(**settings)


def test_clocks_know_their_nights() -> None:
    assert [is_intraday(text) for text in ("60s", "volume:10", "1d", "2d", "weekly")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert parse_clock("dollar:1000000").size == 1e6


def batch(**changes: object) -> TickBatch:
    columns: dict[str, object] = {
        "symbols": ("AA",),
        "venues": ("N",),
        "available_at_ns": np.array([OPEN, OPEN]),
        "kind": np.array([BID_ROW, ASK_ROW], np.uint8),
        "symbol": np.zeros(2, np.int32),
        "venue": np.zeros(2, np.int32),
        "price": np.array([9.99, 10.01]),
        "size": np.array([100.0, 100.0]),
    }
    return TickBatch(**{**columns, **changes})


def test_batch_of_one_sided_quotes_makes_a_market() -> None:
    market = MarketState(MarketConfig())
    assert market.observe_batch(batch()) == []
    assert market.features("AA", "60s")["spread_bps"] == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"price": np.zeros(1)}, ShapeMismatch),
        ({"symbol": np.array([0, 1], np.int32)}, InvalidInput),
        ({"venue": np.array([0, -1], np.int32)}, InvalidInput),
        ({"kind": np.array([TRADE_ROW, 9], np.uint8)}, InvalidInput),
        ({"kind": np.array([TRADE_ROW, QUOTE_ROW], np.uint8)}, ShapeMismatch),
        ({"ask_price": np.zeros(1), "ask_size": np.zeros(1)}, ShapeMismatch),
    ],
)
def test_malformed_batches_are_refused(changes: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        batch(**changes)
