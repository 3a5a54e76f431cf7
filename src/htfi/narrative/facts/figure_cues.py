"""What the words beside a figure say of it: reported, expected, prior, a difference or a change (`figures.toml`)."""

import re
from typing import NamedTuple

from htfi.narrative.facts.figure_scan import Figure, FigureRole, FigureUnit
from htfi.narrative.patterns import FilteredPattern, Patterns, deferred

MAX_REACH = 45  # from a figure to the word behind it that gives its role
RANK_BEST, RANK_NAMED, RANK_COMPANY, RANK_WHISPER, RANK_INHERITED = 3, 2, 1, 0, -1


class FigureCue(NamedTuple):
    """The role of a figure by the words beside it; `rank` and `direction` as in `figures.PlacedFigure`."""

    role: FigureRole
    rank: int = RANK_NAMED
    is_weak: bool = False  # another word may overrule it
    is_versus: bool = False  # nothing but 'against': what it is compared with is not said
    is_outlook: bool = False  # 'sees', 'guides': of a company, reported or compared with
    direction: int | None = None


_DATA = Patterns("htfi.narrative.facts", "figures.toml", "roles")


def _compiled(pattern: str) -> re.Pattern[str]:
    return deferred(pattern, re.IGNORECASE)


_EXPECTED = _DATA.text("expected_words")
_SOURCES = _DATA.text("sources")
CUES = FilteredPattern(
    rf"(?<![\w-])(?:(?P<prior>{_DATA.text('prior_words')})|(?P<whisper>{_DATA.text('whispers')})|"
    rf"(?P<company>{_DATA.text('company')})|(?P<expected>{_EXPECTED})|(?P<source>{_SOURCES})|"
    rf"(?P<actual>{_DATA.text('actual_words')}))(?!\w)",
    re.IGNORECASE,
)
_BEST = _DATA.compiled("best_ranked", re.IGNORECASE)
_OUTLOOK = _DATA.filtered("outlook", re.IGNORECASE)
_MONTH_ONLY = _compiled(
    rf"[\s(\[,/|]*(?:in\s+)?{_DATA.text('month')}(?:['’]s)?\s*(?:rev(?:ised)?\.?)?\s*[:=]?\s*\S?"
)
_IN_MONTH = _compiled(rf"\s*[(,]?\s*(?:in|for|im|en|em|in\s+the|i)\s+(?:the\s+)?{_DATA.text('month')}")
_YEAR_ON_YEAR = _DATA.compiled("year_on_year", re.IGNORECASE)
VERSUS = _DATA.filtered("versus", re.IGNORECASE)
_SINCE = _DATA.filtered("since", re.IGNORECASE)
_VERB_BEFORE = _DATA.filtered("verb_before", re.IGNORECASE)
_BEAT_BEFORE = _DATA.filtered("beat_before", re.IGNORECASE)
_CHANGED_BY = _DATA.filtered("changed_by", re.IGNORECASE)
_CHANGED_TO = _DATA.compiled("changed_to", re.IGNORECASE)
_DIFFERENCE_BEFORE = _DATA.filtered("difference_before", re.IGNORECASE)
_DIFFERENCE_AFTER = _DATA.compiled("difference_after", re.IGNORECASE)
REMARK = _DATA.compiled("remark", re.IGNORECASE)
FILLER = _DATA.compiled("filler", re.IGNORECASE)
SUFFIX = _compiled(_DATA.text("suffix"))
PRIOR_SUFFIX = _compiled(_DATA.text("prior_suffix"))
_IS_MEASURED = _compiled(  # 'inflation expectations' are what is measured
    r"(?:inflation|price|orders?|economic|business|export|output|zew|ifo)\s+(?:expectations?|exp\.?|forecasts?)$"
)
_EARLY_READING = _compiled(r"flash|advance|first|initial|preliminary|revised|rev\b")
_NEGATIVE = _compiled(r"\bnegative\b")
_BELOW_WORDS = _compiled(r"\b(?:miss|light|short|shy|lag|trail|undershot|undershoot|below|under|negative)")


def find_cue(figure: Figure, before: str, after: str, is_preceded: bool) -> FigureCue:
    """What the words before and after a figure say of it; `is_preceded` where another figure stands before it."""
    difference = _difference(figure, before, after, is_preceded)
    if difference is not None:
        return difference
    if SUFFIX.match(after):
        return FigureCue(FigureRole.EXPECTED)
    left, right = _left_cue(before, is_preceded), _right_cue(figure, after, bool(VERSUS.search(before)))
    if left is not None and not left.is_weak:
        return left
    if right is not None:
        return right
    if left is not None:
        return left
    if PRIOR_SUFFIX.match(after):
        return FigureCue(FigureRole.PRIOR)
    return FigureCue(FigureRole.NONE)


