"""Tables and named facts on a terminal of any width: nothing is cut, and no word, number, name or path is broken.

A table too wide for its terminal wraps its long texts at blanks; where that is not enough it continues below itself,
each part beginning with the first columns that tell its rows apart; where even two columns do not fit, each row becomes
a list of facts.
Commands of `apps` print by it, `figures.report` too.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

FILE_WIDTH = 150  # columns of a table that goes to a file
_UNBROKEN_CELLS = 20  # cells: a shorter text stays on one line
_BORDER, _COLUMN = 1, 3  # cells that a table's frame takes, in all and for each column
_MAX_NAME_CELLS = (
    24  # cells of a fact's name beside its value where names are long; a longer one stands above it
)
_WORD = re.compile(r"( *)([^ ]+)")
_MIN_INDENT = 4
_UNLIMITED = 1_000_000
_FIGURE = re.compile(r"|–|[+\-−±~]?[\d.,]{1,16}\S{0,2}( .{1,16})?")  # with a unit or an error behind it

Cell = str | Text


def console() -> Console:
    """As wide as the terminal or as COLUMNS says; wide enough for most tables where the output goes to a file."""
    return Console(highlight=False) if has_width() else Console(width=FILE_WIDTH, highlight=False)


def has_width() -> bool:
    """Whether lines have a width to keep to: on a terminal, or where COLUMNS gives one. In a file they have none."""
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()


def wrap_words(text: str, width: int) -> list[str]:
    """Lines broken at blanks alone; a word that is longer than a line stays whole on a line of its own."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for blanks, word in _WORD.findall(paragraph):
            if line and cell_len(line) + len(blanks) + cell_len(word) > width:
                lines.append(line)
                line = word
            else:
                line += blanks + word
        lines.append(line)
    return lines


def hanging_lines(name: str, text: str, width: int, indent: int) -> list[str]:
    """`text` in lines after a name that is padded to `indent` cells."""
    lines = wrap_words(text, max(_UNBROKEN_CELLS, width - indent))
    first = f"{name:<{indent}}" if cell_len(name) < indent else f"{name} "
    return [first + lines[0], *(" " * indent + line for line in lines[1:])]


def print_facts(facts: Mapping[str, str]) -> None:
    """A name and its value a line; values go on under themselves."""
    width = _line_width()
    indent = max(map(cell_len, facts), default=0) + 2
    if indent > width // 2:
        indent = _MAX_NAME_CELLS
    longest = max((cell_len(word) for value in facts.values() for word in value.split()), default=0)
    indent = max(_MIN_INDENT, min(indent, width - longest))
    for name, value in facts.items():
        beside = cell_len(name) + 2 <= indent
        if not beside:
            click.echo(name)
        for line in hanging_lines(name if beside else "", value, width, indent):
            click.echo(line)


def print_line(text: str) -> None:
    """One sentence, wrapped at blanks."""
    for line in wrap_words(text, _line_width()):
        click.echo(line)


def _line_width() -> int:
    return console().width if has_width() else _UNLIMITED


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
) -> None:
    """`rows` [R][C] under `columns` [C], then `notes`, a line each. Figures align right."""
    if not columns:
        _print_lines([title] if title else [], notes)
        return
    to = console()
    cells = [[_as_text(cell) for cell in row] for row in rows]
    least = [_min_width(column, [row[c] for row in cells]) for c, column in enumerate(columns)]
    most = [
        max([cell_len(column), *(_longest(row[c].plain) for row in cells)])
        for c, column in enumerate(columns)
    ]
    num_keys = _num_key_columns(cells)
    if _split_columns(least, to.width, num_keys) is None:
        num_keys = 1
    parts = _split_columns(least, to.width, num_keys)
    if parts is None:
        _print_rows(columns, cells, title)
    for place, part in enumerate(parts or []):
        widths = _widths([least[c] for c in part], [most[c] for c in part], to.width)
        table = Table(title=title if place == 0 else None, title_justify="left")
        for c, width in zip(part, widths, strict=True):
            is_figures = all(_FIGURE.fullmatch(row[c].plain) for row in cells)
            justify = "right" if is_figures else "left"
            table.add_column(Text(columns[c]), width=width, overflow="fold", justify=justify)
        values = part[num_keys:]
        for row in cells:
            if place == 0 or any(row[c].plain for c in values):
                table.add_row(*(row[c] for c in part))
        to.print(table)
    _print_lines(notes)


def _print_lines(*groups: Sequence[str]) -> None:
    for lines in groups:
        for line in lines:
            print_line(line)


def _print_rows(columns: Sequence[str], cells: Sequence[Sequence[Text]], title: str) -> None:
    """Each row as facts, its first cell as their heading."""
    if title:
        print_line(title)
    for row in cells:
        print_line(row[0].plain)
        facts = {
            f"  {name}": cell.plain for name, cell in zip(columns[1:], row[1:], strict=True) if cell.plain
        }
        print_facts(facts)


def _num_key_columns(cells: Sequence[Sequence[Text]]) -> int:
    """How many of the first columns it takes until no two rows are alike in them; 1 where none do."""
    for num in range(1, len(cells[0]) if cells else 1):
        if len({tuple(cell.plain for cell in row[:num]) for row in cells}) == len(cells):
            return num
    return 1


def _split_columns(least: Sequence[int], width: int, num_keys: int) -> list[list[int]] | None:
    """Places of columns [P][C], the `num_keys` first in each part; None where they leave no room for another."""
    keys = list(range(num_keys))
    lead = _BORDER + sum(least[c] + _COLUMN for c in keys)
    parts: list[list[int]] = []
    taken = 0
    for c in range(num_keys, len(least)):
        beside = least[c] + _COLUMN
        if parts and taken + beside <= width:
            parts[-1].append(c)
            taken += beside
            continue
        taken = lead + beside
        if taken > width:
            return None
        parts.append([*keys, c])
    if parts or lead > width:
        return parts or None
    return [keys]


def _widths(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """As wide as texts are; the widest give way, evenly, until all fit."""
    widths = list(most)
    spare = width - _BORDER - _COLUMN * len(widths) - sum(widths)
    while spare < 0:
        widest = max((c for c in range(len(widths)) if widths[c] > least[c]), key=lambda c: widths[c])
        widths[widest] -= 1
        spare += 1
    return widths


def _min_width(column: str, cells: Sequence[Text]) -> int:
    """The width that breaks no word, and nothing at all that is short."""
    words = [cell_len(word) for word in column.split()]
    return max([1, *words, *(_unbroken(cell.plain) for cell in cells)])


def _unbroken(text: str) -> int:
    if _longest(text) <= _UNBROKEN_CELLS:
        return _longest(text)
    return max([_UNBROKEN_CELLS, *(cell_len(word) for word in text.split())])


def _longest(text: str) -> int:
    return max((cell_len(line) for line in text.splitlines()), default=0)


def _as_text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)
