"""Reads from a headline how a company's results compare with estimates, and what becomes of its outlook; nothing if
unsure.
"""

import re
from functools import lru_cache

from htfi.narrative.calendar.announcements import Announcement
from htfi.narrative.calendar.headlines import (
    DOWN,
    UP,
    expectation_sides,
    factual_report,
    name_pattern,
    per_share_amounts,
    split_clauses,
)
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome

_PERIOD = (
    r"(?: (?:q[1-4]|[1-4]q|(?:fiscal )?(?:first|second|third|fourth)[- ](?:quarter|qtr)|quarterly|full-year|annual|"
    r"half-year|holiday|"
    r"fiscal|adjusted|adj\.?|net|core|operating|the|latest|strong|record|solid|weak)){0,6}"
)
_METRIC = r"(?: (?:profits?|earnings(?: per share)?|eps|results?|income|net|bottom line|loss(?:es)?|numbers|quarter))"
_VERB = (
    rf"(?P<up>{UP})|(?P<down>{DOWN})|(?P<fact>beats?|tops?|topped|exceeds?|exceeded|surpass(?:es|ed)|crush(?:es|"
    rf"ed)|smash(?:es|ed)|"
    r"miss(?:es|ed)?|lags?|lagged|trails?|trailed|meets?|met|match(?:es|ed)?|above|below|ahead of|in[- ]line|"
    r"reports?|posts?|"
    r"reported|posted|delivers?|delivered|earns?|earned|comes? in|came in|falls? short|fell short|(?:narrower|"
    r"smaller|wider|bigger|"
    r"larger|better|worse|stronger|weaker|higher|lower)[- ]than|(?=-?[$€£]\d|\d+ cents)|swings to|narrows|widens)"
)
_SALES = re.compile(
    r"\b(?:revenues?|sales|subscribers?|deliveries|shipments|bookings|users?|margins?|same-store|comparable|"
    r"traffic|loans)\b"
)
_OUTLOOK_NOUN = re.compile(
    r"\b(?:outlook|forecasts?|guidance|views?|targets?|projections?|estimates?|expectations?)\b"
)
_OUTLOOK_BEATS = re.compile(r"^(?:'s?)? ?(?:its |the )?(?:[\w-]+ ){0,2}(?:outlook|forecast|guidance)s? ")
_TOUCHES = re.compile(
    r"\b(?:raises?|lifts?|boosts?|ups|hikes?|increases?|cuts?|lowers?|slash(?:es)?|trims?|reduces?|narrows?|"
    r"tweaks?|changes?|"
    r"revises?|updates?)(?: [\w-]+){0,3}? (?:earnings|profit|eps|20\d\d|full-year|fy\d*|year|range|goals?|sales)\b"
)
_SPEAKS_AHEAD = re.compile(
    r"\b(?:sees|expects?|guides?|warns?|warned|warning|projects|predicts|forecasts (?!of)|cautious|gloomy|upbeat|"
    r"disappoint\w*|"
    r"cautions|next quarter|current quarter|ahead(?! of))\b"
)
_ITS = (
    r"(?: (?:its|the|their|full-year|fy|year|annual|20\d\d|fiscal|profit|earnings|eps|sales|revenue|growth|q[1-4]|"
    r"financial|own|"
    r"dividend and|and|for|quarter|quarterly|year-end|medium-term|long-term|margin|\d{4})){0,6}"
)
_RAISES = re.compile(
    rf"\b(?:raises?|raised|raising|lifts?|lifted|lifting|boosts?|boosted|boosting|ups|upped|upping|hikes?|hiked|"
    rf"hiking|increases?|increased|increasing){_ITS} (?:outlook|forecasts?|guidance|views?|targets?|projections?|"
    rf"estimates?|range|goals?)\b"
)
_CUTS = re.compile(
    rf"\b(?:cuts?|cutting|lowers?|lowered|lowering|slash(?:es|ed|ing)?|trims?|trimmed|trimming|reduces?|reduced|"
    rf"reducing|withdraws?|withdrew|scraps?|scrapped|pulls?|pulled|suspends?|suspended){_ITS} (?:outlook|"
    rf"forecasts?|guidance|views?|targets?|projections?|estimates?|range|goals?)\b"
)
_KEEPS = re.compile(
    rf"\b(?:keeps?|kept|keeping|maintains?|maintained|maintaining|reaffirms?|reaffirmed|reaffirming|reiterates?|"
    rf"reiterated|affirms?|affirmed|backs|backed|confirms?|confirmed|stands by|stood by|sticks to|sticks with|"
    rf"holds|leaves){_ITS} (?:outlook|forecasts?|guidance|views?|targets?|projections?|estimates?|range|goals?)\b"
)
_NOT_IT = re.compile(
    r"^(?:'s)? (?:shares?|stocks?|rivals?|suppliers?|partners?|units?|investors?|analysts?|bonds?|ceo|cfo|chief|"
    r"executive|founder|"
    r"customers?|employees|workers|bulls|bears|options|competitors?|spin-?off|parent|owner|peer|subsidiary|arm|to|"
    r"will|may|"
    r"could|might|would|should|likely|seen|expected|set|poised)\b"
)
_LOSS = re.compile(r"\bloss(?:es)?\b")
_NARROWER = re.compile(
    r"\b(?:narrower|smaller|less|lower|slimmer)[- ](?:[\w-]+ ){0,2}?(?:than[- ]expected|than[- ](?:forecast|"
    r"estimated)|than (?:\w+ )?(?:estimates|expectations|forecasts))"
)
_WIDER = re.compile(
    r"\b(?:wider|bigger|larger|deeper|worse|steeper|more)[- ](?:[\w-]+ ){0,2}?(?:than[- ]expected|"
    r"than[- ](?:forecast|estimated)|than (?:\w+ )?(?:estimates|expectations|forecasts))"
)
_BETTER = re.compile(
    r"\bbetter[- ]than[- ](?:expected|forecast|estimated)\b|\bbetter than (?:\w+ ){0,2}(?:estimates|expectations|"
    r"forecasts)"
)
_WORSE = re.compile(
    r"\bworse[- ]than[- ](?:expected|forecast|estimated)\b|\bworse than (?:\w+ ){0,2}(?:estimates|expectations|"
    r"forecasts)"
)
# 'Beats on top and bottom lines', 'misses on earnings and revenue', 'Q2 earnings beat'.
_TOP_AND_BOTTOM_LINES = re.compile(
    r"^(?:'s)?(?: [\w-]+){0,3}? (?:(?P<beat>beats?|tops?)|"
    r"(?P<miss>miss(?:es)?)) on (?:both )?(?:the )?(?:top and bottom lines?|"
    r"(?:earnings|profit|eps)(?: and (?:revenue|sales))?)(?= *(?:[,;:]|$))"
)
_EPS = re.compile(r"\b(?:eps|earnings per share|earns|earned|profit of|earnings of)\b")
_VS = re.compile(r"\b(?:vs\.?|versus|against|est\.?|estimates?|consensus|expected|forecast)\b")
_HEDGED = re.compile(
    r"\b(?:will|would|could|might|may|should|likely|seen|set to|due|expected to|forecast to|poised|preview|"
    r"probably|hopes|ahead of "
    r"(?:earnings|results)|eyes|awaits?|before|restat\w+|revis\w+|pre-?announces?|(?:results?|profits?|earnings|"
    r"eps|income|loss(?:es)?|net|sales|"
    r"revenues?|quarter|qtr) to|preliminary|year ago|downgrades?|upgrades?)\b"
)


