"""Calendars in the manners of vendors: their columns, figures, zones, nested objects and recurrences are read right, or
refused in a line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from htfi.calendar.figures import read_figure
from htfi.calendar.reading import CalendarReading
from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import format_ns
from htfi.narrative.calendar.scheduled import announcements_of
from htfi.wiring.calendar_reading import read_calendar, source_of

NEW_YORK = "America/New_York"


def read(folder: Path, name: str, text: str, **stated: str) -> CalendarReading:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    source = source_of(str(path))
    assert source is not None
    (reading,) = read_calendar(str(path), replace(source, **stated)).readings
    return reading


def figures(event: ScheduledEvent) -> tuple[str, float | None, float | None, float | None]:
    return event.kind, event.actual, event.forecast, event.previous


def when(event: ScheduledEvent) -> str:
    return format_ns(event.time_ns)[:16] if event.is_exact else format_ns(event.time_ns)[:10]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("225K", 225e3), ("0.3%", 0.3), ("1.2M", 1.2e6), ("$1.2bn", 1.2e9), ("4-1/4", 4.25), ("4 1/4", 4.25),
        ("4¼", 4.25), ("½%", 0.5), ("1,234.5", 1234.5), ("1.234,5", 1234.5), ("1.234.567", 1_234_567.0),
        ("1 234,5", 1234.5), ("≤0.3%", 0.3), ("($58.3B)", -58.3e9), ("1.2 billion", 1.2e9), ("150 Tsd.", 150e3),
        ("2,1 Mrd", 2.1e9), ("0.3pct", 0.3), ("0.3 percent", 0.3), ("49.0 pts", 49.0), ("46.7p", 46.7),
        ("2.5%*", 2.5), ("2.5% (F)", 2.5), ("1.2e+09", 1.2e9), ("２．５%", 2.5), ("150K p", 150e3),
    ],
)  # fmt: skip
def test_figures_of_vendors_are_read(written: str, value: float) -> None:
    found = read_figure(written)
    assert found is not None
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize("written", ["30bp", "4.00 - 4.25%", "1.2e", "3F5", "1.23,4", "12 34", "5 of 7", "p"])
def test_figures_that_are_none_or_two_are_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="is not a figure"):
        read_figure(written)


@pytest.mark.parametrize(
    ("header", "zone", "time"),
    [
        ("Date,Time (ET),Event", "", "2024-07-05T12:30"),
        ("Date,Time EST,Event", "", "2024-07-05T12:30"),
        ("Date (GMT),Time (GMT),Event", "", "2024-07-05T08:30"),
        ("Date,Time [UTC+2],Event", NEW_YORK, "2024-07-05T06:30"),
        ("Date,Time (local),Event", NEW_YORK, "2024-07-05T12:30"),
        ("Start Date,Start Time,Subject", NEW_YORK, "2024-07-05T12:30"),
    ],
)
def test_a_columns_name_may_state_its_zone(header: str, zone: str, time: str, tmp_path: Path) -> None:
    reading = read(tmp_path, "c.csv", f"{header}\n2024-07-05,08:30,Nonfarm Payrolls\n", zone=zone)
    assert [when(event) for event in reading.events] == [time]


def test_a_column_of_instants_in_utc_needs_no_zone_beside_its_name(tmp_path: Path) -> None:
    reading = read(tmp_path, "c.csv", "datetime_utc,Event\n2024-07-05 08:30,Nonfarm Payrolls\n")
    assert [when(event) for event in reading.events] == ["2024-07-05T08:30"]


def test_a_columns_name_of_several_zones_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"column 'Time \(CST\)': .* write America/Chicago or Asia/Shanghai instead"
    ):
        read(tmp_path, "c.csv", "Date,Time (CST),Event\n2024-07-05,08:30,CPI\n")


def test_wall_clocks_follow_summer_time_and_those_that_are_none_or_two_refuse_their_rows(
    tmp_path: Path,
) -> None:
    days = (
        "2023-03-10,8:30 AM",
        "2023-03-12,2:30 AM",
        "2023-04-07,8:30 AM",
        "2023-11-05,1:30 AM",
        "2023-11-06,8:30 AM",
    )
    reading = read(tmp_path, "c.csv", "Date,Time (ET),Event\n" + "".join(f"{day},CPI\n" for day in days))
    assert [when(event) for event in reading.events] == [
        "2023-03-10T13:30",
        "2023-04-07T12:30",
        "2023-11-06T13:30",
    ]
    assert [fault.place for fault in reading.faults] == ["line 3", "line 5"]


def test_a_weeks_json_with_holidays_at_midnight(tmp_path: Path) -> None:
    rows = [
        {"title": "Non-Farm Employment Change", "country": "USD", "date": "2023-11-03T08:30:00-04:00", "impact": "High",
         "forecast": "180K", "previous": "297K"},
        {"title": "Bank Holiday", "country": "AUD", "date": "2023-11-07T00:00:00+11:00", "impact": "Holiday"},
    ]  # fmt: skip
    payrolls, holiday = read(tmp_path, "c.json", json.dumps(rows)).events
    assert figures(payrolls) == ("us_payrolls", None, 180e3, 297e3)
    assert when(payrolls) == "2023-11-03T12:30"
    assert (holiday.kind, holiday.currency, when(holiday)) == (
        "bank_holiday",
        "AUD",
        "2023-11-07",
    )  # by its own offset


def test_objects_within_objects_are_read(tmp_path: Path) -> None:
    event = {
        "time": "2023-11-03T12:30:00Z",
        "name": "Unemployment Rate",
        "country": {"code": "US", "name": "United States"},
        "values": {"actual": {"value": 3.9, "unit": "%"}, "forecast": {"value": 3.8}, "previous": 3.8},
    }
    for content in ({"data": {"events": [event]}}, [event], {"status": "ok", "result": [event]}):
        (found,) = read(tmp_path, "c.json", json.dumps(content)).events
        assert figures(found) == ("us_unemployment_rate", 3.9, 3.8, 3.8)
        assert found.currency == "USD"
    with pytest.raises(InvalidInput, match="a list of objects"):
        read(tmp_path, "c.json", json.dumps({"a": [event], "b": [event]}))


def test_a_column_of_units_makes_figures_whole(tmp_path: Path) -> None:
    rows = [
        {"date": "2023-11-03 12:30:00", "country": "US", "event": "Non Farm Payrolls", "currency": "USD",
         "previous": 297, "estimate": "180K", "actual": 150, "unit": "K"},
        {"date": "2023-11-03 12:30:00", "country": "US", "event": "Unemployment Rate", "actual": 3.9, "unit": "%"},
    ]  # fmt: skip
    found = read(tmp_path, "c.json", json.dumps(rows), zone="UTC").events
    assert [figures(event) for event in found] == [
        ("us_payrolls", 150e3, 180e3, 297e3),
        ("us_unemployment_rate", 3.9, None, None),
    ]


@pytest.mark.parametrize("forecast", ["180", "180K", "180,000"])
def test_views_of_payrolls_are_prepared_for_thousands_however_a_vendor_writes_them(
    forecast: str, tmp_path: Path
) -> None:
    text = f'datetime,currency,event,forecast\n2023-11-03 12:30Z,USD,Nonfarm Payrolls,"{forecast}"\n'
    (announcement,) = announcements_of(read(tmp_path, "c.csv", text).events)
    assert announcement.consensus == 180.0


def test_bloombergs_grid_has_codes_of_countries_and_days_without_an_hour(tmp_path: Path) -> None:
    text = (
        "Date Time,C,Event,Period,Surv(M),Actual,Prior,Revised\n"
        "11/03/23 08:30,US,Change in Nonfarm Payrolls,Oct,180k,150k,336k,297k\n"
        "11/30/23,CH,Manufacturing PMI,Nov,49.8,49.4,49.5,--\n"
        "11/30/23 02:55,GE,Unemployment Change (000's),Nov,22.0k,22.0k,31.0k,--\n"
        "12/01/23 03:30,SZ,PMI Manufacturing,Nov,41.5,42.1,40.6,--\n"
    )
    found = read(tmp_path, "c.csv", text, zone=NEW_YORK, time_format="%m/%d/%y %H:%M").events
    assert {event.currency: (event.kind, when(event)) for event in found} == {
        "USD": ("us_payrolls", "2023-11-03T12:30"),
        "CNY": ("cn_pmi", "2023-11-30"),
        "EUR": ("de_employment", "2023-11-30T07:55"),
        "CHF": ("ch_pmi_manufacturing", "2023-12-01T08:30"),
    }


def test_results_of_companies_have_their_forecasts_and_a_currency_of_their_figures(tmp_path: Path) -> None:
    nasdaq = (
        "Symbol,Name,Market Cap,Consensus EPS* Forecast,# Of Ests,Last Year's Report Date,Last Year's EPS*,Time,Date\n"
        'AAPL,Apple Inc.,"$2,761,000,000,000",$1.39,9,10/27/2022,$1.29,time-after-hours,2023-11-02\n'
        'BAX,Baxter,"$1,234.5",($0.12),3,10/27/2022,N/A,time-pre-market,2023-11-02\n'
    )
    found = read(tmp_path, "n.csv", nasdaq, zone=NEW_YORK).events
    assert [(event.symbol, event.kind, event.forecast, when(event)) for event in found] == [
        ("BAX", "earnings", -0.12, "2023-11-02T11:00"),
        ("AAPL", "earnings", 1.39, "2023-11-02T22:00"),
    ]
    (result,) = read(
        tmp_path, "a.csv", "symbol,name,reportDate,estimate,currency\nAAPL,Apple,2023-11-02,1.39,USD\n"
    ).events
    assert (result.symbol, result.kind, result.currency, result.is_exact) == ("AAPL", "earnings", "", False)


def test_a_spreadsheets_line_about_its_separator_and_a_date_with_its_year_first(tmp_path: Path) -> None:
    text = 'sep=;\nDate;Event\n"2023, November 03, 12:30";CPI\nsoon;CPI\n'
    reading = read(tmp_path, "c.csv", text, zone="UTC")
    assert [when(event) for event in reading.events] == ["2023-11-03T12:30"]
    assert reading.faults[0].place == "line 4"


def test_a_line_that_is_no_json_refuses_its_row_alone(tmp_path: Path) -> None:
    text = '{"time": "2023-11-03T12:30:00Z", "event": "CPI", "country": "US"}\n{bad\n[1]\n'
    reading = read(tmp_path, "c.jsonl", text)
    assert [event.kind for event in reading.events] == ["us_cpi"]
    assert [fault[:2] for fault in reading.faults] == [
        ("line 2", "not an object of JSON"),
        ("line 3", "not an object of JSON"),
    ]


@pytest.mark.parametrize("ending", [".xml", ".xlsx", ".html"])
def test_files_that_are_not_read_are_refused_by_their_ending(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"c{ending}"
    path.write_bytes(b"PK\x03\x04<xml>")
    with pytest.raises(
        InvalidInput, match=rf"files ending in {ending} are not read: save it as CSV, JSON, Parquet"
    ):
        read_calendar(str(path))


ICS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//a broker//EN
X-WR-TIMEZONE:America/New_York
BEGIN:VTIMEZONE
TZID:Eastern Standard Time
BEGIN:STANDARD
DTSTART:16011104T020000
RRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11
TZOFFSETFROM:-0400
TZOFFSETTO:-0500
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010311T020000
RRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3
TZOFFSETFROM:-0500
TZOFFSETTO:-0400
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
UID:1
DTSTART;TZID=Eastern Standard Time:20231026T083000
RRULE:FREQ=WEEKLY;UNTIL=20231123T133000Z
EXDATE;TZID=Eastern Standard Time:20231123T083000
RDATE;TZID=Eastern Standard Time:20231122T083000
SUMMARY:US Initial Jobless Claims
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART;VALUE=DATE:20231123
DTEND;VALUE=DATE:20231124
SUMMARY:US Markets Closed - Thanksgiving
END:VEVENT
BEGIN:VEVENT
UID:3
DTSTART:20231103T083000
SUMMARY:US Nonfarm Payrolls
END:VEVENT
BEGIN:VEVENT
UID:4
DTSTART;TZID=Nowhere/Land:20231103T083000
SUMMARY:US CPI
END:VEVENT
END:VCALENDAR
"""


