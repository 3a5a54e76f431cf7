"""Finds where a text names its parties, with clean bounds: names that are linked, and words in which the network sees a
party, with the rest of the name beside them.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityMention

_MIN_NAMED = 0.5  # probability from which a word belongs to a party
_MIN_BESIDE = 0.08  # the same, of a capitalised word that stands beside one which does
_MIN_CAPITAL = 0.3  # the same, of a word with a capital among words without
_TITLED = 0.7  # share of words with a capital from which all have one
_WORD = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:[.&'’+][^\W_]+)*\+?")
_POSSESSIVE = re.compile(r"['’]s?$")
_JOINS = frozenset({" ", "-", " & ", "&", "/", ". ", "’", "'"})
# Words that belong to no name, at either end of one.
_BESIDE = """
a an the and or of in by for to from with on at as after over its his their is was are be has will would may no not
than but while when if says said sees shares stock stocks board bid offer deal takeover buys to sells cuts raises
upgraded downgraded upgrades downgrades rises falls slips gains jumps drops climbs slides surges sinks soars tumbles
q1 q2 q3 q4 h1 h2 fy ceo cfo ipo eps pt etf"""
# What a company is called before its name.
_BEFORE = """
suitor bidder broker rival activist airline airlines bank lender insurer drugmaker chipmaker carmaker automaker retailer
brewer miner shipper utility supplier customer maker fund regulator judge jury court investors investor analyst analysts
acquisition purchase holders owner parent startup unlisted privately listed exclusive update breaking why how new"""
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
_NO_NAME, _DESCRIPTIONS = frozenset(_BESIDE.split()), frozenset(_BEFORE.split())


class NamedSpan(NamedTuple):
    """A party's name: characters `start` to before `end`, and the symbols it is known by."""

    start: int
    end: int
    symbols: tuple[str, ...]


class _Word(NamedTuple):
    start: int
    end: int
    named: float  # probability of belonging to a party


def name_spans(
    text: str,
    mentions: Sequence[EntityMention],
    tokens: NDArray[np.int64],
    named: NDArray[np.float64],
    asked: tuple[int, int] | None = None,
) -> list[NamedSpan]:
    """Names in the order of the text, none over another.

    Shapes: `tokens` [T, 2] in characters, `named` [T] the probability of belonging to a party. `asked` is where a name
    stands that somebody asked for.
    """
    linked: dict[tuple[int, int], list[str]] = {}
    for mention in mentions:
        linked.setdefault(_without_verb(text, mention), []).append(mention.symbol)
    taken = list(linked)
    if asked is not None:
        parts = [one for one in linked if asked[0] <= one[0] and one[1] <= asked[1]]
        if parts or not _overlap(asked, taken):
            linked[asked] = [symbol for part in parts for symbol in linked.pop(part)]
            taken.append(asked)
    spans = [NamedSpan(start, end, tuple(dict.fromkeys(symbols))) for (start, end), symbols in linked.items()]
    words = [word for word in _words(text, tokens, named) if not _overlap(word[:2], taken)]
    spans += [NamedSpan(start, end, ()) for start, end in _runs(text, words)]
    return sorted(spans)


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


def _words(text: str, tokens: NDArray[np.int64], named: NDArray[np.float64]) -> list[_Word]:
    """The words of the text, each with the largest probability of its tokens."""
    spans = [
        (match.start(), match.start() + len(_without_possessive(match[0]))) for match in _WORD.finditer(text)
    ]
    if not spans:
        return []
    places = np.array(spans)  # [W, 2]
    inside = (tokens[:, 0] < places[:, 1:]) & (tokens[:, 1] > places[:, :1])  # [W, T]
    largest = np.where(inside, named, -np.inf).max(axis=1, initial=-np.inf)  # [W]
    return [
        _Word(start, end, share)
        for (start, end), share in zip(spans, largest.tolist(), strict=True)
        if share > -np.inf
    ]


def _without_possessive(word: str) -> str:
    return _POSSESSIVE.sub("", word) if "'" in word or "’" in word else word


def _runs(text: str, words: Sequence[_Word]) -> list[tuple[int, int]]:
    """Runs of words that are one name."""
    capitals = [text[word.start].isupper() for word in words if text[word.start].isalpha()]
    is_titled = sum(capitals) > _TITLED * max(len(capitals), 1)
    states = [_state(text, word, is_titled) for word in words]
    runs: list[tuple[int, int]] = []
    place = 0
    while place < len(words):
        last = place
        while (
            last + 1 < len(words)
            and states[last + 1]
            and text[words[last].end : words[last + 1].start] in _JOINS
        ):
            last += 1
        if states[place]:
            run = _trimmed(text, words[place : last + 1])
            if any(word.named >= (_MIN_NAMED if is_titled else _MIN_CAPITAL) for word in run):
                runs.append((run[0].start, run[-1].end))
            place = last
        place += 1
    return runs


def _state(text: str, word: _Word, is_titled: bool) -> bool:
    """Whether a word may belong to a name."""
    written = text[word.start : word.end]
    if written.isalpha() and written.islower():  # most words
        return False
    if not any(char.isupper() or char.isdigit() for char in written) or written.casefold() in _NO_NAME:
        return False
    if word.named >= _MIN_NAMED:
        return True
    if is_titled or not written.isalpha() or not written[0].isupper():
        return False
    opens = not text[: word.start].rstrip("\"'“‘( ") or text[: word.start].rstrip().endswith((":", ";", "."))
    return word.named >= (_MIN_CAPITAL if opens else _MIN_BESIDE)


def _trimmed(text: str, words: Sequence[_Word]) -> Sequence[_Word]:
    """A run without what only describes the company before it."""
    while len(words) > 1 and text[words[0].start : words[0].end].casefold() in _DESCRIPTIONS:
        words = words[1:]
    return words
