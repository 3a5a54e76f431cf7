"""Names of invented companies in many manners, and the tickers that exchanges would give them."""

from htfi.simulation.dice import Dice

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
_ENDS = (
    "a", "o", "is", "us", "on", "ex", "ia", "en", "ar", "or", "ix", "um", "yx", "ane", "ent", "ora", "eon",
    "ion", "ara", "ive", "era", "ico", "ova", "elle", "ana", "ett", "ero", "yne", "ise", "ax", "al",
)  # fmt: skip
_FRONTS = (
    "Bright", "Stone", "Wood", "Ash", "Black", "White", "Red", "Green", "Silver", "Gold", "Iron", "North",
    "South", "East", "West", "High", "Clear", "Deep", "Fair", "Glen", "Hart", "Hawk", "Oak", "Elm", "Fox",
    "King", "Lake", "Long", "Marsh", "Mill", "Moor", "Old", "Park", "Raven", "River", "Rock", "Salt", "Sand",
    "Spring", "Star", "Storm", "Summer", "Sun", "Swift", "Thorn", "Wind", "Winter", "Wolf", "Wild", "Cold",
    "Blue", "Crow", "Swan", "Bear", "Lamb", "Cliff", "Copper", "Amber", "Cinder", "Ember",
)  # fmt: skip
_BACKS = (
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
_LINKS = (
    "Group", "Holdings", "Industries", "& Sons", "& Co", "International", "Partners", "Corp", "Global", "plc",
    "AG", "SA",
)  # fmt: skip


def root(dice: Dice) -> str:
    """A word that no language has, or seldom."""
    word = dice.pick(_ONSETS) + dice.pick(_VOWELS)
    if dice.chance(0.62):
        word += dice.pick(_CODAS) + dice.pick(_VOWELS if dice.chance(0.35) else _ENDS)
        if dice.chance(0.3):
            word += dice.pick(_CODAS)
    else:
        word += dice.pick(_CODAS[:17]) + dice.pick(_ENDS)
    return word[:11].capitalize()


def company_name(dice: Dice, trade: str) -> tuple[str, str]:
    """Full name and what headlines call it; `trade` is the word that tells the sector, or ''."""
    manner = dice.unit()
    if manner < 0.5:
        stem = root(dice)
    elif manner < 0.75:
        stem = dice.pick(_FRONTS) + dice.pick(_BACKS)
    elif manner < 0.83:
        stem = (
            f"{dice.pick(_WORDS)} {root(dice)}" if dice.chance(0.5) else f"{root(dice)} {dice.pick(_WORDS)}"
        )
    elif manner < 0.9:
        stem = root(dice) + "-" + root(dice)
    elif manner < 0.95:
        stem = "".join(chr(65 + dice.below(26)) for _ in range(3))
    else:
        stem = f"{root(dice)} & {root(dice)}"
    if not trade:
        return (stem if "&" in stem else f"{stem} {dice.pick(_LINKS)}"), stem
    if trade in ("Air", "Bank", "Gold") and dice.chance(0.4):
        name = f"Bank of {stem}" if trade == "Bank" else f"{trade} {stem}"
        return name, name
    # the trade stays in what headlines say: "Norvane Airlines", and a link word only in the full name
    return (
        f"{stem} {trade} {dice.pick(_LINKS)}" if dice.chance(0.15) else f"{stem} {trade}"
    ), f"{stem} {trade}"


def ticker(dice: Dice, name: str, taken: set[str]) -> str:
    """Three to five letters that begin as the name does; not one of `taken`."""
    letters = [letter for letter in name.upper() if "A" <= letter <= "Z"]
    words = ["".join(c for c in word.upper() if "A" <= c <= "Z") for word in name.split()]
    words = [word for word in words if word]
    for attempt in range(50):
        length = 3 + dice.weighted((5, 5, 1))
        manner = dice.unit()
        if manner < 0.35 or attempt > 10:
            symbol = "".join(letters[:length])
        elif manner < 0.75:
            symbol = letters[0] + "".join(c for c in letters[1:] if c not in "AEIOU")[: length - 1]
        else:
            symbol = words[0][: length - 1] + words[-1][0]
        if attempt > 5:
            symbol = symbol[: length - 1] + chr(65 + dice.below(26))
        if len(symbol) >= 3 and symbol not in taken:
            return symbol
    return letters[0] + "".join(chr(65 + dice.below(26)) for _ in range(4))
