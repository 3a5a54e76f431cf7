"""Instants are exact and zoned; rows dated by day become known when the rule says."""

from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from htfi.domain.time import format_ns
from htfi.pipeline.intake.quarantine_reasons import RowRefused
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.intake.times import DayRule, FileTimestamp, next_weekday, read_time

NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("2013-10-07T08:00:00Z", "", "2013-10-07T08:00:00Z"),
        ("2013-10-07 08:00:00.054+00:00", "", "2013-10-07T08:00:00.054Z"),
        ("2013-10-07T04:00:00.123456789-04:00", "", "2013-10-07T08:00:00.123456789Z"),
        (" 2013-10-07T08:00Z ", "", "2013-10-07T08:00:00Z"),
        (1_381_132_800, "", "2013-10-07T08:00:00Z"),
        (1_381_132_800_054, "", "2013-10-07T08:00:00.054Z"),
        ("1381132800054000", "", "2013-10-07T08:00:00.054Z"),
        (1_381_132_800_054_000_001, "", "2013-10-07T08:00:00.054000001Z"),
        (1_381_132_800.054, "", "2013-10-07T08:00:00.054Z"),
        ("1381132800.054", "", "2013-10-07T08:00:00.054Z"),
        ("1.3811328e9", "", "2013-10-07T08:00:00Z"),
        (20_131_007, "s", "1970-08-21T23:56:47Z"),
        (-86_400, "s", "1969-12-31T00:00:00Z"),
        (FileTimestamp(1_381_132_800_000_000_007, True), "", "2013-10-07T08:00:00.000000007Z"),
        (datetime(2013, 10, 7, 4, tzinfo=timezone(timedelta(hours=-4))), "", "2013-10-07T08:00:00Z"),
    ],
)
def test_instants_are_exact(value: Any, unit: str, expected: str) -> None:
    found = read_time(value, None, unit)
    assert isinstance(found, int)
    assert format_ns(found) == expected


@pytest.mark.parametrize("value", ["2013-10-07", "20131007", 20_131_007, 20_131_007.0, date(2013, 10, 7)])
def test_a_date_stays_a_date(value: Any) -> None:
    assert read_time(value, None, "") == date(2013, 10, 7)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2013-10-07T08:00:00", "no_zone"),
        ("2013-10-07T08:00:00.123456789", "no_zone"),
        (datetime(2013, 10, 7), "no_zone"),  # noqa: DTZ001 -- the case
        (FileTimestamp(0, False), "no_zone"),
        ("yesterday", "bad_time"),
        ("10/07/2013", "bad_time"),
        ("2013-02-30", "bad_time"),
        ("2013-02-30T08:00:00.000Z", "bad_time"),
        (20_131_307, "bad_time"),
        (float("nan"), "bad_time"),
        (float("inf"), "bad_time"),
        (True, "bad_time"),
        ([], "bad_time"),
        ("9" * 400, "bad_time"),
        ("  ", "missing_field"),
        ("1899-12-31T23:59:59Z", "absurd_time"),
        ("2200-01-01T00:00:00Z", "absurd_time"),
        ("1850-01-01", "absurd_time"),
        (10**30, "absurd_time"),
        (FileTimestamp(8 * 10**18, True), "absurd_time"),
    ],
)
def test_what_is_no_time_is_refused_with_its_reason(value: Any, reason: str) -> None:
    with pytest.raises(RowRefused) as caught:
        read_time(value, None, "")
    assert caught.value.reason == reason


def test_a_stated_zone_is_that_of_texts_without_one() -> None:
    found = read_time("2013-10-07 04:00:00", NEW_YORK, "")
    assert isinstance(found, int)
    assert format_ns(found) == "2013-10-07T08:00:00Z"
    assert read_time(FileTimestamp(1_381_118_400_000_000_005, False), NEW_YORK, "") == found + 5


def test_a_bar_dated_by_day_ends_at_the_new_york_close_in_winter_and_summer() -> None:
    rule = DayRule.of(SourceSpec("s", date_at="16:00"))
    assert format_ns(rule.close(date(2008, 1, 22))) == "2008-01-22T21:00:00Z"
    assert format_ns(rule.close(date(2008, 7, 22))) == "2008-07-22T20:00:00Z"
    assert format_ns(rule.start(date(2008, 7, 22))) == "2008-07-22T04:00:00Z"


@pytest.mark.parametrize(
    ("at", "zone"), [("16:00", "America/New_York"), ("17:00", "America/New_York"), ("24:00", "UTC")]
)
def test_a_bar_dated_by_day_is_by_default_known_after_every_markets_close(at: str, zone: str) -> None:
    unstated, stated = DayRule.of(SourceSpec("s")), DayRule.of(SourceSpec("s", date_at=at, date_zone=zone))
    for day in (date(2008, 1, 22), date(2008, 7, 22)):
        assert unstated.close(day) >= stated.close(day)


def test_midnight_can_be_stated_as_the_end_of_the_day() -> None:
    rule = DayRule.of(SourceSpec("s", date_at="24:00", date_zone="UTC"))
    assert format_ns(rule.close(date(2024, 2, 28))) == "2024-02-29T00:00:00Z"


@pytest.mark.parametrize(
    ("day", "following"),
    [
        ("2024-08-01", "2024-08-02"),
        ("2024-08-02", "2024-08-05"),
        ("2024-08-03", "2024-08-05"),
        ("2024-08-04", "2024-08-05"),
    ],
)
def test_news_dated_by_day_is_known_at_the_next_sessions_open(day: str, following: str) -> None:
    assert next_weekday(date.fromisoformat(day)) == date.fromisoformat(following)
    assert format_ns(DayRule.of(SourceSpec("s")).known(date.fromisoformat(day))) == f"{following}T13:30:00Z"


def test_a_stated_delay_counts_from_the_end_of_the_day() -> None:
    rule = DayRule.of(SourceSpec("s", delay="45d"))
    assert (
        format_ns(rule.known(date(2024, 7, 1))) == "2024-07-02T04:00:00Z"
    )  # the delay itself is added to it


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        (FileTimestamp(1_381_132_800_000_000_007, True), "2013-10-07T08:00:00.000000007Z"),
        (FileTimestamp(-62_135_596_800 * 10**9, False), "0001-01-01T00:00:00"),
        (FileTimestamp(10**21, True), "1000000000000000000000 ns since 1970"),
    ],
)
def test_a_timestamp_of_a_typed_file_is_shown_as_a_time(stamp: FileTimestamp, shown: str) -> None:
    assert str(stamp) == shown
