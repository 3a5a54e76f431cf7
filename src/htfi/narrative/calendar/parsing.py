"""Reads a calendar file, TOML or CSV; an error is one line that states what is wrong, where, and what to do."""

import csv
import hashlib
import io
import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast

from htfi.calendar.clocks import open_zone
from htfi.calendar.document import RECURRING, SOURCES
from htfi.calendar.local_times import wall_clock_ns
from htfi.domain.errors import InvalidInput
from htfi.domain.time import parse_timestamp
from htfi.narrative.calendar.announcements import (
    CENTRAL_BANKS,
    REGIONS,
    Announcement,
    AnnouncementKind,
    Calendar,
    outcome_keys,
)
from htfi.narrative.text import clean

MAX_BYTES = 8 * 1024 * 1024
MAX_ANNOUNCEMENTS = 20_000
_MAX_CHARS = 100
_KEYS = (
    "id", "kind", "at", "zone", "subject", "symbols", "names", "publishers", "series", "level", "consensus", "basis",
    "odds",
)  # fmt: skip
_BASES = ("", "mom", "yoy", "qoq", "annualised")
_SEPARATOR = re.compile(r"\s*[;|]\s*")
CalendarRow = dict[str, Any]


def parse_calendar(data: bytes, name: str) -> Calendar:
    """The calendar in a file's bytes; `name`, its path, gives the format: .csv, else TOML.

    Raises: InvalidInput with one line that states what is wrong, where, and what to do.
    """
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"calendar {name}: {len(data)} bytes; the maximum is {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"calendar {name}: not UTF-8 at byte {error.start}: save it as UTF-8") from error
    rows = _csv_rows(text, name) if name.lower().endswith(".csv") else _toml_rows(text, name)
    if len(rows) > MAX_ANNOUNCEMENTS:
        raise InvalidInput(f"calendar {name}: {len(rows)} releases; the maximum is {MAX_ANNOUNCEMENTS}")
    found: dict[str, Announcement] = {}
    for place, row in rows:
        try:
            release = _announcement(row)
        except InvalidInput as error:
            raise InvalidInput(f"calendar {name}, {place}: {error}") from error
        if release.id in found:
            raise InvalidInput(
                f"calendar {name}, {place}: id '{release.id}' is used twice: give each release its own"
            )
        found[release.id] = release
    ordered = sorted(found.values(), key=lambda one: (one.at_ns, one.id))
    return Calendar(tuple(ordered), hashlib.sha256(data).hexdigest())


def _toml_rows(text: str, name: str) -> list[tuple[str, CalendarRow]]:
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"calendar {name}: not valid TOML: {error or 'nested too deeply'}") from error
    rows, common = given.pop("release", []), given.pop("defaults", {})
    for other in (SOURCES, RECURRING):
        given.pop(other, None)
    if given:
        raise InvalidInput(
            f"calendar {name}: unknown '{_shortened(next(iter(given)))}': it may hold [[release]], "
            "[[source]], [recurring] and [defaults]"
        )
    if not isinstance(common, dict):
        raise InvalidInput(f"calendar {name}: 'defaults' must be a table, [defaults]")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast("list[Any]", rows)):
        raise InvalidInput(f"calendar {name}: each 'release' must be a table under [[release]]")
    return [
        (f"release {place}", {**cast(CalendarRow, common), **row})
        for place, row in enumerate(cast("list[CalendarRow]", rows), 1)
    ]


def _csv_rows(text: str, name: str) -> list[tuple[str, CalendarRow]]:
    rows: list[tuple[str, CalendarRow]] = []
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        if not reader.fieldnames:
            raise InvalidInput(
                f"calendar {name}: empty: its first line names the columns, {', '.join(_KEYS)}"
            )
        for row in reader:
            if None in row or None in row.values():
                raise InvalidInput(
                    f"calendar {name}, line {reader.line_num}: {len(reader.fieldnames)} cells are needed, one for "
                    "each column of the first line"
                )
            cells = {key.strip(): cell.strip() for key, cell in row.items()}
            if any(cells.values()):
                rows.append((f"line {reader.line_num}", {key: cell for key, cell in cells.items() if cell}))
    except csv.Error as error:
        raise InvalidInput(f"calendar {name}: not valid CSV: {error}") from error
    return rows


