"""Finds the figures of a text with their units and signs, in the notations of several languages.

Decimal commas and points between thousands are read as the language of the text writes them: '3.431 millones' is in the
thousands, '2.500' in an English text is two and a half.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from htfi.narrative.calendar.headlines import parse_number
from htfi.narrative.patterns import FilteredPattern, Patterns, one_of
from htfi.narrative.scanning import figures_core

MAX_FIGURES = 64  # of one text
_MAX_SCANNED_CHARS = 20_000  # figures stand early in a report; what is behind this is not searched
_CONTEXT_CHARS = 40  # before a figure, where the words of a range stand
_TOLERANCE = 1e-12


class FigureUnit(StrEnum):
    """What a figure counts. Values are in percent, basis points, percentage points, whole money units or pieces."""

    PERCENT = "percent"
    BASIS_POINTS = "basis points"
    PERCENTAGE_POINTS = "percentage points"
    MONEY = "money"
    NUMBER = "number"


class FigureRole(StrEnum):
    """What a figure is to the report that it stands in."""

    ACTUAL = "actual"
    EXPECTED = "expected"
    PRIOR = "prior"
    DIFFERENCE = "difference"  # between actual and expected: 'beats by $0.05'
    CHANGE = "change"  # since the prior: 'up 12%'
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: characters `start` to before `end` of the text, its value, and `high`, the upper end of a range."""

    start: int
    end: int
    value: float
    unit: FigureUnit
    currency: str = ""  # 'USD'; empty where no sign or name stands beside it
    high: float | None = None
    role: FigureRole = FigureRole.NONE
    scale: float = 1.0  # what the number as written was multiplied by: 1e9 for '2.4bn', 0.01 for '40 cents'

    @property
    def middle(self) -> float:
        """The value, or the middle of the range."""
        return self.value if self.high is None else (self.value + self.high) / 2.0

    @property
    def is_bare(self) -> bool:
        """Whether it has neither unit nor currency."""
        return self.unit is FigureUnit.NUMBER and not self.currency


def _named(table: str) -> dict[str, str]:
    """What each name of a table stands for; the names of an entry are separated by commas."""
    return {name: one["is"] for one in _DATA.entries(table) for name in one["names"].split(", ")}


_TABLES = (
    "scale", "letter_scale", "unit", "letter_unit", "sign_currency", "code_currency", "word_currency",
)  # fmt: skip


def _text_of(name: str) -> str:
    """A pattern's text in which {scale}, {unit} and the like are the names of these tables, the longest first."""
    text = _DATA.text(name)
    for table in _TABLES:
        names = one_of(_named(table)).replace(r"\ ", r"[\s-]?")
        text = text.replace("{" + table + "}", names)
    return text


_ESCAPE, _LETTERS = re.compile(r"\\u[0-9a-f]{4}|\\.", re.DOTALL), re.compile(r"([A-Za-z]+)(\??)")


