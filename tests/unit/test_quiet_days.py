"""Days of the year on which daily bars move less, and several companies that report in one bar."""

from datetime import date

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.known_variance.event_effects import BarWithEvents, EventEffects
from htfi.forecasting.known_variance.event_table import tabulate
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.known_variance.priors import Priors, shipped
from htfi.forecasting.known_variance.quiet_days import QuietDays, is_near_year_end
from htfi.forecasting.known_variance.relations import OTHER_ASSETS, VOLATILITY, asset_class
from htfi.forecasting.panel import BarBatch

SIZES = {
    "half_day": -0.5,
    "year_end": -0.4,
    "before_year_end": -0.2,
    "before_holiday": -0.1,
    "two_before_holiday": -0.05,
}
TOLD = Priors({"other": {"bar_hours": 24.0, "quiet_days": SIZES, "kinds": {}}})
ROW = np.array([0])


def close_ns(day: str) -> int:
    """16:00 in New York in winter."""
    return days_since_1970(day) * NS_PER_DAY + 21 * 3600 * NS_PER_S


def days_since_1970(day: str) -> int:
    return (date.fromisoformat(day) - date(1970, 1, 1)).days


def closure(day: str, kind: str = "market_closed", **more: object) -> ScheduledEvent:
    at = days_since_1970(day) * NS_PER_DAY
    return ScheduledEvent(
        **{"time_ns": at, "kind": kind, "name": kind, "currency": "USD", "is_exact": False, **more}
    )


@pytest.mark.parametrize(
    ("day", "kind"),
    [
        ("2024-12-19", None),
        ("2024-12-20", "before_year_end"),
        ("2024-12-24", "half_day"),
        ("2024-12-26", "year_end"),
        ("2024-12-31", "year_end"),
        ("2025-01-02", None),
        ("2025-01-17", "before_holiday"),
        ("2025-01-16", "two_before_holiday"),
    ],
)
def test_a_day_is_the_first_kind_that_holds(day: str, kind: str | None):
    closed = np.array([days_since_1970(one) for one in ("2024-12-25", "2025-01-01", "2025-01-20")])
    half = np.array([days_since_1970("2024-12-24")])
    found = QuietDays(SIZES).variances(np.array([close_ns(day)]), closed, half)
    assert found[0] == pytest.approx(np.exp(2.0 * SIZES[kind]) if kind else 1.0)


def test_the_year_end_is_known_without_a_calendar_and_holidays_are_not():
    days = np.array([close_ns("2025-01-17"), close_ns("2024-12-24")])
    found = QuietDays(SIZES).variances(days)
    assert found == pytest.approx([1.0, np.exp(2.0 * SIZES["year_end"])])


@pytest.mark.parametrize(
    ("day", "near"),
    [
        ("2024-11-01", False),
        ("2024-12-02", True),
        ("2025-01-03", True),
        ("2025-02-03", False),
        ("2025-07-03", False),
    ],
)
def test_only_near_the_year_end_anything_is_worked_out(day: str, near: bool):
    assert is_near_year_end(close_ns(day), 22) == near


def test_bands_of_shares_narrow_for_the_year_end_and_returns_are_read_against_it():
    one = KnownVariance((1, 5), 5.0, (), TOLD)
    one.grow([("ACME", "1d")])
    monday, tuesday = (np.array([close_ns(day)]) for day in ("2024-12-23", "2024-12-24"))
    found = one.of_closed(ROW, monday - NS_PER_DAY, monday)
    assert found is not None
    assert found[0][0] == pytest.approx(np.exp(-0.2))
    coming = one.ahead(ROW)
    assert coming is not None
    assert coming[0] == pytest.approx([np.exp(-0.4)] * 2)  # 24, 25, 26, 27, 30 December: no holiday is known
    found = one.of_closed(ROW, tuesday - NS_PER_DAY, tuesday)
    assert found is not None
    assert found[0][0] == pytest.approx(np.exp(-0.4))
    for day in ("2025-02-27", "2025-02-28"):
        end = np.array([close_ns(day)])
        assert one.of_closed(ROW, end - NS_PER_DAY, end) is None
        assert one.ahead(ROW) is None
    assert (one.standing(ROW) == 1.0).all()


