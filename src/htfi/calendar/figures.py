"""Reads a figure as calendars write it: '225K', '0.3%', '4-1/4', '-598K', '1.2B', '<0.25%'."""

import html
import math
import re
import unicodedata
from types import MappingProxyType
from typing import Any, NamedTuple

from htfi.domain.errors import InvalidInput

MAX_CHARS = 40
MAX_FIGURE = 1e18
_SIZES = {
    "k": 1e3, "th": 1e3, "m": 1e6, "mn": 1e6, "mln": 1e6, "mio": 1e6, "b": 1e9, "bn": 1e9, "bln": 1e9,
    "t": 1e12, "tn": 1e12, "trn": 1e12, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "tsd": 1e3, "mrd": 1e9,
}  # fmt: skip
_UNITS = {1e3: "K", 1e6: "M", 1e9: "B", 1e12: "T"}
_NONE = frozenset({"", "-", "--", "—", "–", ".", "n/a", "na", "#n/a", "none", "null", "nan", "tba", "tbd"})
_REVISED = re.compile(
    r"\s*(?:\(?R[+-]?\)?|(?<=[\d%\s])[PF]|\([PF]\)|,|\*)$", re.IGNORECASE
)  # as vendors mark what is revised, preliminary or final: '1.2% (R+)', '46.7p', '2.5%*'
_FRACTIONS = MappingProxyType(
    {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8"}
)
_VOTES = re.compile(
    r"\d+([-/])\d+\1\d+"
)  # 0-9-0: for a rise, for none, for a cut; a spreadsheet makes 0/9/0 of it
_MONEY = r"(?:[$€£¥₩]|A\$|C\$|NZ\$|US\$)"
_NUMBER = (
    r"(?P<whole>\d+)[- ](?P<above>\d+)/(?P<below>\d+)|(?P<top>\d+)/(?P<bottom>\d+)"
    r"|(?P<grouped>\d{1,3}(?:,\d{3})+(?:\.\d+)?)|(?P<german>\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,})"
    r"|(?P<spaced>\d{1,3}(?: \d{3})+(?:[.,]\d+)?)|(?P<comma>\d+,\d+)"
    r"|(?P<plain>(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?)"
)
_FIGURE = re.compile(
    rf"[<>≤≥~≈]?\s*{_MONEY}?\s*(?P<sign>[-+−]?)\s*{_MONEY}?\s*(?:{_NUMBER})\s*"
    rf"(?P<size>{'|'.join(sorted(_SIZES, key=len, reverse=True))})?\s*(?P<percent>%|pct\.?|percent)?"
    r"(?:pts?|points)?\.?",
    re.IGNORECASE,
)


class WrittenFigure(NamedTuple):
    """A value in whole units (225K is 225,000; 0.3% is 0.3), and the unit as it was written: '%', 'K', … or ''."""

    value: float
    unit: str

    def of_size(self, size: float) -> "WrittenFigure":
        """The figure in a unit that stands apart, unless it was written with one."""
        return self if self.unit else self._replace(value=self.value * size)


def read_figure(cell: Any) -> WrittenFigure | None:
    """The figure in a cell; None where it is empty or holds votes.

    Signs of comparison ('<0.25%') are passed over; of 'a|b' (a bond's yield and its cover) the first is taken; '0,3' is
    three tenths and '1,234' over a thousand. Raises: InvalidInput.
    """
    if cell is None or isinstance(cell, bool):
        return None
    if isinstance(cell, int | float):
        if isinstance(cell, int) and abs(cell) > MAX_FIGURE:
            raise InvalidInput(f"a figure is larger than {MAX_FIGURE:g}")
        return _bounded(float(cell), "", str(cell)) if math.isfinite(cell) else None
    text = (
        "".join(char if char.isprintable() else " " for char in html.unescape(str(cell)))
        .partition("|")[0]
        .strip()
    )
    if text.lower() in _NONE or _VOTES.fullmatch(text):
        return None
    text = _REVISED.sub("", _plain_digits(text))
    negative = text.startswith("(") and text.endswith(")")
    match = _FIGURE.fullmatch(text[1:-1] if negative else text) if len(text) <= MAX_CHARS else None
    if match is None:
        raise InvalidInput(f"'{text[:MAX_CHARS]}' is not a figure such as 0.3%, 225K, -1.2B or 4-1/4")
    size = (match["size"] or "").lower()
    value = _number(match, text) * _SIZES.get(size, 1.0)
    if (match["sign"] in ("-", "−")) != negative:
        value = -value
    return _bounded(value, "%" if match["percent"] else _UNITS.get(_SIZES.get(size, 1.0), ""), text)


def size_of(unit: str) -> float:
    """What a column of units makes of a figure without a size of its own: 1,000 of 'K' or 'thousand', else 1."""
    size = _SIZES.get(unit.strip().lower(), 1.0)
    return size if size < 1e12 else 1.0  # 't' may be tonnes


def _number(match: re.Match[str], text: str) -> float:
    if match["below"] is not None or match["bottom"] is not None:
        whole, above, below = (
            (match["whole"], match["above"], match["below"])
            if match["below"]
            else ("0", match["top"], match["bottom"])
        )
        if int(below) == 0:
            raise InvalidInput(f"'{text[:MAX_CHARS]}' divides by 0")
        return int(whole) + int(above) / int(below)
    if match["grouped"] is not None:
        return float(match["grouped"].replace(",", ""))
    if match["german"] is not None:
        return float(match["german"].replace(".", "").replace(",", "."))
    if match["spaced"] is not None:
        return float(match["spaced"].replace(" ", "").replace(",", "."))
    return float((match["comma"] or match["plain"]).replace(",", "."))


def _plain_digits(text: str) -> str:
    """Wide digits as plain ones, and '4¼' as '4 1/4'."""
    for sign, written in _FRACTIONS.items():
        if sign in text:
            text = re.sub(rf"(\d?)\s*{sign}", lambda found, as_=written: f"{found[1]} {as_}".strip(), text)
    return unicodedata.normalize("NFKC", text)


def _bounded(value: float, unit: str, text: str) -> WrittenFigure:
    if not abs(value) <= MAX_FIGURE:
        raise InvalidInput(f"'{text[:MAX_CHARS]}' is larger than {MAX_FIGURE:g}")
    return WrittenFigure(value, unit)
