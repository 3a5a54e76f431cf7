"""Which column of a calendar holds what: by the names that vendors use, or as its source states, with expressions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from htfi.calendar.expressions import Expression, parse_expression
from htfi.domain.errors import InvalidInput

# Field: the names of its column, in order of preference.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "time": (
        *("published_at", "time_utc", "datetime_utc", "datetime", "date_time", "timestamp", "ts", "event_time"),
        *("at", "dtstart", "start", "release_date", "released_on", "earnings_date", "report_date"),
        *("earnings_call_time", "date", "day", "time"),
    ),
    "clock": ("clock", "time_of_day", "time"),
    "zone": ("timezone", "time_zone", "tz"),
    "name": (
        *("event", "event_name", "name", "indicator", "release", "title", "summary", "description"),
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
        *("eps_estimate", "eps_forecast", "epsforecast", "estimated_eps"),
    ),
    "previous": ("previous", "prior", "prev", "former"),
    "known": ("known_at", "known", "announced_at"),
    "actual_known": ("actual_known_at", "actual_at"),
    "exact": ("time_exact", "is_exact", "exact"),
    "id": ("id", "uid", "event_id"),
    "status": ("status",),
})  # fmt: skip
FIELDS = tuple(_NAMES)
_DAYS = frozenset(
    {"date", "day", "release_date", "released_on", "earnings_date", "report_date"}
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
    plain = {_plain(name): name for name in reversed(names)}
    fields: dict[str, str | Expression] = {
        name: found
        for name, synonyms in _NAMES.items()
        if (found := next((plain[one] for one in synonyms if one in plain), ""))
    }
    if fields.get("time") == fields.get("clock"):  # one column, an instant
        fields.pop("clock", None)
    elif "clock" in fields and _plain(str(fields.get("time", ""))) not in _DAYS:
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
    return CalendarColumns(MappingProxyType(fields))


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
