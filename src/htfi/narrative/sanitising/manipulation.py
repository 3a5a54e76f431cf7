"""Finds text that would steer a machine or the crowd: instructions to a model, and calls to trade by those who pump a
price.

Instructions and calls to trade are found by how they are built, in many languages (`prompt_injection`,
`pump_call_strength`), phrases beyond doubt by pattern, and the rest by a small linear model of English wording,
sentence by sentence. Hidden text is judged more strictly: an honest sentence is not hidden.
"""

import re
from collections.abc import Collection
from functools import cache
from math import log2

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising import wording_model as wording
from htfi.narrative.sanitising.deobfuscation import Deobfuscated
from htfi.narrative.sanitising.phrase_lexicon import (
    LexiconMark,
    MarkedSentence,
    fold_text,
    kinds_in,
    marked_sentences,
)
from htfi.narrative.sanitising.possible_checks import CheckChooser, may_hold_template
from htfi.narrative.sanitising.prompt_injection import INJECTION_CERTAIN, find_injection, holds_order

PUMP_CERTAIN = 0.85
_NUM_SENTENCES_AROUND = 3  # sentences that are judged together
_ENDING = frozenset(
    (",", ":", "!", "–", "—", "，", "：", "、", "،", "！", '"', "“", "«", "„", "「", "(", "*")
)
_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "manipulation")
# Phrases that only someone writing to a model would use: tried on text in lower case, except the marks of templates.
_PHRASES = Patterns("htfi.narrative.sanitising", "patterns.toml", "orders")
_TEMPLATES = _PHRASES.compiled("templates", re.I)
_CASHTAG = re.compile(r"\$[A-Za-z]{1,6}\b")
_NAMED_SPEAKER = _DATA.compiled("named_speaker")
_HEADLINE_CHARS = 120
_ENDED = re.compile(r"[.!?。！？]\s")  # more than one sentence is not a headline
_ON_RATES = _DATA.compiled("on_rates")
_NO_PERSON = _DATA.words("no_person_words")


def pump_call_strength(text: str, kinds: Collection[frozenset[str]]) -> float:
    """0–1, how surely a text calls to trade: an order to buy or sell, beside a promise, a tip or a hurry. `kinds` are
    those of its words, by language.

    The opinion of a named person, however loud, and a report on those who promise are no call.
    """
    if not any("call" in language and not language.isdisjoint(("sure", "tip", "rich")) for language in kinds):
        return 0.0
    by_language: dict[bool, list[tuple[MarkedSentence, set[str]]]] = {}
    for sentence in marked_sentences(fold_text(text)):
        found = {mark.kind for mark in sentence.marks}
        if "warning" in found or "report" in found:
            found -= {"sure", "rich", "tip"}
        by_language.setdefault(sentence.is_wide, []).append((sentence, found))
    for in_language in by_language.values():
        for at in range(len(in_language)):
            around = in_language[at : at + _NUM_SENTENCES_AROUND]
            if _has_order([sentence for sentence, _ in around]) and _has_promise(
                set[str]().union(*(kinds for _, kinds in around))
            ):
                return PUMP_CERTAIN
    return 0.0


def is_attributed(headline: str) -> bool:
    """Whether a headline quotes a person: 'Cramer: buy, buy, buy'."""
    found = _NAMED_SPEAKER.match(headline)
    if found is None or len(headline) > _HEADLINE_CHARS or _ENDED.search(headline):
        return False
    words = [word.strip("\"'“«„:：.").lower() for word in found[0].split()]
    return bool(words) and not any(word in _NO_PERSON for word in words)


def _has_order(around: list[MarkedSentence]) -> bool:
    return any(_is_order(sentence, mark) for sentence in around for mark in sentence.of_kinds("call"))


def _is_order(sentence: MarkedSentence, call: LexiconMark) -> bool:
    if sentence.is_wide or call.start == 0:
        return True
    before = sentence.words[call.start - 1]
    return before in _ENDING or any(
        mark.end == call.start for mark in sentence.of_kinds("joining", "urgent", "sure", "rich")
    )


def _has_promise(kinds: set[str]) -> bool:
    """A promise of sure gain; or two of a tip, riches and a hurry."""
    return "sure" in kinds or len(kinds & {"tip", "rich", "urgent"}) >= 2


