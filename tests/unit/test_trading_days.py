"""Lines on splits and renames name the trading day whatever hour daily bars end at, and what they say to set works."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from htfi.domain.events import Bar
from htfi.domain.time import to_ns
from htfi.forecasting.panel import Panel
from htfi.pipeline.intake.adjusting import SeriesAdjustments

NEW_YORK, SYDNEY, AUCKLAND = "America/New_York", "Australia/Sydney", "Pacific/Auckland"
SPLIT = date(2024, 1, 9)  # a Tuesday, in Sydney's summer
FIRST = date(2023, 10, 2)


def _bars(
    symbol: str, zone: str, at: time, *, is_end: bool, split: date | None = SPLIT, first: date = FIRST
) -> list[Bar]:
    """Daily bars, Monday to Friday, stamped by this clock: with their end, or with what is taken for their start."""
    dice, price, bars = np.random.Generator(np.random.PCG64(4)), 100.0, list[Bar]()
    for day in (first + timedelta(n) for n in range((date(2024, 2, 2) - first).days)):
        if day.weekday() >= 5:
            continue
        stamp = datetime.combine(day, at, ZoneInfo(zone)).astimezone(UTC)
        start = stamp - timedelta(days=1) if is_end else stamp
        opened = price
        price *= float(np.exp(0.004 * dice.standard_normal()))
        factor = 0.5 if split is not None and day >= split else 1.0
        one, other = opened * factor, price * factor
        start_ns, end_ns = to_ns(start), to_ns(start + timedelta(days=1))
        edges = max(one, other) * 1.002, min(one, other) * 0.998
        bars.append(
            Bar(end_ns, end_ns, "t", len(bars), symbol, "1d", start_ns, end_ns, one, *edges, other, 1.0)
        )
    return bars


def _faults(bars: list[Bar]) -> list[str]:
    panel = Panel((1,), 5.0)
    for bar in bars:
        panel.enter([bar])
    return panel.price_faults


@pytest.mark.parametrize(
    ("symbol", "zone", "at", "is_end"),
    [
        ("AAPL", NEW_YORK, time(0), False),  # dates alone
        ("AAPL", NEW_YORK, time(16), True),
        ("AAPL", NEW_YORK, time(16), False),  # closes taken for starts: they end on Saturdays
        ("AAPL", NEW_YORK, time(9, 30), False),
        ("BHP.AX", NEW_YORK, time(0), False),
        ("BHP.AX", SYDNEY, time(0), False),
        ("BHP.AX", SYDNEY, time(16), True),  # midnight in New York
        ("BHP.AX", SYDNEY, time(16), False),
        ("AIR.NZ", AUCKLAND, time(16, 45), True),
        ("7203.T", "Asia/Tokyo", time(15), True),
        ("7203.T", "Asia/Tokyo", time(15), False),
        ("SAP.DE", "Europe/Berlin", time(17, 30), True),
    ],
)
def test_a_split_is_of_its_trading_day_and_what_the_line_says_to_set_adjusts_for_it(
    symbol: str, zone: str, at: time, is_end: bool
) -> None:
    bars = _bars(symbol, zone, at, is_end=is_end)
    (line,) = _faults(bars)
    assert line.startswith(f"{symbol}/1d 2024-01-09: prices are not adjusted for a split of 2 to 1")
    stated = re.search(r'market\.splits = \{"[^"]+" = \{"([-\d]+)" = 2\}\}', line)
    assert stated is not None
    adjustments = SeriesAdjustments({}, {symbol: {stated[1]: 2.0}})
    adjusted = [one for one in map(adjustments.adjusted, bars) if isinstance(one, Bar)]
    assert len(adjusted) == len(bars)
    assert _faults(adjusted) == []
    plain = [bar.close / 2.0 for bar in _bars(symbol, zone, at, is_end=is_end, split=None)]
    assert [bar.close for bar in adjusted] == pytest.approx(plain)


def test_closes_that_may_have_been_taken_for_starts_are_said_with_what_to_state() -> None:
    (line,) = _faults(_bars("AAPL", NEW_YORK, time(16), is_end=False))
    assert line.endswith(
        'set market.splits = {"AAPL" = {"2024-01-10" = 2}}, the day of its end in New York, or, if its times are '
        'closes, state bar_stamp = "end" and set {"2024-01-09" = 2}'
    )
    (line,) = _faults(_bars("BHP.AX", SYDNEY, time(16), is_end=True))
    assert line.endswith(
        'set market.splits = {"BHP.AX" = {"2024-01-08" = 2}}, the day of its end in New York'
    )


@pytest.mark.parametrize("at", [time(16), time(0)])
def test_a_rename_is_named_by_both_trading_days(at: time) -> None:
    old = _bars("FB", NEW_YORK, at, is_end=False, split=None)
    new = _bars("META", NEW_YORK, at, is_end=False, split=None)
    faults = _faults([*old[:-10], *new[-10:]])
    assert len(faults) == 1
    assert faults[0].startswith("FB/1d ends on 2024-01-18 where META/1d begins on 2024-01-19 at its price")


def test_what_trades_at_weekends_is_named_by_its_own_days() -> None:
    dice, bars, price = np.random.Generator(np.random.PCG64(4)), list[Bar](), 100.0
    for day in (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(n) for n in range(40)):
        price *= float(np.exp(0.004 * dice.standard_normal())) * (
            0.5 if day.date() == date(2024, 2, 3) else 1.0
        )
        start_ns, end_ns = to_ns(day), to_ns(day + timedelta(days=1))
        bars.append(
            Bar(
                end_ns,
                end_ns,
                "t",
                len(bars),
                "COIN",
                "1d",
                start_ns,
                end_ns,
                price,
                price * 1.002,
                price * 0.998,
                price,
                1.0,
            )
        )
    (line,) = _faults(bars)
    assert line.startswith("COIN/1d 2024-02-03: ")  # a Saturday
