"""The NBBO by hand: withdrawals, locks, crosses, stubs and sessions."""

import math

import pytest

from htfi.domain.events import Bar, Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState

S = 10**9
OPEN = 1_381_152_600 * S


class Tape:
    """Quotes of one symbol, seconds after the open."""

    def __init__(self, **settings) -> None:
        self.market = MarketState(MarketConfig(**settings))

    def quote(
        self, at_s: float, venue: str, bid=None, bid_size=None, ask=None, ask_size=None
    ) -> dict[str, float]:
        at_ns = OPEN + round(at_s * S)
        self.market.advance(at_ns)
        self.market.observe(Quote(at_ns, at_ns, "test", 1, "AA", bid, bid_size, ask, ask_size, venue))
        return self.market.features("AA", "60s")

    def trade(self, at_s: float, price: float) -> dict[str, float]:
        at_ns = OPEN + round(at_s * S)
        self.market.observe(Trade(at_ns, at_ns, "test", 1, "AA", price, 100.0, "N"))
        return self.market.features("AA", "60s")


def bps(spread: float, mid: float) -> float:
    return pytest.approx(1e4 * spread / mid)


def test_nbbo_joins_one_sided_quotes_of_different_venues() -> None:
    tape = Tape()
    assert "spread_bps" not in tape.quote(0, "N", bid=9.99, bid_size=100.0)
    assert tape.quote(1, "Q", ask=10.01, ask_size=100.0)["spread_bps"] == bps(0.02, 10.0)


def test_size_zero_withdraws_a_side_and_the_next_best_stands() -> None:
    tape = Tape()
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    tape.quote(0, "Q", 9.97, 100.0, 10.03, 100.0)
    assert tape.quote(1, "N", bid=9.99, bid_size=0.0)["spread_bps"] == bps(0.04, 9.99)
    tape.quote(2, "Q", bid=9.97, bid_size=0.0)
    assert "spread_bps" not in tape.market.features("AA", "60s")


def test_size_at_the_best_price_is_summed_over_venues() -> None:
    tape = Tape()
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    gap = tape.quote(1, "Q", 9.99, 200.0, 10.02, 500.0)["microprice_gap_bps"]
    assert gap == pytest.approx(1e4 * (300 / 400 - 0.5) * 0.02 / 10.0)


def test_quote_without_sizes_weighs_both_sides_alike() -> None:
    features = Tape().quote(0, "N", bid=9.99, ask=10.01)
    assert features["microprice_gap_bps"] == 0.0
    assert features["spread_bps"] == bps(0.02, 10.0)


def test_locked_market_has_a_spread_of_zero() -> None:
    tape = Tape()
    tape.quote(0, "N", bid=10.0, bid_size=100.0)
    assert tape.quote(0.5, "Q", ask=10.0, ask_size=100.0)["spread_bps"] == 0.0


def test_fresh_cross_has_no_spread_and_holds_the_mid() -> None:
    tape = Tape(scales=("1s",), base_scale="1s")
    for second in range(12):
        tape.quote(second, "N", 9.99, 100.0, 10.01, 100.0)
    crossed = tape.quote(12.1, "Q", bid=12.0, bid_size=100.0)  # N's ask is 1.1 s old at most: it goes
    assert "spread_bps" not in crossed
    for second in range(13, 20):
        features = tape.quote(second, "N", 9.99, 100.0, 10.01, 100.0)
    assert features["rv_1s"] == 0.0


def test_old_quote_that_crosses_a_newer_one_is_withdrawn_until_its_venue_speaks_again() -> None:
    tape = Tape()
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    tape.quote(0, "Q", 9.98, 100.0, 10.02, 100.0)
    tape.quote(5, "Q", 10.03, 100.0, 10.05, 100.0)  # the market has moved; N's ask of 10.01 is stale
    assert tape.market.features("AA", "60s")["spread_bps"] == bps(0.02, 10.04)
    assert tape.quote(6, "N", 10.03, 100.0, 10.04, 100.0)["spread_bps"] == bps(0.01, 10.035)


def test_two_fresh_quotes_that_cross_are_both_kept_and_speak_again_when_one_moves() -> None:
    tape = Tape()
    tape.quote(0.0, "N", 9.99, 100.0, 10.01, 100.0)
    assert "spread_bps" not in tape.quote(0.2, "Q", 10.02, 100.0, 10.04, 100.0)
    assert tape.quote(0.3, "N", 10.01, 100.0, 10.03, 100.0)["spread_bps"] == bps(0.01, 10.025)


def test_stub_quotes_are_no_price() -> None:
    tape = Tape()
    assert "spread_bps" not in tape.quote(0, "N", 0.01, 100.0, 199_999.0, 100.0)
    assert tape.market.advance(OPEN + 120 * S) == []


def test_night_ends_every_quote() -> None:
    tape = Tape()
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    assert "spread_bps" not in tape.quote(5 * 3600, "Q", bid=9.98, bid_size=100.0)


def test_venues_past_the_cap_share_one_place() -> None:
    tape = Tape(max_venues=3)
    for venue in ("A", "B", "C", "D"):
        tape.quote(0, venue, 9.99, 100.0, 10.01, 300.0)
    assert tape.market.features("AA", "60s")["microprice_gap_bps"] == pytest.approx(
        1e4 * (0.25 - 0.5) * 0.02 / 10.0
    )
    assert "spread_bps" not in [tape.quote(1, venue, bid=9.99, bid_size=0.0) for venue in ("A", "B", "D")][-1]


def test_hundreds_of_venues_are_summed_where_the_cap_allows() -> None:
    tape = Tape(max_venues=500)
    for venue in range(300):
        tape.quote(0, str(venue), 9.99, 1.0, 10.01, 100.0 if venue == 0 else 0.0)
    gap = 1e4 * (300 / 400 - 0.5) * 0.02 / 10.0
    assert tape.market.features("AA", "60s")["microprice_gap_bps"] == pytest.approx(gap)


def test_order_flow_halves_with_each_half_life() -> None:
    tape = Tape(ofi_half_life="10s")
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    first = tape.quote(0, "N", bid=9.99, bid_size=300.0)["ofi"]
    tape.market.advance(OPEN + 20 * S)
    assert tape.market.features("AA", "60s")["ofi"] == pytest.approx(first / 4)
    assert first > 0


def test_trades_stand_in_when_the_mid_is_stale() -> None:
    tape = Tape(scales=("1s",), base_scale="1s")
    tape.quote(0, "N", 9.99, 100.0, 10.01, 100.0)
    for second in range(400, 420):
        features = tape.trade(second, 50.0 + (second % 2))
    assert features["rv_1s"] == pytest.approx(math.log(51 / 50) ** 2 * 18)


def test_quote_age_counts_from_the_last_quote() -> None:
    tape = Tape()

    def ages_ns(at_ns: int) -> list[int]:
        bars = [
            Bar(at_ns, at_ns, "p", 1, symbol, "60s", at_ns, at_ns, 1.0, 1.0, 1.0, 1.0)
            for symbol in ("AA", "unknown")
        ]
        return tape.market.read(bars, at_ns).quote_age_ns.tolist()

    tape.trade(0, 10.0)
    assert ages_ns(OPEN) == [-1, -1]
    tape.quote(1, "N", 9.99, 100.0, 10.01, 100.0)
    assert ages_ns(OPEN + 3 * S) == [2 * S, -1]
