"""Which column of a calendar holds what: by the names that vendors use, or as its source states, with expressions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from types import MappingProxyType
from typing import Any

from htfi.calendar.clocks import AMBIGUOUS_ZONES, SHORT_ZONES, zone_named
from htfi.calendar.expressions import Expression, parse_expression
from htfi.domain.errors import InvalidInput

# Field: the names of its column, in order of preference.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "time": (
        *("published_at", "time_utc", "datetime_utc", "datetime", "date_time", "timestamp", "ts", "event_time"),
        *("at", "dtstart", "start", "start_date", "release_date", "released_on", "earnings_date", "report_date"),
        *("reportdate", "earnings_call_time", "date", "day", "time"),
    ),
    "clock": ("clock", "time_of_day", "start_time", "time"),
    "zone": ("timezone", "time_zone", "tz"),
    "name": (
        *("event", "event_name", "name", "indicator", "release", "title", "subject", "summary", "description"),
        *("category", "company", "company_name"),
    ),
    "currency": ("currency", "ccy", "cur", "curr"),
    "country": ("country", "region", "economy", "area", "country_code", "c"),
    "symbol": ("symbol", "ticker"),
    "kind": ("kind",),
    "impact": ("impact", "importance", "imp", "volatility", "priority"),
    "actual": ("actual", "act", "actual_value", "reported", "reported_eps", "actual_eps", "eps_actual", "eps"),
    "forecast": (
        *("forecast", "consensus", "surv_m", "survey", "surv", "expected", "estimate", "median"),
        *("eps_estimate", "eps_forecast", "epsforecast", "estimated_eps", "consensus_eps_forecast", "consensus_eps"),
    ),
    "previous": ("previous", "prior", "prev", "former"),
    "unit": ("unit", "units"),
    "known": ("known_at", "known", "announced_at"),
    "actual_known": ("actual_known_at", "actual_at"),
    "exact": ("time_exact", "is_exact", "exact"),
    "id": ("id", "uid", "event_id"),
    "status": ("status",),
})  # fmt: skip
FIELDS = tuple(_NAMES)
_TIMES = frozenset((*_NAMES["time"], *_NAMES["clock"]))
_BRACKETED = re.compile(r"(.+?)\s*[(\[]([^()\[\]]+)[)\]]")
_ZONE_BEHIND = re.compile(rf"(.+?)[\s_]+({'|'.join((*SHORT_ZONES, *AMBIGUOUS_ZONES))})", re.IGNORECASE)
_DAYS = frozenset(
    {"date", "day", "start_date", "release_date", "released_on", "earnings_date", "report_date", "reportdate"}
)  # beside a clock
_FIGURES = frozenset({"actual", "forecast", "previous"})


@dataclass(frozen=True, slots=True)
class CalendarSource:
    """How a file of events is read; an empty text means: recognised. `columns` are our field = a column or expression.

    `zone` is of times without one; `time_format` is strptime's; `currency` and `symbol` are of all rows, and so is
    `kind`; `only` are the currencies wanted.
    """

    path: str
    format: str = ""
    zone: str = ""
    time_format: str = ""
    currency: str = ""
    symbol: str = ""
    kind: str = ""
    only: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class CalendarColumns:
    """Our field → its column, or the expression that makes it."""

    fields: Mapping[str, str | Expression]
    zone: tzinfo | None = None  # that the name of the column of times states: 'Time (ET)'
    has_codes_of_bloomberg: bool = False  # of countries, in its column 'C'

    def cell(self, row: Mapping[str, Any], name: str) -> Any:
        """The cell of a field; None where there is none. Raises: InvalidInput, of an expression's figures."""
        source = self.fields.get(name)
        if source is None:
            return None
        return row.get(source) if isinstance(source, str) else source.value(row)

    def has(self, name: str) -> bool:
        return name in self.fields


