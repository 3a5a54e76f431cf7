"""Shocks as a person writes them, 'SPX -5%, VIX +3sd', and the log return that each means. Pure."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache

from htfi.domain.errors import InvalidInput

MAX_TEXT_CHARS = 400
MAX_SHOCKS = 32  # in one scenario
MAX_SIGMAS = 100.0
MAX_LOG_RETURN = 3.0  # a factor of twenty either way: beyond it a price is another price

_SHOCK = re.compile(
    r"(?P<name>\S(?:.*?\S)?)\s*[\s=:]\s*(?P<sign>[+-]?)\s*(?P<figure>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>%|sd|sigmas?|σ|bps?)?"
)
_EXAMPLE = "write NAME and a move, such as 'SPX -5%', 'SPX -3sd', 'VIX +5' or 'US10Y +25bp'"


class Unit(StrEnum):
    PERCENT = "%"
    SIGMAS = "sd"
    POINTS = ""
    BASIS_POINTS = "bp"


@dataclass(frozen=True, slots=True)
class Shock:
    """One move of one thing, as it was written. A basis point is a hundredth of a point, as yields are quoted."""

    name: str
    amount: float
    unit: Unit

    @property
    def text(self) -> str:
        return f"{self.name} {self.amount:+g}{self.unit.value}"


def parse_shocks(text: str) -> list[Shock]:
    """The shocks of one scenario, joined by commas. Raises: InvalidInput."""
    line = unicodedata.normalize("NFKC", text[: MAX_TEXT_CHARS + 1]).replace("\u2212", "-").replace("–", "-")
    if len(line) > MAX_TEXT_CHARS or not line.isprintable():
        raise InvalidInput(f"a shock of {len(text):,} characters cannot be read: {_EXAMPLE}")
    parts = [part.strip() for part in line.split(",")]
    if not all(parts):
        raise InvalidInput(f"shock '{line.strip()}': {_EXAMPLE}; several are joined by one comma each")
    if len(parts) > MAX_SHOCKS:
        raise InvalidInput(f"{len(parts)} shocks in one scenario: at most {MAX_SHOCKS} are joined")
    shocks = [_parse(part) for part in parts]
    names = [shock.name.casefold() for shock in shocks]
    twice = next((shock.name for shock in shocks if names.count(shock.name.casefold()) > 1), None)
    if twice is not None:
        raise InvalidInput(f"shock '{line.strip()}' moves {twice} twice: once is enough")
    return shocks


def _parse(part: str) -> Shock:
    match = _SHOCK.fullmatch(part)
    if match is None:
        raise InvalidInput(f"shock '{part}' cannot be read: {_EXAMPLE}")
    unit = match["unit"] or ""
    unit = "bp" if unit.startswith("bp") else "sd" if unit in ("σ", "sigma", "sigmas") else unit
    amount = float(match["figure"]) * (-1.0 if match["sign"] == "-" else 1.0)
    shock = Shock(match["name"], amount, Unit(unit))
    if shock.unit is Unit.PERCENT and amount <= -100.0:
        raise InvalidInput(f"shock '{part}': nothing falls by {-amount:g}% and keeps a price")
    if shock.unit is Unit.SIGMAS and abs(amount) > MAX_SIGMAS:
        raise InvalidInput(f"shock '{part}': {abs(amount):g} standard deviations; at most {MAX_SIGMAS:g}")
    return shock


def to_log_return(shock: Shock, price: float, median: float, sigma: float) -> float:
    """The log return over the horizon that a shock means.

    `price` is the newest; `median` and `sigma` (log return) are those of the forecast over the horizon.
    Raises: InvalidInput where no price would be left, or none that one could believe.
    """
    match shock.unit:
        case Unit.SIGMAS:
            moved = median + shock.amount * sigma
        case Unit.PERCENT:
            moved = math.log1p(shock.amount / 100.0)
        case Unit.POINTS | Unit.BASIS_POINTS:
            points = shock.amount / (100.0 if shock.unit is Unit.BASIS_POINTS else 1.0)
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
    for index, told in zip(
        _indices(tuple(series)), (name, name, name.casefold(), name.casefold()), strict=True
    ):
        if told in index:
            return index[told]
    return None


@lru_cache(maxsize=8)
def _indices(series: tuple[str, ...]) -> tuple[dict[str, int], ...]:
    """Places by series, by symbol, and by both in lower case; a name that several have is in none."""
    plain, symbols = list(series), [_symbol(known) for known in series]
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
    symbols = {_symbol(known): known for known in series}
    near = get_close_matches(name.upper(), [known.upper() for known in symbols], n=3)
    shown = near or list(symbols)[:8]
    more = f" and {len(symbols) - len(shown)} more" if not near and len(symbols) > len(shown) else ""
    hint = "did you mean" if near else "there are"
    raise InvalidInput(f"{what}: no series '{name[:40]}'; {hint} {', '.join(shown)}{more}")


def _symbol(series: str) -> str:
    return series.rpartition("/")[0] or series


def resolve_names(
    shocks: Sequence[Shock], series: Sequence[str], aliases: Mapping[str, int] | None = None
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
