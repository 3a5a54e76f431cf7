"""One sentence that says why: the cause and its logic, for the answers that models are taught. It holds no digit."""

from enum import StrEnum

import msgspec

from htfi_train.simulation.headlines.grammar import expand
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table

MIN_WORDS, MAX_WORDS = 4, 14
_MAX_ATTEMPTS = 4


class NewsSituation(StrEnum):
    """How the news stands to the price and to other news."""

    FRESH = "fresh"
    AGAINST = "against"  # prices had run the other way
    PRICED = "priced"
    STALE = "stale"
    FORGED = "forged"
    DENIED = "denied"  # and what the rumour moved comes back
    DENIED_UNMOVED = "denied, unmoved"
    OFFICIAL = "official"  # against what unnamed sources say
    EMPTY = "empty"  # relevant, and nothing new
    IRRELEVANT = "irrelevant"
    NO_NEWS = "no news"


class _Sentences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sentences` say it in full, `short` where the reason is too long to go with what follows from it."""

    sentences: dict[NewsSituation, str]
    short: dict[NewsSituation, str]
    additions: dict[str, str]


_TEXTS = read_table("rationale", _Sentences)


def rationale_sentence(rng: Rng, situation: NewsSituation, why: str, sign: int, indirect: bool) -> str:
    """The sentence. `sign` is the way the news points; `indirect` says that it is not the asset's own news."""
    if indirect and sign:
        why = f"{why}, {_TEXTS.additions['helps' if sign > 0 else 'hurts']}"
    text = ""
    for _ in range(_MAX_ATTEMPTS):
        text = expand(_TEXTS.sentences[situation], {"why": why}, rng)
        if MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            break
    else:
        text = expand(_TEXTS.short.get(situation, _TEXTS.short[NewsSituation.EMPTY]), {}, rng)
    moves = situation in (NewsSituation.FRESH, NewsSituation.AGAINST, NewsSituation.DENIED)
    if sign and moves and rng.chance(0.25):
        longer = text + expand(_TEXTS.additions["closing"], {}, rng)
        if len(longer.split()) <= MAX_WORDS:
            text = longer
    return text.replace("<", "{").replace(">", "}")
