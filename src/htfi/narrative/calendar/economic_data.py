"""Reads from a headline how consumer prices, payrolls or GDP compare with what was expected; nothing if unsure.

The region, the measure and a verb of fact must follow each other; words of comparison and figures must agree.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from htfi.narrative.calendar.announcements import (
    OTHER_PLACES,
    REGIONS,
    Announcement,
    AnnouncementKind,
    surprise_key,
)
from htfi.narrative.calendar.headlines import (
    DOWN,
    UP,
    HeadlineFigure,
    expectation_sides,
    factual_report,
    job_counts,
    name_pattern,
    percent_figures,
    split_clauses,
)
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome

_MEASURE = {
    AnnouncementKind.CPI: (
        r"(?:consumer[- ]prices?(?: index| inflation| growth)?|cpi(?: inflation)?|inflation(?: rate)?|"
        r"cost of living)"
    ),
    AnnouncementKind.PAYROLLS: (
        r"(?:(?:non-?farm )?payrolls?(?: employment| growth)?|nfp|jobs?(?: growth| gains| creation)?|"
        r"employers|employment|hiring)"
    ),
    AnnouncementKind.GDP: r"(?:gdp(?: growth)?|gross domestic product|economy|economic (?:growth|output)|growth)",
}
_OTHER_MEASURE = {
    AnnouncementKind.CPI: re.compile(
        r"\b(?:core|producer|ppi|wholesale|import|export|food|energy|house|home|housing|pce|expectations of|"
        r"inflation (?:expectations|"
        r"fears|worries|outlook|target|risks?|pressures?|views?|forecasts?|concerns|gauge|report|data)|"
        r"factory-gate|shop|trimmed|"
        r"median|flash|preliminary|revised|supercore|rents?|wages?)\b"
    ),
    AnnouncementKind.PAYROLLS: re.compile(
        r"\b(?:private|adp|jobless|claims|openings|jolts|manufacturing|factory|temp|job cuts|layoffs|planned|"
        r"announced|revised|"
        r"revision|unemployment|government jobs|state|wall street jobs|construction|online|postings|survey)\b"
    ),
    AnnouncementKind.GDP: re.compile(
        r"\b(?:revis\w+|industrial|factory|credit|loan|job|jobs|nominal|per capita|wage|retail|productivity|"
        r"monthly|services|"
        r"gdp now|nowcast|potential|money supply|export|imports?|trend)\b"
    ),
}
_FILL = (
    r"(?:[ ,](?:index|rate|annual|annualized|annualised|growth|employment|data|figures|report|number|also|again|"
    r"barely|just|"
    r"slightly|sharply|modestly|solidly|briskly|unexpectedly|surprisingly|only|a|monthly|month|quarter|quarterly|"
    r"year|"
    r"(?:in |for |the ){0,2}(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|"
    r"jun|jul|aug|sept?|oct|nov|dec|first|second|third|fourth|q[1-4]|[1-4]q|last)(?: quarter| month)?)){0,5}"
)
_BE = (
    r"at|is|was|comes? in(?: at)?|came in(?: at)?|prints?(?: at)?|totals?|totaled|:|unchanged|flat|steady|"
    r"holds? steady|held steady|"
    r"stalls?|stalled|beats?|tops?|topped|exceeds?|miss(?:es|ed)?|match(?:es|ed)?|meets?|met|in[- ]line|above|below|"
    r"(?:stronger|weaker|hotter|cooler|softer|higher|lower|firmer)[- ]than|(?=[-+]?\d)"
)
_FLAT = re.compile(r"\b(?:unchanged|flat|stalls?|stalled)\b")
_YEAR = re.compile(
    r"\b(?:y/y|yoy|year[- ](?:on|over)[- ]year|from a year (?:ago|earlier)|on (?:the|a) year|in the year|"
    r"annual(?:ly)?|"
    r"12[- ]month|12 months|over the (?:past )?year|year to)\b"
)
_MONTH = re.compile(
    r"\b(?:m/m|mom|month[- ](?:on|over)[- ]month|on (?:the|a) month|from the (?:previous|prior) month|monthly)\b"
)
_ANNUALISED = re.compile(r"\b(?:annuali[sz]ed|annual (?:rate|pace)|saar)\b")
_QUARTER = re.compile(
    r"\b(?:q/q|qoq|quarter[- ](?:on|over)[- ]quarter|on the quarter|from the (?:previous|prior) quarter)\b"
)
# Before a figure: it is not the announced one.
_ASIDE = re.compile(
    r"(?:vs\.?|versus|against|from|after|than|forecasts? (?:of|for)|expectations? (?:of|for)|estimates? (?:of|for)|"
    r"consensus(?: of)?|"
    r"expected|est\.?|forecast|previous(?:ly)?|prior|prev\.?|poll|compared with|core|excluding \w+ \w+|above|below|"
    r"beats?|tops?|miss(?:es)?|"
    r"economists' |the)(?: an?| the| up| at|:){0,3} ?[-+]?$"
)
_BESIDE = re.compile(
    r"(?:vs\.?|versus|against|\(?est(?:imate)?\.?|consensus(?: of)?|forecasts? of|expected|expectations of|"
    r"estimates of)"
    r"(?: an?| the|:){0,3} ?(?P<figure>[-+]?[\d,.]+ ?(?:%|percent|pct|k|thousand|mln|million)?)"
)
_EXPECTS = re.compile(r"(?:expected|est|estimated?|estimates|consensus|forecast|expectations|f'cast|exp)\b")
_HEDGED = re.compile(
    r"\b(?:will|would|could|might|should|likely|seen|set to|due|expected to|forecast to|may (?:have |"
    r"well )?(?:rise|fall|grow|be|"
    r"slow|add|show|come)|to (?:rise|fall|grow|slow|show|add|shrink|ease|come)|probably|preview|sees?|hopes?|"
    r"fears?|promises?|"
    r"needs?|must|predicts?|forecasts? (?:rise|fall|growth)|budget|if|revised|target)\b"
)


_BEFORE = (
    r"(?:(?:annual|headline|quarterly|monthly|q[1-4]|[1-4]q|(?:first|second|third|fourth)[- ]quarter|january|"
    r"february|march|april|"
    r"may|june|july|august|september|october|november|december) ){0,4}"
)
_NON_FARM = re.compile(r"\b(?:non-?farm|nfp)\b")


class _ReportedMove(NamedTuple):
    direction: int
    start: int
    verb: str
    rest: str


def data_outcome(headline: str, release: Announcement) -> HeadlineOutcome:
    """The outcome of economic data that a headline reports."""
    report = factual_report(headline)
    if not report:
        return HeadlineOutcome(None, "no report of what has happened")
    lead = split_clauses(report)[0] if split_clauses(report) else ""
    move = _reported_move(release, report)
    if move is None:
        return HeadlineOutcome(None, "no figure of this release")
    if _OTHER_MEASURE[release.kind].search(lead) or _HEDGED.search(report):
        return HeadlineOutcome(None, "another measure, or words of doubt")
    moving = move.direction or (0 if _FLAT.search(move.verb) else 1)  # 'totaled 175,000, less than expected'
    told = expectation_sides(report[move.start :], moving, 0 if release.kind is AnnouncementKind.CPI else 1)
    if told is None or len({side.direction for side in told}) > 1:
        return HeadlineOutcome(None, "how it stands to what was expected cannot be told")
    actual = _reported_figure(release, move)
    keys = (
        {surprise_key(release.kind, actual, one) for one in _consensus_figures(release, move)}
        if actual is not None
        else set[str]()
    )
    if len(keys) > 1:
        return HeadlineOutcome(None, "what was expected is told otherwise than in the calendar")
    by_figure = keys.pop() if keys else None
    if not told:
        return HeadlineOutcome(
            by_figure, "told by its figure" if by_figure else "neither figure nor comparison"
        )
    by_words = _key_of_side(told[0].direction, is_far=told[0].is_far)
    if by_figure is None:
        return HeadlineOutcome(by_words, "told in words")
    agree = _side_of_key(by_figure) == told[0].direction
    return HeadlineOutcome(
        by_figure if agree else None, "told by words and figure" if agree else "words and figure disagree"
    )


def _reported_move(release: Announcement, report: str) -> _ReportedMove | None:
    """Where the region, the measure and a verb of fact follow each other at the head of the report."""
    for form in _report_patterns(release.kind, release.subject, release.names):
        match = form.match(report)
        if match is None:
            continue
        named = match["region"] or (release.subject == "us" and _NON_FARM.search(match[0]))
        if not named and not release.publishers:
            continue
        if _other_regions(release.subject).search(
            report[: match.end()].replace(match["region"] or "\0", " ")
        ):
            continue
        way = 1 if match["up"] else -1 if match["down"] else 0
        return _ReportedMove(way, match.start("verb"), match["verb"], report[match.end("verb") :])
    return None


@lru_cache(maxsize=64)
def _report_patterns(
    kind: AnnouncementKind, subject: str, names: tuple[str, ...]
) -> tuple[re.Pattern[str], ...]:
    """'<region> <measure> <verb>', and of jobs '<region> <adds> <so many>'."""
    called = (*REGIONS.get(subject, ()), *names)
    region = rf"^(?:the )?(?:(?P<region>{name_pattern(called) if called else '(?!)'})(?:'s)? )?"
    verb = rf"(?P<verb>(?P<up>{UP})|(?P<down>{DOWN})|{_BE})(?:(?<=:)|(?=[-+]?[$\d])|(?![\w]))"
    forms = [re.compile(rf"{region}{_BEFORE}{_MEASURE[kind]}{_FILL}(?: |(?=:)){verb}")]
    if kind is AnnouncementKind.PAYROLLS:
        adds = (
            r"(?:economy |employers )?(?P<verb>(?P<up>adds?|added|creates?|created|gains?|gained)|"
            r"(?P<down>loses?|lost|sheds?))(?=(?: just| only)? [\d,]+)"
        )
        forms.append(re.compile(region + adds))
    return tuple(forms)


@lru_cache(maxsize=64)
def _other_regions(subject: str) -> re.Pattern[str]:
    names = [name for key, several in REGIONS.items() if key != subject for name in several]
    return re.compile(rf"(?<![\w.]){name_pattern(tuple(names) + OTHER_PLACES)}(?![\w])")


def _reported_figure(release: Announcement, move: _ReportedMove) -> float | None:
    """The reported figure, in the calendar's units; None where there is none, or where it is of another basis."""
    rest = move.rest
    figures: Iterable[HeadlineFigure] = (
        job_counts(rest) if release.kind is AnnouncementKind.PAYROLLS else percent_figures(rest)
    )
    for figure in figures:
        before = rest[: figure.start]
        if _ASIDE.search(before):
            continue
        if before.count(";") or re.search(r"\b(?:core|unemployment|jobless)\b", before):
            return None
        is_level = re.search(r"\b(?:to|at|of)(?: an?| a record)? ?[-+]?$", before) is not None
        basis = _basis(release, rest, is_level=is_level and move.direction != 0)
        if release.basis and basis and basis != release.basis:
            return None
        value = figure.value
        if move.direction < 0 and not is_level and value > 0:
            value = -value
        return value
    if (
        _FLAT.search(move.verb)
        and release.kind is AnnouncementKind.CPI
        and release.basis in ("", "mom")
        and not _YEAR.search(rest)
    ):
        return 0.0
    return None


