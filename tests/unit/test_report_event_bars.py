"""Which bars of a run held an event: the cells of its report, by the times that the run wrote."""

from typing import Any

import pytest

from htfi.apps.cli.report.event_bars import HIGH_IMPACT, NONE, RESULTS, UNKNOWN, BarSpan, EventBars
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.wiring.event_file import EventTimes, event_times

HOUR_NS = 3_600 * NS_PER_S


def event(hour: float, **fields: Any) -> ScheduledEvent:
    known: dict[str, Any] = {
        "kind": "us_payrolls",
        "name": "NFP",
        "currency": "USD",
        "impact": "high",
        **fields,
    }
    return ScheduledEvent(time_ns=int(hour * HOUR_NS), **known)


EVENTS = [
    event(0),
    event(10),
    event(12, impact="low"),
    event(14, currency="JPY", kind="boj_decision"),
    event(16, currency="", symbol="aapl", kind="earnings", impact=""),
    event(18, withdrawn_ns=17 * HOUR_NS),
    event(24, is_exact=False, currency="GBP"),
    event(200),
]
BARS = EventBars(event_times(EVENTS, ["EURUSD/1h", "AAPL/1d", "GBPUSD/1d"]))


@pytest.mark.parametrize(
    ("symbol", "hour", "cell"),
    [
        ("EURUSD", 10, HIGH_IMPACT),  # start ≤ t
        ("EURUSD", 9, NONE),  # t < end
        ("EURUSD", 12, NONE),  # low
        ("EURUSD", 14, NONE),  # of another currency
        ("EURUSD", 18, NONE),  # moved before it came
        ("GBPUSD", 43, NONE),  # without an hour: no bar of an hour holds it
        ("EURUSD", 300, UNKNOWN),  # after the calendar's end
        ("EURUSD", -2, UNKNOWN),
    ],
)
def test_an_hour_holds_what_comes_from_its_begin_until_before_its_end(
    symbol: str, hour: int, cell: int
) -> None:
    assert BARS.cell(BarSpan(symbol, hour * HOUR_NS, (hour + 1) * HOUR_NS, False)) == cell


@pytest.mark.parametrize(
    ("symbol", "begin", "end", "cell"),
    [
        ("AAPL", 8, 13, HIGH_IMPACT),  # of the dollar
        ("AAPL", 9, 20, RESULTS),  # counts before the dollar's
        ("MSFT", 13, 20, NONE),
        ("GBPUSD", 30, 54, HIGH_IMPACT),  # a day without an hour: 19h of it
        ("GBPUSD", 44, 54, NONE),
    ],
)
def test_a_day_holds_results_of_its_own_company_and_days_without_an_hour(
    symbol: str, begin: int, end: int, cell: int
) -> None:
    assert BARS.cell(BarSpan(symbol, begin * HOUR_NS, end * HOUR_NS, True)) == cell


def test_a_run_keeps_the_times_of_its_own_series_alone() -> None:
    assert [(one.owner, one.are_results, one.is_day) for one in event_times(EVENTS, ["EURJPY/1h"])] == [
        ("JPY", False, False)
    ]
    kept = event_times(EVENTS, ["AAPL/1d"])
    assert kept == [
        EventTimes(owner="AAPL", are_results=True, is_day=False, times_ns=[16 * HOUR_NS]),
        EventTimes(owner="USD", are_results=False, is_day=False, times_ns=[0, 10 * HOUR_NS, 200 * HOUR_NS]),
    ]
    assert event_times(EVENTS, []) == []


def test_without_times_nothing_is_known() -> None:
    assert EventBars(()).cell(BarSpan("EURUSD", 0, NS_PER_DAY, True)) == UNKNOWN
