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
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome, OutcomeReason
from htfi.narrative.patterns import Patterns

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
_DATA = Patterns("htfi.narrative.calendar", "patterns.toml", "economic_data")
_FILL = _DATA.text("fill")
_BE = _DATA.text("be")
_FLAT = re.compile(r"\b(?:unchanged|flat|stalls?|stalled)\b")
_YEAR = _DATA.compiled("year")
_MONTH = _DATA.compiled("month")
_ANNUALISED = re.compile(r"\b(?:annuali[sz]ed|annual (?:rate|pace)|saar)\b")
_QUARTER = _DATA.compiled("quarter")
_ASIDE = _DATA.compiled("aside")
_BESIDE = _DATA.compiled("beside")
_EXPECTS = re.compile(r"(?:expected|est|estimated?|estimates|consensus|forecast|expectations|f'cast|exp)\b")
_HEDGED = _DATA.compiled("hedged")


_BEFORE = _DATA.text("before")
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
        return HeadlineOutcome(None, OutcomeReason.NO_REPORT)
    lead = split_clauses(report)[0] if split_clauses(report) else ""
    move = _reported_move(release, report)
    if move is None:
        return HeadlineOutcome(None, OutcomeReason.NO_FIGURE)
    if _OTHER_MEASURE[release.kind].search(lead) or _HEDGED.search(report):
        return HeadlineOutcome(None, OutcomeReason.OTHER_MEASURE)
    moving = move.direction or (0 if _FLAT.search(move.verb) else 1)  # 'totaled 175,000, less than expected'
    sides = expectation_sides(report[move.start :], moving, 0 if release.kind is AnnouncementKind.CPI else 1)
    if sides is None or len({side.direction for side in sides}) > 1:
        return HeadlineOutcome(None, OutcomeReason.UNCLEAR_COMPARISON)
    actual = _reported_figure(release, move)
    keys = (
        {surprise_key(release.kind, actual, one) for one in _consensus_figures(release, move)}
        if actual is not None
        else set[str]()
    )
    if len(keys) > 1:
        return HeadlineOutcome(None, OutcomeReason.CONSENSUS_DIFFERS)
    by_figure = keys.pop() if keys else None
    if not sides:
        return HeadlineOutcome(
            by_figure, OutcomeReason.FIGURE if by_figure else OutcomeReason.NOTHING_TO_COMPARE
        )
    by_words = _key_of_side(sides[0].direction, is_far=sides[0].is_far)
    if by_figure is None:
        return HeadlineOutcome(by_words, OutcomeReason.WORDS)
    agree = _side_of_key(by_figure) == sides[0].direction
    return HeadlineOutcome(
        by_figure if agree else None,
        OutcomeReason.WORDS_AND_FIGURE if agree else OutcomeReason.FIGURE_DISAGREES,
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
