"""From the facts of an item to one asset: the lines of `effects.toml` that speak, and what they come to.

Pure: the same facts and the same asset give the same reading. Each reading names the lines that spoke, so that a
person can follow it, and where it says nothing, why.
"""

import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from htfi.narrative.facts.assets import Asset, AssetKind
from htfi.narrative.facts.record import EventKind, PartyRole
from htfi.narrative.facts.regions import is_within

TABLE_VERSION = "effects/2"


class Whose(StrEnum):
    """Whose economy an event must be of, for a line to speak."""

    ANY = "any"
    HOME = "home"


class Effect(NamedTuple):
    """One line of the table. Units: `size` and `cap` in daily standard deviations, `volatility` a multiple of usual.

    `regions` are those that an event must be of, where `whose` is neither home nor any. `usual` −1…1 is what such an
    event means for the asset along its axis, as expected before the text is read.
    """

    number: int  # place in the table, from 1
    kinds: frozenset[EventKind]
    assets: frozenset[AssetKind]
    role: PartyRole | None
    whose: Whose
    regions: frozenset[str]
    sector: str
    is_for_named: bool  # speaks only where the item names the asset
    sign: int
    size: float
    cap: float
    volatility: float
    usual: float
    source: str


class SignedEffect(NamedTuple):
    """A line of the table as it applies to an asset: `sign` is that of the asset, inverse ones and sides turned."""

    effect: Effect
    sign: int


# A class without a line of its own follows another, along or against it.
_FOLLOWS = {
    AssetKind.BOND_PRICE: (AssetKind.BOND_YIELD, -1),
    AssetKind.DOLLAR: (AssetKind.CURRENCY, 1),
    AssetKind.HIGH_YIELD: (AssetKind.INDEX, 1),
    AssetKind.SECTOR: (AssetKind.INDEX, 1),
}


def effects_on(
    asset: Asset,
    event: EventKind,
    regions: Sequence[str],
    role: PartyRole | None = None,
    *,
    is_named: bool = False,
) -> list[SignedEffect]:
    """The lines that speak for an asset: at most one, or one for each side of a currency pair.

    `regions` are the economies of the event; an event of no known economy speaks only by lines for any. An asset of no
    known economy (a sector fund abroad) is taken for one of the event's.
    """
    inverse = -1 if asset.inverse else 1
    found = _in_table(asset, event, regions, role)
    if not found and is_named:
        found = [SignedEffect(line, line.sign) for line in table() if line.is_for_named]
    return [SignedEffect(one.effect, one.sign * inverse) for one in found]


def _in_table(
    asset: Asset, event: EventKind, regions: Sequence[str], role: PartyRole | None
) -> list[SignedEffect]:
    if asset.kind in (AssetKind.CURRENCY, AssetKind.DOLLAR):
        sides = ((asset.region, 1), (asset.quote, -1))
        return [
            SignedEffect(line, line.sign * side)
            for region, side in sides
            if region and (line := _line(asset, AssetKind.CURRENCY, event, regions, region, role)) is not None
        ]
    line = _line(asset, asset.kind, event, regions, asset.region, role)
    if line is not None:
        return [SignedEffect(line, line.sign)]
    if asset.kind in _FOLLOWS:
        followed, turn = _FOLLOWS[asset.kind]
        line = _line(asset, followed, event, regions, asset.region, role)
        if line is not None:
            return [SignedEffect(line, line.sign * turn)]
    return []


def _line(
    asset: Asset,
    kind: AssetKind,
    event: EventKind,
    regions: Sequence[str],
    home: str,
    role: PartyRole | None,
) -> Effect | None:
    for line in table():
        if line.is_for_named or event not in line.kinds or kind not in line.assets:
            continue
        if line.sector and line.sector != asset.sector:
            continue
        if line.role is not None and line.role is not role:
            continue
        if line.regions:
            if not line.regions.intersection(regions):
                continue
        elif (
            line.whose is Whose.HOME
            and home
            and not any(is_within(region, home) or is_within(home, region) for region in regions)
        ):
            continue
        return line
    return None


@cache
def table() -> tuple[Effect, ...]:
    """The lines of `effects.toml`, in order."""
    text = (resources.files("htfi.narrative.facts") / "effects.toml").read_text(encoding="utf-8")
    return tuple(_parsed(number, entry) for number, entry in enumerate(tomllib.loads(text)["effect"], 1))


def _parsed(number: int, entry: Mapping[str, Any]) -> Effect:
    where = entry.get("where", Whose.ANY)
    named = where not in (Whose.ANY, Whose.HOME)
    return Effect(
        number=number,
        kinds=frozenset(EventKind(kind) for kind in _listed(entry["kind"], EventKind)),
        assets=frozenset(AssetKind(kind) for kind in _listed(entry["asset"], AssetKind)),
        role=PartyRole(entry["role"]) if "role" in entry else None,
        whose=Whose.ANY if named else Whose(where),
        regions=frozenset(where.split()) if named else frozenset(),
        sector=entry.get("sector", ""),
        is_for_named=entry.get("named", False),
        sign=entry["sign"],
        size=entry["size"],
        cap=entry["cap"],
        volatility=entry["volatility"],
        usual=entry.get("usual", 0.0),
        source=entry["source"],
    )


def _listed(text: str, members: type[StrEnum]) -> list[str]:
    """'a | b' as a list; 'any' stands for all."""
    return [str(one) for one in members] if text == Whose.ANY else [one.strip() for one in text.split("|")]
