"""Reads a run's calendar: a file of events or announcements, a TOML file that names such files, 'sample', 'recurring'.

One reading serves both uses: announcements whose views are prepared, and scheduled events that move the bands.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from htfi import sample
from htfi.adapters.calendars.files import FORMATS, MAX_BYTES, format_of, read_table
from htfi.adapters.stores.snapshot import read_whole
from htfi.adapters.text_encodings import UTF8, decoded, encoding_of
from htfi.calendar.check import CalendarCheck, RuleHits, check_calendar, check_rules
from htfi.calendar.columns import CalendarSource
from htfi.calendar.document import (
    ALL_RECURRING,
    FIRST_DAY,
    LAST_DAY,
    CalendarDocument,
    RecurringChoice,
    parse_document,
)
from htfi.calendar.reading import CalendarReading, read_events
from htfi.calendar.recurring import VERSION, recurring_releases, superseded
from htfi.calendar.usual_times import check_zone
from htfi.domain.errors import DependencyUnavailable, InvalidInput, is_installed
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import SystemClock
from htfi.narrative.calendar.announcements import Announcement, Calendar
from htfi.narrative.calendar.parsing import MAX_BYTES as MAX_TEXT_BYTES
from htfi.narrative.calendar.parsing import parse_calendar
from htfi.narrative.calendar.scheduled import announcements_of, events_of
from htfi.narrative.facts.assets import asset_of
from htfi.narrative.facts.regions import region_of_currency

SAMPLE_CALENDAR = "sample"  # stands for the calendar of the embedded sample
SAMPLE_CALENDAR_FILE = "calendar.toml"
RECURRING_CALENDAR = "recurring"  # stands for all that recurs by rule
_ANNOUNCEMENT_COLUMNS = frozenset({"kind", "subject", "at"})  # by which a CSV file of announcements is known


@dataclass(slots=True)
class OpenedCalendar:
    """A calendar, and what its files gave: the readings of files of events, by their order."""

    calendar: Calendar = field(default_factory=Calendar)
    readings: list[CalendarReading] = field(default_factory=list[CalendarReading])
    by_rule: tuple[ScheduledEvent, ...] = ()


_last: list[tuple[str, OpenedCalendar]] = []  # the digest and what it gave: a run asks twice


def read_calendar(named: str, source: CalendarSource | None = None) -> OpenedCalendar:
    """The calendar that the setting names, with what each file gave; `source` states how a file that is no TOML is
    read.

    Raises: InvalidInput with one line that says what is wrong with it, where, and what to do; MissingExtra.
    """
    if not named:
        return OpenedCalendar()
    if named == RECURRING_CALENDAR:
        return _opened(CalendarDocument((), ALL_RECURRING), (), named.encode(), named)
    path = Path(sample.__file__).with_name(SAMPLE_CALENDAR_FILE) if named == SAMPLE_CALENDAR else Path(named)
    data = _bytes_of(path, named)
    if path.suffix.lower() not in FORMATS:
        if len(data) > MAX_TEXT_BYTES:
            raise InvalidInput(f"calendar {path}: {len(data)} bytes; the maximum is {MAX_TEXT_BYTES}")
        announced = parse_calendar(data, str(path)).releases
        return _opened(parse_document(data, path), announced, data, named)
    if source is None and _states_announcements(data, path):
        if encoding_of(data) != UTF8:
            data = decoded(data, f"calendar {path}").encode()
        return _opened(CalendarDocument(), parse_calendar(data, str(path)).releases, data, named)
    return _opened(CalendarDocument((source or CalendarSource(str(path)),)), (), b"", named)


def calendar_notices(opened: OpenedCalendar) -> list[str]:
    """A line for each file of a calendar with rows that were refused, or whose zone seems wrong."""
    lines: list[str] = []
    for reading in opened.readings:
        if reading.num_refused:
            first = next(fault for fault in reading.faults if fault.refused)
            lines.append(
                f"calendar {reading.path}: {reading.num_refused:,} of {reading.num_rows:,} rows refused, the first at "
                f"{first.place}: {first.detail}; `htfi calendar check` lists them"
            )
        zone = check_zone(reading.events)
        if zone.fault:
            lines.append(f"calendar {reading.path}: {zone.fault}")
    return lines


def _opened(
    document: CalendarDocument, announced: Sequence[Announcement], data: bytes, named: str
) -> OpenedCalendar:
    contents = [(source, _bytes_of(Path(source.path), source.path)) for source in document.sources]
    digest = _digest(data, contents, document.recurring)
    key = f"{named} {document.sources} {digest}"
    if _last and _last[0][0] == key:
        return _last[0][1]
    readings = [_reading(source, content) for source, content in contents]
    stated = [event for reading in readings for event in reading.events]
    of_files = {(event.kind, event.time_ns, event.symbol) for event in stated}
    own = [one for one in events_of(announced) if (one.kind, one.time_ns, one.symbol) not in of_files]
    by_rule = _by_rule(document.recurring)
    events = superseded([*own, *stated], by_rule)
    known = {(one.kind, one.subject, one.at_ns) for one in announced}
    further = [one for one in announcements_of(stated) if (one.kind, one.subject, one.at_ns) not in known]
    releases = sorted([*announced, *further], key=lambda one: (one.at_ns, one.id))
    opened = OpenedCalendar(Calendar(tuple(releases), digest, tuple(events)), readings, tuple(by_rule))
    _last[:] = [(key, opened)]
    return opened


def _digest(data: bytes, contents: Sequence[tuple[CalendarSource, bytes]], recurring: RecurringChoice) -> str:
    """Of a file of announcements its own; else of all files and of the rules' versions."""
    if not contents and recurring == RecurringChoice():
        return hashlib.sha256(data).hexdigest()
    parts = [
        hashlib.sha256(data).hexdigest(),
        *(hashlib.sha256(content).hexdigest() for _, content in contents),
    ]
    if recurring != RecurringChoice():
        from htfi.adapters.calendars.exchanges import library_version

        parts += [VERSION, library_version(), *recurring.countries, *recurring.exchanges]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _reading(source: CalendarSource, content: bytes) -> CalendarReading:
    path = Path(source.path)
    table = read_table(path, content, format_of(source.path, source.format))
    return read_events(table.names, table.rows, source, f"calendar {path}")