def test_what_trades_at_weekends_and_bars_of_a_week_have_no_quiet_days():
    coin = KnownVariance((1, 5), 5.0, (), TOLD)
    coin.grow([("COIN", "1d"), ("ACME", "1w")])
    both = np.array([0, 1])
    for day in ("2024-12-14", "2024-12-15", "2024-12-16"):  # Saturday to Monday
        end = np.array([close_ns(day)] * 2)
        coin.of_closed(both, end - NS_PER_DAY, end)
        coin.ahead(both)
    end = np.array([close_ns("2024-12-23")] * 2)
    assert coin.of_closed(both, end - NS_PER_DAY, end) is None
    assert coin.ahead(both) is None


def test_a_holiday_counts_from_when_it_is_known():
    wednesday = np.array([close_ns("2025-01-15")])
    for told_ns, size in ((0, SIZES["before_holiday"]), (close_ns("2025-01-15") + 1, 0.0)):
        one = KnownVariance((1, 5), 5.0, [closure("2025-01-17", known_ns=told_ns)], TOLD)
        one.grow([("ACME", "1d")])
        one.of_closed(ROW, wednesday - NS_PER_DAY, wednesday)
        coming = one.ahead(ROW)
        first = 1.0 if coming is None else float(coming[0, 0])
        assert first == pytest.approx(np.exp(size))


def test_a_holiday_that_became_known_lately_counts_for_the_series_that_closed_since():
    closes = np.array([close_ns("2025-01-15"), close_ns("2025-01-15") + 60 * NS_PER_S])
    both = np.array([0, 1])
    one = KnownVariance((1, 5), 5.0, [closure("2025-01-17", known_ns=int(closes[1]))], TOLD)
    one.grow([("ACME", "1d"), ("OTHER", "1d")])
    one.of_closed(both, closes - NS_PER_DAY, closes)
    coming = one.ahead(both)
    assert coming is not None
    assert coming[:, 0] == pytest.approx([1.0, np.exp(SIZES["before_holiday"])])


def test_shares_have_quiet_days_in_the_release_and_half_of_a_session_moves_least():
    sizes = shipped().quiet_days("other")
    assert set(sizes) == set(SIZES)
    assert all(size < 0.0 for size in sizes.values())
    assert min(sizes.values()) == sizes["half_day"]


def test_every_company_that_reports_in_a_bar_teaches():
    names = [f"S{place}" for place in range(4)]
    table = tabulate(
        [
            ScheduledEvent(time_ns=place, kind="earnings", name="earnings", symbol=name)
            for place, name in enumerate(names)
        ]
    )
    entry = {"own": 0.5, "own_next": 0.0, "other": 0.0, "other_next": 0.0, "strength": 20.0}
    effects = EventEffects(table, Priors({"other": {"bar_hours": 24.0, "kinds": {"earnings": entry}}}))
    for row, name in enumerate(names):
        effects.add(row, name, NS_PER_DAY)
    rows, sources = np.arange(4), np.arange(4)
    before = effects.variances(rows, sources)[:, :, 0]
    assert (before[~np.eye(4, dtype=bool)] == 0.0).all()
    assert np.diag(before) == pytest.approx(np.exp(1.0))
    moved = np.array([3.0, 0.0, 0.0, 0.0])
    effects.learn(BarWithEvents(rows, sources, np.zeros(4, np.int64), before, moved))
    after = np.diag(effects.variances(rows, sources)[:, :, 0])
    assert after[0] > after[1] == after[2] == after[3]
    assert after[1] < np.exp(1.0), "three of four moved less than was expected"
    one = EventEffects(table, Priors({"other": {"bar_hours": 24.0, "kinds": {"earnings": entry}}}))
    for row, name in enumerate(names):
        one.add(row, name, NS_PER_DAY)
    for source in range(
        4
    ):  # one bar after the other: the same lesson, up to what the counts have come to meanwhile
        place = np.array([source])
        one.learn(BarWithEvents(rows, place, np.zeros(1, np.int64), before[:, place], moved))
    in_turn = np.diag(one.variances(rows, sources)[:, :, 0])
    assert after == pytest.approx(in_turn, rel=0.1)
    event, row = one.series_of(sources)
    assert (event.tolist(), row.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])


