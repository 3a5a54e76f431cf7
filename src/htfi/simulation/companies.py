"""Names of invented companies in many manners, and the tickers that exchanges would give them.

Invented companies and well-known markets: names, tickers, sectors, and what common news does to each.

Stories draw their world's assets here. Names depend on the seed alone, so an evaluation seed shows companies that no
training story named.
"""

import msgspec

from htfi.simulation.rng import Rng

_ONSETS = (
    "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br", "cr",
    "dr", "fl", "gr", "kr", "pr", "st", "tr", "th", "sh", "ch", "sk", "sl", "sp", "qu", "bl", "cl", "gl",
    "pl", "sw", "wh", "kn", "ph", "vr", "sc", "sm", "tw",
)  # fmt: skip
_VOWELS = (
    "a", "e", "i", "o", "u", "a", "e", "i", "o", "u", "ai", "ea", "ei", "io", "oa", "ou", "au", "ia", "y",
    "eo", "oo",
)  # fmt: skip
_CODAS = (
    "n", "r", "l", "s", "m", "x", "t", "k", "d", "nd", "rn", "lt", "st", "rk", "ld", "ns", "nt", "rm", "ll",
    "ss", "ck", "th", "sh", "mp", "rd", "ff", "v", "z", "ne", "re", "le", "ve", "te",
)  # fmt: skip
_ENDINGS = (
    "a", "o", "is", "us", "on", "ex", "ia", "en", "ar", "or", "ix", "um", "yx", "ane", "ent", "ora", "eon",
    "ion", "ara", "ive", "era", "ico", "ova", "elle", "ana", "ett", "ero", "yne", "ise", "ax", "al",
)  # fmt: skip
_PREFIXES = (
    "Bright", "Stone", "Wood", "Ash", "Black", "White", "Red", "Green", "Silver", "Gold", "Iron", "North",
    "South", "East", "West", "High", "Clear", "Deep", "Fair", "Glen", "Hart", "Hawk", "Oak", "Elm", "Fox",
    "King", "Lake", "Long", "Marsh", "Mill", "Moor", "Old", "Park", "Raven", "River", "Rock", "Salt", "Sand",
    "Spring", "Star", "Storm", "Summer", "Sun", "Swift", "Thorn", "Wind", "Winter", "Wolf", "Wild", "Cold",
    "Blue", "Crow", "Swan", "Bear", "Lamb", "Cliff", "Copper", "Amber", "Cinder", "Ember",
)  # fmt: skip
_SUFFIXES = (
    "bridge", "brook", "field", "ford", "gate", "hall", "ham", "haven", "hill", "holm", "hurst", "land",
    "ley", "mark", "mere", "mont", "moor", "more", "mount", "port", "ridge", "shaw", "side", "stead", "stone",
    "thorpe", "ton", "vale", "view", "ville", "wall", "ward", "water", "way", "well", "wick", "wood", "worth",
    "fall", "burn", "cross", "dale", "combe", "crest", "den", "fell", "garth", "head", "keep", "lock",
    "march", "pool", "reach", "shore", "thwaite",
)  # fmt: skip
_WORDS = (
    "Halcyon", "Meridian", "Vantage", "Paragon", "Zenith", "Solstice", "Equinox", "Lantern", "Harbour",
    "Beacon", "Compass", "Anchor", "Keystone", "Summit", "Pinnacle", "Cascade", "Aurora", "Horizon",
    "Orchard", "Prairie", "Tundra", "Juniper", "Cypress", "Willow", "Magnolia", "Sequoia", "Falcon", "Heron",
    "Osprey", "Kestrel", "Condor", "Albatross", "Lynx", "Panther", "Bison", "Stag", "Marlin", "Dolphin",
    "Titan", "Atlas", "Orion", "Vega", "Lyra", "Cygnus", "Draco", "Nimbus", "Stratus", "Cobalt", "Indigo",
    "Crimson", "Scarlet", "Onyx", "Opal", "Jasper", "Garnet", "Quartz", "Granite", "Basalt", "Obsidian",
    "Marble", "Crown", "Sceptre", "Shield", "Bastion", "Citadel", "Rampart", "Pioneer", "Voyager", "Wayfarer",
    "Pilgrim", "Settler", "Mariner", "Navigator",
)  # fmt: skip
_COMPANY_FORMS = (
    "Group", "Holdings", "Industries", "& Sons", "& Co", "International", "Partners", "Corp", "Global", "plc",
    "AG", "SA",
)  # fmt: skip