def _announcement(row: Mapping[str, Any]) -> Announcement:
    for key in row:
        if key not in _KEYS:
            raise InvalidInput(f"unknown key '{_shortened(key)}': the keys are {', '.join(_KEYS)}")
    kind = _announcement_kind(row)
    subject = _text(row, "subject", needed=True)
    names = _texts(row, "names")
    known = (
        CENTRAL_BANKS
        if kind is AnnouncementKind.RATE
        else REGIONS
        if kind is not AnnouncementKind.EARNINGS
        else {}
    )
    if kind is not AnnouncementKind.EARNINGS:
        subject = subject.lower()
        if subject not in known and not names:
            raise InvalidInput(
                f"subject '{subject}' is not known: one of {', '.join(known)}, or give the `names` in headlines"
            )
    symbols = _texts(row, "symbols")
    if kind is AnnouncementKind.EARNINGS and not symbols:
        raise InvalidInput('symbols are missing: name the company, such as symbols = ["AAPL"]')
    basis = _text(row, "basis")
    if basis not in _BASES:
        raise InvalidInput(f"basis '{_shortened(basis)}' is not known: one of {', '.join(_BASES[1:])}")
    return Announcement(
        id=_text(row, "id", needed=True),
        kind=kind,
        at_ns=_announcement_time(row),
        subject=subject,
        symbols=symbols,
        names=names,
        publishers=_texts(row, "publishers"),
        series=_text(row, "series"),
        level=_number(row, "level", 100.0),
        consensus=_number(row, "consensus", 1e6),
        basis=basis,
        odds=_odds(row, kind),
    )


def _announcement_kind(row: Mapping[str, Any]) -> AnnouncementKind:
    given = _text(row, "kind", needed=True)
    try:
        return AnnouncementKind(given)
    except ValueError:
        raise InvalidInput(f"kind '{given}' is not known: one of {', '.join(AnnouncementKind)}") from None


def _announcement_time(row: Mapping[str, Any]) -> int:
    given, zone = row.get("at"), open_zone(_text(row, "zone"))
    if isinstance(given, datetime):
        given = given.isoformat()
    if isinstance(given, date) or (
        isinstance(given, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", given.strip())
    ):
        raise InvalidInput(f"at = {given} is a date without a time: write it as 2026-01-28 14:00")
    if not isinstance(given, str) or not given:
        raise InvalidInput("at is missing or not a time: write at = 2026-01-28 14:00, with a zone")
    try:
        moment = datetime.fromisoformat(given.strip())
    except ValueError:
        raise InvalidInput(
            f"at = '{_shortened(given)}' is not a time: write it as 2026-01-28 14:00"
        ) from None
    if not 1970 <= moment.year <= 2100:
        raise InvalidInput(f"at = '{_shortened(given)}' is outside 1970 to 2100")
    if moment.tzinfo is not None:
        return parse_timestamp(given)
    if zone is None:
        raise InvalidInput(
            f"at = '{_shortened(given)}' has no zone: add zone = \"America/New_York\", or an offset"
        )
    return wall_clock_ns(moment, zone, f"at = '{given}'")


def _text(row: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
    given = row.get(key, "")
    if not isinstance(given, str):
        raise InvalidInput(f'{key} must be text, such as {key} = "..."')
    text = clean(given, _MAX_CHARS)
    if needed and not text:
        raise InvalidInput(f"{key} is missing")
    return text


def _texts(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of texts; in CSV they stand in one cell, with ; or | between."""
    given = row.get(key, ())
    if isinstance(given, str):
        given = _SEPARATOR.split(given)
    if not isinstance(given, list | tuple) or not all(
        isinstance(one, str) for one in cast("list[Any]", given)
    ):
        raise InvalidInput(f'{key} must be a list of texts, such as {key} = ["..."]')
    found = tuple(clean(one, _MAX_CHARS) for one in cast("list[str]", given))
    if len(found) > 64:
        raise InvalidInput(f"{key}: {len(found)} entries; the maximum is 64")
    return tuple(one for one in found if one)


def _number(row: Mapping[str, Any], key: str, limit: float) -> float | None:
    given = row.get(key)
    if given is None:
        return None
    try:
        value = (
            float(given) if isinstance(given, int | float | str) and not isinstance(given, bool) else math.nan
        )
    except (ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= limit:
        raise InvalidInput(
            f"{key} = '{_shortened(str(given))}' is not a number between {-limit:g} and {limit:g}"
        )
    return value


def _odds(row: Mapping[str, Any], kind: AnnouncementKind) -> tuple[tuple[str, float], ...]:
    """A table of weights by outcome; in CSV 'hold: 0.7; cut 25: 0.3'."""
    given = row.get("odds", {})
    if isinstance(given, str):
        pairs = [one.rpartition(":") for one in _SEPARATOR.split(given) if one]
        given = {key.strip(): share.strip() for key, _, share in pairs}
    if not isinstance(given, dict):
        raise InvalidInput('odds must be a table, such as odds = { hold = 0.7, "cut 25" = 0.3 }')
    table = cast("dict[str, Any]", given)
    found: list[tuple[str, float]] = []
    for key in table:
        if key not in outcome_keys(kind) and not (
            kind is AnnouncementKind.RATE and re.fullmatch(r"(cut|raise) [1-9]\d{0,2}", key)
        ):
            raise InvalidInput(
                f"odds: '{_shortened(key)}' is not an outcome of {kind}: one of {', '.join(outcome_keys(kind))}"
            )
        share = _number(table, key, 1e6)
        if share is None or share < 0.0:
            raise InvalidInput(f"odds: '{key}' must be at least 0")
        found.append((key, share))
    if found and not sum(share for _, share in found) > 0.0:
        raise InvalidInput("odds: at least one must be above 0")
    return tuple(found)


def _shortened(text: str) -> str:
    return clean(str(text), 60)