def _basis(release: Announcement, rest: str, *, is_level: bool) -> str:
    if _ANNUALISED.search(rest):
        return "annualised"
    if _YEAR.search(rest):
        return "yoy"
    if _MONTH.search(rest):
        return "mom"
    if _QUARTER.search(rest):
        return "qoq"
    return "yoy" if is_level and release.kind is AnnouncementKind.CPI else ""


def _consensus_figures(release: Announcement, move: _ReportedMove) -> list[float]:
    """What was expected: as the calendar has it, and as the headline states it."""
    found = [release.consensus] if release.consensus is not None else []
    for match in _BESIDE.finditer(move.rest):
        after = move.rest[match.end() :][:24]
        stated = match[0].startswith(("vs", "versus", "against"))
        if stated and not _EXPECTS.search(after):
            continue
        figures = list(
            job_counts(match["figure"])
            if release.kind is AnnouncementKind.PAYROLLS
            else percent_figures(match["figure"])
        )
        found += [figure.value for figure in figures[:1]]
    return found


def _key_of_side(way: int, *, is_far: bool) -> str:
    if way == 0:
        return "in line"
    return ("far " if is_far else "") + ("above" if way > 0 else "below")


def _side_of_key(key: str) -> int:
    return 0 if key == "in line" else 1 if key.endswith("above") else -1
