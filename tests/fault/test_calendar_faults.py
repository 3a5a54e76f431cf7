"""Calendars that are wrong: zones, clocks that change, releases that move, come late, twice or never, and days off."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from htfi.calendar.check import check_calendar
from htfi.calendar.columns import CalendarSource
from htfi.calendar.reading import CalendarReading, read_events
from htfi.calendar.recurring import superseded
from htfi.calendar.usual_times import check_zone
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, to_ns
from htfi.forecasting.surprises import surprises
from htfi.narrative.calendar.scheduled import announcements_of

NEW_YORK = ZoneInfo("America/New_York")


def utc_ns(*parts: int) -> int:
    return to_ns(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


def read(rows: list[dict[str, object]], **stated: str) -> CalendarReading:
    names = list(dict.fromkeys(name for row in rows for name in row))
    places = [(f"row {place}", row) for place, row in enumerate(rows, 1)]
    return read_events(names, places, CalendarSource("c", **stated), "calendar c")  # type: ignore[arg-type]


def claims(written_in: ZoneInfo) -> list[dict[str, object]]:
    """A year of jobless claims, 08:30 New York, as a vendor with the clocks of `written_in` writes their times."""
    first = datetime(2018, 1, 4, 8, 30, tzinfo=NEW_YORK)
    weeks = [first + timedelta(weeks=week) for week in range(52)]  # the same wall clock in summer and winter
    return [
        {
            "time": f"{week.astimezone(written_in).replace(tzinfo=None)}",
            "event": "Unemployment Claims",
            "currency": "USD",
        }
        for week in weeks
    ]


@pytest.mark.parametrize(
    ("written_in", "read_in", "said"),
    [
        ("Europe/London", "America/New_York", "come 5 h after them: "),
        ("America/New_York", "UTC", "4 h before them in summer and 5 h before them in winter"),
        ("America/New_York", "Etc/GMT+5", "1 h after them in summer and at them in winter"),
        ("Etc/GMT+5", "America/New_York", "1 h before them in summer and at them in winter"),
    ],
)
def test_a_wrong_zone_and_a_clock_without_summer_time_are_found(
    written_in: str, read_in: str, said: str
) -> None:
    found = check_zone(read(claims(ZoneInfo(written_in)), zone=read_in).events)
    assert said in found.fault
    assert found.num_seen == 52


def test_a_file_of_one_week_says_its_wrong_zone_where_all_releases_agree() -> None:
    week = read(claims(ZoneInfo("UTC")), zone="America/New_York").events
    winter = [event for event in week if datetime.fromtimestamp(event.time_ns // 10**9, UTC).month == 1]
    assert "come 5 h after them" in check_zone(winter[:3]).fault
    assert check_zone(winter[:2]).fault == ""
    right = read(claims(ZoneInfo("UTC")), zone="UTC").events
    assert check_zone(right[:3]).fault == ""
    assert check_zone([*winter[:3], right[3]]).fault == ""  # they do not agree, and are few


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Tokyo"])
def test_a_right_zone_is_none_of_them(zone: str) -> None:
    found = check_zone(read(claims(ZoneInfo(zone)), zone=zone).events)
    assert (found.fault, found.num_at_usual, found.num_seen) == ("", 52, 52)


def test_hours_that_clocks_skip_or_show_twice_are_refused_and_the_rest_is_read() -> None:
    reading = read(
        [
            {"time": "2019-03-10 02:30", "event": "CPI m/m"},
            {"time": "2019-11-03 01:30", "event": "CPI m/m"},
            {"time": "2019-11-03 01:30:00-05:00", "event": "CPI m/m"},
            {"time": "2019-11-04 01:30", "event": "CPI m/m"},
        ],
        zone="America/New_York",
    )
    assert [fault.place for fault in reading.faults] == ["row 1", "row 2"]
    assert "does not exist there: clocks go forward" in reading.faults[0].detail
    assert "comes twice there: clocks go back" in reading.faults[1].detail
    assert all("write it with its offset" in fault.detail for fault in reading.faults)
    assert [event.time_ns for event in reading.events] == [
        utc_ns(2019, 11, 3, 6, 30),
        utc_ns(2019, 11, 4, 6, 30),
    ]


MOVED: list[dict[str, object]] = [
    {
        "id": "nfp-9",
        "time": "2013-10-04T12:30Z",
        "event": "Nonfarm Payrolls",
        "known_at": "2013-01-02T00:00Z",
    },
    {
        "id": "nfp-9",
        "time": "2013-10-22T12:30Z",
        "event": "Nonfarm Payrolls",
        "known_at": "2013-10-01T04:00Z",
    },
]


def test_a_moved_release_is_expected_at_its_old_time_until_the_move_was_known() -> None:
    old, new = read(MOVED, currency="USD").events
    before, after = utc_ns(2013, 9, 20), utc_ns(2013, 10, 2)
    assert (old.time_ns, new.time_ns) == (utc_ns(2013, 10, 4, 12, 30), utc_ns(2013, 10, 22, 12, 30))
    assert (old.is_expected(before), new.is_expected(before)) == (True, False)
    assert (old.is_expected(after), new.is_expected(after)) == (False, True)


def test_of_a_move_without_times_of_knowledge_the_last_row_stands() -> None:
    rows = [{key: value for key, value in row.items() if key != "known_at"} for row in MOVED]
    reading = read(rows, currency="USD")
    assert [event.time_ns for event in reading.events] == [utc_ns(2013, 10, 22, 12, 30)]
    assert reading.num_moved == 1


def test_a_cancelled_release_is_expected_until_that_was_known_and_announced_never() -> None:
    cancelled = {**MOVED[0], "known_at": "2013-10-01T04:00Z", "status": "cancelled"}
    reading = read([MOVED[0], cancelled], currency="USD")
    (event,) = reading.events
    assert reading.num_cancelled == 1
    assert event.is_expected(utc_ns(2013, 9, 20))
    assert not event.is_expected(utc_ns(2013, 10, 2))
    assert announcements_of(reading.events) == ()
    without = [
        {key: value for key, value in row.items() if key != "known_at"} for row in (MOVED[0], cancelled)
    ]
    assert read(without, currency="USD").events == ()


def release(month: int, actual: float | None, forecast: float = 0.2, **more: object) -> ScheduledEvent:
    time_ns = utc_ns(2010 + month // 12, month % 12 + 1, 12, 13, 30)
    return ScheduledEvent(
        time_ns=time_ns,
        kind="us_cpi",
        name="CPI m/m",
        currency="USD",
        actual=actual,
        forecast=forecast,
        **more,
    )  # type: ignore[arg-type]


PAST = [release(month, 0.2 + (0.1 if month % 2 else -0.1)) for month in range(12)]


def test_an_actual_that_comes_late_is_a_surprise_only_then() -> None:
    on_time = release(12, 0.5)
    late = release(12, 0.5, actual_known_ns=on_time.time_ns + NS_PER_DAY)
    follows = release(13, 0.3)
    assert (
        next(one for one in surprises([*PAST, on_time]) if one.event == on_time).known_ns == on_time.time_ns
    )
    found = {one.event: one.known_ns for one in surprises([*PAST, late, follows])}
    assert found[late] == on_time.time_ns + NS_PER_DAY
    assert found[follows] == follows.time_ns


def test_an_actual_that_is_stated_before_its_time_is_not_used_before_it() -> None:
    early = release(12, 0.5, actual_known_ns=utc_ns(2000, 1, 1))
    assert next(one for one in surprises([*PAST, early]) if one.event == early).known_ns == early.time_ns


def test_a_late_actual_fills_the_line_and_counts_from_when_it_was_known() -> None:
    line: dict[str, object] = {"time": "2019-03-08T13:30Z", "event": "CPI m/m", "forecast": "0.2%"}
    reading = read(
        [
            {**line, "actual": "", "known_at": "2019-01-02T00:00Z"},
            {**line, "actual": "0.4%", "known_at": "2019-03-08T15:00Z"},
        ],
        currency="USD",
    )
    (event,) = reading.events
    assert (event.actual, event.actual_known_ns) == (0.4, utc_ns(2019, 3, 8, 15))
    assert event.known_ns == utc_ns(2019, 1, 2)
    assert reading.num_repeated == 1


def test_of_a_revised_actual_the_first_stands_and_the_revision_is_counted() -> None:
    line: dict[str, object] = {"time": "2019-03-08T13:30Z", "event": "CPI m/m", "currency": "USD"}
    reading = read([{**line, "actual": "0.2%"}, {**line, "actual": "0.3%"}, {**line, "actual": "0.2%"}])
    assert [event.actual for event in reading.events] == [0.2]
    assert (reading.num_revised, reading.num_repeated) == (1, 1)


def test_previous_which_holds_the_revision_changes_no_surprise() -> None:
    revised = [release(month, 0.3 if month % 2 else 0.1, previous=9.9) for month in range(14)]
    plain = [release(month, 0.3 if month % 2 else 0.1) for month in range(14)]
    sizes = [one.size for one in surprises(plain)]
    assert len(sizes) == 10
    assert [one.size for one in surprises(revised)] == sizes


def test_a_release_that_comes_twice_is_said() -> None:
    twice = read(
        [
            {"time": "2019-03-08T13:30Z", "event": "PPI y/y", "currency": "JPY", "actual": "1%"},
            {"time": "2019-03-08T13:51Z", "event": "PPI y/y", "currency": "JPY", "actual": "1%"},
            {"time": "2019-04-08T13:30Z", "event": "PPI y/y", "currency": "JPY", "actual": "1%"},
        ]
    ).events
    found = check_calendar(twice, (), utc_ns(2020, 1, 1)).twice
    assert found == (("JPY", "PPI y/y", utc_ns(2019, 3, 8, 13, 30), utc_ns(2019, 3, 8, 13, 51)),)


def test_a_calendar_that_ends_is_said_and_what_recurs_goes_on_after_it() -> None:
    stated = [release(month, 0.2) for month in range(3)]
    by_rule = [
        ScheduledEvent(time_ns=event.time_ns + 3_600_000_000_000, kind="us_cpi", name="CPI", is_by_rule=True)
        for event in [release(month, None) for month in range(6)]
    ]
    kept = superseded(stated, by_rule)
    assert [event.is_by_rule for event in kept] == [False, False, False, True, True, True]
    check = check_calendar(kept, (), stated[-1].time_ns + 30 * NS_PER_DAY)
    assert (check.ended_days, check.num_events, check.num_by_rule) == (30, 3, 3)


def test_a_holiday_on_which_the_exchange_trades_is_said() -> None:
    days = read(
        [
            {
                "date": "2018-10-08",
                "event": "US Markets Closed",
                "currency": "USD",
            },  # Columbus Day: shares trade
            {"date": "2018-12-25", "event": "US Markets Closed", "currency": "USD"},
            {"date": "2018-12-26", "event": "Markets Closed", "currency": "CAD"},
            {
                "date": "2018-10-08",
                "event": "Bank Holiday",
                "currency": "USD",
            },  # claims nothing of the exchange
        ]
    ).events
    trades = {("USD", 8): True, ("USD", 25): False}
    check = check_calendar(days, (), 0, trades_on=lambda currency, day: trades.get((currency, day.day)))
    assert [event.kind for event in days].count("market_closed") == 3
    assert [event.kind for event in days].count("bank_holiday") == 1
    assert check.holidays_open == (("USD", (to_ns(datetime(2018, 10, 8, tzinfo=UTC)),)),)


def test_figures_of_two_sizes_are_not_compared() -> None:
    reading = read(
        [
            {"time": "2019-03-08T13:30Z", "event": "Nonfarm Payrolls", "actual": "20", "forecast": "180K"},
            {"time": "2019-04-05T12:30Z", "event": "Nonfarm Payrolls", "actual": "0", "forecast": "180K"},
            {
                "time": "2019-05-03T12:30Z",
                "event": "Nonfarm Payrolls",
                "actual": "about 3",
                "forecast": "180K",
            },
        ],
        currency="USD",
    )
    assert [event.forecast for event in reading.events] == [None, 180_000.0, 180_000.0]
    assert [event.actual for event in reading.events] == [20.0, 0.0, None]
    assert [fault.refused for fault in reading.faults] == [False, False]
