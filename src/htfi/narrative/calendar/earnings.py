"""Reads from a headline how a company's results compare with estimates, and what becomes of its outlook; nothing if
unsure.
"""

import re
from functools import lru_cache

from htfi.narrative.calendar.announcements import Announcement
from htfi.narrative.calendar.headlines import (
    expectation_sides,
    factual_report,
    name_pattern,
    per_share_amounts,
    split_clauses,
)
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome, OutcomeReason
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.calendar", "patterns.toml", "earnings")
_PERIOD = _DATA.text("period")
_METRIC = r"(?: (?:profits?|earnings(?: per share)?|eps|results?|income|net|bottom line|loss(?:es)?|numbers|quarter))"
_VERB = _DATA.text("verb")
_SALES = _DATA.compiled("sales")
_OUTLOOK_NOUN = _DATA.compiled("outlook_noun")
_OUTLOOK_BEATS = re.compile(r"^(?:'s?)? ?(?:its |the )?(?:[\w-]+ ){0,2}(?:outlook|forecast|guidance)s? ")
_TOUCHES = _DATA.compiled("touches")
_SPEAKS_AHEAD = _DATA.compiled("speaks_ahead")
_RAISES = _DATA.compiled("raises")
_CUTS = _DATA.compiled("cuts")
_KEEPS = _DATA.compiled("keeps")
_NOT_IT = _DATA.compiled("not_it")
_LOSS = re.compile(r"\bloss(?:es)?\b")
_NARROWER = _DATA.compiled("narrower")
_WIDER = _DATA.compiled("wider")
_BETTER = _DATA.compiled("better")
_WORSE = _DATA.compiled("worse")
_TOP_AND_BOTTOM_LINES = _DATA.compiled("top_and_bottom_lines")
_EPS = re.compile(r"\b(?:eps|earnings per share|earns|earned|profit of|earnings of)\b")
_VS = re.compile(r"\b(?:vs\.?|versus|against|est\.?|estimates?|consensus|expected|forecast)\b")
_HEDGED = _DATA.compiled("hedged")


def earnings_outcome(headline: str, release: Announcement) -> HeadlineOutcome:
    """The outcome of a company's results that a headline reports."""
    report = factual_report(headline)
    if not report:
        return HeadlineOutcome(None, OutcomeReason.NO_REPORT)
    head = _company_pattern(release.subject, release.names, release.symbols).match(report)
    if head is None:
        return HeadlineOutcome(None, OutcomeReason.OTHER_COMPANY)
    rest = report[head.end() :]
    verb = _verb_pattern().match(rest)
    if _NOT_IT.match(rest) or verb is None or _HEDGED.search(rest):
        return HeadlineOutcome(None, OutcomeReason.NO_RESULTS)
    outlook = _outlook_key(rest)
    if outlook is None:
        return HeadlineOutcome(None, OutcomeReason.UNCLEAR_OUTLOOK)
    result = _result_key(rest, 1 if verb["up"] else -1 if verb["down"] else 0, release)
    if result is None:
        return HeadlineOutcome(None, OutcomeReason.UNCLEAR_RESULT)
    return HeadlineOutcome(f"{result}, {outlook}", OutcomeReason.WORDS)


def _result_key(rest: str, moving: int, release: Announcement) -> str | None:
    text = rest
    for pattern in (_RAISES, _CUTS, _KEEPS):
        text = pattern.sub(_blank, text)
    found: set[int] = set()
    if _LOSS.search(text):
        narrower, wider = _NARROWER.search(text), _WIDER.search(text)
        if (narrower is None) == (wider is None):
            return None
        found.add(1 if narrower else -1)
    else:
        lines = _TOP_AND_BOTTOM_LINES.search(text)
        if lines is not None:
            found.add(1 if lines["beat"] else -1)
        for pattern, way in ((_BETTER, 1), (_WORSE, -1)):
            if pattern.search(text):
                found.add(way)
        sides = expectation_sides(_BETTER.sub(_blank, _WORSE.sub(_blank, text)), moving)
        if sides is None:
            return None
        for side in sides:
            about = re.split(r"[,;:]", text[: side.end])[-1] + re.split(r"[,;:]", text[side.end :])[0]
            if _OUTLOOK_BEATS.search(about):
                return None
            if _SALES.search(about) and not re.search(r"\b(?:profits?|earnings|eps|income|results)\b", about):
                if side.direction != 0 and found and side.direction not in found:
                    return None
                if not re.search(r"\b(?:profits?|earnings|eps|income|results)\b", text):
                    return None
                continue
            found.add(side.direction)
    by_figure = _result_by_figure(text, release)
    if by_figure is not None:
        found.add(by_figure)
    if len(found) != 1:
        return None
    return {1: "beat", 0: "in line", -1: "miss"}[found.pop()]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _result_by_figure(text: str, release: Announcement) -> int | None:
    """Earnings per share against what was expected, as the headline or the calendar has it."""
    if not _EPS.search(text) or _LOSS.search(text):
        return None
    figures = list(per_share_amounts(text))
    if not figures:
        return None
    expected = release.consensus
    for figure in figures[1:]:
        between = text[figures[0].end : figure.start]
        after = text[figure.end :][:16]
        if _VS.search(between) or _VS.search(after):
            if re.search(r"\b(?:year|prior|last|previous)\b", between + after):
                continue
            if expected is not None and abs(expected - figure.value) > 0.011:
                return None
            expected = figure.value
            break
    if expected is None:
        return None
    gap = round(figures[0].value - expected, 6)
    return (gap > 0.0) - (gap < 0.0)


def _outlook_key(rest: str) -> str | None:
    """What becomes of the outlook: 'kept' also where it is not mentioned; None where it is and remains unclear."""
    raised, cut, kept = (pattern.search(rest) for pattern in (_RAISES, _CUTS, _KEEPS))
    changes = [name for name, match in (("raised", raised), ("cut", cut), ("kept", kept)) if match]
    if len(changes) > 1:
        return None
    if changes:
        return changes[0]
    if _SPEAKS_AHEAD.search(rest) or any(_TOUCHES.search(clause) for clause in split_clauses(rest)[1:]):
        return None
    for clause in split_clauses(rest)[1:]:
        if _OUTLOOK_NOUN.search(clause) and not expectation_sides(clause, 0):
            return None
    return None if re.search(r"\b(?:outlook|guidance)\b", rest) else "kept"


@lru_cache(maxsize=512)
def _company_pattern(subject: str, names: tuple[str, ...], symbols: tuple[str, ...]) -> re.Pattern[str]:
    called = name_pattern((subject, *names, *symbols, *(f"${symbol}" for symbol in symbols)))
    return re.compile(
        rf"^{called}(?![\w-])(?: (?:inc|corp|co|ltd|plc|ag|sa|nv|group|company|& co)\b\.?)?(?: \([\w.:]+\))?"
    )


@lru_cache(maxsize=1)
def _verb_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"^(?:'s?)?:?{_PERIOD}{_METRIC}?(?: (?:also|again|easily|handily|narrowly|comfortably|just|slightly|"
        rf"sharply))? ?(?:{_VERB})(?:(?![\w])|(?<= ))"
    )
