"""Rows of an iCalendar file (RFC 5545) by the library icalendar, recurrences included. Needs the extra [calendars]."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any, cast

from htfi.adapters.calendars.rows import CalendarTable
from htfi.adapters.text_encodings import decoded
from htfi.domain.errors import InvalidInput, require_extra

NAMES = (
    "uid", "dtstart", "summary", "description", "status", "known_at", "currency", "impact", "actual", "forecast",
    "previous",
)  # fmt: skip
_OWN = ("currency", "impact", "actual", "forecast", "previous")  # as X-CURRENCY or CURRENCY
MAX_RECURRENCES = 20_000
_FAILURES = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError)
_MAX_SHOWN = 120
_RECURS_FOR = timedelta(days=3 * 366)  # of a rule without end, from its first day on


def icalendar_rows(data: bytes, path: str) -> CalendarTable:
    """Its VEVENTs. DTSTAMP and LAST-MODIFIED say when the file was written, not what was known, and are not used.

    Raises: InvalidInput, MissingExtra.
    """
    require_extra("a calendar in iCalendar form", "calendars", "icalendar")
    reader: Any = import_module("icalendar").Calendar  # whose types are not complete
    where = ""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    try:
        components: list[Any] = list(reader.from_ical(decoded(data, f"calendar {path}")).walk("VEVENT"))
        overridden = {
            (str(one.get("UID", "")), _instant(one["RECURRENCE-ID"].dt))
            for one in components
            if "RECURRENCE-ID" in one
        }
        for place, event in enumerate(components, 1):
            where = f"event {place}"
            if "DTSTART" not in event:  # the reading refuses the row, and reads the rest
                rows.append((where, _row(event, None, str(event.get("UID", "")))))
            elif "RECURRENCE-ID" not in event:
                rows += _occurrences(event, where, path, overridden)
            else:
                key = f"{event.get('UID', '')}/{_instant(event['RECURRENCE-ID'].dt)}"
                rows.append((where, _row(event, event["DTSTART"].dt, key)))
    except _FAILURES as error:  # of the library, which tells little apart
        place = f"{path}, {where}" if where else path
        raise InvalidInput(f"calendar {place}: not valid iCalendar: {_shown(error)}") from error
    return CalendarTable(NAMES, rows)


def _occurrences(
    event: Any, where: str, path: str, overridden: set[tuple[str, str]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    start, uid = event["DTSTART"].dt, str(event.get("UID", ""))
    if "RRULE" not in event:
        yield where, _row(event, start, uid)
        return
    from dateutil.rrule import rrulestr

    rule = event["RRULE"]
    naive = (
        start.replace(tzinfo=None)
        if isinstance(start, datetime)
        else datetime.fromisoformat(start.isoformat())
    )
    text = rule.to_ical().decode().replace("Z;", ";").removesuffix("Z")
    try:
        found = rrulestr(text, dtstart=naive)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"calendar {path}, {where}: its RRULE cannot be read: {_shown(error)}") from error
    last = None if {"UNTIL", "COUNT"} & {key.upper() for key in rule} else naive + _RECURS_FOR
    excluded = {_instant(one.dt) for one in _listed(event.get("EXDATE"))}
    for place, moment in enumerate(found):
        if place >= MAX_RECURRENCES:
            raise InvalidInput(f"calendar {path}, {where}: it recurs more than {MAX_RECURRENCES:,} times")
        if last is not None and moment > last:
            return
        at: Any = moment.replace(tzinfo=start.tzinfo) if isinstance(start, datetime) else moment.date()
        key = _instant(at)
        if key not in excluded and (uid, key) not in overridden:
            yield where, _row(event, at, f"{uid}/{key}")


def _listed(value: Any) -> list[Any]:
    values: list[Any] = (
        cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
    )
    return [one for each in values for one in each.dts]


def _row(event: Any, start: date | None, uid: str) -> dict[str, Any]:
    own = {name: str(event.get(f"X-{name.upper()}", event.get(name.upper(), ""))) for name in _OWN}
    return {
        "uid": uid,
        "dtstart": start,
        "summary": str(event.get("SUMMARY", "")),
        "description": str(event.get("DESCRIPTION", "")),
        "status": str(event.get("STATUS", "")),
        "known_at": None,
        **own,
    }


def _instant(moment: date) -> str:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).isoformat()
    return moment.isoformat()


def _shown(error: Exception) -> str:
    """A library's message in one line."""
    text = "".join(char if char.isprintable() else " " for char in str(error))
    return " ".join(text.split())[:_MAX_SHOWN]
