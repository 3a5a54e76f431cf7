"""Tells what a symbol stands for: a share, an index, a bond, a side of a currency pair, a commodity (`assets.toml`)."""

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from htfi.narrative.encoding.linking import is_company
from htfi.narrative.facts.regions import find_regions, region_of_currency


class AssetKind(StrEnum):
    """What kind of thing is priced."""

    EQUITY = "equity"
    INDEX = "index"
    SECTOR = "sector"
    VOLATILITY = "volatility"
    BOND_PRICE = "bond_price"
    BOND_YIELD = "bond_yield"
    HIGH_YIELD = "high_yield"
    CURRENCY = "currency"
    DOLLAR = "dollar"
    GOLD = "gold"
    OIL = "oil"
    GAS = "gas"
    METAL = "metal"
    CROP = "crop"
    CRYPTO = "crypto"


class Asset(NamedTuple):
    """What a symbol stands for. `region` is that of the economy; of a currency pair the base's, `quote` the other's.

    An `inverse` asset falls when what it follows rises.
    """

    symbol: str
    kind: AssetKind
    name: str = ""
    region: str = ""
    quote: str = ""
    sector: str = ""
    inverse: bool = False


_ENDINGS = re.compile(
    r"(?:=[FX]|\.(?:N|OQ?|A|K|L|PA|DE|F|TO|HK|SS|SZ|AX|MI|MC|AS|BR|ST|CO|HE|OL|NS|BO|KS|T|INDX|FOREX|COMM|NYB|CBT|NYM|CMX|CME|ICE))$"
)
_FUTURE = re.compile(r"/?([A-Z0-9]{1,3})(?:=F|[12]!)|/?([A-Z0-9]{1,3})[FGHJKMNQUVXZ]\d{1,2}")
_PAIR = re.compile(r"([A-Z]{3})[/_\-:]?([A-Z]{3})")
_CRYPTO_PAIR = re.compile(r"([A-Z0-9]{2,5})[/_\-]?(?:USDT?|EUR|USDC|PERP|BTC)(?:[-_]?PERP)?")


@lru_cache(maxsize=8_192)
def asset_of(symbol: str, name: str = "") -> Asset:
    """The asset that a symbol stands for, from the table; else a currency pair; else a share."""
    upper = symbol.upper().strip().lstrip("^$")
    plain = _ENDINGS.sub("", upper)
    future = _FUTURE.fullmatch(upper)
    if future is not None and (found := _futures().get(future[1] or future[2])) is not None:
        return found._replace(symbol=symbol, name=name)
    bare = _futures().get(plain)
    if bare is not None and name and (topic := _topics().get(bare.kind)) is not None and topic.search(name):
        return bare._replace(symbol=symbol, name=name)
    found = _table().get(plain) or _table().get(re.sub(r"[/_\-]", "", plain))
    if found is not None:
        return found._replace(symbol=symbol, name=name)
    pair = _PAIR.fullmatch(plain)
    if pair is not None:
        base, quote = region_of_currency(pair[1]), region_of_currency(pair[2])
        if base and quote and base != quote:
            return Asset(symbol, AssetKind.CURRENCY, name, base, quote)
    crypto = _CRYPTO_PAIR.fullmatch(plain)
    if (
        crypto is not None
        and (found := _table().get(crypto[1])) is not None
        and found.kind is AssetKind.CRYPTO
    ):
        return found._replace(symbol=symbol, name=name)
    currency = region_of_currency(plain)
    if currency and plain != "ALL" and (not name or _is_currency_name(name, currency)):
        return Asset(symbol, AssetKind.CURRENCY, name, currency, "" if currency == "US" else "US")
    alias = _aliases().get(name.strip().casefold()) or _aliases().get(symbol.strip().casefold())
    if alias is not None and alias != symbol:
        return asset_of(alias)._replace(symbol=symbol, name=name)
    return Asset(symbol, AssetKind.EQUITY, name)


def _is_currency_name(name: str, region: str) -> bool:
    """Whether a name is that of the region's currency, and not of a company whose symbol is the same (NOK, Nokia)."""
    pattern = _topics().get(AssetKind.CURRENCY)
    return region in find_regions(name) or (pattern is not None and pattern.search(name) is not None)


def names_asset(linked: str, asset: Asset) -> bool:
    """Whether a symbol that the linker found in a text is this asset, or what it follows."""
    if _company_of(linked) == _company_of(asset.symbol):
        return True
    if asset.kind is AssetKind.EQUITY:
        return False
    other = asset_of(linked)
    if other.kind is AssetKind.EQUITY or is_company(linked):
        return False
    if asset.kind in (AssetKind.CURRENCY, AssetKind.DOLLAR):
        return (
            other.kind is AssetKind.CURRENCY
            and other.region in (asset.region, asset.quote)
            and bool(other.region)
        )
    if asset.kind is AssetKind.CRYPTO:
        return other.kind is AssetKind.CRYPTO and _coin(other.symbol) == _coin(asset.symbol)
    return other.kind is asset.kind and other.region == asset.region


def is_topic(text: str, kind: AssetKind) -> bool:
    """Whether a text is about a class of asset, by its words."""
    pattern = _topics().get(kind)
    return pattern is not None and pattern.search(text) is not None


def _company_of(symbol: str) -> str:
    """The root of the symbol that stands for all of a company's shares."""
    root = root_of(symbol)
    return root_of(_same_company().get(symbol.upper()) or _same_company().get(root, root))


def root_of(symbol: str) -> str:
    """The symbol without its market: GS for GS.N."""
    return symbol.upper().partition(".")[0] if symbol[:1].isalpha() else symbol.upper()


def _coin(symbol: str) -> str:
    return re.sub(r"[/_\-]?(?:USDT?|EUR|USDC)$", "", symbol.upper())[:3]


@cache
def _table() -> Mapping[str, Asset]:
    return _assets("symbols")


@cache
def _futures() -> Mapping[str, Asset]:
    return _assets("futures")


def _assets(key: str) -> dict[str, Asset]:
    found: dict[str, Asset] = {}
    for entry in _read()["asset"]:
        asset = Asset(
            "",
            AssetKind(entry["class"]),
            region=entry.get("region", ""),
            sector=entry.get("sector", ""),
            inverse=entry.get("inverse", False),
        )
        for symbol in entry.get(key, "").split():
            found.setdefault(symbol, asset)
    return found


@cache
def _aliases() -> Mapping[str, str]:
    return _read()["names"]


@cache
def _same_company() -> Mapping[str, str]:
    return _read()["same"]


@cache
def _topics() -> Mapping[AssetKind, re.Pattern[str]]:
    return {
        AssetKind(kind): re.compile(pattern, re.IGNORECASE) for kind, pattern in _read()["topics"].items()
    }


@cache
def _read() -> dict[str, Any]:
    text = (resources.files("htfi.narrative.facts") / "assets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
