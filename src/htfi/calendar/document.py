"""A calendar's TOML file: sources of events with their mapping, and what recurs by rule, beside [[release]] tables.

[[source]]
path = "releases.csv"          # relative to this file
zone = "America/New_York"      # of times without one
[source.columns]
name = 'country + " " + event' # our field = your column, or an expression

[recurring]
countries = ["us", "uk"]
exchanges = ["XNYS"]
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec

from htfi.calendar.clocks import open_zone
from htfi.calendar.columns import FIELDS, CalendarSource
from htfi.domain.errors import InvalidInput

COUNTRIES = ("us", "ea", "uk", "jp")
EXCHANGES = MappingProxyType({"us": "XNYS", "ea": "XETR", "uk": "XLON", "jp": "XTKS"})
SOURCES, RECURRING = "source", "recurring"
FIRST_DAY, LAST_DAY = date(1999, 1, 1), date(2031, 12, 31)  # of what recurs by rule
_KEYS = {item.name: item.type for item in fields(CalendarSource)}


@dataclass(frozen=True, slots=True)
class RecurringChoice:
    """What recurs by rule: releases of countries, and days off, early closes and expiries of exchanges (MICs)."""

    countries: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()


ALL_RECURRING = RecurringChoice(COUNTRIES, tuple(EXCHANGES.values()))


@dataclass(frozen=True, slots=True)
class CalendarDocument:
    """The sources that a calendar's file names, and what recurs."""

    sources: tuple[CalendarSource, ...] = ()
    recurring: RecurringChoice = RecurringChoice()


def parse_document(data: bytes, path: Path) -> CalendarDocument:
    """The sources and the recurring part of a TOML file; one without either has none. Raises: InvalidInput."""
    try:
        given = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"calendar {path}: not UTF-8 at byte {error.start}: save it as UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"calendar {path}: not valid TOML: {error or 'nested too deeply'}") from error
    tables = given.get(SOURCES, [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in cast("list[Any]", tables)):
        raise InvalidInput(f"calendar {path}: each 'source' must be a table under [[source]]")
    sources = tuple(
        _read_source(table, f"calendar {path}, source {place}", path.parent)
        for place, table in enumerate(cast("list[dict[str, Any]]", tables), 1)
    )
    return CalendarDocument(sources, _read_recurring(given.get(RECURRING), f"calendar {path}, [recurring]"))


def _read_source(table: Mapping[str, Any], where: str, folder: Path) -> CalendarSource:
    for key, value in table.items():
        if key not in _KEYS:
            raise InvalidInput(f"{where}: unknown key '{key}': the keys are {', '.join(_KEYS)}")
        shape, words = {
            "only": (list[str], 'a list of currencies, such as ["USD"]'),
            "columns": (dict[str, str], "a table of texts"),
        }.get(key, (str, "a text in quotes"))
        try:
            msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{where}: {key} must be {words}") from error
    if not table.get("path"):
        raise InvalidInput(f"{where}: state its path")
    columns = table.get("columns", {})
    for name in columns:
        if name not in FIELDS:
            raise InvalidInput(
                f"{where}: unknown field '{name}' in columns: the fields are {', '.join(FIELDS)}"
            )
    try:
        open_zone(table.get("zone", ""))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
    only = tuple(currency.upper() for currency in table.get("only", ()))
    stated = dict(
        table, only=only, currency=table.get("currency", "").upper(), columns=MappingProxyType(columns)
    )
    stated["path"] = str(folder / table["path"])
    return CalendarSource(**stated)


def _read_recurring(table: Any, where: str) -> RecurringChoice:
    if table is None:
        return RecurringChoice()
    if not isinstance(table, dict):
        raise InvalidInput(f"{where}: must be a table with countries and exchanges")
    given = cast("dict[str, Any]", table)
    for key, value in given.items():
        if key not in ("countries", "exchanges"):
            raise InvalidInput(f"{where}: unknown key '{key}': the keys are countries, exchanges")
        if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[Any]", value)):
            raise InvalidInput(f'{where}: {key} must be a list of texts, such as ["us"] or ["XNYS"]')
    countries: Sequence[str] = given.get("countries", ())
    for country in countries:
        if country not in COUNTRIES:
            raise InvalidInput(f"{where}: no rules of '{country}' are known: one of {', '.join(COUNTRIES)}")
    exchanges = given.get("exchanges", [EXCHANGES[country] for country in countries])
    return RecurringChoice(tuple(countries), tuple(exchanges))