def _difference(figure: Figure, before: str, after: str, is_preceded: bool) -> FigureCue | None:
    by = _DIFFERENCE_BEFORE.search(before)
    if by is not None:
        is_amount = re.search(r"\b(?:by|of|surprise)\b|[:=]", by[0], re.IGNORECASE) is not None
        is_small = figure.unit in (FigureUnit.MONEY, FigureUnit.PERCENTAGE_POINTS) and figure.scale <= 0.01
        if is_amount or (is_small and "word" in by.re.groupindex):
            is_signed = re.search(r"surprise|variance|delta", by[0], re.IGNORECASE) and not _NEGATIVE.search(
                by[0]
            )
            if figure.value < 0.0 or is_signed:
                return FigureCue(FigureRole.DIFFERENCE)
            return FigureCue(FigureRole.DIFFERENCE, direction=-1 if _BELOW_WORDS.search(by[0]) else 1)
    if not is_preceded:
        return None
    behind = _DIFFERENCE_AFTER.match(after)
    if behind is not None and not VERSUS.search(before):
        return FigureCue(FigureRole.DIFFERENCE, direction=1 if behind["above"] else -1)
    masked = re.match(r"\s?\)?\s?¶", after)
    if masked is not None and not re.match(r"\s*,", after):
        return FigureCue(FigureRole.DIFFERENCE)
    if REMARK.match(after):
        return FigureCue(FigureRole.DIFFERENCE)
    return None


def _left_cue(before: str, is_preceded: bool) -> FigureCue | None:
    """What the words before a figure say of it: those nearest to it count."""
    if _MONTH_ONLY.fullmatch(before) and before.strip() and is_preceded:
        return FigureCue(FigureRole.PRIOR, is_weak=True)
    found: FigureCue | None = None
    for match in CUES.finditer(before):
        rest = before[match.end() :]
        cue = _cue_of(match)
        if cue is None or (match["source"] is not None and not FILLER.fullmatch(rest)):
            continue
        if match["actual"] is not None and not FILLER.fullmatch(rest):
            continue
        if (
            match["prior"] is not None
            and not FILLER.fullmatch(rest)
            and (not is_preceded or _EARLY_READING.match(match[0]))
        ):
            continue  # 'Revised GDP', 'Flash Estimate' name the release
        if match["company"] is not None and not is_preceded:
            cue = cue._replace(is_outlook=True)
        found = cue
    if found is not None:
        if (
            found.role is FigureRole.EXPECTED
            and not is_preceded
            and _OUTLOOK.search(before)
            and not CUES.search(_OUTLOOK.sub("", before))
        ):
            return found._replace(is_outlook=True)
        return found
    if _OUTLOOK.search(before):
        return FigureCue(FigureRole.EXPECTED, RANK_COMPANY, is_weak=True, is_outlook=True)
    if _SINCE.search(before):
        return FigureCue(FigureRole.PRIOR, is_weak=True)
    if _BEAT_BEFORE.search(before):
        return FigureCue(FigureRole.EXPECTED, RANK_COMPANY, is_weak=True)
    if is_preceded and VERSUS.search(before):
        return FigureCue(FigureRole.NONE, is_weak=True, is_versus=True)
    if _VERB_BEFORE.search(before):
        return FigureCue(FigureRole.NONE, is_weak=True)
    if _CHANGED_BY.search(before):
        return FigureCue(FigureRole.CHANGE, is_weak=True)
    return None


def _right_cue(figure: Figure, after: str, follows_versus: bool) -> FigureCue | None:
    """What the words after a figure say of it: the first, unless another report has begun before it."""
    if _CHANGED_TO.fullmatch(after):
        return FigureCue(FigureRole.CHANGE)
    for match in CUES.finditer(after):
        ahead = after[: match.start()]
        if len(ahead) > MAX_REACH or re.search(r"[¶;|\n]", ahead):
            break
        cue = _cue_of(match)
        if cue is None:
            continue
        rest = after[match.end() :].strip()
        if (
            match["source"] is not None
            and not (
                len(ahead.strip(" (,[")) <= 1 and (not rest or not rest[0].isalnum() or CUES.match(rest))
            )
            and not CUES.match(rest)
        ):
            continue
        if match["actual"] is not None and len(ahead.strip()) > 1:
            continue
        return cue
    if follows_versus and figure.unit is not FigureUnit.PERCENT and _YEAR_ON_YEAR.match(after):
        return FigureCue(FigureRole.PRIOR)
    if follows_versus and _IN_MONTH.match(after):
        return FigureCue(FigureRole.PRIOR)
    return None


def _cue_of(match: re.Match[str]) -> FigureCue | None:
    if match["prior"] is not None:
        return FigureCue(FigureRole.PRIOR)
    if match["whisper"] is not None:
        return FigureCue(FigureRole.EXPECTED, RANK_WHISPER)
    if match["company"] is not None:
        return FigureCue(FigureRole.EXPECTED, RANK_COMPANY)
    if match["actual"] is not None:
        return FigureCue(FigureRole.ACTUAL)
    if _IS_MEASURED.search(match.string[max(0, match.start() - 16) : match.end()]):
        return None
    return FigureCue(FigureRole.EXPECTED, RANK_BEST if _BEST.search(match[0]) else RANK_NAMED)