def earnings_outcome(headline: str, release: Announcement) -> HeadlineOutcome:
    """The outcome of a company's results that a headline reports."""
    report = factual_report(headline)
    if not report:
        return HeadlineOutcome(None, "no report of what has happened")
    head = _company_pattern(release.subject, release.names, release.symbols).match(report)
    if head is None:
        return HeadlineOutcome(None, "not about this company")
    rest = report[head.end() :]
    verb = _verb_pattern().match(rest)
    if _NOT_IT.match(rest) or verb is None or _HEDGED.search(rest):
        return HeadlineOutcome(None, "no report of its results")
    outlook = _outlook_key(rest)
    if outlook is None:
        return HeadlineOutcome(None, "what it says of the outlook cannot be told")
    result = _result_key(rest, 1 if verb["up"] else -1 if verb["down"] else 0, release)
    if result is None:
        return HeadlineOutcome(None, "how it stands to estimates cannot be told")
    return HeadlineOutcome(f"{result}, {outlook}", "told in words")


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
        told = expectation_sides(_BETTER.sub(_blank, _WORSE.sub(_blank, text)), moving)
        if told is None:
            return None
        for side in told:
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
    told = [name for name, match in (("raised", raised), ("cut", cut), ("kept", kept)) if match]
    if len(told) > 1:
        return None
    if told:
        return told[0]
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