def invented_word(dice: Rng) -> str:
    """A word that no language has, or seldom."""
    word = dice.choice(_ONSETS) + dice.choice(_VOWELS)
    if dice.chance(0.62):
        word += dice.choice(_CODAS) + dice.choice(_VOWELS if dice.chance(0.35) else _ENDINGS)
        if dice.chance(0.3):
            word += dice.choice(_CODAS)
    else:
        word += dice.choice(_CODAS[:17]) + dice.choice(_ENDINGS)
    return word[:11].capitalize()


def company_name(dice: Rng, trade: str) -> tuple[str, str]:
    """Full name and what headlines call it; `trade` is the word that tells the sector, or ''."""
    manner = dice.uniform()
    if manner < 0.5:
        stem = invented_word(dice)
    elif manner < 0.75:
        stem = dice.choice(_PREFIXES) + dice.choice(_SUFFIXES)
    elif manner < 0.83:
        stem = (
            f"{dice.choice(_WORDS)} {invented_word(dice)}"
            if dice.chance(0.5)
            else f"{invented_word(dice)} {dice.choice(_WORDS)}"
        )
    elif manner < 0.9:
        stem = invented_word(dice) + "-" + invented_word(dice)
    elif manner < 0.95:
        stem = "".join(chr(65 + dice.integer(26)) for _ in range(3))
    else:
        stem = f"{invented_word(dice)} & {invented_word(dice)}"
    if not trade:
        return (stem if "&" in stem else f"{stem} {dice.choice(_LINKS)}"), stem
    if trade in ("Air", "Bank", "Gold") and dice.chance(0.4):
        name = f"Bank of {stem}" if trade == "Bank" else f"{trade} {stem}"
        return name, name
    # the trade stays in what headlines say: "Norvane Airlines", and a link word only in the full name
    return (
        f"{stem} {trade} {dice.choice(_LINKS)}" if dice.chance(0.15) else f"{stem} {trade}"
    ), f"{stem} {trade}"


def ticker(dice: Rng, name: str, taken: set[str]) -> str:
    """Three to five letters that begin as the name does; not one of `taken`."""
    letters = [letter for letter in name.upper() if "A" <= letter <= "Z"]
    words = ["".join(c for c in word.upper() if "A" <= c <= "Z") for word in name.split()]
    words = [word for word in words if word]
    for attempt in range(50):
        length = 3 + dice.weighted_index((5, 5, 1))
        manner = dice.uniform()
        if manner < 0.35 or attempt > 10:
            symbol = "".join(letters[:length])
        elif manner < 0.75:
            symbol = letters[0] + "".join(c for c in letters[1:] if c not in "AEIOU")[: length - 1]
        else:
            symbol = words[0][: length - 1] + words[-1][0]
        if attempt > 5:
            symbol = symbol[: length - 1] + chr(65 + dice.integer(26))
        if len(symbol) >= 3 and symbol not in taken:
            return symbol
    return letters[0] + "".join(chr(65 + dice.integer(26)) for _ in range(4))