def _by_rule(choice: RecurringChoice) -> list[ScheduledEvent]:
    if choice == RecurringChoice():
        return []
    from htfi.adapters.calendars.exchanges import exchange_events, open_days

    made = recurring_releases(
        choice.countries, FIRST_DAY, LAST_DAY, lambda whose: open_days(whose, FIRST_DAY, LAST_DAY)
    )
    for exchange in choice.exchanges:
        made += exchange_events(exchange, FIRST_DAY, LAST_DAY)
    return made


def _states_announcements(data: bytes, path: Path) -> bool:
    """Whether a file is a CSV of announcements, as docs/calendar.md has them, and not one of events."""
    if path.suffix.lower() != ".csv":
        return False
    first = data[:4096].decode(encoding_of(data), errors="replace").partition("\n")[0]
    return {name.strip() for row in csv.reader(io.StringIO(first)) for name in row} >= _ANNOUNCEMENT_COLUMNS


def _bytes_of(path: Path, named: str) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise InvalidInput(f"calendar {path}: a calendar has at most {MAX_BYTES} bytes")
        data = read_whole(path)
    except (DependencyUnavailable, OSError, ValueError) as error:
        raise InvalidInput(f"calendar {named}: cannot be read: {error}") from error
    if data is None:
        raise InvalidInput(f"calendar {named}: there is no such file: check narrative.calendar")
    return data


@dataclass(frozen=True, slots=True)
class CheckedCalendar:
    """What `htfi calendar check` says of a calendar; `rules` are None unless they were asked for."""

    check: CalendarCheck
    rules: list[RuleHits] | None = None


def source_of(named: str) -> CalendarSource | None:
    """How a file of events is read without a mapping; None of a TOML file and of names of ours."""
    return CalendarSource(named) if Path(named).suffix.lower() in FORMATS else None


def check_opened(
    opened: OpenedCalendar, symbols: Sequence[str] = (), *, with_rules: bool = False
) -> CheckedCalendar:
    """The check of an opened calendar for these symbols. Raises: MissingExtra, with rules."""
    calendar = opened.calendar
    announced = [(one.symbol or one.kind, one.time_ns) for one in events_of(calendar.releases)]
    check = check_calendar(calendar.events, announced, SystemClock().now_ns(), symbols, _concerns, _trades_on)
    if not with_rules:
        return CheckedCalendar(check)
    by_rule = [*opened.by_rule] or _by_rule(ALL_RECURRING)
    return CheckedCalendar(check, check_rules(calendar.events, by_rule))


def _concerns(symbol: str, event: ScheduledEvent) -> bool:
    """Whether an event matters for a symbol: its own, or of an economy of its currencies."""
    if event.symbol:
        return event.symbol == symbol
    asset = asset_of(symbol)
    region = region_of_currency(event.currency)
    return not event.currency or region in (asset.region or "US", asset.quote)


def _trades_on(currency: str, day: date) -> bool | None:
    """Whether a currency's main exchange trades on a day; None where that cannot be known here."""
    exchange = {"USD": "XNYS", "EUR": "XETR", "GBP": "XLON", "JPY": "XTKS"}.get(currency)
    if exchange is None or not is_installed("exchange_calendars") or not FIRST_DAY <= day <= LAST_DAY:
        return None
    from htfi.adapters.calendars.exchanges import open_days

    return open_days(exchange, FIRST_DAY, LAST_DAY)(day)
