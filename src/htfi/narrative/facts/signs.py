"""Signs of figures that words state: what fell, or is a loss, is below zero."""

import re
from dataclasses import replace

from htfi.narrative.facts.figures import Figure, FigureRole
from htfi.narrative.facts.measures import MEASURE_DATA

SIGN_CHARS = 40  # before a figure, in which a word for a fall or a loss turns its sign
_FALLS = MEASURE_DATA.filtered("falls", re.IGNORECASE)
_FALLS_AFTER = MEASURE_DATA.compiled("falls_after", re.IGNORECASE)
_DRAW = MEASURE_DATA.filtered("draw", re.IGNORECASE)
_LOSSES = MEASURE_DATA.filtered("losses", re.IGNORECASE)
_NO_LOSSES = MEASURE_DATA.filtered("no_losses", re.IGNORECASE)
_GAINS = MEASURE_DATA.compiled("gains", re.IGNORECASE)


def names_loss(before: str) -> bool:
    """Whether words before a comparison speak of a loss."""
    return _LOSSES.search(before) is not None and _NO_LOSSES.search(before) is None


def signed(text: str, figure: Figure) -> Figure:
    """A figure without a sign is below zero after 'fell', 'a loss of' or 'contracted', and before 'decline'."""
    if figure.role is FigureRole.DIFFERENCE or figure.value <= 0.0 or _has_sign(text, figure):
        return figure
    before = text[max(0, figure.start - SIGN_CHARS) : figure.start]
    after = text[figure.end : figure.end + 24]
    if _FALLS.search(before) or _FALLS_AFTER.match(after) or _is_loss(before, after):
        return _negative(figure)
    return figure


def _has_sign(text: str, figure: Figure) -> bool:
    return text[figure.start] in "+-−–" or text[max(0, figure.start - 1) : figure.start] in ("+",)


def _negative(figure: Figure) -> Figure:
    if figure.high is None:
        return replace(figure, value=-figure.value)
    return replace(figure, value=-figure.high, high=-figure.value)


def _is_loss(before: str, after: str) -> bool:
    """Whether the last word for a result before a figure is a loss, and nothing behind it is a gain."""
    own = re.split(r"[;|(\n]|\.\s|\d", before)[-1]
    if _NO_LOSSES.search(own):
        return False
    if re.match(r"\s?(?:[\w/-]+\s){0,2}?(?:gain|profit)\b", after):
        return False
    if re.match(r"\s?(?:[\w/-]+\s){0,2}?loss\b", after):
        return True
    loss = gain = -1
    for match in _LOSSES.finditer(own):
        loss = match.start()
    for match in _GAINS.finditer(own):
        gain = match.start()
    return loss > gain and not re.search(r"\brevenues?|\bsales", own[loss:], re.IGNORECASE)


def turned_with(text: str, actual: Figure, expected: Figure) -> Figure:
    """An expectation without a sign or words of its own is of the same sort as a reported loss or draw."""
    if actual.middle >= 0.0 or expected.value <= 0.0 or _has_sign(text, expected):
        return expected
    if text[actual.start] in "-−–" or text[max(0, actual.start - 1) : actual.start] in ("-", "−"):
        return expected
    own = (
        text[max(actual.end, expected.start - SIGN_CHARS) : expected.start]
        if expected.start > actual.end
        else ""
    )
    if _GAINS.search(own) or _GAINS.match(text[expected.end : expected.end + 16].lstrip(" -")):
        return expected
    before = text[max(0, actual.start - SIGN_CHARS) : actual.start]
    if _is_loss(before, "") or _DRAW.search(before):
        return _negative(expected)
    is_size = re.search(
        r"\b(?:more|less|smaller|bigger|larger|steeper|deeper|worse)\s+than\b", own, re.IGNORECASE
    )
    return _negative(expected) if is_size else expected
