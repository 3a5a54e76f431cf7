"""The library of named stresses: what public factors did in each, and which series of a run stand for them.

`stresses.toml` holds the figures; `htfi scenario --stress` applies them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.shocks import Shock, Unit

WINDOWS_DAYS = (1, 5, 22)


@dataclass(frozen=True, slots=True)
class Factor:
    """A public factor, how its moves are counted, the symbols that are it, and whether one can hold it."""

    id: str
    name: str
    unit: Unit
    symbols: frozenset[str]
    held: bool


@dataclass(frozen=True, slots=True)
class Stress:
    """What each factor did over 1, 5 and 22 trading days from the close of `before`; units as its factor's."""

    id: str
    title: str
    before: date
    moves: Mapping[str, tuple[float, float, float]]

    def shock(self, factor: Factor, window_days: int) -> Shock:
        """A factor's move over one of the windows, as if a person had written it."""
        return Shock(factor.name, self.moves[factor.id][WINDOWS_DAYS.index(window_days)], factor.unit)


@cache
def factors() -> dict[str, Factor]:
    """The factors, by id."""
    return {
        name: Factor(
            name, told["name"], Unit(told["unit"]), frozenset(told["symbols"]), told.get("held", True)
        )
        for name, told in _tables()["factors"].items()
    }


@cache
def library() -> dict[str, Stress]:
    """Every named stress, by id, oldest first."""
    found: list[Stress] = []
    for name, told in _tables()["stress"].items():
        moves = {factor: _three(told[factor]) for factor in factors() if factor in told}
        found.append(Stress(name, told["title"], told["before"], moves))
    return {stress.id: stress for stress in sorted(found, key=lambda stress: stress.before)}


def find_stress(name: str) -> Stress:
    """The stress of a name, in any case. Raises: InvalidInput, with the nearest names."""
    known = library()
    wanted = name.strip().casefold().replace("-", "_").replace(" ", "_")
    if wanted in known:
        return known[wanted]
    near = get_close_matches(wanted, list(known), n=3, cutoff=0.4) or [
        stress for stress in known if wanted[-4:] in stress
    ]
    hint = f"did you mean {', '.join(near)}; " if near else ""
    raise InvalidInput(f"no stress '{name[:40]}': {hint}`--stress list` shows all {len(known)}")


def window_days(horizon_days: float) -> int:
    """The window nearest to a horizon, by ratio; the shorter of two as near."""
    return min(WINDOWS_DAYS, key=lambda days: (max(days / horizon_days, horizon_days / days), days))


def factors_of(symbols: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The places of the symbols that stand for each factor; those that none stands for are left out."""
    found = {
        factor.id: tuple(place for place, symbol in enumerate(symbols) if symbol.upper() in factor.symbols)
        for factor in factors().values()
    }
    return {name: places for name, places in found.items() if places}


def can_hold(symbol: str) -> bool:
    """Whether a symbol is something to hold: an index of volatility or a yield is not."""
    return all(factor.held or symbol.upper() not in factor.symbols for factor in factors().values())


def _three(moves: Sequence[float]) -> tuple[float, float, float]:
    day, week, month = moves
    return float(day), float(week), float(month)


@cache
def _tables() -> dict[str, Any]:
    text = files("htfi.forecasting.scenarios").joinpath("stresses.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