def find_columns(names: Sequence[str], source: CalendarSource, where: str) -> CalendarColumns:
    """The columns of a file with these names. Raises: InvalidInput, naming what is missing and what is there."""
    plain = {_without_zone(name)[0]: name for name in reversed(names)}
    plain = {_within(name): name for name in reversed(names) if _within(name)} | plain
    plain |= {_plain(name): name for name in reversed(names)}
    fields: dict[str, str | Expression] = {
        name: found
        for name, synonyms in _NAMES.items()
        if (found := next((plain[one] for one in synonyms if one in plain), ""))
    }
    if fields.get("time") == fields.get("clock"):  # one column, an instant
        fields.pop("clock", None)
    elif "clock" in fields and _without_zone(str(fields.get("time", "")))[0] not in _DAYS:
        del fields["clock"]
    if "country" in fields:
        fields.pop("symbol", None)  # there it names the figure, not a company
    for name, wanted in source.columns.items():
        if name not in _NAMES:
            raise InvalidInput(
                f"{where}: unknown field '{name}' in columns: the fields are {', '.join(FIELDS)}"
            )
        if not wanted:
            fields.pop(name, None)
        elif wanted in names:
            fields[name] = wanted
        else:
            fields[name] = _expression(name, wanted, names, where)
    missing = [
        name for name in ("time", "name") if name not in fields and not (name == "name" and source.kind)
    ]
    if missing:
        raise InvalidInput(
            f"{where}: no column of the {' and the '.join(missing)} of an event: its columns are {', '.join(names)}: "
            "name it under [source.columns]"
        )
    of_bloomberg = _plain(str(fields.get("country", ""))) == "c"
    return CalendarColumns(MappingProxyType(fields), _zone_of(fields, where), of_bloomberg)


def _within(name: str) -> str:
    """The figure that a value within objects of JSON is: 'actual' of 'values.actual.value'; '' of any other."""
    parts = [part for part in name.split(".")[1:] if _plain(part) not in ("value", "raw")]
    figures = {one for field in _FIGURES for one in _NAMES[field]}
    found = _plain(parts[-1]) if parts else _plain(name.partition(".")[0]) if "." in name else ""
    return found if found in figures else ""


def _zone_of(fields: Mapping[str, str | Expression], where: str) -> tzinfo | None:
    """The zone that the name of the column of clocks, or of times, states. Raises: InvalidInput, of several zones'."""
    for name in (fields.get("clock"), fields.get("time")):
        stated = _without_zone(name)[1] if isinstance(name, str) else ""
        try:
            if stated and (zone := zone_named(stated)) is not None:
                return zone
        except InvalidInput as error:
            if stated.upper() in AMBIGUOUS_ZONES:
                raise InvalidInput(f"{where}: column '{name}': {error}") from error
    return None


def _without_zone(name: str) -> tuple[str, str]:
    """The name of a column of times without the zone in or behind it, and the zone: 'time' and 'ET' of 'Time (ET)'."""
    found = _BRACKETED.fullmatch(name.strip()) or _ZONE_BEHIND.fullmatch(name.strip())
    if found is None or _plain(found[1]) not in _TIMES:
        return _plain(name), ""
    return _plain(found[1]), found[2].strip()


def _expression(name: str, wanted: str, names: Sequence[str], where: str) -> str | Expression:
    try:
        made = parse_expression(wanted)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: columns.{name}: {error}") from error
    for column in made.columns:
        if column not in names:
            raise InvalidInput(
                f"{where}: columns.{name}: no column '{column}': its columns are {', '.join(names)}"
            )
    if made.is_column:
        return made.columns[0]
    if made.joins and name in _FIGURES:
        raise InvalidInput(f"{where}: columns.{name}: '{wanted}' joins texts where a figure is needed")
    if not made.joins and name not in _FIGURES:
        raise InvalidInput(
            f"{where}: columns.{name}: '{wanted}' makes a figure where a text is needed: join texts with "
            'currency + " " + event'
        )
    return made


def _plain(name: str) -> str:
    kept = "".join(char if char.isalnum() else "_" for char in name.strip().lower())
    return "_".join(part for part in kept.split("_") if part)
