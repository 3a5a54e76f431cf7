"""The manner of a headline: prefixes and sources, sentence or Title Case, flashes in capitals, posts with cashtags."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent
from htfi.simulation.headlines.grammar import wording
from htfi.simulation.rng import Rng

MAX_CHARS = 160
_SMALL = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "for",
        "to",
        "in",
        "on",
        "by",
        "at",
        "from",
        "and",
        "or",
        "but",
        "as",
        "with",
        "than",
        "not",
        "per",
        "vs",
        "is",
        "was",
        "its",
        "it",
    ]
)
_PREFIXES = (
    "BRIEF-",
    "UPDATE 1-",
    "UPDATE 2-",
    "FLASH: ",
    "Breaking: ",
    "JUST IN: ",
    "NEWS ALERT: ",
    "Exclusive: ",
    "Wrap: ",
    "MARKETS-",
)
_SUFFIXES = (
    " - filing",
    " - statement",
    ", statement shows",
    ", filing shows",
    " | Marketline",
    " | Capital Wire",
    " (Northgate News)",
    " - Tradedesk",
    " - press release",
)
_UPDATE_PREFIXES = ("UPDATE 1-", "UPDATE 2-", "UPDATE 3-", "REFILE-", "RPT-", "WRAPUP 1-", "")


def write_headline(
    event: NewsEvent, assets: dict[str, SimulatedAsset], dice: Rng, again: bool = False
) -> str:
    """One headline of the event, printable and at most `MAX_CHARS` long; `again` is a rewrite that came later."""
    slots = event.slots
    manner = dice.uniform()
    post = manner > 0.88 and event.subject != ""
    if event.subject:
        named = assets[event.subject]
        slots = slots | {"s": _asset_name(named, dice, post)}
        if event.counterpart:
            slots["o"] = _asset_name(assets[event.counterpart], dice, post)
    text = ""
    for _ in range(8):
        text = wording(event.phrases, slots, dice)
        if len(text) <= MAX_CHARS - 20:
            break
    text = text[: MAX_CHARS - 20].strip()
    first = text[0].upper() + text[1:]
    if manner < 0.5:
        text = first
    elif manner < 0.74:
        text = " ".join(_title_case(word, place) for place, word in enumerate(first.split(" ")))
    elif manner < 0.86:
        text = text.upper()
    if event.subkind == "forged":
        return text
    if again:
        text = dice.choice(_UPDATE_PREFIXES) + text
    elif dice.chance(0.22):
        text = dice.choice(_PREFIXES) + text
    if not post and event.credibility > 0.8 and dice.chance(0.16):
        text += dice.choice(_SUFFIXES)
    return text


def _asset_name(asset: SimulatedAsset, dice: Rng, post: bool) -> str:
    if post:
        return f"${asset.symbol}"
    manner = dice.uniform()
    if manner < 0.74:
        return asset.short
    if manner < 0.84:
        return asset.name
    if manner < 0.93:
        return f"{asset.short} ({asset.symbol})"
    return asset.symbol


def _title_case(word: str, place: int) -> str:
    if (place and word in _SMALL) or not word or not word[0].islower():
        return word
    return word[0].upper() + word[1:]
