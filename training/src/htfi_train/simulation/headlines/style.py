"""How a headline is dressed: prefixes and sources, sentence or Title Case, capitals, posts with cashtags."""

from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.events import NewsEvent
from htfi_train.simulation.headlines.frames import grammar
from htfi_train.simulation.headlines.grammar import wording
from htfi_train.simulation.rng import Rng

MAX_CHARS = 160
_STYLE = grammar("style").lists
_SMALL_WORDS = frozenset(_STYLE["small_words"])


def write_headline(
    event: NewsEvent, assets: dict[str, SimulatedAsset], rng: Rng, is_update: bool = False
) -> str:
    """One headline of the event, printable and at most `MAX_CHARS` long; an update is a rewrite that came later."""
    slots = event.slots
    style = rng.uniform()
    is_post = style > 0.88 and event.subject != ""
    if event.subject:
        slots = slots | {"s": _asset_name(assets[event.subject], rng, is_post)}
        if event.counterpart:
            slots["o"] = _asset_name(assets[event.counterpart], rng, is_post)
    text = ""
    for _ in range(8):
        text = wording(event.phrases, slots, rng)
        if len(text) <= MAX_CHARS - 20:
            break
    text = text[: MAX_CHARS - 20].strip()
    sentence = text[0].upper() + text[1:]
    if style < 0.5:
        text = sentence
    elif style < 0.74:
        text = " ".join(_title_case(word, place) for place, word in enumerate(sentence.split(" ")))
    elif style < 0.86:
        text = text.upper()
    if event.subkind == "forged":
        return text
    if is_update:
        text = rng.choice(_STYLE["update_prefixes"]) + text
    elif rng.chance(0.22):
        text = rng.choice(_STYLE["prefixes"]) + text
    if not is_post and event.credibility > 0.8 and rng.chance(0.16):
        text += rng.choice(_STYLE["suffixes"])
    return text


def _asset_name(asset: SimulatedAsset, rng: Rng, is_post: bool) -> str:
    if is_post:
        return f"${asset.symbol}"
    form = rng.uniform()
    if form < 0.74:
        return asset.short
    if form < 0.84:
        return asset.name
    if form < 0.93:
        return f"{asset.short} ({asset.symbol})"
    return asset.symbol


def _title_case(word: str, place: int) -> str:
    if (place and word in _SMALL_WORDS) or not word or not word[0].islower():
        return word
    return word[0].upper() + word[1:]
