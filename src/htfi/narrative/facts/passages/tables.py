"""Reads tables of figures in a text: each row's label with what was reported, expected and before."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from htfi.narrative.facts.figures import Figure, FigureRole, FigureUnit, find_figures
from htfi.narrative.patterns import Patterns

MAX_ROWS = 400
_MAX_TRIED = 2_000  # lines with cells
_MAX_LINE_CHARS = 400
_MAX_CELLS = 16
_WORDS = {FigureRole.EXPECTED: "expected", FigureRole.PRIOR: "previous"}
_MAY_HOLD_TABLES = re.compile(r"[^|\n]\|[^|\n]|\S\t+\S|\S {2,}[-+$€£¥(]?\d")
_DATA = Patterns("htfi.narrative.facts.passages", "patterns.toml", "tables")
_CELL_BREAK = _DATA.compiled("cell_break")
_ROLES = (
    (FigureRole.CHANGE, _DATA.compiled("change", re.IGNORECASE)),
    (FigureRole.EXPECTED, _DATA.compiled("expected", re.IGNORECASE)),
    (FigureRole.PRIOR, _DATA.compiled("prior", re.IGNORECASE)),
    (FigureRole.ACTUAL, _DATA.compiled("actual", re.IGNORECASE)),
)
_PERIOD = _DATA.compiled("period", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"(?P<sign>[$€£¥])?\s?\((?P<more>[$€£¥])?(?P<number>\d[\d.,]*)\)"
)  # in tables: below zero
_PLAIN = re.compile(r"^[\w\s.,;:%$€£¥()|/+'’&*·…-]*$")  # markup stays for the sanitiser to judge
_RULE = re.compile(r"^[\s|:+=_-]*$")
_LEADER = re.compile(r"[.·…_]{3,}|\s\.\s(?:\.\s)+")  # dots that lead from a label to its figures


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its label, and its figures in their unit; None where the table has none."""

    label: str
    actual: float | None
    expected: float | None = None
    prior: float | None = None
    unit: FigureUnit = FigureUnit.NUMBER
    currency: str = ""


def find_table_rows(body: str) -> list[TableRow]:
    """The rows of all tables in a body, in order: with cells apart by tabs, bars or blanks, and lines 'label: figure
    (expected …, previous …)'. A header gives the columns their roles; without one the first figure is what was
    reported.
    """
    found: list[TableRow] = []
    for line, cells, roles in _lines(body):
        row = _row(cells, roles) if len(cells) > 1 else _labelled(line)
        if row is not None:
            found.append(row)
            if len(found) == MAX_ROWS:
                break
    return found


def table_rows_as_sentences(body: str) -> str:
    """The body with each row of a table as a sentence, 'Payrolls: 187K (expected 170K, previous 105K).', so that it
    keeps its meaning on one line; the cells' own texts stay. A body without tables is returned as it is.
    """
    if not _may_hold_tables(body):
        return body
    num_rows = 0
    lines: list[str] = []
    for line, cells, roles in _lines(body, keep_all=True):
        is_row = len(cells) > 1 and num_rows < MAX_ROWS and _PLAIN.match(line) is not None
        is_row = is_row and _row(cells, roles) is not None
        num_rows += is_row
        lines.append(_sentence(cells, roles) if is_row else line)
    return "\n".join(lines) if num_rows else body


def _may_hold_tables(body: str) -> bool:
    has_breaks = "|" in body or "\t" in body or "  " in body  # the pattern takes longer to find none
    return has_breaks and _MAY_HOLD_TABLES.search(body) is not None


def _sentence(cells: Sequence[str], roles: Sequence[FigureRole]) -> str:
    by_role: dict[FigureRole, str] = {}
    for role, cell in zip(roles or (FigureRole.ACTUAL,), cells[1:], strict=False):
        by_role.setdefault(role, cell)
    beside = [f"{_WORDS[role]} {by_role[role]}" for role in _WORDS if role in by_role]
    aside = f" ({', '.join(beside)})" if beside else ""
    return f"{cells[0].rstrip(':')}: {by_role.get(FigureRole.ACTUAL, '')}{aside}."


