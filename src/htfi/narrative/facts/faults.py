"""Finds texts that state nothing, whatever their words: empty, cut, contradictory, withdrawn, or about forecasts."""

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from htfi.narrative.facts.figures import Figure
from htfi.narrative.facts.record import TextFault
from htfi.narrative.facts.surprises import Side, Surprise, Verdict
from htfi.narrative.patterns import FilteredPattern, deferred

_WORD = re.compile(r"[^\W\d_]{2,}|[\u3040-\u9fff\uac00-\ud7af]")
_MIN_WORDS = 2
_CUT = deferred(
    r"\b(?:to|by|of|the|an?|and|or|than|that|as|its|their|with|from|at|agrees|was|were|is|are)\s*(?:…|\.\.\.)?$",
    re.IGNORECASE,
)
_MAX_CUT_CHARS = 6  # of the last word of a text that is cut
_WITHDRAWN = FilteredPattern(
    r"^\W*(?:withdrawn|retract(?:ed|ion)|story withdrawn|kill(?:ed)? story|delete[ds]? alert|cancel(?:led)? alert)\b|"
    r"\bplease (?:disregard|ignore)\b|\bsent in error\b|\b(?:alert|story|headline)s? (?:is|are|was|were) withdrawn\b",
    re.IGNORECASE,
)
_SYSTEM = r"(?:forecast\w*|prediction|sentiment|signal)s? (?:systems?|engines?|models?|services?|bots?)"
_ACTS = (
    r"(?:halts?|halted|fails?|failed|stops?|stopped|pauses?|paused|resumes?|is|was|are|were|goes|went|now|gives?|scores?|"
    r"sees?|says?|predicts?|forecasts?|expects?|suspends?|crash\w*)"
)
_OURSELVES = FilteredPattern(
    rf"\bHTFI\b|"
    rf"\bour (?:own )?(?:\w+ )?(?:models?|forecasts?|signals?|forecasting system)\b(?! years?| (?-i:[A-Z0-9]))|"
    rf"^(?:(?:the|our|a|an) )?{_SYSTEM}\b(?: \w+)? {_ACTS}\b",
    re.IGNORECASE,
)
_UP = (
    r"(?:ris(?:es?|ing)|rose|climb\w*|gain\w*|gr[eo]ws?|jump\w*|increas\w*|advanc\w*|soar\w*|"
    r"surg\w*|rall(?:y|ies|ied)|up)"
)
_DOWN = (
    r"(?:fall\w*|fell|drop\w*|slip\w*|declin\w*|decreas\w*|eas(?:es?|ed)|slow\w*|plung\w*|tumbl\w*|dip\w*|slid\w*|"
    r"down)"
)
_MOVED = deferred(rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b[^.;]{{0,40}}?\bto\s*$", re.IGNORECASE)
_FROM = deferred(r"^[\s,(]*(?:[a-z]+ ){0,4}?from (?:an? )?(?:\w+ ){0,2}$", re.IGNORECASE)
_TO_CLOSE = FilteredPattern(r" to (?:close|end|finish)", re.IGNORECASE)  # what `_CLOSES` needs, sooner found
_CLOSES = FilteredPattern(
    rf"\b{_UP}\b[^.;]* to (?:close|end|finish)\w* (?:lower|down)\b|"
    rf"\b{_DOWN}\b[^.;]* to (?:close|end|finish)\w* (?:higher|up)\b",
    re.IGNORECASE,
)
_PROFIT = re.compile(r"\b(?:profits?|earnings|net income)\b[^.;,]{0,24}$", re.IGNORECASE)
_LOSS = re.compile(r"\bloss(?:es)?\b[^.;,]{0,24}$", re.IGNORECASE)
_REACH = 60  # characters before a figure in which its verb stands


_BETTER = FilteredPattern(r"\b(?:beat\w*|above|tops?|topped|exceed\w*)\b", re.IGNORECASE)
_WORSE = FilteredPattern(r"\b(?:miss\w*|below|short of|trail\w*|lag\w*)\b", re.IGNORECASE)


def text_fault(text: str, figures: Sequence[Figure], surprises: Sequence[Surprise]) -> TextFault:
    """Why a headline can state nothing; `NONE` for one that can."""
    if len([*islice(_WORD.finditer(text), _MIN_WORDS)]) < _MIN_WORDS:
        return TextFault.EMPTY
    if _WITHDRAWN.search(text):
        return TextFault.WITHDRAWN
    if _OURSELVES.search(text):
        return TextFault.OURSELVES
    if (
        (_TO_CLOSE.search(text) and _CLOSES.search(text))
        or _moves_against_figures(text, figures)
        or _is_profit_and_loss(text, figures)
        or _compares_against_figures(text, surprises)
    ):
        return TextFault.CONTRADICTORY
    return TextFault.CUT if _is_cut(text) else TextFault.NONE


def _is_cut(text: str) -> bool:
    """Whether the last word of a text needs another."""
    end = len(text.rstrip().rstrip("….").rstrip())
    return _CUT.search(text, max(end - _MAX_CUT_CHARS, 0)) is not None


def _moves_against_figures(text: str, figures: Sequence[Figure]) -> bool:
    """'rises to 4.1% from 4.3%'."""
    for now, before in pairwise(figures):
        moved = _MOVED.search(text[max(0, now.start - _REACH) : now.start])
        if moved is None or not _FROM.match(text[now.end : before.start]) or now.unit is not before.unit:
            continue
        one, other = now.middle, before.middle
        if one <= 0.0 or other <= 0.0 or now.currency != before.currency:
            continue
        if (moved["up"] is not None and one < other) or (moved["down"] is not None and one > other):
            return True
    return False


def _compares_against_figures(text: str, surprises: Sequence[Surprise]) -> bool:
    """'$1.20, above the $1.35 consensus'."""
    if len(surprises) != 1 or surprises[0].actual is None or surprises[0].side is not Side.GOOD:
        return False
    better, worse = _BETTER.search(text) is not None, _WORSE.search(text) is not None
    verdict = surprises[0].verdict
    return (verdict is Verdict.BELOW and better and not worse) or (
        verdict is Verdict.ABOVE and worse and not better
    )


def _is_profit_and_loss(text: str, figures: Sequence[Figure]) -> bool:
    """'a profit of $2.1 bln, a loss of $2.1 bln'."""
    profits = {_value(one) for one in figures if _PROFIT.search(text[max(0, one.start - _REACH) : one.start])}
    return any(
        _value(one) in profits
        for one in figures
        if _LOSS.search(text[max(0, one.start - _REACH) : one.start])
    )


def _value(figure: Figure) -> tuple[float, str, str]:
    return abs(figure.middle), figure.unit.value, figure.currency
