"""Clocks, zones and encodings of calendars: what can be read in one way is read, the rest refused in a line."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from htfi.adapters.calendars.files import read_table
from htfi.calendar.clocks import AMBIGUOUS_ZONES, SHORT_ZONES, read_clock, zone_named
from htfi.calendar.columns import CalendarSource
from htfi.calendar.local_times import event_time
from htfi.calendar.reading import CalendarReading, read_events
from htfi.domain.errors import InvalidInput
from htfi.domain.time import to_ns
from htfi.wiring.calendar_reading import read_calendar

CALENDAR_DOC = Path(__file__).parents[2] / "docs" / "calendar.md"
LONDON = ZoneInfo("Europe/London")


def utc_ns(*parts: int) -> int:
    return to_ns(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


def read(text: str, encoding: str = "utf-8", zone: str = "") -> CalendarReading:
    table = read_table(Path("c.csv"), text.encode(encoding))
    return read_events(table.names, table.rows, CalendarSource("c.csv", zone=zone), "calendar c.csv")


@pytest.mark.parametrize(
    "clock",
    [
        *(
            "8:30",
            "08:30",
            "8:30am",
            "8:30 A.M.",
            "8:30 a. m.",
            "8.30am",
            "8.30",
            "0830",
            "830",
            "083000",
            "08:30:00.000",
        ),
        *("8h30", "08h30", "8 h 30", "08:30 Uhr", "0830 hrs", "0.354166666667", "0.3542"),
    ],
)
def test_a_clock_is_read_however_it_is_written(clock: str) -> None:
    assert event_time("2024-01-05", clock, LONDON) == (utc_ns(2024, 1, 5, 8, 30), True)
    if not clock.startswith("0."):
        assert event_time(f"Jan 5, 2024 {clock}", None, LONDON) == (utc_ns(2024, 1, 5, 8, 30), True)


@pytest.mark.parametrize(
    "clock", ["8", "0.25", "0.35", "25:00", "8:60", "13:00 pm", "0 am", "8:30 XYZ", "noon", "8:3"]
)
def test_a_clock_that_is_none_or_two_is_refused(clock: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{clock}' is not a time of day such as"):
        read_clock(clock)


@pytest.mark.parametrize(
    ("clock", "hour", "minute"),
    [
        *(("13:30 BST", 12, 30), ("5:30 AM PST", 12, 30), ("5:30 a.m. PDT", 12, 30), ("7:30 CT", 12, 30)),
        *(("14:30 CET", 12, 30), ("14:30 MESZ", 12, 30), ("15:30 EEST", 12, 30), ("15:30 (MSK)", 12, 30)),
        *(
            ("21:30 JST", 12, 30),
            ("22:30 AEST", 12, 30),
            ("20:30 UTC+8", 12, 30),
            ("20:30 [GMT+08:00]", 12, 30),
        ),
        *(
            ("9:30 pm KST", 12, 30),
            ("08:30 America/New_York", 12, 30),
            ("18:00 UTC+5:30", 12, 30),
            ("8:30−04:00", 12, 30),
        ),
    ],
)
def test_a_zone_behind_a_clock_counts_in_its_summer_too(clock: str, hour: int, minute: int) -> None:
    assert event_time("2024-07-05", clock, ZoneInfo("Asia/Tokyo")) == (utc_ns(2024, 7, 5, hour, minute), True)
    assert event_time(f"5 Jul 2024 {clock}", None, None) == (utc_ns(2024, 7, 5, hour, minute), True)


@pytest.mark.parametrize("word", AMBIGUOUS_ZONES)
def test_a_zone_of_several_countries_is_refused_with_what_to_write(word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        event_time("2024-07-05", f"8:30 {word.lower()}", LONDON)
    named = re.findall(r"[A-Z][a-z]+/\w+", str(error.value))
    assert len(named) >= 2
    assert f"{word} is the clock of several zones" in str(error.value)
    for name in named:
        assert event_time("2024-07-05", f"8:30 {name}", LONDON)[1]


def test_every_short_zone_has_its_offset_and_is_documented() -> None:
    told = CALENDAR_DOC.read_text()
    assert SHORT_ZONES
    for word, name in SHORT_ZONES.items():
        zone = zone_named(word)
        assert zone == ZoneInfo(name)
        assert re.search(rf"\b{word}\b", told), word
    assert all(re.search(rf"\b{word}\b", told) for word in AMBIGUOUS_ZONES)


@pytest.mark.parametrize(
    ("written", "offset"),
    [("EST", -5), ("UTC", 0), ("GMT-3", -3), ("+02:00", 2), ("(UTC+9)", 9), ("Asia/Tokyo", 9)],
)
def test_a_cell_names_a_zone(written: str, offset: int) -> None:
    zone = zone_named(written)
    assert isinstance(zone, tzinfo)
    assert datetime(2024, 1, 5, tzinfo=zone).utcoffset() == timedelta(hours=offset)


def test_a_column_of_zones_is_of_each_row_and_an_offset_stands_before_it() -> None:
    rows = [
        "2024-07-05 08:30,EST,a",
        "2024-07-05 08:30,Europe/Berlin,b",
        "2024-07-05 08:30Z,EST,c",
        "2024-07-05 08:30,,d",
    ]
    text = "\n".join(["datetime,Time Zone,event", *rows, "2024-07-05 08:30,Eastern,e"])
    reading = read(text, zone="Asia/Tokyo")
    assert {event.name: event.time_ns for event in reading.events} == {
        "a": utc_ns(2024, 7, 5, 12, 30),
        "b": utc_ns(2024, 7, 5, 6, 30),
        "c": utc_ns(2024, 7, 5, 8, 30),
        "d": utc_ns(2024, 7, 4, 23, 30),
    }
    (fault,) = reading.faults
    assert fault == ("line 6", "zone 'Eastern' is not known: write it as America/New_York or UTC", True)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("20231103 0830", (utc_ns(2023, 11, 3, 8, 30), True)),  # and not the day alone
        ("20231103T083000Z", (utc_ns(2023, 11, 3, 8, 30), True)),
        ("Fri, 03 Nov 2023 12:30:00 +0000", (utc_ns(2023, 11, 3, 12, 30), True)),
        ("2023-11-03T08:30:00-04:00[America/New_York]", (utc_ns(2023, 11, 3, 12, 30), True)),
        ("2023-11-03 All Day", (utc_ns(2023, 11, 3), False)),
    ],
)
def test_a_day_and_its_clock_are_read_in_one_text(written: str, found: tuple[int, bool]) -> None:
    assert event_time(written, None, LONDON) == found


def test_a_form_of_times_holds_with_a_zone_behind_it() -> None:
    form = "%m/%d/%y %I:%M %p"
    assert event_time("11/03/23 8:30 a.m. EDT", None, None, form) == (utc_ns(2023, 11, 3, 12, 30), True)
    with pytest.raises(InvalidInput, match=r'time_format = "%m/%d/%y %I:%M %p" or "%d/%m/%y'):
        event_time("11/03/23 8:30 AM EDT", None, None)
    with pytest.raises(InvalidInput, match=r'year by two digits: state time_format, such as "%d-%b-%y"'):
        event_time("3-Nov-23", None, None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_wide_text_is_read_with_and_without_its_mark(encoding: str, tmp_path: Path) -> None:
    text = "datetime,country,event,forecast\n2024-07-05 08:30Z,Türkiye,Großhandel,0.3%\n2024-07-06 08:30Z,us,新築,1\n"
    assert read(text, encoding).events == read(text).events
    assert read(text).events[0].name == "Großhandel"
    stated = "id,kind,subject,at,level\na,rate_decision,fed,2026-01-28T19:00Z,3.75\n"
    for name, one in (("a.csv", stated.encode()), ("b.csv", stated.encode(encoding))):
        (tmp_path / name).write_bytes(one)
    of_bytes, of_wide = (read_calendar(str(tmp_path / name)).calendar.releases for name in ("a.csv", "b.csv"))
    assert of_bytes
    assert of_wide == of_bytes


def test_what_is_no_text_is_said() -> None:
    with pytest.raises(InvalidInput, match=r"calendar c.csv: not UTF-16 at byte 2\d: save it as UTF-8"):
        read_table(Path("c.csv"), "time,event\n1".encode("utf-16-le") + b"\x00\xd8")
