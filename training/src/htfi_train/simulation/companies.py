"""Simulated companies and well-known markets: names, tickers, sectors, and what common news does to each.

Names depend on the seed alone, so an evaluation seed shows companies that no training story named.
"""

import msgspec

from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table

_NUM_OFTEN_ASKED = 4  # of MARKETS, the ones most often asked about


class SimulatedAsset(msgspec.Struct, frozen=True, gc=False):
    """What can be asked about. `sector` is a company's line of business, or '' where its name does not show it."""

    symbol: str
    name: str
    short: str
    sector: str = ""
    company: bool = True
    base: str = ""  # of a currency pair
    quote: str = ""


class _NameParts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    codas: tuple[str, ...]
    endings: tuple[str, ...]
    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    words: tuple[str, ...]
    company_forms: tuple[str, ...]


class _Market(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    symbol: str = ""
    name: str = ""
    sector: str = ""
    base: str = ""
    quote: str = ""

    def asset(self) -> SimulatedAsset:
        if self.base:
            pair = f"{self.base}/{self.quote}"
            return SimulatedAsset(
                self.base + self.quote, pair, pair, "currency", False, self.base, self.quote
            )
        return SimulatedAsset(self.symbol, self.name, self.name, self.sector, company=False)


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sectors: dict[str, tuple[str, ...]]
    markets: tuple[_Market, ...]
    factor_exposures: dict[str, dict[str, float]]
    currency_exposures: dict[str, dict[str, float]]
    names: _NameParts


_TABLES = read_table("companies", _Tables)
_PARTS = _TABLES.names
SECTORS = _TABLES.sectors
MARKETS = tuple(market.asset() for market in _TABLES.markets)


def factor_exposure(asset: SimulatedAsset, factor: str) -> float:
    """What one unit of the factor does to the asset; 0 where it does next to nothing."""
    if asset.base:
        by_currency = _TABLES.currency_exposures.get(factor, {})
        part = by_currency.get(asset.base, 0.0) - by_currency.get(asset.quote, 0.0)
    else:
        part = _TABLES.factor_exposures.get(factor, {}).get(asset.sector, 0.0)
    return part if abs(part) >= 0.45 else 0.0


def draw_assets(rng: Rng, num_companies: int, num_markets: int) -> tuple[SimulatedAsset, ...]:
    """The assets of a simulated market: companies first, markets last; symbols differ."""
    markets = [market for market in MARKETS[:_NUM_OFTEN_ASKED] if rng.chance(0.12)]
    markets += rng.sample([market for market in MARKETS if market not in markets], num_markets - len(markets))
    taken = {market.symbol for market in MARKETS}
    names: set[str] = set()
    companies: list[SimulatedAsset] = []
    while len(companies) < num_companies:
        asset = _company(rng, taken)
        if asset.short not in names:
            names.add(asset.short)
            taken.add(asset.symbol)
            companies.append(asset)
    return (*companies, *markets)


def _company(rng: Rng, taken: set[str]) -> SimulatedAsset:
    sector = rng.choice(tuple(SECTORS)) if rng.chance(0.8) else ""
    name, short = company_name(rng, rng.choice(SECTORS[sector]) if sector else "")
    return SimulatedAsset(ticker(rng, name, taken), name, short, sector)


def invented_word(rng: Rng) -> str:
    """A word that no language has, or seldom."""
    word = rng.choice(_PARTS.onsets) + rng.choice(_PARTS.vowels)
    if rng.chance(0.62):
        word += rng.choice(_PARTS.codas) + rng.choice(_PARTS.vowels if rng.chance(0.35) else _PARTS.endings)
        if rng.chance(0.3):
            word += rng.choice(_PARTS.codas)
    else:
        word += rng.choice(_PARTS.codas[:17]) + rng.choice(_PARTS.endings)
    return word[:11].capitalize()


def company_name(rng: Rng, trade: str) -> tuple[str, str]:
    """Full name and what headlines call it; `trade` is the word that tells the sector, or ''."""
    form = rng.uniform()
    if form < 0.5:
        stem = invented_word(rng)
    elif form < 0.75:
        stem = rng.choice(_PARTS.prefixes) + rng.choice(_PARTS.suffixes)
    elif form < 0.83:
        stem = (
            f"{rng.choice(_PARTS.words)} {invented_word(rng)}"
            if rng.chance(0.5)
            else f"{invented_word(rng)} {rng.choice(_PARTS.words)}"
        )
    elif form < 0.9:
        stem = invented_word(rng) + "-" + invented_word(rng)
    elif form < 0.95:
        stem = "".join(chr(65 + rng.integer(26)) for _ in range(3))
    else:
        stem = f"{invented_word(rng)} & {invented_word(rng)}"
    if not trade:
        return (stem if "&" in stem else f"{stem} {rng.choice(_PARTS.company_forms)}"), stem
    if trade in ("Air", "Bank", "Gold") and rng.chance(0.4):
        name = f"Bank of {stem}" if trade == "Bank" else f"{trade} {stem}"
        return name, name
    # the trade stays in what headlines say: "Norvane Airlines", and a link word only in the full name
    return (
        f"{stem} {trade} {rng.choice(_PARTS.company_forms)}" if rng.chance(0.15) else f"{stem} {trade}"
    ), f"{stem} {trade}"


def ticker(rng: Rng, name: str, taken: set[str]) -> str:
    """Three to five letters that begin as the name does; not one of `taken`."""
    letters = [letter for letter in name.upper() if "A" <= letter <= "Z"]
    words = ["".join(c for c in word.upper() if "A" <= c <= "Z") for word in name.split()]
    words = [word for word in words if word]
    for attempt in range(50):
        length = 3 + rng.weighted_index((5, 5, 1))
        form = rng.uniform()
        if form < 0.35 or attempt > 10:
            symbol = "".join(letters[:length])
        elif form < 0.75:
            symbol = letters[0] + "".join(c for c in letters[1:] if c not in "AEIOU")[: length - 1]
        else:
            symbol = words[0][: length - 1] + words[-1][0]
        if attempt > 5:
            symbol = symbol[: length - 1] + chr(65 + rng.integer(26))
        if len(symbol) >= 3 and symbol not in taken:
            return symbol
    return letters[0] + "".join(chr(65 + rng.integer(26)) for _ in range(4))