@pytest.mark.parametrize("symbol", ["VIX", "^VIX", "$VXN", ".OVX", "VSTOXX"])
def test_an_index_of_volatility_has_no_quiet_days(symbol: str):
    assert asset_class(symbol) == VOLATILITY
    one = KnownVariance((1, 5), 5.0, [closure("2024-12-25")])
    one.grow([(symbol, "1d")])
    end = np.array([close_ns("2024-12-23")])
    assert one.of_closed(ROW, end - NS_PER_DAY, end) is None
    assert one.ahead(ROW) is None


@pytest.mark.parametrize("symbol", ["V", "VIXY", "ACME", "VALE"])
def test_shares_and_funds_are_no_index_of_volatility(symbol: str):
    assert asset_class(symbol) == OTHER_ASSETS


def test_a_day_of_currencies_knows_the_figures_that_move_days():
    end = close_ns("2024-03-07")
    for kind, series, moves in (
        ("us_payrolls", "EURUSD", True),
        ("us_housing_starts", "EURUSD", False),
        ("us_payrolls", "ACME", False),
    ):
        figure = ScheduledEvent(time_ns=end + NS_PER_DAY // 2, kind=kind, name=kind, currency="USD")
        one = KnownVariance((1, 5), 5.0, [figure])
        one.grow([(series, "1d")])
        at = np.array([end])
        one.of_closed(ROW, at - NS_PER_DAY, at)
        coming = one.ahead(ROW)
        assert (coming is not None and coming[0, 0] > 1.05) == moves


def test_daily_bars_beside_hourly_ones_enter_and_leave_the_year_end():
    """Bars of both close together; of the daily series something is known for some weeks of the year alone."""
    one = KnownVariance((1, 5), 5.0, (), TOLD)
    one.grow([("ACME", "1h"), ("ACME", "1d")])
    both, days = np.array([0, 1]), range(days_since_1970("2024-11-11"), days_since_1970("2025-01-31"))
    narrow: list[str] = []
    lengths = np.array([NS_PER_DAY // 24, NS_PER_DAY])
    for day in days:
        if (day + 3) % 7 in (5, 6):  # 1970-01-01 was a Thursday
            continue
        end = np.full(2, day * NS_PER_DAY + 21 * 3600 * NS_PER_S)
        one.of_closed(both, end - lengths, end)
        coming = one.ahead(both)
        if coming is not None and coming[1, 0] < 1.0:
            narrow.append(str(np.datetime64(day, "D")))
        one.learn(batch(both, end - lengths, end), np.array([1.0, 1.0]))
    assert (narrow[0], narrow[-1]) == ("2024-12-19", "2024-12-30"), (
        "before the first and before the last quiet day"
    )


def batch(index: NDArray[np.intp], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> BarBatch:
    num = len(index)
    names = ("returns", "variance", "log_variance", "within_log_variance", "usual", "volume")
    return BarBatch(
        rows=slice(0, num), index=index, due=np.zeros(num, np.bool_), outcomes=np.full((num, 2), np.nan),
        covariates=np.zeros((num, 0)), age=np.zeros(num, np.int64), group=np.arange(num), start_ns=start_ns,
        end_ns=end_ns, **dict.fromkeys(names, np.zeros(num)),
    )  # fmt: skip
