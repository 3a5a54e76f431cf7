"""Which bars hold an event, and what `htfi eval calendar` makes of scores with and without a calendar."""

import numpy as np

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import parse_timestamp
from htfi_eval.eval.calendar.command import judge
from htfi_eval.eval.calendar.walks import NextBarScores
from htfi_eval.eval.price_grid import Prices
from htfi_eval.eval.scheduled_events import holds_event, next_bars_ns, own_currencies, recognised_share

HOUR = 3_600 * 10**9


def _event(time: str, currency: str = "USD", impact: str = "high", **more: object) -> ScheduledEvent:
    fields = {"kind": "us_cpi", "name": "CPI", "impact": impact} | more
    return ScheduledEvent(time_ns=parse_timestamp(time), currency=currency, **fields)


def _prices(ends: list[str], symbols: tuple[str, ...], interval: str, close: object = None) -> Prices:
    ends_ns = np.array([parse_timestamp(end) for end in ends], np.int64)
    values = np.ones((len(ends), len(symbols))) if close is None else np.array(close, np.float64)
    return Prices("test", symbols, interval, ends_ns, ends_ns, *(values,) * 4)


HOURLY = _prices(
    ["2015-03-06T12:00Z", "2015-03-06T13:00Z", "2015-03-06T14:00Z", "2015-03-06T15:00Z"],
    ("EURUSD", "EURJPY"),
    "1h",
)


def test_the_bar_that_holds_a_release_is_forecast_at_the_close_before():
    holds = holds_event(HOURLY, [_event("2015-03-06T13:30Z")], lambda event: event.impact == "high")
    assert holds.tolist() == [[False, False], [True, False], [False, False], [False, False]]


def test_a_release_on_the_hour_is_in_the_bar_that_it_begins():
    holds = holds_event(HOURLY, [_event("2015-03-06T13:00Z", "JPY")], lambda _: True)
    assert holds[:, 1].tolist() == [False, True, False, False]
    untimed = [_event("2015-03-06T13:00Z", "JPY", is_exact=False)]
    assert not holds_event(HOURLY, untimed, lambda _: True).any()


def test_after_a_missing_bar_the_next_one_counts():
    prices = _prices(
        ["2015-03-06T12:00Z", "2015-03-06T13:00Z", "2015-03-06T14:00Z"],
        ("EURUSD",),
        "1h",
        [[1.0], [np.nan], [1.0]],
    )
    starts, ends = next_bars_ns(prices)
    assert starts[0, 0] == prices.ends_ns[2] - HOUR
    assert ends[0, 0] == prices.ends_ns[2]
    assert ends[2, 0] == 0


def test_what_comes_over_a_weekend_is_in_mondays_bar():
    prices = _prices(["2015-03-06T21:00Z", "2015-03-09T20:00Z"], ("AAPL",), "1d")
    events = [_event("2015-03-07T10:00Z", "", symbol="AAPL"), _event("2015-03-07T10:00Z", "", symbol="MSFT")]
    assert holds_event(prices, events[:1], lambda _: True).tolist() == [[True], [False]]
    assert not holds_event(prices, events[1:], lambda _: True).any()


def test_own_currencies_are_those_of_a_pair():
    assert own_currencies("XAUUSD") == ("XAU", "USD")
    assert own_currencies("AAPL") == ()


def test_the_share_recognised_is_of_high_impact():
    events = [
        _event("2015-01-01T00:00Z"),
        _event("2015-01-01T00:00Z", kind=""),
        _event("2015-01-01T00:00Z", impact="low", kind=""),
    ]
    assert recognised_share(events) == (0.5, 2)


def test_the_gain_is_of_release_bars_alone():
    ends = [str(np.datetime64("2014-01-06T00:00") + np.timedelta64(k, "h")) + "Z" for k in range(4000)]
    prices = _prices(ends, ("EURUSD",), "1h")
    events = [_event(f"{ends[k][:13]}:30Z") for k in range(0, 3990, 10)]
    holds = holds_event(prices, events, lambda _: True)
    dice = np.random.Generator(np.random.PCG64(1))
    held = np.where(holds, dice.random((4000, 1)) < 0.7, dice.random((4000, 1)) < 0.9).astype(np.float64)
    base = dice.gamma(4.0, size=(4000, 1))
    plain = NextBarScores(base, held, 0.1 * held, held * 0.0, np.ones((4000, 1)))
    better = NextBarScores(
        np.where(holds, 0.95 * base, base), held, held * 0.0, held * 0.0, np.ones((4000, 1))
    )
    told = judge(prices, events, plain, better)
    assert abs(told.metrics["coverage90_first_hour"] - 0.7) < 0.08
    assert told.metrics["coverage90_first_hour_upper"] == told.metrics["coverage90_first_hour"]
    assert abs(told.metrics["crps_gain_first_hour"] - 0.05) < 1e-9
    quiet = next(row for row in told.rows if row["bars"] == "no event")
    assert quiet["CRPS gain"] == 0.0
    without = judge(prices, events, plain, plain)
    assert without.metrics["crps_gain_first_hour"] == 0.0
