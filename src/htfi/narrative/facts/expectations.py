"""Finds words that compare a report with what was expected: 'well above consensus', 'as forecast', 'misses by'."""

import re
from typing import NamedTuple

from htfi.narrative.patterns import Patterns

_NEGATION_CHARS = 24


class Comparison(NamedTuple):
    """Words at `start` to before `end`. `direction` is 1 above, 0 in line, −1 below, None where negation hides it.

    Of better and worse (`is_quality`) the direction is that of what is good; of more and less (`is_size`) that of the
    size, which is below for a larger loss.
    """

    start: int
    end: int
    direction: int | None
    is_quality: bool = False
    is_size: bool = False
    names_expectation: bool = True


_DATA = Patterns("htfi.narrative.facts", "figures.toml", "verdicts")
_PHRASE = _DATA.filtered("phrase", re.IGNORECASE)
_BARE = _DATA.filtered("bare", re.IGNORECASE)
_MOVE = _DATA.filtered("surprise_move", re.IGNORECASE)
_NEGATION = _DATA.compiled("negation", re.IGNORECASE)
_FAILS = re.compile(r"fail|unable|not\b|n['’]t", re.IGNORECASE)
_NOT_COMPARABLE = _DATA.filtered("not_comparable", re.IGNORECASE)
_DIRECTIONS = {
    "above": 1, "more": 1, "better": 1, "below": -1, "less": -1, "worse": -1, "same": 0, "above_profit": 1, "up": 1,
    "down": -1,
}  # fmt: skip


def find_comparisons(text: str) -> list[Comparison]:
    """The comparisons in words, in order, none within another."""
    found: list[Comparison] = []
    for pattern in (_PHRASE, _BARE, _MOVE):
        for first in pattern.finditer(text):
            match = _nearest(first) if pattern is _PHRASE else first
            kind = match.lastgroup if pattern is not _PHRASE else _kind(match)
            if kind is None or any(one.start < match.end() and match.start() < one.end for one in found):
                continue
            negation = _NEGATION.search(text[max(0, match.start() - _NEGATION_CHARS) : match.start()])
            direction = _DIRECTIONS[kind] if negation is None else _negated(negation[0], kind)
            found.append(
                Comparison(
                    match.start(), match.end(), direction,
                    is_quality=kind in ("better", "worse", "above_profit") or (pattern is _BARE and kind != "same"),
                    is_size=kind in ("more", "less"),
                    names_expectation=pattern is _PHRASE,
                )
            )  # fmt: skip
    return sorted(found)


def _negated(negation: str, kind: str) -> int | None:
    """What fails to meet expectations is below them; what does not beat them may be either."""
    return -1 if kind == "same" and _FAILS.search(negation) else None


def _nearest(match: re.Match[str]) -> re.Match[str]:
    """The words nearest to the expectation: 'Beyond Meat's loss wider than expected' is wider, not beyond."""
    later = match.re.search(match.string, match.start() + 1, match.end())
    while later is not None and later.end() == match.end() and later["same"] is None:
        match = later
        later = match.re.search(match.string, match.start() + 1, match.end())
    return match


def _kind(match: re.Match[str]) -> str | None:
    return next(
        (name for name in _DIRECTIONS if name in match.re.groupindex and match[name] is not None), None
    )


def is_not_comparable(text: str) -> bool:
    """Whether a text says that its figures do not compare with what was expected."""
    return _NOT_COMPARABLE.search(text) is not None
