"""Parses scenarios as a person writes them: lines of a command or tables of a TOML file. Pure.

A shock such as 'SPX -5%, VIX +3sd' becomes the log return that it means.
"""

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, cast

from htfi.domain.errors import InvalidInput

MAX_TEXT_CHARS = 400
MAX_SHOCKS = 32  # in one scenario
MAX_SIGMAS = 100.0
MAX_LOG_RETURN = 3.0  # a factor of twenty either way: beyond it the shock is taken for a typing error

_SHOCK_PATTERN = re.compile(
    r"(?P<name>\S(?:.*?\S)?)\s*[\s=:]\s*(?P<sign>[+-]?)\s*(?P<figure>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>%|sd|sigmas?|σ|bps?)?"
)
_EXAMPLE = "write NAME and a move, such as 'SPX -5%', 'SPX -3sd', 'VIX +5' or 'US10Y +25bp'"


class ShockUnit(StrEnum):
    PERCENT = "%"
    SIGMAS = "sd"
    POINTS = ""
    BASIS_POINTS = "bp"


@dataclass(frozen=True, slots=True)
class PriceShock:
    """One move of one thing, as it was written. A basis point is a hundredth of a point, as yields are quoted."""

    name: str
    amount: float
    unit: ShockUnit

    @property
    def text(self) -> str:
        return f"{self.name} {self.amount:+g}{self.unit.value}"


def parse_shocks(text: str) -> list[PriceShock]:
    """The shocks of one scenario, joined by commas. Raises: InvalidInput."""
    line = unicodedata.normalize("NFKC", text[: MAX_TEXT_CHARS + 1]).replace("\u2212", "-").replace("–", "-")
    if len(line) > MAX_TEXT_CHARS or not line.isprintable():
        raise InvalidInput(f"a shock of {len(text):,} characters cannot be read: {_EXAMPLE}")
    parts = [part.strip() for part in line.split(",")]
    if not all(parts):
        raise InvalidInput(f"shock '{line.strip()}': {_EXAMPLE}; several are joined by one comma each")
    if len(parts) > MAX_SHOCKS:
        raise InvalidInput(f"{len(parts)} shocks in one scenario: at most {MAX_SHOCKS} are joined")
    shocks = [_parse_shock(part) for part in parts]
    names = [shock.name.casefold() for shock in shocks]
    twice = next((shock.name for shock in shocks if names.count(shock.name.casefold()) > 1), None)
    if twice is not None:
        raise InvalidInput(f"shock '{line.strip()}' moves {twice} twice: once is enough")
    return shocks


def _parse_shock(part: str) -> PriceShock:
    match = _SHOCK_PATTERN.fullmatch(part)
    if match is None:
        raise InvalidInput(f"shock '{part}' cannot be read: {_EXAMPLE}")
    unit = match["unit"] or ""
    unit = "bp" if unit.startswith("bp") else "sd" if unit in ("σ", "sigma", "sigmas") else unit
    amount = float(match["figure"]) * (-1.0 if match["sign"] == "-" else 1.0)
    shock = PriceShock(match["name"], amount, ShockUnit(unit))
    if shock.unit is ShockUnit.PERCENT and amount <= -100.0:
        raise InvalidInput(f"shock '{part}': a price cannot fall by {-amount:g}%")
    if shock.unit is ShockUnit.SIGMAS and abs(amount) > MAX_SIGMAS:
        raise InvalidInput(f"shock '{part}': {abs(amount):g} standard deviations; at most {MAX_SIGMAS:g}")
    return shock


def to_log_return(shock: PriceShock, price: float, median: float, sigma: float) -> float:
    """The log return over the horizon that a shock means.

    `price` is the newest; `median` and `sigma` (log return) are those of the forecast over the horizon.
    Raises: InvalidInput where no price would be left, or none that one could believe.
    """
    match shock.unit:
        case ShockUnit.SIGMAS:
            moved = median + shock.amount * sigma
        case ShockUnit.PERCENT:
            moved = math.log1p(shock.amount / 100.0)
        case ShockUnit.POINTS | ShockUnit.BASIS_POINTS:
            points = shock.amount / (100.0 if shock.unit is ShockUnit.BASIS_POINTS else 1.0)
            if not price + points > 0.0:
                raise InvalidInput(f"shock '{shock.text}': from {price:g} it would leave no price above zero")
            moved = math.log((price + points) / price)
    if not abs(moved) <= MAX_LOG_RETURN:
        most = math.exp(MAX_LOG_RETURN)
        raise InvalidInput(
            f"shock '{shock.text}' moves the price by more than a factor of {most:.0f}: check its unit"
        )
    return moved


def find_series(name: str, series: Sequence[str]) -> int | None:
    """The place of the series that a name means: 'SPX/1d' or 'SPX', in any case; None where none or several do."""
    for index, key in zip(
        _indices(tuple(series)), (name, name, name.casefold(), name.casefold()), strict=True
    ):
        if key in index:
            return index[key]
    return None


