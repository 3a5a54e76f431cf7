"""Reads from a headline what a central bank decided on its rate; nothing unless the words leave no doubt.

A report is accepted by its form, <bank> <verb of fact> <its rate> <by so much | to a level | unchanged>, not by the
absence of words of doubt: 'Fed to cut', 'Fed may cut', 'Fed considers' and 'Fed cuts discount rate' do not have it.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from htfi.narrative.calendar.announcements import CENTRAL_BANKS, Announcement, rate_key
from htfi.narrative.calendar.headlines import (
    factual_report,
    first_sentence,
    name_pattern,
    plain_letters,
    rate_levels,
    rate_steps_bp,
    split_clauses,
)
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.calendar", "patterns.toml", "rate_decisions")
_ITS_COMMITTEE = _DATA.text("its_committee")
_ADVERBS = _DATA.text("adverbs")
_CUT = _DATA.text("cut")
_RAISE = _DATA.text("raise")
_HOLD = r"leave[s]?|left|keep[s]?|kept|hold[s]?|held|maintain(?:s|ed)?"
_SET = r"sets?|brings?|brought|takes?|took|moves?|moved|puts?|fix(?:es|ed)?"
_RATE = _DATA.text("rate")
_NOT_THE_RATE = _DATA.compiled("not_the_rate")
_UNCHANGED = _DATA.compiled("unchanged")
_STANDS_PAT = _DATA.compiled("stands_pat")
_NO_CHANGE = re.compile(r"^ (?:makes?|made) no (?:change|changes) (?:to|in)(?=" + _RATE + r")")
_DELIVERS = _DATA.compiled("delivers")
_NOUN_CUT = re.compile(r"\b(?:rate[- ])?(?:cut|reduction|decrease)\b")
_NOUN_RISE = re.compile(r"\b(?:rate[- ])?(?:hike|increase|rise)\b")
_VAGUE = _DATA.compiled("vague")
_OFF_RATES = _DATA.compiled("off_rates")
_STATEMENT = _DATA.compiled("statement")
# 'The Committee will maintain the target range … at 0 to 1/4 percent': how the bank states no change.
_WILL = re.compile(r"\bcommittee will (?P<verb>maintain|keep)(?P<rest>(?:[^.;]|\.\d){0,400})")
_WHILE = _DATA.compiled("while")
_REPORTED_BY_STATEMENT = _DATA.compiled("told_by_statement")


_NOT_YET = _DATA.compiled("not_yet")
_GOES_ON = _DATA.compiled("goes_on")


class OutcomeReason(StrEnum):
    """Why a text reports an outcome, or why not."""

    NO_REPORT = "no report of what has happened"
    NO_DECISION = "no decision of this bank on its rate"
    NOT_MADE = "no decision that has been made"
    NO_SIZE = "no size of the step"
    DOUBT = "words of doubt"
    LEVEL_DIFFERS = "the level is not the one before"
    FIGURES_DISAGREE = "its figures disagree"
    LEVEL_DISAGREES = "its words and its level disagree"
    NOT_WHOLE = "not whole basis points"
    NO_FIGURE = "no figure of this announcement"
    OTHER_MEASURE = "another measure, or words of doubt"
    UNCLEAR_COMPARISON = "its comparison with expectations is unclear"
    CONSENSUS_DIFFERS = "its consensus differs from the calendar's"
    NOTHING_TO_COMPARE = "neither figure nor comparison"
    FIGURE_DISAGREES = "words and figure disagree"
    OTHER_COMPANY = "not about this company"
    NO_RESULTS = "no report of its results"
    UNCLEAR_OUTLOOK = "the outlook is unclear"
    UNCLEAR_RESULT = "its comparison with estimates is unclear"
    UNCHANGED = "reported as unchanged"
    SIZE = "reported with its size"
    LEVEL = "reported by its level"
    FIGURE = "reported by its figure"
    WORDS = "reported in words"
    WORDS_AND_FIGURE = "reported by words and figure"


class HeadlineOutcome(NamedTuple):
    """The key of the outcome that a text reports, None where it reports none; and why, or why not."""

    key: str | None
    why: OutcomeReason


def rate_outcome(headline: str, body: str, release: Announcement, level: float | None) -> HeadlineOutcome:
    """The outcome of a rate decision that an item reports. `level` is the rate before, in percent, if known."""
    names = CENTRAL_BANKS.get(release.subject, ()) + release.names
    report = factual_report(headline)
    if not report:
        return HeadlineOutcome(None, OutcomeReason.NO_REPORT)
    outcome = _outcome_in_report(report, names, level)
    if outcome.key is not None:
        return outcome
    if outcome.why is OutcomeReason.NO_SIZE:
        lead = _outcome_in_report(factual_report(first_sentence(body)), names, level)
        return lead if lead.key is not None and _agrees_with_headline(lead.key, report) else outcome
    if _begins_with(names).match(report) and _REPORTED_BY_STATEMENT.search(report):
        return _outcome_in_statement(plain_letters(body[:MAX_STATEMENT_CHARS]), level)
    return outcome


MAX_STATEMENT_CHARS = 6_000
_NO_DECISION = HeadlineOutcome(None, OutcomeReason.NO_DECISION)


def _outcome_in_report(report: str, names: tuple[str, ...], level: float | None) -> HeadlineOutcome:
    begins, active = _begins_with(names), False
    several = split_clauses(report)
    for place, clause in enumerate(several):
        subject = begins.match(clause)
        if subject is not None:
            rest, active = clause[subject.end() :], True
        elif active:
            rest = " " + clause.removeprefix("and ").removeprefix("but ")
            if not _GOES_ON.match(rest):
                continue
        else:
            return _outcome_in_passive(clause, names, level)
        if _NOT_YET.match(rest):
            return HeadlineOutcome(None, OutcomeReason.NOT_MADE)
        outcome = _outcome_in_clause(rest, level)
        if outcome is not None and outcome.why is OutcomeReason.NO_SIZE and several[place + 1 : place + 2]:
            after = several[place + 1]  # 'for the first time in years' | 'with a half-point move'
            outcome = _outcome_in_clause(f"{rest} {after}", level) if after.startswith("with ") else outcome
        if outcome is not None:
            return outcome
    return _NO_DECISION


def _outcome_in_clause(rest: str, level: float | None) -> HeadlineOutcome | None:
    """What the clause after its subject decides; None if it is about something else."""
    rest = _adverbs().sub("", rest, count=1)
    if _STANDS_PAT.match(rest):
        return _unchanged_outcome(rest, level)
    no_change = _NO_CHANGE.match(rest)
    if no_change is not None:
        return _unchanged_outcome(rest, level)
    verb = _verbs().match(rest)
    if verb is not None:
        after = rest[verb.end() :]
        if verb["hold"]:
            return _outcome_if_held(after, level)
        noun = _rate().match(after)
        if noun is not None:
            after = after[noun.end() :]
            if _NOT_THE_RATE.match(after.lstrip()):
                return None
            return _moved_outcome(after, level, 0 if verb["set"] else 1 if verb["raise"] else -1)
        if verb["set"] or not _OFF_RATES.match(after) or not rate_steps_bp(after):
            return None
        step = rate_steps_bp(after)[0]
        if _OFF_RATES.sub("", after, count=1) != after[step.start :].removeprefix(" ") and step.start > 16:
            return None
        return _moved_outcome(after, level, 1 if verb["raise"] else -1)
    if _DELIVERS.match(rest):
        cut, rise = _NOUN_CUT.search(rest), _NOUN_RISE.search(rest)
        step = rate_steps_bp(rest)
        if (cut is None) == (rise is None) or not step:
            return None
        noun = cut or rise
        assert noun is not None
        if not 0 <= noun.start() - step[0].end <= 14:
            return None
        return _moved_outcome(rest, level, 1 if rise else -1)
    return None


def _outcome_if_held(after: str, level: float | None) -> HeadlineOutcome | None:
    noun = _rate().match(after)
    if noun is None:
        policy = re.match(
            r" (?:its |the |u\.s\. |us )?(?:monetary |interest rate )?policy (?:unchanged|steady|on hold)\b",
            after,
        )
        unchanged = re.match(r" (?:unchanged|steady)(?: at\b|$)", after)
        return _unchanged_outcome(after, level) if policy or unchanged else None
    rest = after[noun.end() :]
    if _NOT_THE_RATE.match(rest.lstrip()):
        return None
    found = rate_levels(rest)
    at_level = bool(found) and re.match(r"^ (?:at|in|within|between|near)\b", rest) is not None
    if (
        not at_level
        and not _UNCHANGED.search(rest)
        and not re.match(
            r"^ (?:near|at|close to) (?:an? )?(?:zero|record low|(?:\d\d-year|multi-year|record) (?:high|low))",
            rest,
        )
    ):
        return None
    return _unchanged_outcome(rest, level)


def _unchanged_outcome(rest: str, level: float | None) -> HeadlineOutcome:
    if _VAGUE.search(rest.partition(" until ")[0]):
        return HeadlineOutcome(None, OutcomeReason.DOUBT)
    found = rate_levels(rest)
    if found and level is not None and abs(found[0].value - level) > 1e-6:
        return HeadlineOutcome(None, OutcomeReason.LEVEL_DIFFERS)
    return HeadlineOutcome("hold", OutcomeReason.UNCHANGED)


def _moved_outcome(rest: str, level: float | None, way: int) -> HeadlineOutcome:
    """A move in a clause; `way` is 0 where only the level can show it."""
    if _VAGUE.search(rest):
        return HeadlineOutcome(None, OutcomeReason.DOUBT)
    steps, found = rate_steps_bp(rest), rate_levels(rest)
    if steps and found and found[0].start < steps[0].start < found[0].end:
        found = []
    sizes = {way * step.value for step in steps[:1]} if way else set[float]()
    if found and level is not None:
        sizes.add(round((found[0].value - level) * 100.0, 6))
    if not sizes:
        return HeadlineOutcome(None, OutcomeReason.NO_SIZE)
    if len(sizes) > 1 or (len(steps) > 1 and steps[1].value != steps[0].value):
        return HeadlineOutcome(None, OutcomeReason.FIGURES_DISAGREE)
    bp = sizes.pop()
    if way and bp * way <= 0.0:
        return HeadlineOutcome(None, OutcomeReason.LEVEL_DISAGREES)
    if bp != round(bp) or abs(bp) > 999:
        return HeadlineOutcome(None, OutcomeReason.NOT_WHOLE)
    return HeadlineOutcome(rate_key(round(bp)), OutcomeReason.SIZE if steps else OutcomeReason.LEVEL)


def _outcome_in_passive(clause: str, names: tuple[str, ...], level: float | None) -> HeadlineOutcome:
    """'Rates left unchanged by Fed', 'U.S. interest rates cut by half a point by the Federal Reserve'."""
    match = re.match(
        rf"(?P<noun>{_RATE.replace(' (?:rates?', ' ?(?:rates?', 1)})(?: (?:is|are|was|were))?"
        rf"(?P<rest> (?:left|kept|held|maintained|cut|lowered|slashed|raised|hiked|lifted|increased)\b.*?) (?:by|"
        rf"at) (?:the )?"
        rf"{name_pattern(names)}(?!['\w])",
        " " + clause,
    )
    if match is None:
        return _NO_DECISION
    rest = match["rest"]
    if re.match(r" (?:left|kept|held|maintained)\b", rest):
        if _UNCHANGED.search(rest) or rate_levels(rest):
            return _unchanged_outcome(rest, level)
        return _NO_DECISION
    return _moved_outcome(rest, level, 1 if re.match(r" (?:raised|hiked|lifted|increased)", rest) else -1)


def _outcome_in_statement(body: str, level: float | None) -> HeadlineOutcome:
    """The bank's own statement: 'the Committee decided to lower its target … 50 basis points to 4-3/4 percent'."""
    found: list[HeadlineOutcome] = []
    text = " ".join(body.split())
    for match in (*_STATEMENT.finditer(text), *_WILL.finditer(text)):
        rest = match["rest"]
        noun = _rate().match(rest)
        if noun is None or _NOT_THE_RATE.match(rest[noun.end() :].lstrip()):
            continue
        verb = match["verb"]
        if verb in ("keep", "maintain", "leave", "hold"):
            if rate_levels(rest) or _UNCHANGED.search(rest):
                found.append(_unchanged_outcome(_WHILE.split(rest)[0], level))
        else:
            way = 0 if verb in ("establish", "set") else 1 if verb in ("raise", "increase") else -1
            found.append(_moved_outcome(_WHILE.split(rest)[0], level, way))
    if len({outcome.key for outcome in found}) != 1:
        return _NO_DECISION
    return found[0]


def _agrees_with_headline(key: str, report: str) -> bool:
    """Whether the lead's outcome has the direction of the headline."""
    way = key.partition(" ")[0]
    cut, rise = re.search(rf"\b(?:{_CUT})\b", report), re.search(rf"\b(?:{_RAISE})\b", report)
    return (way == "cut" and cut is not None and rise is None) or (
        way == "raise" and rise is not None and cut is None
    )


@lru_cache(maxsize=256)
def _begins_with(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"^(?:the |a divided |divided |a unanimous )?{name_pattern(names)}{_ITS_COMMITTEE}(?![\w'-])"
    )


@lru_cache(maxsize=1)
def _adverbs() -> re.Pattern[str]:
    return re.compile("^" + _ADVERBS)


@lru_cache(maxsize=1)
def _verbs() -> re.Pattern[str]:
    return re.compile(rf"^ (?:(?P<cut>{_CUT})|(?P<raise>{_RAISE})|(?P<hold>{_HOLD})|(?P<set>{_SET}))\b")


@lru_cache(maxsize=1)
def _rate() -> re.Pattern[str]:
    return re.compile("^" + _RATE + r"\b")