# Sector: the words in a company's name that tell it, by which a reader knows what common news does to the shares.
SECTORS: dict[str, tuple[str, ...]] = {
    "bank": ("Bank", "Bancorp", "Savings Bank", "Banking Group", "Bankshares"),
    "oil producer": ("Petroleum", "Oil & Gas", "Energy", "Oil", "Drilling", "Exploration"),
    "airline": ("Airlines", "Airways", "Air", "Air Lines"),
    "retailer": ("Stores", "Retail", "Supermarkets", "Outlets", "Department Stores"),
    "chipmaker": ("Semiconductor", "Microdevices", "Chips", "Silicon"),
    "drugmaker": ("Pharma", "Therapeutics", "Pharmaceuticals", "Biosciences"),
    "utility": ("Power", "Electric", "Utilities", "Water", "Light & Power"),
    "miner": ("Mining", "Minerals", "Metals", "Copper", "Resources"),
    "gold miner": ("Gold", "Gold Mines", "Goldfields"),
    "carmaker": ("Motors", "Automotive", "Motor Works", "Auto"),
    "software": ("Software", "Cloud", "Systems", "Data", "Networks"),
    "shipper": ("Shipping", "Maritime", "Lines", "Container Lines", "Tankers"),
    "insurer": ("Insurance", "Assurance", "Life", "Reinsurance"),
    "food maker": ("Foods", "Dairy", "Bakeries", "Beverages", "Brewing"),
    "defence firm": ("Defence", "Aerospace", "Armaments", "Shipyards"),
    "steelmaker": ("Steel", "Steelworks", "Iron & Steel"),
    "property firm": ("Properties", "Realty", "Homes", "Homebuilders"),
    "hotel chain": ("Hotels", "Resorts", "Cruises", "Travel"),
    "telecom": ("Telecom", "Mobile", "Wireless"),
}


class SimulatedAsset(msgspec.Struct, frozen=True, gc=False):
    """What can be asked about. `sector` is a company's line of business, or '' where its name does not tell it."""

    symbol: str
    name: str
    short: str
    sector: str = ""
    company: bool = True
    base: str = ""  # of a currency pair
    quote: str = ""


def _market_asset(symbol: str, name: str, sector: str, short: str = "") -> SimulatedAsset:
    return SimulatedAsset(symbol, name, short or name, sector, company=False)


_WATCHED = 4  # of MARKETS, the ones most often asked about


def _currency_pair(base: str, quote: str) -> SimulatedAsset:
    return SimulatedAsset(base + quote, f"{base}/{quote}", f"{base}/{quote}", "currency", False, base, quote)


MARKETS: tuple[SimulatedAsset, ...] = (
    _market_asset("SPX", "S&P 500", "index USD"),
    _market_asset("VIX", "Volatility index", "fear"),
    _currency_pair("EUR", "USD"),
    _market_asset("XAUUSD", "Gold", "gold"),
    _market_asset("ES", "S&P 500 futures", "index USD"),
    _market_asset("NDX", "Nasdaq 100", "index USD tech"),
    _market_asset("SPY", "S&P 500 ETF", "index USD"),
    _market_asset("QQQ", "Nasdaq 100 ETF", "index USD tech"),
    _market_asset("DJI", "Dow Jones", "index USD"),
    _market_asset("RUT", "Russell 2000", "index USD"),
    _market_asset("DAX", "DAX", "index EUR"),
    _market_asset("SX5E", "Euro Stoxx 50", "index EUR"),
    _market_asset("UKX", "FTSE 100", "index GBP"),
    _market_asset("NKY", "Nikkei 225", "index JPY"),
    _market_asset("GC", "Gold futures", "gold"),
    _market_asset("XAGUSD", "Silver", "gold"),
    _market_asset("CL", "Crude oil futures", "oil"),
    _market_asset("BRN", "Brent crude", "oil"),
    _market_asset("NG", "Natural gas futures", "gas"),
    _market_asset("HG", "Copper futures", "copper"),
    _market_asset("ZW", "Wheat futures", "grain"),
    _market_asset("ZC", "Corn futures", "grain"),
    _market_asset("TLT", "Long Treasury ETF", "bond USD"),
    _market_asset("ZN", "10-year Treasury futures", "bond USD"),
    _market_asset("ZB", "Long Treasury bond futures", "bond USD"),
    _market_asset("FGBL", "Bund futures", "bond EUR"),
    _market_asset("BTCUSD", "Bitcoin", "crypto"),
    _market_asset("ETHUSD", "Ether", "crypto"),
    _market_asset("DXY", "Dollar index", "dollar"),
    _currency_pair("GBP", "USD"), _currency_pair("AUD", "USD"), _currency_pair("NZD", "USD"),
    _currency_pair("USD", "JPY"), _currency_pair("USD", "CHF"), _currency_pair("USD", "CAD"), _currency_pair("USD", "NOK"), _currency_pair("USD", "CNH"),
    _currency_pair("USD", "MXN"), _currency_pair("EUR", "JPY"), _currency_pair("EUR", "GBP"), _currency_pair("EUR", "CHF"), _currency_pair("GBP", "JPY"),
)  # fmt: skip

