"""Finds where a text names its parties, with clean bounds: names that are linked, and words in which the network sees a
party, with the rest of the name beside them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityMention
from htfi.narrative.facts import name_words

try:
    from htfi.narrative.facts import names_core as core
except ImportError:
    core = None
if TYPE_CHECKING or core is None:
    find_names, find_parties = name_words.find_names, name_words.find_parties
else:
    find_names, find_parties = core.find_names, core.find_parties

# Words in which a party is seen though none of them is one that acts: nationalities, places, courts, goods, markets.
_NO_FIRMS = """
american british german french italian spanish dutch swiss swedish norwegian danish finnish belgian austrian polish
irish portuguese greek russian turkish chinese japanese korean indian australian canadian mexican brazilian israeli
saudi european asian african scottish welsh thai us u.s. uk eu london paris berlin tokyo munich brussels beijing
washington california texas delaware manhattan supreme high federal appeals court courts judge judges jury jurors
arbitrator arbitrators tribunal regulator regulators shareholders investors ai ev evs suv suvs 5g 4g lng gpu gpus pc
pcs tv tvs nfl nba fifa dax cac ftse nasdaq index covid covid-19"""
_NO_FIRM_WORDS = frozenset(_NO_FIRMS.split())
_MOVES = frozenset({"falls", "rises", "hits", "slips", "gains", "eases", "settles"})


class NamedSpan(NamedTuple):
    """A party's name: characters `start` to before `end`, and the symbols it is known by."""

    start: int
    end: int
    symbols: tuple[str, ...]


def name_spans(
    text: str, mentions: Sequence[EntityMention], tokens: NDArray[np.int64], roles: NDArray[np.float64]
) -> list[NamedSpan]:
    """Names in the order of the text, none over another.

    Shapes: `tokens` [T, 2] in characters, `roles` [T, roles + 1], the last the probability of belonging to no party.
    """
    linked = linked_spans(text, mentions)
    taken = list(linked)
    return [
        NamedSpan(start, end, () if place < 0 else linked[taken[place]])
        for start, end, place in find_names(text, taken, tokens, roles)
    ]


def linked_spans(
    text: str, mentions: Sequence[EntityMention], asked: tuple[int, int] | None = None
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Where the names that are linked stand, with their symbols. `asked` is where a name stands that somebody asked
    for.
    """
    linked: dict[tuple[int, int], list[str]] = {}
    for mention in mentions:
        linked.setdefault(_without_verb(text, mention), []).append(mention.symbol)
    if asked is not None:
        parts = [one for one in linked if asked[0] <= one[0] and one[1] <= asked[1]]
        if parts or not _overlap(asked, list(linked)):
            linked[asked] = [symbol for part in parts for symbol in linked.pop(part)]
    return {span: tuple(dict.fromkeys(symbols)) for span, symbols in linked.items()}


def _without_verb(text: str, mention: EntityMention) -> tuple[int, int]:
    """Where the name itself stands: a word may be known as a commodity by the verb behind it ('gold slips')."""
    first, _, last = text[mention.start : mention.end].rpartition(" ")
    return mention.start, mention.start + len(first) if first and last.casefold() in _MOVES else mention.end


def same_parties(text: str, spans: Sequence[NamedSpan]) -> list[int]:
    """A number for each name; names of one company have one: they share a symbol, or one begins the other."""
    numbers: list[int] = []
    folded = [text[one.start : one.end].casefold().split() for one in spans]
    for place, one in enumerate(spans):
        number = place
        for before in range(place):
            other = spans[before]
            shorter = min(len(folded[place]), len(folded[before]))
            is_same = bool(set(one.symbols) & set(other.symbols)) or (
                not (one.symbols and other.symbols) and folded[place][:shorter] == folded[before][:shorter]
            )
            if is_same:
                number = numbers[before]
                break
        numbers.append(number)
    return numbers


def is_no_firm(text: str, name: NamedSpan) -> bool:
    """Whether a name is made of words that name no company and no authority: 'German', 'Supreme Court', 'AI'."""
    words = text[name.start : name.end].casefold().replace("-", " ").split()
    return _NO_FIRM_WORDS.issuperset(words)


def _overlap(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(span[0] < end and span[1] > start for start, end in others)
