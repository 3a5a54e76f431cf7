"""Finds calls to a crowd to trade, in many languages: an order to buy or sell, beside a promise, a tip or a hurry.

An opinion that a named person gives is one, however loud; a report on those who promise and on those who pursue them is
none. `manipulation` asks it, and lets the model of words alone hold nothing that has no mark of a call.
"""

import re
from collections.abc import Collection

from htfi.narrative.sanitising.lexica import Mark, Marked, fold, sentences

CERTAIN = 0.85
_AROUND = 3  # sentences that are judged together
_ENDING = frozenset(
    (",", ":", "!", "–", "—", "，", "：", "、", "،", "！", '"', "“", "«", "„", "「", "(", "*")
)
_NAMED = re.compile(
    r"[\"'“«„]?(?:[^\W\d_a-z][\w.'’-]*\s+){0,2}[^\W\d_a-z][\w.'’-]+\s*(?::|says?\b|said\b|dice\b|dijo\b|diz\b|disse\b|dit\b|"
    r"déclare\b|dice\b|sagt\b|sagte\b|говорит\b|сказал\b|：|称|表示|氏「|は「)"
)
_HEADLINE_CHARS = 120
_ENDED = re.compile(r"[.!?。！？]\s")  # more than one sentence is no headline
_NOBODY_WORDS = (
    "breaking alert urgent insider insiders tip tips hot signal signals news update exclusive flash group call friend "
    "warning attention important announcement everyone guys all source sources rumor rumour now today pump note target "
    "exchange date time coin stop entry buy sell goal reminder"
)
_NOBODY = frozenset(_NOBODY_WORDS.split())


def enticement(text: str, kinds: Collection[frozenset[str]]) -> float:
    """0–1, how surely a text calls to trade as those do who pump a price; `kinds` are those of its words,
    by language.
    """
    if not any("call" in told and not told.isdisjoint(("sure", "tip", "rich")) for told in kinds):
        return 0.0
    by_language: dict[bool, list[tuple[Marked, set[str]]]] = {}
    for said in sentences(fold(text)):
        found = {mark.kind for mark in said.marks}
        if "warning" in found or "report" in found:
            found -= {"sure", "rich", "tip"}
        by_language.setdefault(said.is_wide, []).append((said, found))
    for told in by_language.values():
        for at in range(len(told)):
            around = told[at : at + _AROUND]
            if _calls([said for said, _ in around]) and _entices(
                set[str]().union(*(kinds for _, kinds in around))
            ):
                return CERTAIN
    return 0.0


def attributed(headline: str) -> bool:
    """Whether a headline gives somebody's words: 'Cramer: buy, buy, buy'."""
    found = _NAMED.match(headline)
    if found is None or len(headline) > _HEADLINE_CHARS or _ENDED.search(headline):
        return False
    words = [word.strip("\"'“«„:：.").lower() for word in found[0].split()]
    return bool(words) and not any(word in _NOBODY for word in words)


def _calls(around: list[Marked]) -> bool:
    return any(_is_order(said, mark) for said in around for mark in said.of("call"))


def _is_order(said: Marked, call: Mark) -> bool:
    if said.is_wide or call.start == 0:
        return True
    before = said.words[call.start - 1]
    return before in _ENDING or any(
        mark.end == call.start for mark in said.of("joining", "urgent", "sure", "rich")
    )


def _entices(kinds: set[str]) -> bool:
    """A promise of sure gain; or two among a tip, riches and a hurry."""
    return "sure" in kinds or len(kinds & {"tip", "rich", "urgent"}) >= 2
