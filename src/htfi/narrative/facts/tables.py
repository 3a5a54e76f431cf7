"""The roles of figures that stand in tables, by the head of their column or by a legend.

'Ticker | EPS act | EPS est' over rows of cells; '2.53 / 2.44 / 3.06 (actual / expected / year ago)', with the legend
before the figures or behind them.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from htfi.narrative.facts.figure_scan import Figure, FigureRole
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.facts", "figures.toml", "tables")
_ROLES = ((FigureRole.ACTUAL, "actual"), (FigureRole.EXPECTED, "expected"), (FigureRole.PRIOR, "prior"))
_HEADS = tuple((role, _DATA.compiled(name, re.IGNORECASE)) for role, name in _ROLES)
_LEGEND = _DATA.filtered("legend", re.IGNORECASE)
_HEAD = _DATA.compiled("head", re.IGNORECASE)
_JOINT = _DATA.compiled("joint", re.IGNORECASE)
_ROW_BREAK = re.compile(r"\n|\|\|")
_CELL_BREAK = re.compile(r"\||\t|\s{3,}")
_MAX_ROWS = 400


class _Cell(NamedTuple):
    start: int
    end: int


def table_roles(text: str, figures: Sequence[Figure]) -> dict[int, FigureRole]:
    """The roles of the figures, by their place in `figures`, that a table or a legend gives."""
    if not figures:
        return {}
    return _by_columns(text, figures) or _by_legend(text, figures)


def _head_role(words: str) -> FigureRole | None:
    return next((role for role, pattern in _HEADS if pattern.search(words)), None)


def _by_columns(text: str, figures: Sequence[Figure]) -> dict[int, FigureRole]:
    found: dict[int, FigureRole] = {}
    columns: list[FigureRole | None] = []
    at = 0
    for row in _rows(text):
        cells = _cells(text, row)
        while at < len(figures) and figures[at].end <= row.start:
            at += 1
        inside = [index for index in range(at, len(figures)) if figures[index].start < row.end]
        if not inside and len(cells) > 1:
            heads = [_head_role(text[cell.start : cell.end]) for cell in cells]
            if FigureRole.EXPECTED in heads and (FigureRole.ACTUAL in heads or FigureRole.PRIOR in heads):
                columns = heads
        elif columns and len(cells) == len(columns):
            for index in inside:
                place = next(
                    (
                        place
                        for place, cell in enumerate(cells)
                        if cell.start <= figures[index].start < cell.end
                    ),
                    None,
                )
                role = None if place is None else columns[place]
                if role is not None:
                    found[index] = role
    return found


def _rows(text: str) -> list[_Cell]:
    if "|" not in text and "\n" not in text:
        return []
    rows: list[_Cell] = []
    start = 0
    for match in _ROW_BREAK.finditer(text):
        rows.append(_Cell(start, match.start()))
        start = match.end()
        if len(rows) == _MAX_ROWS:
            return rows
    return [*rows, _Cell(start, len(text))]


def _cells(text: str, row: _Cell) -> list[_Cell]:
    start, end = row
    while start < end and (text[start] in "|" or (text[start].isspace() and text[start] != "\t")):
        start += 1
    while end > start and (text[end - 1] in "|" or text[end - 1].isspace()):
        end -= 1
    cells: list[_Cell] = []
    for match in _CELL_BREAK.finditer(text, start, end):
        cells.append(_Cell(start, match.start()))
        start = match.end()
    return [*cells, _Cell(start, end)]


def _by_legend(text: str, figures: Sequence[Figure]) -> dict[int, FigureRole]:
    """A legend names as many roles as figures stand in each row before or behind it, alike divided."""
    for match in _LEGEND.finditer(text):
        roles = [_head_role(head[0]) for head in _HEAD.finditer(match[0])]
        num = len(roles)
        if (
            FigureRole.EXPECTED not in roles
            or not {FigureRole.ACTUAL, FigureRole.PRIOR} & set(roles)
            or None in roles
        ):
            continue
        for rows in (
            [index for index, one in enumerate(figures) if one.end <= match.start()],
            [index for index, one in enumerate(figures) if one.start >= match.end()],
        ):
            found: dict[int, FigureRole] = {}
            at = 0
            while at + num <= len(rows):
                row = rows[at : at + num]
                if all(_JOINT.fullmatch(text[figures[a].end : figures[b].start]) for a, b in pairwise(row)):
                    found |= {index: role for index, role in zip(row, roles, strict=True) if role is not None}
                    at += num
                else:
                    at += 1
            if found:
                return found
    return {}
