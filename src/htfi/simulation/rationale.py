"""One sentence that says why: the cause and its logic, for the answers that stories teach. It holds no digit."""

from enum import StrEnum

from htfi.simulation.headlines.grammar import expand
from htfi.simulation.rng import Rng

MIN_WORDS, MAX_WORDS = 4, 14


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


# "<" and ">" stand for the braces of slots that are filled when the answer is read.
_ENDINGS: dict[NewsSituation, str] = {
    NewsSituation.FRESH: (
        "[{why}, [and|but] [prices have not moved yet|the price has yet to react|it is not in the price]|"
        "{why}; [nothing is priced yet|the market has not answered yet|prices still stand where they "
        "stood]|{why}]"
    ),
    NewsSituation.AGAINST: (
        "[{why}, [though|and] [prices had moved the other way|the last move went the other way]|{why}; "
        "the market was leaning the other way]"
    ),
    NewsSituation.PRICED: (
        "[{why}, but [prices have moved already|it is in the price already|the market was faster]|{why}; "
        "[the move is done|the price shows it already]]"
    ),
    NewsSituation.STALE: (
        "[{why}, but [that is old news|the news is old]|the news is old and [long absorbed|no longer "
        "moves prices]|[old news|an old story]: {why}]"
    ),
    NewsSituation.FORGED: (
        "[{why}, so [nothing should follow|it should fade|it does not count]|[the item looks forged|this "
        "reads like a forgery], and {why}|[hype|noise] without a source [moves nothing that lasts|does "
        "not count]]"
    ),
    NewsSituation.DENIED: (
        "[{why}, so [the move should unwind|what it moved comes back|it fades]|{why}; [the rumour's move "
        "is undone|prices go back to where they were]]"
    ),
    NewsSituation.DENIED_UNMOVED: (
        "[{why}, and [prices never followed the rumour|there is nothing to unwind]|{why}; the rumour had "
        "moved nothing]"
    ),
    NewsSituation.OFFICIAL: (
        "[{why}; [the official word beats unnamed sources|that outweighs the talk]|{why}, [whatever|"
        "despite what] [sources say|the talk says]]"
    ),
    NewsSituation.EMPTY: (
        "[{why}, so [nothing changes|no move is due|little follows]|{why}; [nothing new for|no reason to "
        "move] <symbol>]"
    ),
    NewsSituation.IRRELEVANT: (
        "[[none of the news bears|the news has no bearing] on <symbol>|[the items|these headlines] [do "
        "not concern|say nothing of weight for] <symbol>|nothing here should move <symbol>|[the news is "
        "about others|others are concerned], not <symbol>]"
    ),
    NewsSituation.NO_NEWS: (
        "[there is no news [on|about] <symbol>|nothing was reported [on|about] <symbol>|no headline, so "
        "no view on <symbol>|without news there is no lean]"
    ),
}
_DIRECTION_PHRASES = {
    1: "[which [helps|supports|lifts|favours] <symbol>|[good|a help|a gain] for <symbol>]",
    -1: "[which [hurts|burdens|weighs on] <symbol>|[bad|a burden|a loss] for <symbol>]",
}
_CLOSING = (
    "[[; expect|, so] <direction> [by|about] <size>|; <direction>, confidence <confidence>|, <direction> "
    "with volatility <volatility>]"
)


# Where the reason is too long to go with what follows from it.
_SHORT: dict[NewsSituation, str] = {
    NewsSituation.FRESH: "the news is fresh and not priced",
    NewsSituation.AGAINST: "the news turns the last move around",
    NewsSituation.PRICED: "[the news is in the price already|prices had moved before the news]",
    NewsSituation.STALE: "[the news is old and long absorbed|this is old news for <symbol>]",
    NewsSituation.DENIED: "what the rumour moved comes back",
    NewsSituation.OFFICIAL: "the official word beats unnamed sources",
    NewsSituation.EMPTY: "nothing new in it for <symbol>",
}
_MAX_ATTEMPTS = 4


def rationale_sentence(dice: Rng, situation: NewsSituation, why: str, sign: int, indirect: bool) -> str:
    """The sentence. `sign` is the way the news points; `indirect` says that it is not the asset's own news."""
    if indirect and sign:
        why = f"{why}, {_SIDE[sign]}"
    said = ""
    for _ in range(_MAX_ATTEMPTS):
        said = expand(_ENDINGS[situation], {"why": why}, dice)
        if MIN_WORDS <= len(said.split()) <= MAX_WORDS:
            break
    else:
        said = expand(_SHORT.get(situation, _SHORT[NewsSituation.EMPTY]), {}, dice)
    if (
        sign
        and situation in (NewsSituation.FRESH, NewsSituation.AGAINST, NewsSituation.DENIED)
        and dice.chance(0.25)
    ):
        longer = said + expand(_CLOSING, {}, dice)
        if len(longer.split()) <= MAX_WORDS:
            said = longer
    return said.replace("<", "{").replace(">", "}")