class _FigurePattern:
    """A pattern for figures: with compiled code tried only where a figure may begin."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.pattern = FilteredPattern(_text_of(name), re.IGNORECASE)

    def may_match(self, text: str) -> bool:
        """Whether a text has the words and digits without which the pattern matches nowhere in it."""
        return self.pattern.may_match(text)

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        if not self.pattern.may_match(text):
            return ()
        if figures_core is None:
            return self.pattern.finditer(text)
        return figures_core.find_figures(self._compiled.match, text, self._words)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern.text, self.pattern.flags)

    @cached_property
    def _words(self) -> bytes:
        """By their first three letters (`figures_core`) all words of the pattern and names of its tables."""
        words = [name.replace(" ", "") for table in _TABLES for name in _named(table)]
        text = " ".join(
            [*words, *(name for table in _TABLES for name in _named(table)), _DATA.text(self._name)]
        )
        found = bytearray(27**3)
        for letters, is_optional in _LETTERS.findall(_ESCAPE.sub(" ", text)):
            for word in (letters, letters[:-1]) if is_optional else (letters,):
                places = [ord(letter) - 96 for letter in word[:3].lower()] + [0, 0, 0]
                found[places[0] * 729 + places[1] * 27 + places[2]] = True
        return bytes(found)


_DATA = Patterns("htfi.narrative.facts", "figures.toml", "figures")
_FIGURE = _FigurePattern("figure")
_CONTINENTAL_FIGURE = _FigurePattern("continental_figure")
_CONTINENTAL_WORDS = _DATA.filtered("continental_words", re.IGNORECASE)
_NOT_A_FIGURE = _DATA.compiled("not_a_figure", re.IGNORECASE)
_NAME_BEFORE = _DATA.compiled("name_before", re.IGNORECASE)
_RANGE_JOINT = _DATA.compiled("range_joint", re.IGNORECASE)
_RANGE_BETWEEN = _DATA.compiled("range_between", re.IGNORECASE)
_NO_RANGE = _DATA.compiled("no_range", re.IGNORECASE)
_TOLERANCE_SIGN = re.compile(r"\s*,?\s*(?:\+/[-−–]?|±|plus or minus|give or take)\s*", re.IGNORECASE)
_SIGNS = {
    "-": -1.0,
    "−": -1.0,
    "–": -1.0,
    "minus": -1.0,
    "negative": -1.0,
    "moins": -1.0,
    "meno": -1.0,
    "menos": -1.0,
}
_SCALES = {name: float(value) for table in ("scale", "letter_scale") for name, value in _named(table).items()}
_CURRENCIES = _named("sign_currency") | _named("code_currency") | _named("word_currency") | {"y": "JPY"}
_UNITS = {name: FigureUnit(unit) for name, unit in _named("unit").items() if unit in set(FigureUnit)}
_QUANTITIES = {
    name: float(unit)
    for table in ("unit", "letter_unit")
    for name, unit in _named(table).items()
    if unit[0].isdigit()
}
_HUNDREDTHS = {
    name: unit.removeprefix("hundredth ")
    for table in ("unit", "letter_unit")
    for name, unit in _named(table).items()
    if unit.startswith("hundredth ")
}
_WORDS = {
    "a": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0,
    "nine": 9.0, "ten": 10.0, "eleven": 11.0, "twelve": 12.0, "twenty": 20.0, "half": 0.5, "quarter": 0.25,
    "three-quarters": 0.75, "una": 1.0, "dos": 2.0, "tres": 3.0, "penny": 1.0, "nickel": 5.0, "dime": 10.0,
}  # fmt: skip
_COINS = frozenset({"penny", "nickel", "dime"})


def scan_figures(text: str) -> list[Figure]:
    """The figures of a text in order without their roles, at most `MAX_FIGURES`; ranges are one figure."""
    searched = text[:_MAX_SCANNED_CHARS]
    if not (_FIGURE.may_match(searched) or _CONTINENTAL_FIGURE.may_match(searched)):
        return []
    is_continental = _CONTINENTAL_WORDS.search(searched) is not None
    pattern = _CONTINENTAL_FIGURE if is_continental else _FIGURE
    found: list[Figure] = []
    for match in pattern.finditer(searched):
        if _is_no_figure(searched, match):
            continue
        figure = _parsed(match, is_continental)
        if figure is None:
            continue
        if found and (joined := _joined(searched, found[-1], figure)) is not None:
            found[-1] = joined
            continue
        if len(found) == MAX_FIGURES:
            break
        found.append(figure)
    return found


def _is_no_figure(text: str, match: re.Match[str]) -> bool:
    """Whether it is a year, a date, a term, or part of a name as in 'S&P500', 'Q2', 'IPCA-15' or 'FTSE 100'."""
    if match["number"] is None:
        return False
    start = match.start("number")
    if not match["currency"] and not match["code"] and _NOT_A_FIGURE.match(text, start):
        return True
    before = text[max(0, match.start() - 1) : match.start()]
    before = before if match.start() < start and not match["code"] else text[max(0, start - 1) : start]
    if before.isalnum() and not match["code"]:
        return True
    if before == ":" and re.search(r"\b\d{1,2}:$", text[max(0, start - 4) : start]):
        return True
    if before in ("&", "/") and text[max(0, start - 2) : start - 1].isalpha():
        return True
    if before in ("-", ".", "’", "'") and text[max(0, start - 2) : start - 1].isalnum():
        is_range = before == "-" and text[max(0, start - 2) : start - 1].isdigit()
        return not is_range and not (before == "-" and _ends_in_scale(text, start - 1))
    if match["currency"] or match["scale"] or match["unit"] or "." in match["number"]:
        return False
    return _NAME_BEFORE.search(text[max(0, start - _CONTEXT_CHARS) : start]) is not None


def _ends_in_scale(text: str, end: int) -> bool:
    """Whether a figure with a scale ends there, as before the hyphen of '9.5bn-10.0bn'."""
    return (
        re.search(r"\d\s?(?:[kmb]n?|bln|mln|trn|mrd|mio|p|c)$", text[max(0, end - 8) : end], re.IGNORECASE)
        is not None
    )


def _parsed(match: re.Match[str], is_continental: bool) -> Figure | None:
    start, end = match.span()
    if match["word"] is not None or match["nothing"] is not None:
        return _parsed_words(match)
    number = _number_of(match["number"], is_continental)
    if number is None:
        return None
    currency = (match["currency"] or match["code"] or "").lower().strip()
    suffix = " ".join((match["unit"] or "").lower().replace("-", " ").split())
    scale = _SCALES.get(" ".join((match["scale"] or "").lower().rstrip(".").split()), 1.0)
    written_sign = (match["sign"] or match["inner_sign"] or "").strip().lower()
    sign = _SIGNS.get(written_sign, 1.0)
    if match["open"] or match["inner_open"]:
        is_closed = match["close"] is not None
        if not is_closed and match["open"]:
            start += 1  # the bracket opens a remark
        elif is_closed and not written_sign:
            # '($0.12)' and '(0.12)' are losses; '(12)' and '(0.3%)' may be remarks
            is_loss = bool(currency or match["inner_open"]) or (
                not suffix and not match["scale"] and "." in match["number"]
            )
            sign = -1.0 if is_loss else sign
        elif is_closed and match["inner_open"]:
            sign = -1.0
    elif match["close"]:
        end -= 1
    scale *= _QUANTITIES.get(suffix, 1.0)
    unit, name = FigureUnit.NUMBER, ""
    if suffix in _UNITS:
        unit = _UNITS[suffix]
    elif suffix in _HUNDREDTHS:
        unit, name, scale = FigureUnit.MONEY, _CURRENCIES.get(currency, _HUNDREDTHS[suffix]), scale * 0.01
    elif currency in _CURRENCIES or suffix in _CURRENCIES:
        unit, name = FigureUnit.MONEY, _CURRENCIES.get(currency, _CURRENCIES.get(suffix, ""))
    if suffix in _QUANTITIES and currency in _CURRENCIES:
        unit, name = FigureUnit.MONEY, _CURRENCIES[currency]
    return Figure(start, end, sign * number * scale, unit, name, scale=scale)


def _parsed_words(match: re.Match[str]) -> Figure | None:
    if match["nothing"] is not None:
        return Figure(match.start("nothing"), match.end("nothing"), 0.0, FigureUnit.NUMBER)
    start, end = match.span("word")
    value = _WORDS.get(" ".join((match["amount"] or "a").lower().split()), 1.0)
    what = " ".join(match["what"].lower().replace("-", " ").split())
    if what in _COINS:
        return Figure(start, end, _WORDS[what] * 0.01, FigureUnit.MONEY, "USD", scale=0.01)
    if what.startswith(("cent", "pen")):
        return Figure(
            start, end, value * 0.01, FigureUnit.MONEY, "GBP" if what == "pence" else "USD", scale=0.01
        )
    if what.startswith(("tenth", "décima")):
        return Figure(start, end, value * 0.1, FigureUnit.PERCENT, scale=0.1)
    if what.startswith("basis"):
        return Figure(start, end, value, FigureUnit.BASIS_POINTS)
    if what in ("percent", "per cent"):
        return Figure(start, end, value, FigureUnit.PERCENT)
    return Figure(start, end, value, FigureUnit.PERCENTAGE_POINTS)


def _number_of(text: str, is_continental: bool) -> float | None:
    """'1,234.5', '1.4', '0,3' with a decimal comma, '3.431,5', '3 431', '5-1/4', '½'."""
    text = re.sub(r"(?<=\d)[\s\u00a0\u202f'’](?=\d{3}(?!\d|/))", "", text)
    if is_continental:
        if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", text):
            text = text.replace(".", "").replace(",", ".")
        elif re.fullmatch(r"\d+,\d+", text):
            text = text.replace(",", ".")
    elif re.fullmatch(r"\d+,\d{1,2}", text):
        text = text.replace(",", ".")
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:\.\d{3})+,\d+", text):
        text = text.replace(".", "").replace(",", ".")
    if text[0] == ".":
        text = "0" + text
    return parse_number(text)


def _joined(text: str, last: Figure, figure: Figure) -> Figure | None:
    """One figure of both where they are the ends of a range, or a value and its tolerance; None where they are two."""
    between = text[last.end : figure.start]
    if len(between) > 24:
        return None
    is_alike = last.unit is figure.unit or last.unit is FigureUnit.NUMBER or figure.unit is FigureUnit.NUMBER
    if not is_alike or last.high is not None:
        return None
    if _TOLERANCE_SIGN.fullmatch(between):
        aligned = _aligned(last, figure)
        return replace(
            aligned,
            end=figure.end,
            value=aligned.value - abs(figure.value),
            high=aligned.value + abs(figure.value),
        )
    joint = _RANGE_JOINT.fullmatch(between)
    if joint is None:
        return None
    before = text[max(0, last.start - _CONTEXT_CHARS) : last.start]
    word = between.strip().lower()
    if word.startswith(("and", "y", "e", "et", "und", "och", "og", "en")) and not _RANGE_BETWEEN.search(
        before
    ):
        return None
    if word not in ("-", "–", "—", "~") and _NO_RANGE.search(before):
        return None
    low, high = _aligned(last, figure), _aligned(figure, last)
    if not abs(low.value - high.value) > _TOLERANCE or (low.value > high.value and low.value >= 0.0):
        return None
    if word in ("-", "–", "—") and high.value < 0.0 and text[figure.start] not in "-−–":
        return None
    return replace(low, end=high.end, value=min(low.value, high.value), high=max(low.value, high.value))


def _aligned(one: Figure, other: Figure) -> Figure:
    """One end of a range in the unit and scale of the other where it has none: '1.2-1.3 billion', '$4-5 million'."""
    value, scale = one.value, one.scale
    if abs(scale - 1.0) < _TOLERANCE and abs(other.scale - 1.0) > _TOLERANCE and abs(value) < 1e4:
        value, scale = value * other.scale, other.scale
    unit = other.unit if one.unit is FigureUnit.NUMBER else one.unit
    return replace(one, value=value, scale=scale, unit=unit, currency=one.currency or other.currency)
