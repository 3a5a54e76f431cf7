"""Finds text that would steer a machine or the crowd: orders to a model, and pump language. The sanitiser calls it.

Phrases beyond doubt are found by pattern, everything else by a small linear model of the wording, sentence by
sentence. What was hidden from people's eyes is judged harder: nobody hides an honest sentence.
"""

import re

from htfi.domain.news import Finding
from htfi.narrative.sanitising import orders, wording
from htfi.narrative.sanitising.undo import Undone

# Log-odds of `wording` from which a finding begins, set so that one in some hundreds of agency headlines with their
# leads is a false alarm, and by how much more it is beyond doubt.
_ORDER_AT, _PUMP_AT = 1.0, 0.5
_CERTAIN_AFTER = 1.5
_HIDDEN_AT = -0.5
_WEAKEST, _STRONGEST = 0.4, 0.95
_MANY_CASHTAGS = 8
_MAX_RAW_CHARS = 4_096  # in which templates are looked for: `undo` may have taken them for markup
_PATTERNS = (
    ("injection", orders.TEMPLATES, 0.9, "holds the marks of a chat template or of a tool call"),
    ("injection", orders.OVERRIDES, 0.9, "orders a model to drop its instructions"),
    ("injection", orders.FOREIGN, 0.9, "orders a model to drop its instructions, in another language"),
    ("injection", orders.STEERING, 0.8, "tells a reader how to score it"),
    ("injection", orders.EXFILTRATION, 0.9, "asks for secrets to be sent away"),
    ("injection", orders.ADDRESSED, 0.8, "speaks to a model"),
    ("pump", orders.PROMISES, 0.4, "promises sure gains"),
)


def examine(text: str, undone: Undone) -> tuple[Finding, ...]:
    """Findings in the undone text and in what was hidden; `text` is the raw one, `undone` what `undo` made of it."""
    strongest: dict[str, Finding] = {}
    raw = text[:_MAX_RAW_CHARS]
    if ("<" in raw or "[" in raw or "#" in raw or '"role"' in raw) and orders.TEMPLATES.search(raw):
        _take(strongest, Finding("injection", 0.9, _PATTERNS[0][3]))
    _look(strongest, undone.text, _ORDER_AT, _PUMP_AT, "")
    for message in undone.hidden:
        _look(strongest, message, _HIDDEN_AT, _HIDDEN_AT, ", where nobody sees it")
    num_cashtags = len(set(orders.CASHTAG.findall(undone.text))) if "$" in undone.text else 0
    if num_cashtags >= _MANY_CASHTAGS:
        _take(strongest, Finding("cashtags", 0.2, f"names {num_cashtags} tickers"))
    return tuple(strongest.values())


def _look(strongest: dict[str, Finding], text: str, order_at: float, pump_at: float, where: str) -> None:
    for rule, pattern, strength, told in _PATTERNS:
        if _may_match(pattern, text) and pattern.search(text):
            _take(strongest, Finding(rule, 0.95 if where else strength, told + where))
    order, pump = wording.judge(text, wording.shipped())
    if order >= order_at:
        strength = 0.95 if where else _strength(order - order_at)
        _take(strongest, Finding("injection", strength, "is worded as an order to a model" + where))
    if pump >= pump_at:
        strength = 0.95 if where else _strength(pump - pump_at)
        _take(strongest, Finding("pump", strength, "is worded as those do who pump a price" + where))


def _strength(beyond: float) -> float:
    share = min(beyond / _CERTAIN_AFTER, 1.0)
    return round(_WEAKEST + (_STRONGEST - _WEAKEST) * share, 3)


def _take(strongest: dict[str, Finding], finding: Finding) -> None:
    known = strongest.get(finding.rule)
    if known is None or finding.strength > known.strength:
        strongest[finding.rule] = finding


# A word of each pattern's must stand in a text before the pattern is tried: most texts are spared most patterns.
_HINTS = {
    orders.TEMPLATES: re.compile(r"[<\[#`]|\"role\"|BEGIN_SYSTEM|(?:system|assistant|human|developer)\s*:", re.I),
    orders.OVERRIDES: re.compile(
        r"ignor|disreg|forget|overl|overr|bypass|discard|omit|aband|negle|skip|delet|eras|unlearn|attention|follow|set aside|disobey", re.I
    ),
    orders.FOREIGN: re.compile(
        r"[^\x00-\x7f]|ignor|missacht|verg|verw|negeer|glem|oubli|olvid|esque|diment|descart|descons|trasc|fais fi|tiens|haz caso|unohda|ohita|pomi|zap|felej|talimat|komut|kural|abaikan|lupakan|uita", re.I
    ),
    orders.STEERING: re.compile(r"\b(?:rate|score|class|label|mark|treat|report|regard|interp|read|rank|set|output|return|answer|respond|print)\b", re.I),
    orders.EXFILTRATION: re.compile(r"http|@|webhook|url|server|endpoint", re.I),
    orders.ADDRESSED: re.compile(r"prompt|\byou\b|\byour\b|mode\b|model|llm|\bai\b|anything now|assistant|act as|\bbot\b|agents? |behave|respond|reveal|print|leak|the ", re.I),
    orders.PROMISES: re.compile(r"guarant|risk.free|sure.fire|100%|buy |garan|[^\x00-\x7f]", re.I),
}  # fmt: skip


def _may_match(pattern: re.Pattern[str], text: str) -> bool:
    return _HINTS[pattern].search(text) is not None