# Log-odds of `wording` from which a finding begins, set so that one in some hundreds of agency headlines with their
# leads is a false alarm, and by how much more it is beyond doubt.
_ORDER_AT, _PUMP_AT = 0.9, 0.65
_CERTAIN_AFTER = 1.5
_OPINION = 0.5  # more, for a named person's words: opinions are worded as orders
_USUAL_WORDS = 80
_FOR_LENGTH = 0.25
_MAX_LONG_TEXT_STRENGTH = 0.7  # at most, for a long text: wording alone holds back no speech
_HIDDEN_AT = -0.5
_WEAKEST, _STRONGEST = 0.5, 0.95
_MANY_CASHTAGS, _FLOOD_OF_CASHTAGS = 8, 16
_CASHTAG_LIST, _CASHTAG_FLOOD = 0.5, 0.8  # a list of tickers is discounted, a flood held back
_MAX_RAW_CHARS = 4_096  # searched for templates: `deobfuscate` may have removed them as markup
_PATTERNS = (
    (
        "overrides",
        "injection",
        _PHRASES.compiled("overrides"),
        0.9,
        "instructs a model to drop its instructions",
    ),
    ("steering", "injection", _PHRASES.compiled("steering"), 0.8, "instructs a reader how to score it"),
    ("exfiltration", "injection", _PHRASES.compiled("exfiltration"), 0.9, "asks for secrets to be sent away"),
    ("addressed", "injection", _PHRASES.compiled("addressed"), 0.8, "addresses a model"),
    (
        "foreign",
        "injection",
        _PHRASES.compiled("foreign"),
        0.9,
        "instructs a model to drop its instructions, in another language",
    ),
    ("promises", "pump", _PHRASES.compiled("promises"), 0.5, "promises sure gains"),
)
_HINTS = {name: _PHRASES.words(f"hints_{name}") for name, *_ in _PATTERNS}
_NOT_ENGLISH = _DATA.words("not_english_words")
_NUM_NOT_ENGLISH = 3  # Los Angeles and El Niño together are no Spanish
_LATIN = re.compile("[a-z]")
_WORLDWIDE = ("foreign", "promises")  # tried on every text that is not ASCII
_TEMPLATE_WORDS = frozenset({"system", "assistant", "human", "developer"})


def find_manipulation(text: str, undone: Deobfuscated) -> tuple[ScreeningFinding, ...]:
    """Findings in the deobfuscated text and in what was hidden; `text` is the raw one."""
    strongest: dict[str, ScreeningFinding] = {}
    raw = text[:_MAX_RAW_CHARS]
    has_marks = "<" in raw or "[" in raw or "#" in raw or "`" in raw or '"' in raw
    is_possible = (has_marks or ":" in raw) and may_hold_template(raw)
    if is_possible and (has_marks or _has_template_word(undone.text.lower())) and _TEMPLATES.search(raw):
        _keep_strongest(
            strongest,
            ScreeningFinding("injection", 0.9, "contains the marks of a chat template or of a tool call"),
        )
    _examine_text(strongest, undone.text, _ORDER_AT, _PUMP_AT, "")
    for message in undone.hidden:
        _examine_text(strongest, message, _HIDDEN_AT, _HIDDEN_AT, ", in hidden text")
    num_cashtags = len(set(_CASHTAG.findall(undone.text))) if "$" in undone.text else 0
    if num_cashtags >= _MANY_CASHTAGS:
        strength = _CASHTAG_FLOOD if num_cashtags >= _FLOOD_OF_CASHTAGS else _CASHTAG_LIST
        _keep_strongest(strongest, ScreeningFinding("cashtags", strength, f"names {num_cashtags} tickers"))
    return tuple(strongest.values())


def _has_template_word(lower: str) -> bool:
    is_possible = any(word in lower for word in _TEMPLATE_WORDS)
    return is_possible and not _TEMPLATE_WORDS.isdisjoint(wording.tokens(lower))


def _examine_text(
    strongest: dict[str, ScreeningFinding], text: str, order_at: float, pump_at: float, where: str
) -> None:
    possible = checks().possible(text, order_at, pump_at)
    if possible is None:
        return
    if possible.is_every:
        _examine_fully(strongest, text, order_at, pump_at, where)
        return
    if any(holds_order(text[start:end]) for start, end in possible.sentences):
        _keep_strongest(strongest, _instruction(INJECTION_CERTAIN, where))
    lower = text.lower()
    for name, rule, pattern, strength, detail in _PATTERNS:
        if name in possible.patterns and pattern.search(lower) and (rule != "pump" or not _warns(lower)):
            _keep_strongest(strongest, ScreeningFinding(rule, 0.95 if where else strength, detail + where))
    if possible.is_worded:
        _examine_wording(strongest, text, wording.tokens(lower), 0.0, order_at, pump_at, where)


