"""Finds text that would steer a machine or the crowd: orders to a model, and pump language. The sanitiser calls it.

Orders and calls to trade are found by how they are built, in many languages (`address`, `enticement`), phrases beyond
doubt by pattern, what is left by a small linear model of English wording, sentence by sentence. What was hidden from
people's eyes is judged harder: nobody hides an honest sentence.
"""

import re
from math import log2

from htfi.domain.news import Finding
from htfi.narrative.sanitising import orders, wording
from htfi.narrative.sanitising.address import address
from htfi.narrative.sanitising.enticement import attributed, enticement
from htfi.narrative.sanitising.lexica import kinds_in
from htfi.narrative.sanitising.undo import Undone

# Log-odds of `wording` from which a finding begins, set so that one in some hundreds of agency headlines with their
# leads is a false alarm, and by how much more it is beyond doubt.
_ORDER_AT, _PUMP_AT = 0.9, 0.65
_CERTAIN_AFTER = 1.5
_OPINION = 0.5  # more, for what a named person says: opinions are worded as orders
_USUAL_WORDS = 80
_FOR_LENGTH = 0.25
_BY_WORDING = 0.7  # at most, of a long text: wording alone holds no speech back
_HIDDEN_AT = -0.5
_WEAKEST, _STRONGEST = 0.5, 0.95
_MANY_CASHTAGS, _FLOOD_OF_CASHTAGS = 8, 16
_LIST, _FLOOD = 0.5, 0.8  # a list of tickers is discounted, a flood of them held back
_MAX_RAW_CHARS = 4_096  # in which templates are looked for: `undo` may have taken them for markup
_PATTERNS = (
    ("overrides", "injection", orders.OVERRIDES, 0.9, "orders a model to drop its instructions"),
    ("steering", "injection", orders.STEERING, 0.8, "tells a reader how to score it"),
    ("exfiltration", "injection", orders.EXFILTRATION, 0.9, "asks for secrets to be sent away"),
    ("addressed", "injection", orders.ADDRESSED, 0.8, "speaks to a model"),
    (
        "foreign",
        "injection",
        orders.FOREIGN,
        0.9,
        "orders a model to drop its instructions, in another language",
    ),
    ("promises", "pump", orders.PROMISES, 0.5, "promises sure gains"),
)
_NOT_ENGLISH_WORDS = (
    "le la les de des du et el los las der und il gli di che dos uma para por pour dans della del das dem den nicht "
    "mit une est sur que não com een het och att"
)
_NOT_ENGLISH = frozenset(_NOT_ENGLISH_WORDS.split())
_NUM_NOT_ENGLISH = 3  # Los Angeles and El Niño together are no Spanish
_LATIN = re.compile("[a-z]")
_WORLDWIDE = ("foreign", "promises")  # tried on whatever is not ASCII
_TEMPLATE_WORDS = frozenset({"system", "assistant", "human", "developer"})


def examine(text: str, undone: Undone) -> tuple[Finding, ...]:
    """Findings in the undone text and in what was hidden; `text` is the raw one, `undone` what `undo` made of it."""
    strongest: dict[str, Finding] = {}
    raw = text[:_MAX_RAW_CHARS]
    has_marks = "<" in raw or "[" in raw or "#" in raw or "`" in raw or '"' in raw
    if (
        has_marks or (":" in raw and not _TEMPLATE_WORDS.isdisjoint(wording.tokens(undone.text.lower())))
    ) and orders.TEMPLATES.search(raw):
        _take(strongest, Finding("injection", 0.9, "holds the marks of a chat template or of a tool call"))
    _look(strongest, undone.text, _ORDER_AT, _PUMP_AT, "")
    for message in undone.hidden:
        _look(strongest, message, _HIDDEN_AT, _HIDDEN_AT, ", where nobody sees it")
    num_cashtags = len(set(orders.CASHTAG.findall(undone.text))) if "$" in undone.text else 0
    if num_cashtags >= _MANY_CASHTAGS:
        strength = _FLOOD if num_cashtags >= _FLOOD_OF_CASHTAGS else _LIST
        _take(strongest, Finding("cashtags", strength, f"names {num_cashtags} tickers"))
    return tuple(strongest.values())


def _look(strongest: dict[str, Finding], text: str, order_at: float, pump_at: float, where: str) -> None:
    lower = text.lower()
    tokens = wording.tokens(lower)
    present = frozenset(tokens)
    kinds = kinds_in(lower, present)
    addressed = address(text, kinds)
    if addressed.strength:
        detail = "tells the machine that reads it what to answer" + where
        _take(strongest, Finding("injection", 0.95 if where else addressed.strength, detail))
    plain = addressed.plain  # a report of attacks gives no order by what it quotes
    enticed = enticement(plain, kinds)
    if enticed:
        detail = "calls to trade and promises or hints at a sure gain" + where
        _take(strongest, Finding("pump", 0.95 if where else enticed, detail))
    if plain != text:
        lower = plain.lower()
        tokens = wording.tokens(lower)
        present = frozenset(tokens)
    is_ascii = lower.isascii()
    for name, rule, pattern, strength, told in _PATTERNS:
        if present.isdisjoint(orders.HINTS[name]) and (is_ascii or name not in _WORLDWIDE):
            continue
        if pattern.search(lower) and (
            rule != "pump" or enticed or not any("warning" in told for told in kinds)
        ):
            _take(strongest, Finding(rule, 0.95 if where else strength, told + where))
    if not is_ascii and 2 * len(_LATIN.findall(lower)) < len(lower) - lower.count(" "):
        return  # another script: the wording is not known
    if len(present & _NOT_ENGLISH) >= max(_NUM_NOT_ENGLISH, len(tokens) // 10):
        return
    order, pump = wording.judge(tokens, wording.shipped())
    if len(tokens) > _USUAL_WORDS:  # of many honest sentences one sounds odd
        allowance = _FOR_LENGTH * log2(len(tokens) / _USUAL_WORDS)
        order, pump = order - allowance, pump - allowance
    is_opinion = not where and attributed(plain)
    if order >= order_at + (_OPINION if is_opinion else 0.0):
        strength = 0.95 if where else _strength(order - order_at)
        if len(tokens) > _USUAL_WORDS and not where:
            strength = min(strength, _BY_WORDING)
        _take(strongest, Finding("injection", strength, "is worded as an order to a model" + where))
    if pump >= pump_at and (enticed or not is_opinion):
        strength = 0.95 if where else _strength(pump - pump_at)
        _take(strongest, Finding("pump", strength, "is worded as those do who pump a price" + where))


def _strength(beyond: float) -> float:
    share = min(beyond / _CERTAIN_AFTER, 1.0)
    return round(_WEAKEST + (_STRONGEST - _WEAKEST) * share, 3)


def _take(strongest: dict[str, Finding], finding: Finding) -> None:
    known = strongest.get(finding.rule)
    if known is None or finding.strength > known.strength:
        strongest[finding.rule] = finding
