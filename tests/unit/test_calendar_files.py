"""Calendars of users as files: four formats, columns by name or by mapping, and what of the rows becomes an event."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from htfi.adapters.calendars.files import read_table
from htfi.calendar.columns import CalendarSource
from htfi.calendar.local_times import event_time
from htfi.calendar.reading import CalendarReading, read_events
from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import parse_timestamp, to_ns
from htfi.wiring.calendar import open_calendar
from htfi.wiring.calendar_reading import read_calendar

ROWS: list[dict[str, str]] = [
    {"date": "2019-03-08", "time": "8:30am", "currency": "USD", "impact": "High", "event": "Non-Farm Employment Change",
     "actual": "20K", "forecast": "180K", "previous": "311K"},
    {"date": "2019-03-07", "time": "7:45am", "currency": "EUR", "impact": "High", "event": "Main Refinancing Rate",
     "actual": "0.00%", "forecast": "0.00%", "previous": "0.00%"},
    {"date": "2019-03-11", "time": "All Day", "currency": "ALL", "impact": "Low", "event": "G7 Meetings",
     "actual": "", "forecast": "", "previous": ""},
]  # fmt: skip
NEW_YORK = "America/New_York"


def utc_ns(*parts: int) -> int:
    return to_ns(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


def as_csv(rows: list[dict[str, str]]) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def read(data: bytes, name: str = "c.csv", **stated: Any) -> CalendarReading:
    source = CalendarSource(name, **stated)
    table = read_table(Path(name), data, source.format)
    return read_events(table.names, table.rows, source, f"calendar {name}")


def test_a_vendors_csv_becomes_events_by_rising_time() -> None:
    rate, payrolls, meeting = read(as_csv(ROWS), zone=NEW_YORK).events
    assert payrolls == ScheduledEvent(
        time_ns=utc_ns(2019, 3, 8, 13, 30),
        kind="us_payrolls",
        name="Non-Farm Employment Change",
        currency="USD",
        impact="high",
        actual=20_000.0,
        forecast=180_000.0,
        previous=311_000.0,
    )
    assert (rate.kind, rate.time_ns) == ("ecb_decision", utc_ns(2019, 3, 7, 12, 45))
    assert (meeting.kind, meeting.is_exact, meeting.currency) == ("g7_meeting", False, "")
    assert meeting.time_ns == utc_ns(2019, 3, 11)


def test_csv_json_lines_and_parquet_say_the_same(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    expected = read(as_csv(ROWS), zone=NEW_YORK).events
    parquet = tmp_path / "c.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), parquet)
    several = {
        "c.json": json.dumps(ROWS).encode(),
        "d.json": json.dumps({"source": "a vendor", "events": ROWS}).encode(),
        "c.jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
        "c.tsv": as_csv(ROWS).replace(b",", b"\t"),
        str(parquet): b"",
    }
    assert {name: read(data, name, zone=NEW_YORK).events for name, data in several.items()} == dict.fromkeys(
        several, expected
    )


def test_names_say_whose_events_they_are_where_no_column_does() -> None:
    rows = b'time,event\n2023-11-03T12:30:00Z,Employment Situation\n2023-11-16T09:30:00Z,"Retail sales, UK"\n'
    assert [(event.kind, event.currency) for event in read(rows).events] == [
        ("us_payrolls", "USD"), ("uk_retail_sales", "GBP"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "time", "is_exact"),
    [
        ("3.11.2023 8:30", "2023-11-03T12:30:00Z", True),
        ("03.11.2023", "2023-11-03T00:00:00Z", False),
        ("Nov 3, 2023 8:30 am", "2023-11-03T12:30:00Z", True),
        ("Fri, November 3, 2023", "2023-11-03T00:00:00Z", False),
        ("3 Nov 2023 08:30:00", "2023-11-03T12:30:00Z", True),
        ("03-Nov-2023 8:30pm", "2023-11-04T00:30:00Z", True),
        ("2023/11/03 08:30", "2023-11-03T12:30:00Z", True),
        ("2023.11.03", "2023-11-03T00:00:00Z", False),
        ("2023-11-03 8:30", "2023-11-03T12:30:00Z", True),
        ("2023-11-03 08:30 PM", "2023-11-04T00:30:00Z", True),
        ("2023-11-03 12:30 UTC", "2023-11-03T12:30:00Z", True),
        ("Nov 3, 2023 12:30 pm GMT", "2023-11-03T12:30:00Z", True),
    ],
)
def test_days_that_can_be_read_in_one_way_are_read(written: str, time: str, is_exact: bool) -> None:
    assert event_time(written, None, ZoneInfo("America/New_York")) == (parse_timestamp(time), is_exact)


@pytest.mark.parametrize(
    "written", ["31.02.2023", "Foo 3, 2023", "Nov 31, 2023", "3.11.23", "2023/13/03 08:30"]
)
def test_days_that_are_none_are_refused_as_written(written: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"'{written}' is not a time")):
        event_time(written, None, ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("written", "forms"),
    [
        ("11/03/2023", '"%m/%d/%Y" or "%d/%m/%Y"'),
        ("11-03-2023 08:30:00", '"%m-%d-%Y %H:%M:%S" or "%d-%m-%Y %H:%M:%S"'),
        ("11/3/2023 8:30 AM", '"%m/%d/%Y %I:%M %p" or "%d/%m/%Y %I:%M %p"'),
    ],
)
def test_a_day_that_can_be_two_is_refused_with_both_of_its_forms(written: str, forms: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"time_format = {forms}")):
        event_time(written, None, ZoneInfo("UTC"))
    for form in re.findall('"([^"]+)"', forms):
        event_time(written, None, ZoneInfo("UTC"), form)


def test_a_form_of_times_holds_for_when_a_row_was_known_too() -> None:
    row = b"time,known_at,currency,event\n11/03/2023 08:30,10/20/2023 09:00,USD,CPI"
    (event,) = read(row, zone=NEW_YORK, time_format="%m/%d/%Y %H:%M").events
    assert event.known_ns == utc_ns(2023, 10, 20, 13)


def test_signs_of_a_vendors_page_are_read() -> None:
    text = "time,cur,imp,event,actual,forecast,\n2023-11-03 08:30,USD,★★★,S&amp;P/CS&nbsp;HPI,&nbsp;,1.6%,\n"
    for data in (text.encode(), text.encode("utf-16")):
        (event,) = read(data, zone=NEW_YORK).events
        assert (event.name, event.impact, event.actual, event.forecast) == ("S&P/CS HPI", "high", None, 1.6)


def test_a_row_whose_empty_end_was_dropped_is_read() -> None:
    reading = read(b"time,currency,event,actual\n2023-11-03 08:30Z,USD,CPI\n2023-11-14 08:30Z,USD,CPI,0.1%\n")
    assert [event.actual for event in reading.events] == [None, 0.1]
    assert not reading.faults


def test_results_of_companies_are_read_from_an_exchanges_own_columns() -> None:
    data = b"""symbol,name,time,epsForecast,date
