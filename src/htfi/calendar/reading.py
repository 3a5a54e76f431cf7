"""Rows of a calendar as scheduled events, by rising time; what is wrong with a row is said, and the rest is read.

Several rows of one event (with the same id, or else the same time, economy, symbol and words) are versions of it: the
last stands, and where they state since when they were known, each holds until the next was. The first actual stands: a
later one is its revision.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Literal, NamedTuple

import msgspec

from htfi.calendar.clocks import open_zone, zone_named
from htfi.calendar.columns import CalendarColumns, CalendarSource, find_columns
from htfi.calendar.figures import WrittenFigure, read_figure
from htfi.calendar.local_times import event_time
from htfi.calendar.recognition import currency_of_country, economy_of, event_kind
from htfi.domain.errors import InvalidInput, MissingZone
from htfi.domain.scheduled_event import ScheduledEvent

MAX_ROWS = 500_000
MAX_NAME_CHARS = 200
_CODE = re.compile(r"[A-Z]{3}")
_CANCELLED = frozenset({"cancelled", "canceled", "postponed", "withdrawn", "deleted"})
_IMPACTS: Mapping[str, Literal["low", "medium", "high"]] = {
    "low": "low", "1": "low", "*": "low", "★": "low", "yellow": "low",
    "medium": "medium", "med": "medium", "moderate": "medium", "2": "medium", "**": "medium", "★★": "medium",
    "orange": "medium",
    "high": "high", "3": "high", "***": "high", "★★★": "high", "red": "high",
}  # fmt: skip

Row = Mapping[str, Any]


class RowFault(NamedTuple):
    """What is wrong with a row: where it stands, and what. A `refused` row made no event; else a figure is left out."""

    place: str
    detail: str
    refused: bool


@dataclass(slots=True)
class CalendarReading:
    """What a file of events gave, and what was wrong with it."""

    path: str
    events: tuple[ScheduledEvent, ...] = ()
    num_rows: int = 0
    faults: list[RowFault] = field(default_factory=list[RowFault])
    num_repeated: int = 0  # rows that say again what another says
    num_moved: int = 0  # rows whose event stands at another time by a later row
    num_cancelled: int = 0
    num_revised: int = 0  # rows that state another actual for the same event
    num_not_wanted: int = 0

    @property
    def num_refused(self) -> int:
        return sum(fault.refused for fault in self.faults)


class _EventVersion(NamedTuple):
    """An event as one row has it, with what tells versions of it apart."""

    event: ScheduledEvent
    id: str
    cancelled: bool
    known_is_stated: bool


def read_events(
    names: Sequence[str], rows: Iterable[tuple[str, Row | str]], source: CalendarSource, where: str
) -> CalendarReading:
    """The events of rows, each with its place ('line 7'), or with why it cannot be read; `names` are the columns,
    `where` begins an error.

    Raises: InvalidInput, where columns are missing, there are too many rows, or none can be read.
    """
    columns, zone = find_columns(names, source, where), open_zone(source.zone)
    reading, lines = CalendarReading(source.path), list[_EventVersion]()
    for place, row in rows:
        reading.num_rows += 1
        if reading.num_rows > MAX_ROWS:
            raise InvalidInput(f"{where}: more than {MAX_ROWS:,} rows")
        if isinstance(row, str):
            reading.faults.append(RowFault(place, row, refused=True))
            continue
        try:
            line = _read_line(row, columns, source, zone, place, reading.faults)
        except MissingZone as error:  # of one row as of all
            raise InvalidInput(f"{where}, {place}: {error}") from error
        except InvalidInput as error:
            reading.faults.append(RowFault(place, str(error), refused=True))
            continue
        if source.only and line.event.currency not in source.only:
            reading.num_not_wanted += 1
        else:
            lines.append(line)
    if reading.num_rows and reading.num_refused == reading.num_rows:
        first = reading.faults[0]
        raise InvalidInput(
            f"{where}: no row of {reading.num_rows:,} can be read; {first.place}: {first.detail}"
        )
    reading.events = tuple(sorted(_one_each(lines, reading), key=_order))
    return reading


def _order(event: ScheduledEvent) -> tuple[int, str, str, str]:
    return event.time_ns, event.currency, event.symbol, event.name


def _read_line(
    row: Row,
    columns: CalendarColumns,
    source: CalendarSource,
    zone: tzinfo | None,
    place: str,
    faults: list[RowFault],
) -> _EventVersion:
    zone = zone_named(_text(columns.cell(row, "zone"))) or zone
    clock = _text(columns.cell(row, "clock")) if columns.has("clock") else None
    time_ns, is_exact = event_time(columns.cell(row, "time"), clock, zone, source.time_format)
    if columns.has("exact"):
        is_exact = is_exact and _is_true(columns.cell(row, "exact"))
    if not is_exact:
        time_ns -= time_ns % (86_400 * 1_000_000_000)
    name = _text(columns.cell(row, "name"))[:MAX_NAME_CHARS]
    currency, symbol = _currency(row, columns, source), _text(columns.cell(row, "symbol")) or source.symbol
    kind = _text(columns.cell(row, "kind")) or source.kind
    if not name and not kind:
        raise InvalidInput("the row has no name of an event")
    kind = kind or event_kind(name, currency, symbol, time_ns, _text(columns.cell(row, "country")))
    figures = _figures(row, columns, place, faults)
    known_ns = _instant(columns.cell(row, "known"), zone, source.time_format)
    event = ScheduledEvent(
        time_ns=time_ns,
        kind=kind,
        name=name or kind,
        currency="" if symbol else currency or economy_of(name, kind),
        symbol=symbol,
        impact=_IMPACTS.get(_text(columns.cell(row, "impact")).lower(), ""),
        is_exact=is_exact,
        known_ns=known_ns,
        actual_known_ns=_instant(columns.cell(row, "actual_known"), zone, source.time_format),
        actual=figures["actual"],
        forecast=figures["forecast"],
        previous=figures["previous"],
    )
    cancelled = _text(columns.cell(row, "status")).lower() in _CANCELLED
    return _EventVersion(event, _text(columns.cell(row, "id")), cancelled, known_ns > 0)


def _figures(
    row: Row, columns: CalendarColumns, place: str, faults: list[RowFault]
) -> dict[str, float | None]:
    """Actual, forecast and previous. One that cannot be read is left out, and so is what has another unit than it."""
    found: dict[str, WrittenFigure | None] = {}
    written: set[str] = set()  # as a text, whose unit tells how large it is
    for name in ("actual", "forecast", "previous"):
        try:
            cell = columns.cell(row, name)
            found[name] = read_figure(cell)
            written |= {name} if isinstance(cell, str) else set[str]()
        except InvalidInput as error:
            found[name] = None
            faults.append(RowFault(place, f"{name} {error}; it is left out", refused=False))
    actual, forecast = found["actual"], found["forecast"]
    if (
        actual is not None
        and forecast is not None
        and {"actual", "forecast"} <= written
        and _differ(actual, forecast)
    ):
        found["forecast"] = None
        faults.append(
            RowFault(
                place,
                f"the actual is in '{actual.unit}' and the forecast in '{forecast.unit}'; the forecast is left out",
                refused=False,
            )
        )
    return {name: None if figure is None else figure.value for name, figure in found.items()}


def _differ(one: WrittenFigure, other: WrittenFigure) -> bool:
    """Whether the sizes of two figures cannot be compared: '225' and '200K', but not 0 and '200K'."""
    sizes = {figure.unit.replace("%", "") for figure in (one, other)}
    return "" in sizes and len(sizes) > 1 and one.value != 0.0 and other.value != 0.0


def _currency(row: Row, columns: CalendarColumns, source: CalendarSource) -> str:
    given = _text(columns.cell(row, "currency")).upper()
    if _CODE.fullmatch(given) and given != "ALL":
        return given
    country = _text(columns.cell(row, "country"))
    return (currency_of_country(country) if country else "") or source.currency


def _instant(value: Any, zone: tzinfo | None, time_format: str) -> int:
    """UTC nanoseconds of a time beside the event's own, in its form or in any that is read without one; 0 of none."""
    if value in (None, "", 0) or value != value:  # NaN of a column of numbers
        return 0
    try:
        return event_time(value, None, zone)[0]
    except MissingZone:
        raise
    except InvalidInput:
        return event_time(value, None, zone, time_format)[0]


