"""A small language for cells that are made of others: `actual - forecast`, `currency + " " + event`.

    expression = term { ("+" | "-") term }
    term       = factor { ("*" | "/") factor }
    factor     = number | text in quotes | column | "-" factor | "(" expression ")"

A column is a name, or any text between backticks: `Actual (rev.)`. With a text in quotes anywhere in it, an expression
joins texts, and + is all it may hold; else it computes with figures as calendars write them ('225K' is 225,000), and
is empty where one of them is.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from htfi.calendar.figures import read_figure
from htfi.domain.errors import InvalidInput

MAX_CHARS = 500
MAX_DEPTH = 32
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>\"[^\"]*\"|'[^']*')|`(?P<quoted>[^`]+)`|(?P<name>[^\W\d][\w.]*)"
    r"|(?P<sign>[-+*/()]))"
)


@dataclass(frozen=True, slots=True)
class _Leaf:
    what: Literal["number", "text", "column"]
    value: Any


@dataclass(frozen=True, slots=True)
class _Act:
    sign: str  # of + - * /, or 'negate' with no right side
    left: "_Leaf | _Act"
    right: "_Leaf | _Act | None" = None


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression; `columns` are the names that it reads, `joins` whether it makes a text."""

    source: str
    root: _Leaf | _Act
    columns: tuple[str, ...]
    joins: bool

    @property
    def is_column(self) -> bool:
        """Whether it is the name of a column and nothing else."""
        return isinstance(self.root, _Leaf) and self.root.what == "column"

    def value(self, cells: Mapping[str, Any]) -> float | str | None:
        """What it makes of a row; None where a figure is missing or a divisor is 0. Raises: InvalidInput."""
        return _joined(self.root, cells) if self.joins else _computed(self.root, cells)


def parse_expression(source: str) -> Expression:
    """Raises: InvalidInput, with the place of what cannot be read."""
    if len(source) > MAX_CHARS:
        raise InvalidInput(f"an expression of {len(source)} characters; the maximum is {MAX_CHARS}")
    if not source.isprintable():
        raise InvalidInput("an expression is one line of printable characters")
    parser = _ExpressionReader(source)
    root = parser.whole()
    leaves = list(_leaves(root))
    joins = any(leaf.what == "text" for leaf in leaves)
    if joins and not _only_joins(root):
        raise InvalidInput(f"'{source}' joins texts: beside + it may hold nothing but columns and texts")
    columns = dict.fromkeys(str(leaf.value) for leaf in leaves if leaf.what == "column")
    return Expression(source, root, tuple(columns), joins)


class _ExpressionReader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = list(self._tokenised())
        self._place = 0
        self._depth = 0

    def whole(self) -> _Leaf | _Act:
        root = self._sum()
        if self._place < len(self._tokens):
            raise self._error("an operator (+ - * /) or the end")
        return root

    def _tokenised(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        end = len(self._source.rstrip())
        while at < end:
            match = _TOKEN.match(self._source, at)
            if match is None:
                at += len(self._source[at:]) - len(self._source[at:].lstrip())
                raise InvalidInput(
                    f"'{self._source}', character {at + 1}: '{self._source[at]}' is not understood: columns with "
                    "signs or spaces stand between backticks, texts between quotes"
                )
            kind = match.lastgroup or ""
            yield kind, match[kind], match.start(kind)
            at = match.end()

    def _error(self, wanted: str) -> InvalidInput:
        if self._place < len(self._tokens):
            _, text, at = self._tokens[self._place]
            return InvalidInput(f"'{self._source}', character {at + 1}: '{text}' where {wanted} is needed")
        return InvalidInput(f"'{self._source}' ends where {wanted} is needed")

    def _sign(self, signs: str) -> str:
        if self._place < len(self._tokens):
            kind, text, _ = self._tokens[self._place]
            if kind == "sign" and text in signs:
                self._place += 1
                return text
        return ""

    def _sum(self) -> _Leaf | _Act:
        left = self._product()
        while sign := self._sign("+-"):
            left = _Act(sign, left, self._product())
        return left

    def _product(self) -> _Leaf | _Act:
        left = self._factor()
        while sign := self._sign("*/"):
            left = _Act(sign, left, self._factor())
        return left

    def _factor(self) -> _Leaf | _Act:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidInput(f"'{self._source}' is nested more than {MAX_DEPTH} deep")
        try:
            if self._sign("-"):
                return _Act("negate", self._factor())
            if self._sign("("):
                inner = self._sum()
                if not self._sign(")"):
                    raise self._error("')'")
                return inner
            return self._leaf()
        finally:
            self._depth -= 1

    def _leaf(self) -> _Leaf:
        if self._place >= len(self._tokens) or self._tokens[self._place][0] == "sign":
            raise self._error("a column, a number or a text")
        kind, text, _ = self._tokens[self._place]
        self._place += 1
        if kind == "number":
            return _Leaf("number", float(text))
        return _Leaf("text", text[1:-1]) if kind == "text" else _Leaf("column", text)


def _leaves(node: _Leaf | _Act) -> Iterator[_Leaf]:
    waiting: list[_Leaf | _Act] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Leaf):
            yield one
        else:
            waiting += [part for part in (one.right, one.left) if part is not None]


def _only_joins(node: _Leaf | _Act) -> bool:
    waiting: list[_Leaf | _Act] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Leaf):
            if one.what == "number":
                return False
        elif one.sign != "+" or one.right is None:
            return False
        else:
            waiting += [one.left, one.right]
    return True


def _joined(node: _Leaf | _Act, cells: Mapping[str, Any]) -> str:
    parts = [
        str(leaf.value) if leaf.what == "text" else _text(cells.get(leaf.value)) for leaf in _leaves(node)
    ]
    return "".join(parts).strip()


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _computed(node: _Leaf | _Act, cells: Mapping[str, Any]) -> float | None:
    if isinstance(node, _Leaf):
        if node.what == "number":
            return float(node.value)
        figure = read_figure(cells.get(node.value))
        return None if figure is None else figure.value
    left = _computed(node.left, cells)
    if node.right is None:
        return None if left is None else -left
    right = _computed(node.right, cells)
    if left is None or right is None:
        return None
    if node.sign == "/":
        value = left / right if right else math.nan
    else:
        value = left + right if node.sign == "+" else left - right if node.sign == "-" else left * right
    return value if math.isfinite(value) else None