# Factor: what a positive unit of it does, by sector. Parts of the effect, of one asset's own news; sign is the lesson.
FACTOR_EXPOSURES: dict[str, dict[str, float]] = {
    "oil": {  # dearer oil
        "oil": 1.2, "oil producer": 1.0, "airline": -1.0, "shipper": -0.6, "hotel chain": -0.5, "carmaker": -0.5,
    },
    "gas": {"gas": 1.2, "utility": -0.8, "steelmaker": -0.6, "oil producer": 0.5},
    "copper": {"copper": 1.2, "miner": 1.0, "carmaker": -0.5},
    "grain": {"grain": 1.2, "food maker": -0.9, "retailer": -0.5},
    "chips": {"chipmaker": 0.9, "carmaker": -0.9},  # chips are scarce
    "freight": {"shipper": 1.0, "retailer": -0.7, "carmaker": -0.6, "food maker": -0.5},  # sea freight is dear
    "rates USD": {  # tighter American money than was priced
        "index USD": -0.8, "index USD tech": -1.0, "gold": -0.9, "gold miner": -0.9, "bond USD": -1.0, "bank": 0.6,
        "insurer": 0.6, "utility": -0.8, "software": -0.9, "chipmaker": -0.7, "property firm": -1.1, "crypto": -0.8,
        "dollar": 1.0, "fear": 0.6, "telecom": -0.6,
    },
    "rates EUR": {"index EUR": -0.8, "bond EUR": -1.0, "dollar": -0.7},
    "rates GBP": {"index GBP": -0.7},
    "rates JPY": {"index JPY": -0.9, "dollar": -0.5},
    "risk": {  # appetite for risk
        "index USD": 0.9, "index USD tech": 1.0, "index EUR": 0.9, "index GBP": 0.8, "index JPY": 0.9, "gold": -0.7,
        "gold miner": -0.6, "bond USD": -0.6, "bond EUR": -0.6, "fear": -1.2, "crypto": 0.8, "bank": 0.7,
        "airline": 0.7, "hotel chain": 0.7, "miner": 0.6, "copper": 0.6, "carmaker": 0.6, "software": 0.6,
        "chipmaker": 0.7, "property firm": 0.5, "insurer": 0.5, "steelmaker": 0.6,
    },
    "war": {
        "index USD": -0.8, "index USD tech": -0.8, "index EUR": -1.0, "index GBP": -0.7, "index JPY": -0.8,
        "gold": 0.9, "gold miner": 0.8, "bond USD": 0.5, "fear": 1.2, "oil": 0.9, "oil producer": 0.7,
        "airline": -1.0, "hotel chain": -0.9, "defence firm": 1.2, "bank": -0.6, "shipper": -0.6, "grain": 0.6,
        "carmaker": -0.5, "crypto": -0.5, "gas": 0.7, "dollar": 0.5,
    },
    "tariffs": {
        "index USD": -0.8, "index USD tech": -0.9, "index EUR": -0.8, "index JPY": -0.8, "carmaker": -1.0,
        "retailer": -0.8, "shipper": -0.9, "chipmaker": -0.9, "steelmaker": 0.8, "copper": -0.7, "miner": -0.6,
        "gold": 0.5, "fear": 0.8, "food maker": -0.5,
    },
    "bank stress": {
        "bank": -1.2, "index USD": -0.8, "index USD tech": -0.6, "index EUR": -0.8, "gold": 0.7, "bond USD": 0.8,
        "bond EUR": 0.6, "fear": 1.1, "insurer": -0.8, "property firm": -0.6, "gold miner": 0.5,
    },
    "drug prices": {"drugmaker": -1.0, "insurer": 0.5},  # a cap on what drugs may cost
    "crypto curbs": {"crypto": -1.1},
    "carbon": {"utility": -0.9, "steelmaker": -0.8, "oil producer": -0.7, "airline": -0.6},  # a dearer carbon price
    "arms": {"defence firm": 1.1},  # more is spent on defence
}  # fmt: skip

