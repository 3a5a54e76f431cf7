"""Any bytes are a calendar of events or refused in one line, whatever their format, and events are in order."""

from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from htfi.adapters.calendars.files import read_table
from htfi.calendar.columns import CalendarSource
from htfi.calendar.local_times import wall_clock_ns
from htfi.calendar.reading import read_events
from htfi.domain.errors import InvalidInput

NAMES = ["c.csv", "c.json", "c.jsonl", *(["c.ics"] if find_spec("icalendar") else [])]
ICS = (
    b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;TZID=America/New_York:20190307T083000\r\n"
    b"RRULE:FREQ=WEEKLY;COUNT=4\r\nEXDATE;TZID=America/New_York:20190321T083000\r\nSUMMARY:CPI\r\nEND:VEVENT\r\n"
    b"END:VCALENDAR\r\n"
)
CSV = b"id,date,time,event,currency,actual,forecast,known_at\n1,2019-03-08,8:30am,CPI,USD,0.1%,<0.2%,2019-01-01\n"
JSON = b'[{"ts": "2019-03-08 08:30", "event": "CPI", "actual": 3, "country": "Germany"}]'


def refusal(data: bytes, name: str) -> str:
    """Why a calendar is refused; '' where it is read."""
    source = CalendarSource(name, zone="America/New_York")
    try:
        table = read_table(Path(name), data)
        reading = read_events(table.names, table.rows, source, f"calendar {name}")
    except InvalidInput as error:
        return str(error)
    times = [event.time_ns for event in reading.events]
    assert times == sorted(times)
    return "".join(fault.detail for fault in reading.faults)


@given(st.binary(max_size=200), st.sampled_from(NAMES))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes, name: str) -> None:
    assert refusal(data, name).isprintable()


@given(st.data(), st.sampled_from([(CSV, "c.csv"), (JSON, "c.json"), *((ICS, one) for one in NAMES[3:])]))
def test_a_calendar_with_bytes_changed_is_read_or_refused_in_one_line(
    data: st.DataObject, given_file: tuple[bytes, str]
) -> None:
    content, name = bytearray(given_file[0]), given_file[1]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 6))] = data.draw(st.binary(max_size=6))
        content = content or bytearray(b"x")
    assert refusal(bytes(content), name).isprintable()


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1)),  # noqa: DTZ001
    st.sampled_from(
        ["America/New_York", "Europe/London", "Australia/Lord_Howe", "Asia/Tokyo", "America/Sao_Paulo"]
    ),
)
def test_a_wall_clock_is_the_instant_at_which_its_zone_shows_it(moment: datetime, zone: str) -> None:
    place, found = ZoneInfo(zone), None
    try:
        found = wall_clock_ns(moment, place, "x")
    except InvalidInput as error:
        shown = [moment.replace(tzinfo=place, fold=fold).utcoffset() for fold in (0, 1)]
        assert shown[0] != shown[1], str(error)  # noqa: PT017
    back = datetime.fromtimestamp((found or 0) // 1_000_000_000, place).replace(tzinfo=None)
    assert found is None or back == moment.replace(microsecond=0)
