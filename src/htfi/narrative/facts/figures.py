"""What each figure of a text is: reported, expected, prior, a difference or a change.

News agencies write the same comparison in many notations: 'Payrolls 273K vs 175K expected', 'CPI +0.3% (est. 0.2%;
prev 0.4%)', 'EPS 1.40 / 1.35 / 1.22 (actual / consensus / year ago)'. The text between two figures is cut where a
comparison word or a mark of punctuation stands; the words before the cut belong to the figure before, the others to
the figure behind (`figures.toml`), and say what it is (`figure_cues.py`). Where these decide nothing it has no role.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from htfi.narrative.facts.expectations import Comparison, find_comparisons
from htfi.narrative.facts.figure_cues import (
    CUES,
    FILLER,
    MAX_REACH,
    PRIOR_SUFFIX,
    RANK_COMPANY,
    RANK_INHERITED,
    RANK_NAMED,
    REMARK,
    SUFFIX,
    VERSUS,
    FigureCue,
    find_cue,
)
from htfi.narrative.facts.figure_scan import MAX_FIGURES, Figure, FigureRole, FigureUnit, scan_figures
from htfi.narrative.facts.measures import Mention, find_mentions
from htfi.narrative.facts.tables import table_roles
from htfi.narrative.patterns import Patterns, deferred

__all__ = [
    "MAX_FIGURES",
    "Figure",
    "FigureRole",
    "FigureUnit",
    "PlacedFigure",
    "figures_in_context",
    "find_figures",
]
_MAX_BEFORE = 150  # characters before a figure that may give its role
_MAX_AFTER = 90


class FigureContext(NamedTuple):
    """The placed figures of a text, its comparisons in words, and the measures that either may be of."""

    placed: list["PlacedFigure"]
    comparisons: list[Comparison]
    mentions: list[Mention]


@dataclass(frozen=True, slots=True)
class PlacedFigure:
    """A figure with its role, and whether a comparison begins with it.

    `rank` orders several expectations: a consensus counts before a company's own guidance, this before a whisper.
    `direction` is that of a difference, 1 above; None where only its sign says so.
    """

    figure: Figure
    begins: bool = False
    rank: int = RANK_NAMED
    direction: int | None = None


_DATA = Patterns("htfi.narrative.facts", "figures.toml", "roles")
_HARD_BREAK = _DATA.compiled("hard_break")
_SOFT_BREAKS = tuple(
    deferred(_DATA.text(name), re.IGNORECASE) for name in ("closing", "opening", "dash", "comma")
)
_JOINS = deferred(r"\s*(?:on|and|with)\s", re.IGNORECASE)
_LABEL = re.compile(r"\s*[(\[][^()\[\]\d]{1,20}[)\]]\s*[:=]?\s*")
_ENDS_IN_LABEL = re.compile(r"[(\[][^()\[\]\d]{1,20}[)\]]\s*[:=]?\s*$")
_LETTERS = re.compile(r"[^\W\d_]{2}")


def find_figures(text: str) -> list[Figure]:
    """The figures of a text in order, at most `MAX_FIGURES`, each with its role where the words beside it give one."""
    return [one.figure for one in figures_in_context(text).placed]


def figures_in_context(text: str) -> FigureContext:
    """The figures with their roles, grouped by comparison, and the comparisons and measures named in words."""
    figures = scan_figures(text)
    reach = text[: figures[-1].end + 2 * _MAX_AFTER] if figures else text[:2_000]
    comparisons = find_comparisons(reach)
    if not figures and not comparisons:
        return FigureContext([], [], [])
    mentions = find_mentions(reach)
    masked = _masked(reach, comparisons, figures)
    by_table = table_roles(reach, figures)
    sides = _sides(masked, figures)
    cues: list[FigureCue] = []
    for index, figure in enumerate(figures):
        if index in by_table:
            cues.append(FigureCue(by_table[index]))
        else:
            cues.append(find_cue(figure, *sides[index], index > 0))
    cues = _with_versus(cues, bool(comparisons))
    return FigureContext(
        _placed(figures, cues, [before for before, _ in sides], mentions, by_table), comparisons, mentions
    )


def _masked(text: str, comparisons: Sequence[Comparison], figures: Sequence[Figure]) -> str:
    """The text without the comparisons in words, but for those that name the figure behind them."""
    starts = [figure.start for figure in figures]
    parts, at = list[str](), 0
    for one in comparisons:
        follows = next((start for start in starts if start >= one.end), None)
        is_before_figure = follows is not None and FILLER.fullmatch(text, one.end, follows)
        if any(one.start < figure.end and figure.start < one.end for figure in figures) or (
            is_before_figure and one.names_expectation
        ):
            continue
        if one.direction != 0 and not one.names_expectation:
            continue
        parts += [text[at : one.start], re.sub(r"\S", "¶", text[one.start : one.end])]
        at = one.end
    return "".join([*parts, text[at:]])


def _sides(text: str, figures: Sequence[Figure]) -> list[tuple[str, str]]:
    """For each figure the words before it and the words after it that are its own."""
    if not figures:
        return []
    first = text[max(0, figures[0].start - _MAX_BEFORE) : figures[0].start]
    before = [_after_last_break(first)]
    after: list[str] = []
    for left, right in pairwise(figures):
        gap = text[left.end : right.start]
        if _LABEL.fullmatch(gap) and _ENDS_IN_LABEL.search(first):
            own, others = "", gap
        else:
            own, others = _split(gap, VERSUS.search(before[-1]) is not None)
        after.append(own)
        before.append(others)
    last = text[figures[-1].end : figures[-1].end + _MAX_AFTER]
    hard = _HARD_BREAK.search(last)
    after.append(last[: hard.start()] if hard else last)
    if _is_postfix(text, figures):
        gaps = [text[left.end : right.start] for left, right in pairwise(figures)]
        return [(before[0], gaps[0]), *(("", gap) for gap in gaps[1:]), ("", after[-1])]
    return list(zip(before, after, strict=True))


def _after_last_break(words: str) -> str:
    ends = [match.end() for match in _HARD_BREAK.finditer(words)]
    return words[ends[-1] :] if ends else words


def _split(gap: str, follows_versus: bool) -> tuple[str, str]:
    """The words between two figures: those of the first, and those of the second."""
    if len(gap) > _MAX_BEFORE + _MAX_AFTER:
        return _before_first_break(gap[:_MAX_AFTER]), _after_last_break(gap[-_MAX_BEFORE:])
    remark = REMARK.match(gap)
    if remark is not None and remark.end() < len(gap):
        return gap[: remark.end()], gap[remark.end() :]
    hard = _HARD_BREAK.search(gap)
    if hard is not None:
        rest = gap[hard.end() :]
        return gap[: hard.start()], rest if "|" in hard[0] else _after_last_break(rest)
    versus = VERSUS.search(gap)
    if versus is not None:
        return gap[: versus.start()], gap[versus.start() :]
    for order, pattern in enumerate(_SOFT_BREAKS):
        cut = pattern.search(gap)
        if cut is not None:
            at = cut.end() if order == 0 else cut.start()
            return gap[:at], gap[at:]
    cue = CUES.match(gap.lstrip(" ")) or SUFFIX.match(gap)
    if cue is not None and (follows_versus or SUFFIX.match(gap)):
        at = len(gap) - len(gap.lstrip(" ")) + cue.end() if not SUFFIX.match(gap) else cue.end()
        return gap[:at], gap[at:]
    if (cue := PRIOR_SUFFIX.match(gap)) is not None:
        return gap[: cue.end()], gap[cue.end() :]
    cues = list(CUES.finditer(gap))
    if len(cues) == 2 and not gap[: cues[0].start()].strip():  # '0.3 actual est 0.2'
        return gap[: cues[0].end()], gap[cues[0].end() :]
    return "", gap


def _before_first_break(words: str) -> str:
    hard = _HARD_BREAK.search(words)
    return words[: hard.start()] if hard else words


def _is_postfix(text: str, figures: Sequence[Figure]) -> bool:
    """Whether each figure stands before its word: '0.3% actual 0.2% est 0.4% prior'."""
    if not 2 <= len(figures) <= 4:
        return False
    gaps = [text[left.end : right.start] for left, right in pairwise(figures)]
    gaps.append(text[figures[-1].end : figures[-1].end + MAX_REACH])
    return all(
        (cue := CUES.match(gap.strip(" "))) is not None and cue.end() == len(gap.strip(" .)"))
        for gap in gaps[:-1]
    ) and ((cue := CUES.match(gaps[-1].lstrip(" "))) is not None and cue["source"] is None)


def _with_versus(cues: list[FigureCue], has_comparison: bool) -> list[FigureCue]:
    """A figure behind a bare 'vs' is expected where the text elsewhere compares with what was expected."""
    roles = {cue.role for cue in cues if not cue.is_versus}
    is_expected = has_comparison or (FigureRole.EXPECTED in roles and FigureRole.PRIOR not in roles)
    return [
        cue._replace(role=FigureRole.EXPECTED, rank=RANK_COMPANY) if cue.is_versus and is_expected else cue
        for cue in cues
    ]


def _placed(
    figures: Sequence[Figure],
    cues: Sequence[FigureCue],
    before: Sequence[str],
    mentions: Sequence[Mention],
    by_table: dict[int, FigureRole],
) -> list[PlacedFigure]:
    """Groups the figures into comparisons: each has one reported figure, and what it is compared with."""
    placed: list[PlacedFigure] = []
    has_actual = has_expected = leads = False
    for index, (figure, cue) in enumerate(zip(figures, cues, strict=True)):
        names = _names_measure(figure, figures[index - 1].end if index else 0, mentions)
        role, begins = cue.role, False
        is_complete = has_actual and has_expected
        if cue.is_outlook:
            is_first = not has_actual or names or is_complete
            role = FigureRole.ACTUAL if is_first and _is_compared(cues[index + 1 :]) else role
        if role is FigureRole.NONE and leads and not has_actual and names and _JOINS.match(before[index]):
            role, cue = FigureRole.EXPECTED, cue._replace(rank=RANK_INHERITED)
        if role is FigureRole.NONE and not cue.is_weak:
            is_new = (
                not has_actual
                or (is_complete and _LETTERS.search(before[index]) is not None)
                or (names and index > 0)
            )
            role = FigureRole.ACTUAL if is_new else role
        if role is FigureRole.ACTUAL:
            begins = has_actual or not placed
            has_expected = has_expected and not has_actual
            has_actual = True
        elif role is FigureRole.EXPECTED:
            if is_complete and leads and names and index not in by_table:
                begins, has_actual = True, False
            leads = leads or not has_actual
            has_expected = True
        elif role is FigureRole.DIFFERENCE:
            if has_expected and names:
                begins, has_actual = True, False
            has_expected = True
        made = figure if figure.role is role else replace(figure, role=role)
        placed.append(PlacedFigure(made, begins, cue.rank, cue.direction))
    return _with_actual(placed)


def _is_compared(cues: Sequence[FigureCue]) -> bool:
    """Whether the next figures hold an expectation of others, so that an outlook is what is reported."""
    return any(
        cue.role in (FigureRole.EXPECTED, FigureRole.DIFFERENCE) and not cue.is_outlook for cue in cues[:3]
    )


def _names_measure(figure: Figure, since: int, mentions: Sequence[Mention]) -> bool:
    return any(since <= one.start < figure.start for one in mentions)


def _with_actual(placed: list[PlacedFigure]) -> list[PlacedFigure]:
    """Without a reported figure, what changed by is what is reported, or the first of two figures named as expected.

    'Payrolls rose by 272,000, above the 180,000 expected'; 'Second Estimate GDP 0.3%, expected 0.2%'.
    """
    if any(one.figure.role is FigureRole.ACTUAL for one in placed):
        return placed
    changes = [index for index, one in enumerate(placed) if one.figure.role is FigureRole.CHANGE]
    named = [
        index
        for index, one in enumerate(placed)
        if one.figure.role is FigureRole.EXPECTED and one.rank != RANK_INHERITED
    ]
    if changes or len(named) > 1:
        index = (changes or named)[0]
        first = placed[index]
        placed[index] = replace(first, figure=replace(first.figure, role=FigureRole.ACTUAL))
    return placed