CURRENCY_EXPOSURES: dict[str, dict[str, float]] = {
    "oil": {"CAD": 0.6, "NOK": 0.8},
    "copper": {"AUD": 0.6},
    "rates USD": {"USD": 1.0}, "rates EUR": {"EUR": 1.0}, "rates GBP": {"GBP": 1.0}, "rates JPY": {"JPY": 1.0},
    "rates CHF": {"CHF": 1.0}, "rates AUD": {"AUD": 1.0}, "rates CAD": {"CAD": 1.0}, "rates NZD": {"NZD": 1.0},
    "rates NOK": {"NOK": 1.0}, "rates MXN": {"MXN": 1.0},
    "risk": {"JPY": -0.7, "CHF": -0.5, "AUD": 0.7, "NZD": 0.6, "MXN": 0.6},
    "war": {"JPY": 0.5, "CHF": 0.7, "EUR": -0.6, "AUD": -0.6, "NZD": -0.6},
    "tariffs": {"CNH": -0.9, "MXN": -0.8, "CAD": -0.6, "AUD": -0.6},
    "bank stress": {"JPY": 0.7, "CHF": 0.6, "AUD": -0.6},
}  # fmt: skip


def factor_exposure(asset: SimulatedAsset, factor: str) -> float:
    """What one unit of the factor does to the asset; 0 where it does next to nothing."""
    if asset.base:
        by_currency = CURRENCY_EXPOSURES.get(factor, {})
        part = by_currency.get(asset.base, 0.0) - by_currency.get(asset.quote, 0.0)
    else:
        part = FACTOR_EXPOSURES.get(factor, {}).get(asset.sector, 0.0)
    return part if abs(part) >= 0.45 else 0.0


def draw_assets(dice: Rng, num_companies: int, num_markets: int) -> tuple[SimulatedAsset, ...]:
    """A world's assets: companies first, markets last; symbols differ."""
    markets = [market for market in MARKETS[:_WATCHED] if dice.chance(0.12)]
    markets += dice.sample(
        [market for market in MARKETS if market not in markets], num_markets - len(markets)
    )
    taken = {market.symbol for market in MARKETS}
    names: set[str] = set()
    companies: list[SimulatedAsset] = []
    while len(companies) < num_companies:
        asset = _company(dice, taken)
        if asset.short not in names:
            names.add(asset.short)
            taken.add(asset.symbol)
            companies.append(asset)
    return (*companies, *markets)


def _company(dice: Rng, taken: set[str]) -> SimulatedAsset:
    sector = dice.choice(tuple(SECTORS)) if dice.chance(0.8) else ""
    name, short = company_name(dice, dice.choice(SECTORS[sector]) if sector else "")
    return SimulatedAsset(ticker(dice, name, taken), name, short, sector)