def _lines(body: str, *, keep_all: bool = False) -> Iterator[tuple[str, list[str], list[FigureRole]]]:
    """Each line that may be a row, with its cells and the roles that the last header gave; if asked all lines, without
    those headers.
    """
    roles: list[FigureRole] = []
    num_tried = 0
    for line in body.splitlines():
        cells: list[str] = []
        is_blank = not line.strip()
        if is_blank or len(line) > _MAX_LINE_CHARS or num_tried > _MAX_TRIED:
            roles = []
        elif not _RULE.match(line):
            cells = _cells(line)
            num_tried += len(cells) > 1
            header = _header(cells)
            if header:
                roles, cells = header, []
                line = "" if _PLAIN.match(line) else line
            elif cells:
                yield line, cells, roles
                continue
        if keep_all:
            yield line, [], roles


def _cells(line: str) -> list[str]:
    parts = [part.strip() for part in _CELL_BREAK.split(_LEADER.sub("  ", line.strip().strip("|")))]
    return [part for part in parts if part][:_MAX_CELLS]


def _header(cells: Sequence[str]) -> list[FigureRole]:
    """The roles of the columns behind the labels; empty for a line that is no header."""
    if len(cells) < 2 or any(_value(cell) is not None and not _PERIOD.search(cell) for cell in cells):
        return []
    named = [
        next((role for role, pattern in _ROLES if pattern.search(cell)), FigureRole.NONE) for cell in cells
    ]
    known = [role for role in named if role is not FigureRole.NONE]
    periods = [bool(_PERIOD.search(cell)) for cell in cells]
    if len(known) >= 2 or (known and known != [FigureRole.CHANGE]):
        columns = named if named[0] is not FigureRole.NONE or periods[0] else named[1:]
        if FigureRole.ACTUAL not in columns:  # 'Q3  Forecast  Previous'
            columns = [FigureRole.ACTUAL if role is FigureRole.NONE else role for role in columns]
        return columns
    if sum(periods) >= 2:  # 'Q3 2024  Q3 2023': the first period is reported, the second is before
        columns = named if periods[0] else named[1:]
        order = iter((FigureRole.ACTUAL, FigureRole.PRIOR))
        return [role if role is FigureRole.CHANGE else next(order, FigureRole.NONE) for role in columns]
    return []


def _row(cells: Sequence[str], roles: Sequence[FigureRole]) -> TableRow | None:
    label, values = cells[0], [_value(cell) for cell in cells[1:]]
    if (
        _value(label) is not None
        or not any(char.isalpha() for char in label)
        or all(one is None for one in values)
    ):
        return None
    given = [one for one in values if one is not None]
    if len(given) < len(values) / 2:
        return None  # prose with wide blanks
    columns = list(roles) or [FigureRole.ACTUAL]
    by_role: dict[FigureRole, Figure] = {}
    for role, value in zip(columns, values, strict=False):
        if value is not None and role not in by_role:
            by_role[role] = value
    return _made(label, by_role)


def _labelled(line: str) -> TableRow | None:
    """'Nonfarm payrolls: 187K (exp 170K, prev 105K)'."""
    label, found, rest = line.strip(" *•-–").partition(":")
    if not found or not 2 <= len(label) <= 80 or not any(char.isalpha() for char in label):
        return None
    figures = find_figures(rest)
    if not figures or figures[0].start > 24:
        return None
    by_role: dict[FigureRole, Figure] = {}
    for figure in figures:
        by_role.setdefault(figure.role, figure)
    if FigureRole.ACTUAL not in by_role:
        by_role[FigureRole.ACTUAL] = figures[0]
    return _made(label, by_role)


def _made(label: str, by_role: dict[FigureRole, Figure]) -> TableRow | None:
    actual = by_role.get(FigureRole.ACTUAL)
    shown = actual or by_role.get(FigureRole.EXPECTED) or by_role.get(FigureRole.PRIOR)
    if shown is None:
        return None
    values = {role: figure.middle for role, figure in by_role.items()}
    return TableRow(
        " ".join(label.split()).rstrip(":"),
        values.get(FigureRole.ACTUAL),
        values.get(FigureRole.EXPECTED),
        values.get(FigureRole.PRIOR),
        shown.unit,
        shown.currency,
    )


def _value(cell: str) -> Figure | None:
    """The figure that a cell holds, and nothing else."""
    figures = find_figures(_NEGATIVE.sub(_below_zero, cell))
    if len(figures) != 1 or sum(char.isalpha() for char in cell) > 12:
        return None
    return figures[0]


def _below_zero(match: re.Match[str]) -> str:
    return f"-{match['sign'] or match['more'] or ''}{match['number']}"