@lru_cache(maxsize=8)
def _indices(series: tuple[str, ...]) -> tuple[dict[str, int], ...]:
    """Places by series, by symbol, and by both in lower case; a name that several have is in none."""
    plain, symbols = list(series), [_symbol_of(known) for known in series]
    tables: list[dict[str, int]] = []
    for names in (plain, symbols, [name.casefold() for name in plain], [name.casefold() for name in symbols]):
        counts = Counter(names)
        tables.append({name: place for place, name in enumerate(names) if counts[name] == 1})
    return tuple(tables)


def require_series(name: str, series: Sequence[str], what: str) -> int:
    """`find_series`, or one line that names what there is. Raises: InvalidInput."""
    found = find_series(name, series)
    if found is not None:
        return found
    symbols = {_symbol_of(known): known for known in series}
    from difflib import get_close_matches  # late: most names are known

    near = get_close_matches(name.upper(), [known.upper() for known in symbols], n=3)
    shown = near or list(symbols)[:8]
    more = f" and {len(symbols) - len(shown)} more" if not near and len(symbols) > len(shown) else ""
    hint = "did you mean" if near else "there are"
    raise InvalidInput(f"{what}: no series '{name[:40]}'; {hint} {', '.join(shown)}{more}")


def _symbol_of(series: str) -> str:
    return series.rpartition("/")[0] or series


def resolve_names(
    shocks: Sequence[PriceShock], series: Sequence[str], aliases: Mapping[str, int] | None = None
) -> list[int]:
    """The place of each shock's series. Raises: InvalidInput where one is unknown or meant twice."""
    places: list[int] = []
    for shock in shocks:
        known = (aliases or {}).get(shock.name.casefold())
        place = known if known is not None else require_series(shock.name, series, f"shock '{shock.text}'")
        if place in places:
            raise InvalidInput(f"shock '{shock.text}' moves {series[place]} a second time: once is enough")
        places.append(place)
    return places


MAX_REQUESTS = 1_000
MAX_NAME_CHARS = 60


class ScenarioKind(StrEnum):
    HEADLINE = "headline"
    MACRO = "macro"
    SHOCK = "shock"
    STRESS = "stress"


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """One scenario: its kind, its text, the symbols that a headline is about, and its name.

    With `is_of_all` a stress is skipped where no series represents its factors; a named one must apply.
    """

    kind: ScenarioKind
    text: str
    on: tuple[str, ...] = ()
    name: str = ""
    is_of_all: bool = False


def parse_requests(text: str, origin: str) -> list[ScenarioRequest]:
    """The [[scenario]] tables of a TOML text. Raises: InvalidInput, naming the table."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{origin}: not valid TOML: {error}") from error
    tables = document.get("scenario")
    if not isinstance(tables, list) or set(document) != {"scenario"}:
        raise InvalidInput(
            f"{origin}: write one [[scenario]] table for each, with shock, macro, stress or headline"
        )
    return [
        _parse_table(table, f"{origin}, scenario {number}")
        for number, table in enumerate(cast("list[Any]", tables), 1)
    ]


def check_requests(asked: Sequence[ScenarioRequest]) -> None:
    """Raises: InvalidInput for none, or more than one command answers."""
    if not asked:
        raise InvalidInput(
            "no scenario: name a --shock, --macro, --stress or --headline, or --file with several"
        )
    if len(asked) > MAX_REQUESTS:
        raise InvalidInput(f"{len(asked):,} scenarios: at most {MAX_REQUESTS:,} at a time")


def _parse_table(table: object, where: str) -> ScenarioRequest:
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{where}: must be a table")
    values = cast("Mapping[str, Any]", table)
    kinds = [kind for kind in ScenarioKind if kind.value in values]
    if len(kinds) != 1:
        raise InvalidInput(f"{where}: name one of shock, macro, stress and headline, not {len(kinds)}")
    kind = kinds[0]
    unknown = set(values) - {kind.value, "name", *(["on"] if kind is ScenarioKind.HEADLINE else [])}
    if unknown:
        raise InvalidInput(f"{where}: unknown key '{sorted(unknown)[0]}'")
    text, name, on = values[kind.value], values.get("name", ""), values.get("on", [])
    on = [on] if isinstance(on, str) else on
    if not isinstance(text, str) or not isinstance(name, str):
        raise InvalidInput(f"{where}: {kind.value} and name must be text")
    if not isinstance(on, list) or not all(isinstance(symbol, str) for symbol in cast("list[Any]", on)):
        raise InvalidInput(f"{where}: 'on' must be a symbol or a list of symbols")
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(f"{where}: a name has at most {MAX_NAME_CHARS} characters, in one line")
    return ScenarioRequest(kind, text, tuple(cast("list[str]", on)), name)
