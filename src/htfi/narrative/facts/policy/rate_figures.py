"""Levels and steps of policy rates in a text: signed levels, ranges, what a rate was before."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from htfi.narrative.calendar.headlines import HeadlineFigure, parse_number, rate_steps_bp
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "rate_figures")
_LEVEL = _DATA.compiled("level")
_EXTRA_STEP = _DATA.filtered("extra_step")
_MAX_RATE = 200.0  # percent
_MAX_RANGE = 3.0  # percentage points: further apart they are not the ends of one range
_MAX_STEP_BP = 2_500.0


class RateLevel(NamedTuple):
    """A rate of `low` to `high` percent (alike for a single figure) and where it stands; `is_prior`: 'from 4%'."""

    start: int
    end: int
    low: float
    high: float
    is_prior: bool


def find_levels(text: str) -> list[RateLevel]:
    """Levels in percent in a text of plain letters: 'to 5-1/4 percent', '4.00%-4.25%', 'minus 0.1 per cent'."""
    found: list[RateLevel] = []
    match = _LEVEL.search(text)
    while match is not None:
        end = match.end()
        low, high = _signed(match["sign"], match["low"]), _signed(match["high_sign"], match["high"])
        is_prior = match["prior"] is not None
        if (
            is_prior and match["separator"] and "to" in match["separator"]
        ):  # 'from 3 percent to 3-1/2 percent'
            high, end = None, match.start("separator")
        if (
            high is not None and match["separator"] == " and " and "between" not in match[0]
        ):  # 'at 2.15% and 2.40%'
            high, end = None, match.start("separator")
        if low is not None and high is not None and not 0.0 <= high - low <= _MAX_RANGE:
            high = None
        is_rate = (
            match["percent"] or match["high_percent"] or (match["preposition"] and _is_bare_level(match))
        )
        if low is not None and abs(low) <= _MAX_RATE and (is_rate or is_prior):
            found.append(RateLevel(match.start(), end, low, low if high is None else high, is_prior))
        match = _LEVEL.search(text, end)
    return found


def find_steps(text: str) -> list[HeadlineFigure]:
    """Steps in basis points in a text of plain letters."""
    steps = list(rate_steps_bp(text))
    for match in _EXTRA_STEP.finditer(text):
        value = (
            parse_number(match["points"])
            if match["points"]
            else {"quarter": 0.25, "half": 0.5}[match["share"]]
        )
        if value is not None and not any(
            one.start < match.end() and match.start() < one.end for one in steps
        ):
            steps.append(HeadlineFigure(match.start(), match.end(), 100.0 * value))
    return sorted(one for one in steps if one.value <= _MAX_STEP_BP)


def levels_apart(text: str, steps: Sequence[HeadlineFigure]) -> list[RateLevel]:
    """The levels in a text of plain letters that are no part of its steps."""
    return [
        one
        for one in find_levels(text)
        if not any(
            step.start <= one.start + 3 and one.end <= step.end + 1 and one.end > step.start for step in steps
        )
    ]


def _signed(sign: str | None, number: str | None) -> float | None:
    if not number:
        return None
    value = parse_number(number)
    return None if value is None else -value if sign and sign.strip() in ("-", "minus", "negative") else value


def _is_bare_level(match: re.Match[str]) -> bool:
    """'to 5.25', 'at 4-1/4': a figure without a percent sign that can only be a rate."""
    return "." in match["low"] or "/" in match["low"] or match["low"] == "zero"