AAPL,Apple Inc.,time-after-hours,$1.39,2023-11-02
PFE,"Pfizer, Inc.",time-pre-market,($0.32),2023-10-31
XYZ,XYZ Corp,time-not-supplied,N/A,2023-10-30
"""
    reading = read(data, zone=NEW_YORK)
    assert [
        (event.symbol, event.kind, event.forecast, event.time_ns, event.is_exact) for event in reading.events
    ] == [
        ("XYZ", "earnings", None, utc_ns(2023, 10, 30), False),
        ("PFE", "earnings", -0.32, utc_ns(2023, 10, 31, 11), True),  # before the session
        ("AAPL", "earnings", 1.39, utc_ns(2023, 11, 2, 22), True),  # after it
    ]
    assert not reading.faults
    with pytest.raises(InvalidInput, match="line 2: '2023-11-02' has no zone"):
        read(data)
    other = b"Symbol,Company,Earnings Date,EPS Estimate,Reported EPS\nAAPL,Apple Inc.,2023-11-02,1.39,1.46\n"
    (event,) = read(other).events
    assert (event.kind, event.forecast, event.actual) == ("earnings", 1.39, 1.46)


def test_instants_and_days_of_a_parquet_file_are_read_as_they_are(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "c.parquet"
    at = pa.array([datetime(2019, 3, 8, 13, 30, tzinfo=UTC)], pa.timestamp("ns", tz="UTC"))
    words = pa.array(["CPI y/y"]).dictionary_encode()
    pq.write_table(pa.table({"published_at": at, "event": words, "country": ["Germany"]}), file)
    (event,) = read(b"", str(file)).events
    assert (event.time_ns, event.kind, event.currency) == (utc_ns(2019, 3, 8, 13, 30), "de_cpi", "EUR")
    pq.write_table(
        pa.table({"date": [date(2019, 3, 8)], "ticker": ["AAPL"], "name": ["Quarterly EPS"]}), file
    )
    (event,) = read(b"", str(file)).events
    assert (event.time_ns, event.is_exact, event.kind) == (utc_ns(2019, 3, 8), False, "earnings")
    assert (event.symbol, event.currency) == ("AAPL", "")


def test_columns_are_mapped_by_name_and_by_expression() -> None:
    data = b"day;clock;where;what;was;gap\n2019-03-08;08:30;US;Payrolls;20K;-160K\n"
    columns = {
        "time": 'day + " " + clock',
        "name": 'where + " Nonfarm " + what',
        "country": "where",
        "actual": "was",
        "forecast": "was - gap",
    }
    (event,) = read(data, zone=NEW_YORK, columns=columns).events
    assert (event.time_ns, event.kind, event.name) == (
        utc_ns(2019, 3, 8, 13, 30),
        "us_payrolls",
        "US Nonfarm Payrolls",
    )
    assert (event.actual, event.forecast) == (20_000.0, 180_000.0)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"when": "date"}, "unknown field 'when' in columns: the fields are time"),
        ({"name": "titel"}, "columns.name: no column 'titel': its columns are date, time"),
        ({"forecast": "actual -"}, "columns.forecast: 'actual -' ends where"),
        ({"forecast": "actual - consensus"}, "columns.forecast: no column 'consensus'"),
        ({"forecast": 'currency + " "'}, "joins texts where a figure is needed"),
        ({"name": "actual + forecast"}, "makes a figure where a text is needed"),
        ({"name": ""}, "no column of the name of an event"),
    ],
)
def test_a_mapping_that_does_not_fit_is_said_in_one_line(columns: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(as_csv(ROWS), zone=NEW_YORK, columns=columns)
    assert said in str(error.value)
    assert str(error.value).startswith("calendar c.csv: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "c.csv", "empty: its first line names the columns"),
        (b"a,a\n1,2", "c.csv", "two columns are named 'a'"),
        (b"time,event\n2019-01-01 08:30,CPI,x", "c.csv", "line 2: 3 cells where the first line names 2"),
        (b"time,event\nsoon,CPI", "c.csv", "no row of 1 can be read; line 2: 'soon' is not a time"),
        (b"time,event\n2019-01-01 08:30,CPI", "c.csv", "has no zone: state zone"),
        (b"time,value\n2019-01-01 08:30,3", "c.csv", "no column of the name of an event"),
        (b"[1]", "c.json", "a list of objects"),
        (b"{", "c.json", "not valid JSON"),
        (b"[" * 100_000, "c.json", "not valid JSON"),
        (b"\xff\xfe", "c.json", "not valid JSON"),
        (b"\xff\xfea", "c.json", "not UTF-16 at byte 2"),
        (b"a,\xe4", "c.csv", "not UTF-8 at byte 2"),
        (b"x", "c.xlsx", "the format is not known: state format"),
    ],
)
def test_a_file_that_is_none_is_said_in_one_line(data: bytes, name: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(data, name)
    assert said in str(error.value)
    assert str(error.value).startswith(f"calendar {name}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("day", "clock", "found"),
    [
        ("2024-07-01", "4 PMEDT", utc_ns(2024, 7, 1, 20)),
        ("2024-01-05", "8:30 AM ET", utc_ns(2024, 1, 5, 13, 30)),
        ("2024-07-05", "08:30 EST", utc_ns(2024, 7, 5, 12, 30)),  # as vendors write it in summer too
        ("2024-07-05", "11:00 cest", utc_ns(2024, 7, 5, 9)),
        ("2024-07-05", "13:30 GMT", utc_ns(2024, 7, 5, 13, 30)),
        ("Nov 3, 2023 8:30 am EDT", None, utc_ns(2023, 11, 3, 12, 30)),
        ("2023/11/03 08:50 JST", None, utc_ns(2023, 11, 2, 23, 50)),
    ],
)
def test_a_zone_behind_a_clock_stands_before_that_of_the_calendar(day: str, clock: str, found: int) -> None:
    assert event_time(day, clock, ZoneInfo("Europe/London")) == (found, True)


@pytest.mark.parametrize("written", [45230.354166667, "45230.354166667"])
def test_a_spreadsheets_number_is_a_day_and_its_clock(written: float | str) -> None:
    zone = ZoneInfo(NEW_YORK)
    assert event_time(written, None, zone) == (utc_ns(2023, 10, 31, 12, 30), True)
    assert event_time("45230", None, zone) == (utc_ns(2023, 10, 31), False)
    assert event_time(45230, "8:30am", zone) == (utc_ns(2023, 10, 31, 12, 30), True)


@pytest.mark.parametrize("written", [45230.354, 45230.3542, "45230.354", "45230.3542"])
def test_a_spreadsheets_number_cut_after_three_decimals_is_its_minute(written: float | str) -> None:
    assert event_time(written, None, ZoneInfo(NEW_YORK)) == (utc_ns(2023, 10, 31, 12, 30), True)


@pytest.mark.parametrize("written", [20231103, 20231103.0, "20231103"])
def test_a_number_of_eight_digits_is_the_day_that_it_spells(written: float | str) -> None:
    zone = ZoneInfo(NEW_YORK)
    assert event_time(written, None, zone) == (utc_ns(2023, 11, 3), False)
    assert event_time(written, "8:30am", zone) == (utc_ns(2023, 11, 3, 12, 30), True)


@pytest.mark.parametrize("written", [202311030830, "202311030830", 20231103083000, "20231103083000"])
def test_a_number_of_a_day_and_a_clock_is_a_wall_clock(written: int | str) -> None:
    assert event_time(written, None, ZoneInfo(NEW_YORK)) == (utc_ns(2023, 11, 3, 12, 30), True)


@pytest.mark.parametrize(
    "written",
    [0, 12, 2023, -5, 19_999, 80_000, "19999", 20231345, float("nan"), float("inf"), 1e30, 10**310],
)
def test_a_number_that_is_no_time_is_refused_and_not_read_as_1970(written: float | str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a time|is neither a time"):
        event_time(written, None, ZoneInfo(NEW_YORK))


@pytest.mark.parametrize(
    "day",
    [
        1_698_969_600,
        1_698_969_600_000,
        "1698969600000",
        "2023-11-03T00:00:00.000Z",
        "2023-11-03T00:00-04:00",
        datetime(2023, 11, 3, tzinfo=UTC),
        datetime(2023, 11, 3, 4, tzinfo=UTC),
    ],
)
def test_a_clock_beside_an_instant_that_begins_a_day_is_of_that_day(day: object) -> None:
    zone = ZoneInfo(NEW_YORK)
    assert event_time(day, "8:30am", zone) == (utc_ns(2023, 11, 3, 12, 30), True)
    assert event_time(day, "All Day", zone) == (utc_ns(2023, 11, 3), False)


@pytest.mark.parametrize(
    "instant", ["2023-11-03T12:30:00Z", 1_699_014_600, datetime(2023, 11, 3, 12, 30, tzinfo=UTC)]
)
def test_an_instant_with_an_hour_stands_whatever_clock_is_beside_it(instant: object) -> None:
    assert event_time(instant, "09:00", ZoneInfo(NEW_YORK)) == (utc_ns(2023, 11, 3, 12, 30), True)


@pytest.mark.parametrize("clock", ["01:30-05:00", "1:30 AM -0500", "06:30Z"])
def test_a_clock_that_comes_twice_is_read_with_its_offset(clock: str) -> None:
    assert event_time("2023-11-05", clock, ZoneInfo(NEW_YORK)) == (utc_ns(2023, 11, 5, 6, 30), True)


def test_an_offset_and_a_zone_that_disagree_refuse_the_row() -> None:
    assert event_time("2023-11-03T08:30-04:00 ET", None, None) == (utc_ns(2023, 11, 3, 12, 30), True)
    with pytest.raises(InvalidInput, match="an offset and a zone"):
        event_time("2023-11-03T08:30+02:00 ET", None, None)


def test_a_column_of_when_rows_were_known_may_have_gaps() -> None:
    rows = [{"time": 1_699_014_600, "known_at": known, "event": "CPI"} for known in (float("nan"), 0)]
    assert [event.known_ns for event in read(json.dumps(rows).encode(), "c.json").events] == [0]


def test_an_instant_with_a_zone_of_its_own_knows_which_of_two_equal_clocks_it_is() -> None:
    later = datetime(2023, 11, 5, 1, 30, tzinfo=ZoneInfo(NEW_YORK), fold=1)
    assert event_time(later, None, None) == (utc_ns(2023, 11, 5, 6, 30), True)


def test_a_row_with_more_cells_than_columns_is_left_out_and_said() -> None:
    data = b"time,event\n2019-01-01 08:30,CPI\n2019-02-01 08:30,CPI, core\n2019-03-01 08:30,CPI"
    reading = read(data, "c.csv", zone=NEW_YORK)
    assert [event.time_ns for event in reading.events] == [
        utc_ns(2019, 1, 1, 13, 30),
        utc_ns(2019, 3, 1, 13, 30),
    ]
    (fault,) = reading.faults
    assert (fault.place, fault.refused) == ("line 3", True)
    assert fault.detail == "3 cells where the first line names 2: put a cell that holds ',' in quotes"


def test_a_damaged_parquet_file_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "c.parquet"
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidInput, match="not a whole Parquet file"):
        open_calendar(str(file))


ICS = b"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//a vendor//EN
BEGIN:VEVENT
UID:1@vendor
DTSTART;TZID=America/New_York:20190308T083000
SUMMARY:US Nonfarm Payrolls
X-ACTUAL:20K
X-FORECAST:180K
END:VEVENT
BEGIN:VEVENT
UID:2@vendor
DTSTART;TZID=America/New_York:20190307T083000
RRULE:FREQ=WEEKLY;COUNT=4
EXDATE;TZID=America/New_York:20190321T083000
SUMMARY:US Initial Jobless Claims
END:VEVENT
BEGIN:VEVENT
UID:2@vendor
RECURRENCE-ID;TZID=America/New_York:20190328T083000
DTSTART;TZID=America/New_York:20190327T083000
SUMMARY:US Initial Jobless Claims
END:VEVENT
BEGIN:VEVENT
UID:3@vendor
DTSTART;VALUE=DATE:20190419
SUMMARY:US markets closed: Good Friday
END:VEVENT
BEGIN:VEVENT
UID:4@vendor
DTSTART:20190320T180000Z
STATUS:CANCELLED
SUMMARY:FOMC Rate Decision
END:VEVENT
END:VCALENDAR
"""


