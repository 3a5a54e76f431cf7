"""The library of named stresses: moves of public factors, and which series of a run represent each factor.

`stresses.toml` holds the figures; `htfi scenario --stress` applies them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.requests import PriceShock, ShockUnit

WINDOWS_DAYS = (1, 5, 22)


@dataclass(frozen=True, slots=True)
class StressFactor:
    """A public factor, how its moves are counted, the symbols that are it, and whether one can hold it."""

    id: str
    name: str
    unit: ShockUnit
    symbols: frozenset[str]
    is_tradable: bool


@dataclass(frozen=True, slots=True)
class HistoricalStress:
    """What each factor did over 1, 5 and 22 trading days from the close of `before`; units as its factor's."""

    id: str
    title: str
    before: date
    moves: Mapping[str, tuple[float, float, float]]

    def shock(self, factor: StressFactor, window_days: int) -> PriceShock:
        """A factor's move over one of the windows, as if a person had written it."""
        return PriceShock(factor.name, self.moves[factor.id][WINDOWS_DAYS.index(window_days)], factor.unit)


@cache
def stress_factors() -> dict[str, StressFactor]:
    """The factors, by id."""
    return {
        name: StressFactor(
            name,
            table["name"],
            ShockUnit(table["unit"]),
            frozenset(table["symbols"]),
            table.get("held", True),
        )
        for name, table in _tables()["factors"].items()
    }


@cache
def stress_library() -> dict[str, HistoricalStress]:
    """Every named stress, by id, oldest first."""
    found: list[HistoricalStress] = []
    for name, table in _tables()["stress"].items():
        moves = {factor: _three_windows(table[factor]) for factor in stress_factors() if factor in table}
        found.append(HistoricalStress(name, table["title"], table["before"], moves))
    return {stress.id: stress for stress in sorted(found, key=lambda stress: stress.before)}


def find_stress(name: str) -> HistoricalStress:
    """The stress of a name, in any case. Raises: InvalidInput, with the nearest names."""
    known = stress_library()
    wanted = name.strip().casefold().replace("-", "_").replace(" ", "_")
    if wanted in known:
        return known[wanted]
    from difflib import get_close_matches  # late: most names are known

    near = get_close_matches(wanted, list(known), n=3, cutoff=0.4) or [
        stress for stress in known if wanted[-4:] in stress
    ]
    hint = f"did you mean {', '.join(near)}; " if near else ""
    raise InvalidInput(f"no stress '{name[:40]}': {hint}`htfi scenario --stress list` shows all {len(known)}")


def window_days(horizon_days: float) -> int:
    """The window nearest to a horizon, by ratio; the shorter of two as near."""
    return min(WINDOWS_DAYS, key=lambda days: (max(days / horizon_days, horizon_days / days), days))


def factors_by_symbol(symbols: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The places of the symbols that represent each factor; factors without one are left out."""
    found = {
        factor.id: tuple(place for place, symbol in enumerate(symbols) if symbol.upper() in factor.symbols)
        for factor in stress_factors().values()
    }
    return {name: places for name, places in found.items() if places}


def is_tradable_symbol(symbol: str) -> bool:
    """Whether a symbol is something to hold: an index of volatility or a yield is not."""
    return all(
        factor.is_tradable or symbol.upper() not in factor.symbols for factor in stress_factors().values()
    )


def _three_windows(moves: Sequence[float]) -> tuple[float, float, float]:
    day, week, month = moves
    return float(day), float(week), float(month)


@cache
def _tables() -> dict[str, Any]:
    text = files("htfi.forecasting.scenarios").joinpath("stresses.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