def test_a_brokers_icalendar_with_zones_exceptions_and_additions(tmp_path: Path) -> None:
    pytest.importorskip("icalendar", reason="needs icalendar")
    reading = read(tmp_path, "c.ics", ICS, zone="UTC")
    assert [(event.kind, when(event)) for event in reading.events] == [
        ("us_jobless_claims", "2023-10-26T12:30"),
        ("us_jobless_claims", "2023-11-02T12:30"),
        ("us_payrolls", "2023-11-03T12:30"),  # in the calendar's own zone
        ("us_jobless_claims", "2023-11-09T13:30"),
        ("us_jobless_claims", "2023-11-16T13:30"),
        ("us_jobless_claims", "2023-11-22T13:30"),  # added, where the 23rd is left out
        ("market_closed", "2023-11-23"),
    ]
    assert [fault[:2] for fault in reading.faults] == [
        ("event 4", "its zone 'Nowhere/Land' is not known: write it as America/New_York")
    ]


def test_a_mapping_joins_texts_and_computes_across_summer_time(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(
        "day,clock,currency,event,actual,surprise,prev rev\n2024-07-05,8:30 A.M.,USD,Nonfarm Payrolls,206K,16K,218K\n"
        "2024-01-05,8:30 A.M.,USD,Nonfarm Payrolls,216K,n/a,173K\n",
        encoding="utf-8",
    )
    mapping = """[[source]]
path = "c.csv"
zone = "America/New_York"
[source.columns]
time = 'day + " " + clock'
name = 'currency + " " + event'
forecast = "actual - surprise"
previous = "`prev rev`"
"""
    (tmp_path / "c.toml").write_text(mapping, encoding="utf-8")
    january, july = read_calendar(str(tmp_path / "c.toml")).readings[0].events
    assert (when(january), when(july)) == ("2024-01-05T13:30", "2024-07-05T12:30")
    assert figures(january) == ("us_payrolls", 216e3, None, 173e3)
    assert figures(july) == ("us_payrolls", 206e3, 190e3, 218e3)