def _is_true(value: Any) -> bool:
    return value is True or _text(value).lower() in ("true", "1", "yes")


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = html.unescape(
        value if isinstance(value, str) else str(value)
    )  # vendors' pages leave '&amp;' and '&nbsp;'
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _one_each(lines: Sequence[_EventVersion], reading: CalendarReading) -> list[ScheduledEvent]:
    """One event of each; of an event with several rows its versions, as the module's sentence says."""
    groups: dict[tuple[Any, ...], list[_EventVersion]] = {}
    for line in lines:
        event = line.event
        key = (line.id,) if line.id else (event.time_ns, event.currency, event.symbol, event.name)
        groups.setdefault(key, []).append(line)
    kept: list[ScheduledEvent] = []
    for group in groups.values():
        if len(group) == 1 and not group[0].cancelled:
            kept.append(group[0].event)
        else:
            kept += _versions(group, reading)
    return kept


def _versions(group: Sequence[_EventVersion], reading: CalendarReading) -> list[ScheduledEvent]:
    ordered = sorted(group, key=lambda line: line.event.known_ns)
    kept: list[ScheduledEvent] = []
    for line in ordered:
        last = kept[-1] if kept else None
        if line.cancelled:
            reading.num_cancelled += 1
            if last is not None:
                kept[-1:] = _withdrawn(last, line.event.known_ns, line.known_is_stated)
        elif last is None:
            kept.append(line.event)
        elif last.time_ns == line.event.time_ns:
            kept[-1] = _with_later_figures(last, line.event, reading)
        else:
            reading.num_moved += 1
            kept[-1:] = _withdrawn(last, line.event.known_ns, line.known_is_stated)
            kept.append(line.event)
    return kept


def _withdrawn(event: ScheduledEvent, known_ns: int, known_is_stated: bool) -> list[ScheduledEvent]:
    """The version as long as it held; none where the file does not say until when."""
    return [msgspec.structs.replace(event, withdrawn_ns=known_ns)] if known_is_stated else []


def _with_later_figures(
    first: ScheduledEvent, later: ScheduledEvent, reading: CalendarReading
) -> ScheduledEvent:
    if first.actual is not None and later.actual is not None and first.actual != later.actual:
        reading.num_revised += 1
    else:
        reading.num_repeated += 1
    filled: dict[str, Any] = {
        name: getattr(later, name)
        for name in ("actual", "forecast", "previous", "impact", "actual_known_ns")
        if getattr(first, name) in (None, "", 0) and getattr(later, name) not in (None, "", 0)
    }
    if "actual" in filled and not filled.get("actual_known_ns"):
        filled["actual_known_ns"] = max(later.known_ns, 0)
    return msgspec.structs.replace(first, **filled) if filled else first