def test_icalendar_holds_zones_recurrences_and_cancellations() -> None:
    pytest.importorskip("icalendar", reason="needs icalendar")
    reading = read(ICS, "c.ics", currency="USD")
    assert [(event.kind, event.time_ns, event.is_exact) for event in reading.events] == [
        ("us_jobless_claims", utc_ns(2019, 3, 7, 13, 30), True),
        ("us_payrolls", utc_ns(2019, 3, 8, 13, 30), True),
        ("us_jobless_claims", utc_ns(2019, 3, 14, 12, 30), True),  # the same wall clock, in summer time
        ("us_jobless_claims", utc_ns(2019, 3, 27, 12, 30), True),  # one that was moved
        ("market_closed", utc_ns(2019, 4, 19), False),
    ]
    assert reading.num_cancelled == 1
    assert reading.events[1].forecast == 180_000.0


def test_an_event_of_icalendar_without_a_day_is_left_out() -> None:
    pytest.importorskip("icalendar", reason="needs icalendar")
    reading = read(ICS.replace(b"DTSTART;TZID=America/New_York:20190308T083000\n", b""), "c.ics")
    assert len(reading.events) == 4
    assert [(fault.place, fault.refused) for fault in reading.faults] == [("event 1", True)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"nothing", "not valid iCalendar"),
        (ICS.replace(b"DTSTART", b"BEGIN2"), "no row of 5 can be read; event 1: the row has no time"),
    ],
)
def test_icalendar_that_is_none_is_said(data: bytes, said: str) -> None:
    pytest.importorskip("icalendar", reason="needs icalendar")
    with pytest.raises(InvalidInput, match=said):
        read(data, "c.ics")