def _examine_fully(
    strongest: dict[str, ScreeningFinding], text: str, order_at: float, pump_at: float, where: str
) -> None:
    lower = text.lower()
    tokens = wording.tokens(lower)
    present = frozenset(tokens)
    kinds = kinds_in(lower, present)
    addressed = find_injection(text, kinds)
    if addressed.strength:
        _keep_strongest(strongest, _instruction(addressed.strength, where))
    plain = addressed.plain  # a report of attacks gives no instruction by what it quotes
    enticed = pump_call_strength(plain, kinds)
    if enticed:
        detail = "calls to trade and promises a sure gain" + where
        _keep_strongest(strongest, ScreeningFinding("pump", 0.95 if where else enticed, detail))
    if plain != text:
        lower = plain.lower()
        tokens = wording.tokens(lower)
        present = frozenset(tokens)
    is_ascii = lower.isascii()
    for name, rule, pattern, strength, detail in _PATTERNS:
        if present.isdisjoint(_HINTS[name]) and (is_ascii or name not in _WORLDWIDE):
            continue
        if pattern.search(lower) and (
            rule != "pump" or enticed or not any("warning" in language for language in kinds)
        ):
            _keep_strongest(strongest, ScreeningFinding(rule, 0.95 if where else strength, detail + where))
    if not is_ascii and 2 * len(_LATIN.findall(lower)) < len(lower) - lower.count(" "):
        return  # another script: the model does not know the words
    _examine_wording(strongest, plain, tokens, enticed, order_at, pump_at, where)


def _examine_wording(
    strongest: dict[str, ScreeningFinding],
    plain: str,
    tokens: list[str],
    enticed: float,
    order_at: float,
    pump_at: float,
    where: str,
) -> None:
    if len(_NOT_ENGLISH.intersection(tokens)) >= max(_NUM_NOT_ENGLISH, len(tokens) // 10):
        return
    order, pump = wording.max_log_odds(tokens, wording.shipped_weights())
    if pump >= pump_at and _ON_RATES.search(plain.lower()):
        _, pump = wording.max_log_odds(tokens, wording.shipped_weights(), is_on_rates=True)
    if len(tokens) > _USUAL_WORDS:  # of many honest sentences one sounds odd
        allowance = _FOR_LENGTH * log2(len(tokens) / _USUAL_WORDS)
        order, pump = order - allowance, pump - allowance
    is_opinion = not where and is_attributed(plain)
    if order >= order_at + (_OPINION if is_opinion else 0.0):
        strength = 0.95 if where else _strength(order - order_at)
        if len(tokens) > _USUAL_WORDS and not where:
            strength = min(strength, _MAX_LONG_TEXT_STRENGTH)
        _keep_strongest(
            strongest,
            ScreeningFinding("injection", strength, "is worded like an instruction to a model" + where),
        )
    if pump >= pump_at and (enticed or not is_opinion):
        strength = 0.95 if where else _strength(pump - pump_at)
        _keep_strongest(strongest, ScreeningFinding("pump", strength, "is worded like a pump" + where))


@cache
def checks() -> CheckChooser:
    return CheckChooser(wording.shipped_weights(), _HINTS, _NOT_ENGLISH)


def _warns(lower: str) -> bool:
    kinds = kinds_in(lower, frozenset(wording.tokens(lower)))
    return any("warning" in language for language in kinds)


def _instruction(strength: float, where: str) -> ScreeningFinding:
    detail = "instructs the machine that reads it what to answer" + where
    return ScreeningFinding("injection", 0.95 if where else strength, detail)


def _strength(beyond: float) -> float:
    share = min(beyond / _CERTAIN_AFTER, 1.0)
    return round(_WEAKEST + (_STRONGEST - _WEAKEST) * share, 3)


def _keep_strongest(strongest: dict[str, ScreeningFinding], finding: ScreeningFinding) -> None:
    known = strongest.get(finding.rule)
    if known is None or finding.strength > known.strength:
        strongest[finding.rule] = finding