def test_a_toml_file_names_sources_beside_releases(tmp_path: Path) -> None:
    (tmp_path / "vendor.csv").write_bytes(as_csv(ROWS))
    (tmp_path / "c.toml").write_text(
        f"""
[[source]]
path = "vendor.csv"
zone = "{NEW_YORK}"
only = ["usd"]
[[release]]
id = "ecb-2019-04-10"
kind = "rate_decision"
subject = "ecb"
at = 2019-04-10T11:45:00Z
level = 0.0
""",
        encoding="utf-8",
    )
    opened = read_calendar(str(tmp_path / "c.toml"))
    assert [event.kind for event in opened.calendar.events] == ["us_payrolls", "ecb_decision"]
    assert [(one.kind.value, one.subject, one.consensus) for one in opened.calendar.releases] == [
        ("payrolls", "us", 180.0),
        ("rate_decision", "ecb", None),
    ]
    assert opened.readings[0].num_not_wanted == 2
    digest = opened.calendar.digest
    (tmp_path / "vendor.csv").write_bytes(as_csv(ROWS[:1]))
    assert open_calendar(str(tmp_path / "c.toml")).digest != digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[source]]\nzone = 'UTC'", "source 1: state its path"),
        ("[[source]]\npath = 'a.csv'\nzone = 'Mars'", "source 1: zone 'Mars' is not known"),
        ("[[source]]\npath = 'a.csv'\nwhen = 'x'", "source 1: unknown key 'when'"),
        ("[[source]]\npath = 3", "path must be a text"),
        ("[[source]]\npath = 'a.csv'\n[source.columns]\nx = 'y'", "unknown field 'x' in columns"),
        ("source = 3", "each 'source' must be a table"),
        ("[recurring]\ncountries = ['fr']", "no rules of 'fr' are known: one of us, ea, uk, jp"),
        ("[recurring]\nstates = ['us']", "unknown key 'states'"),
        ("[recurring]\ncountries = 'us'", "must be a list of texts"),
        ("[[source]]\npath = 'none.csv'", "there is no such file"),
    ],
)
def test_a_toml_file_that_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as error:
        open_calendar(str(file))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
