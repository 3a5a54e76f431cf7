"""Finds the figures of a text with their units, and what each one is: reported, expected, prior or guided.

News agencies write the same comparison in many notations: 'Payrolls 273K vs 175K expected', 'CPI +0.3% (est. 0.2%;
prev 0.4%)', 'EPS $1.40 beats by $0.05', 'profit of 52 cents a share; analysts had expected 49 cents'. A figure's role
comes from the words right before and right after it (`figures.toml`); where these decide nothing it has none.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from htfi.narrative.calendar.headlines import parse_number
from htfi.narrative.patterns import Patterns

MAX_FIGURES = 64  # of one text
_MAX_GAP = 48  # characters between a figure and the words that give its role


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

    @property
    def middle(self) -> float:
        """The value, or the middle of the range."""
        return self.value if self.high is None else (self.value + self.high) / 2.0


_DATA = Patterns("htfi.narrative.facts", "figures.toml", "figures")
_FIGURE = _DATA.compiled("figure", re.IGNORECASE)
_NOT_A_FIGURE = _DATA.compiled("not_a_figure", re.IGNORECASE)
_RANGE = re.compile(r"\s*(?:-|–|—|to|and)\s*", re.IGNORECASE)
_RANGE_BEGINS = re.compile(r"\b(?:between|from|range of|of|at|to|sees?|guides?|:)\s*$|\(\s*$", re.IGNORECASE)
_SIGNS = {"-": -1.0, "−": -1.0, "–": -1.0, "minus": -1.0, "negative": -1.0}
_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "mm": 1e6, "mln": 1e6, "million": 1e6, "millions": 1e6,
    "b": 1e9, "bn": 1e9, "bln": 1e9, "billion": 1e9, "billions": 1e9, "t": 1e12, "tn": 1e12, "trn": 1e12,
    "trln": 1e12, "trillion": 1e12, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR",
    "euros": "EUR", "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "¥": "JPY", "jpy": "JPY", "yen": "JPY",
    "c$": "CAD", "cad": "CAD", "a$": "AUD", "aud": "AUD", "nz$": "NZD", "nzd": "NZD", "hk$": "HKD", "s$": "SGD",
    "chf": "CHF", "francs": "CHF", "sfr": "CHF", "rs": "INR", "rs.": "INR", "₹": "INR", "rupees": "INR", "inr": "INR",
    "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "krw": "KRW", "won": "KRW", "sek": "SEK", "nok": "NOK", "dkk": "DKK",
    "crowns": "", "r$": "BRL", "reais": "BRL", "₽": "RUB", "roubles": "RUB", "rubles": "RUB", "zar": "ZAR",
    "rand": "ZAR", "mxn": "MXN", "pesos": "",
}  # fmt: skip
_CENTS = frozenset({"c", "¢", "cent", "cents", "cts", "ct"})
_PENCE = frozenset({"p", "pence"})
_PERCENTS = frozenset({"%", "percent", "pct", "pc", "per cent", "prct"})


def find_figures(text: str) -> list[Figure]:
    """The figures of a text in order, at most `MAX_FIGURES`, each with its role where the words beside it give one."""
    found: list[Figure] = []
    for match in _FIGURE.finditer(text):
        if _NOT_A_FIGURE.match(text, match.start()) or _is_part_of_a_name(text, match):
            continue
        figure = _parsed(match, text)
        if figure is None:
            continue
        last = found[-1] if found else None
        if last is not None and last.high is None and _joins(text, last, figure):
            found[-1] = _range(last, figure)
            continue
        found.append(figure)
        if len(found) == MAX_FIGURES:
            break
    return _with_roles(text, found)


def _is_part_of_a_name(text: str, match: re.Match[str]) -> bool:
    """Whether letters stand right before it, as in 'S&P500', 'Q2' or 'iPhone 15 Pro'."""
    before = text[match.start() - 1 : match.start()]
    return before.isalnum() or before in ("&", "/") or (before == "." and text[match.start() - 2 : match.start() - 1].isalnum())


def _parsed(match: re.Match[str], text: str) -> Figure | None:
    number = _number_of(match["number"])
    if number is None:
        return None
    sign = _SIGNS.get((match["sign"] or match["inner_sign"] or "").strip().lower(), 1.0)
    if match["open"] and match["close"] and not match["sign"]:
        sign = -1.0  # '($0.12)' is a loss
    prefix, suffix = (match["currency"] or "").lower(), " ".join((match["unit"] or "").lower().split())
    scale = _SCALES.get((match["scale"] or "").lower().rstrip("."), 1.0)
    if match["open"] and match["close"] and not prefix and not suffix and not match["scale"]:
        sign = 1.0  # '(12)' may be a footnote; '(0.12)' of no unit is no loss for sure
        if "." in match["number"]:
            sign = -1.0
    value = sign * number * scale
    if suffix in _PERCENTS:
        return Figure(match.start(), match.end(), value, FigureUnit.PERCENT)
    if suffix.startswith(("percentage", "ppt", "pp", "%-pt")):
        return Figure(match.start(), match.end(), value, FigureUnit.PERCENTAGE_POINTS)
    if suffix.startswith(("basis", "bp")):
        return Figure(match.start(), match.end(), value, FigureUnit.BASIS_POINTS)
    if suffix in _CENTS:
        return Figure(match.start(), match.end(), value / 100.0, FigureUnit.MONEY, _CURRENCIES.get(prefix, "USD"))
    if suffix in _PENCE:
        return Figure(match.start(), match.end(), value / 100.0, FigureUnit.MONEY, "GBP")
    currency = _CURRENCIES.get(prefix) if prefix else _CURRENCIES.get(suffix)
    if currency is not None:
        return Figure(match.start(), match.end(), value, FigureUnit.MONEY, currency)
    return Figure(match.start(), match.end(), value, FigureUnit.NUMBER)


def _number_of(text: str) -> float | None:
    """'1,234.5', '1.4', '0,3' with a decimal comma, '5-1/4', '½'."""
    if re.fullmatch(r"\d+,\d{1,2}", text):
        return float(text.replace(",", "."))
    if text[0] == ".":
        text = "0" + text
    return parse_number(text)


def _joins(text: str, last: Figure, figure: Figure) -> bool:
    """Whether two figures are the ends of one range."""
    between = text[last.end : figure.start]
    if not _RANGE.fullmatch(between) or figure.value < 0.0:
        return False
    is_alike = last.unit is figure.unit or last.unit is FigureUnit.NUMBER or figure.unit is FigureUnit.NUMBER
    low = _aligned(last, figure).value
    if not is_alike or not low < figure.value:
        return False
    word = between.strip().lower()
    return word in ("-", "–", "—") or (word == "to" and _RANGE_BEGINS.search(text[: last.start]) is not None and not re.search(r"\bfrom\s*$", text[: last.start], re.IGNORECASE)) or (word == "and" and re.search(r"\bbetween\s*$", text[: last.start], re.IGNORECASE) is not None)


def _aligned(low: Figure, high: Figure) -> Figure:
    """The lower end in the unit and scale of the upper: '1.2-1.3 billion', '$4-5 million', '5-1/4 to 5-1/2 percent'."""
    value = low.value
    if abs(high.value) >= 1e3 * max(abs(value), 1e-9):
        for scale in (1e12, 1e9, 1e6, 1e3):
            if abs(high.value) >= scale and abs(value) < 1e3:
                value *= scale
                break
    return replace(low, value=value, unit=high.unit, currency=low.currency or high.currency)


def _range(low: Figure, high: Figure) -> Figure:
    aligned = _aligned(low, high)
    unit = low.unit if high.unit is FigureUnit.NUMBER else high.unit
    return replace(aligned, end=high.end, high=high.value, unit=unit)


_LEFT = [(FigureRole(one["role"]), re.compile(one["pattern"] + r"$", re.IGNORECASE)) for one in _DATA.entries("left")]
_RIGHT = [(FigureRole(one["role"]), re.compile(one["pattern"], re.IGNORECASE)) for one in _DATA.entries("right")]
_VERSUS = _DATA.compiled("versus", re.IGNORECASE)
_IN_MONTH = _DATA.compiled("in_month", re.IGNORECASE)
_BREAK = re.compile(r"[;|]|\.\s|\s[-–—]\s|,\s+(?:while|and|but)\b")
_NEW_MEASURE = re.compile(r"(?:,|\band\b|;|\|)\s*[A-Za-z]")


def _with_roles(text: str, figures: list[Figure]) -> list[Figure]:
    placed: list[Figure] = []
    for index, figure in enumerate(figures):
        before_at = figures[index - 1].end if index else 0
        after_at = figures[index + 1].start if index + 1 < len(figures) else len(text)
        before = text[max(before_at, figure.start - _MAX_GAP) : figure.start]
        after = text[figure.end : min(after_at, figure.end + _MAX_GAP)]
        placed.append(replace(figure, role=_role(before, after, after_at < len(text), placed)))
    return _with_actual(placed)


def _role(before: str, after: str, is_followed: bool, earlier: list[Figure]) -> FigureRole:
    """The role of a figure by the words between it and its neighbours."""
    right = next(
        (
            role
            for role, pattern in _RIGHT
            if (match := pattern.match(after)) and not _binds_to_next(after, match, is_followed)
        ),
        None,
    )
    left = next((role for role, pattern in _LEFT if pattern.search(before)), None)
    if right is not None and left in (None, FigureRole.CHANGE):
        return right
    if left is not None:
        return left
    if _VERSUS.search(before) and earlier:
        return FigureRole.PRIOR if _IN_MONTH.match(after) else FigureRole.EXPECTED
    since_actual: list[FigureRole] = []
    for figure in reversed(earlier):
        since_actual.append(figure.role)
        if figure.role is FigureRole.ACTUAL:
            break
    if FigureRole.ACTUAL not in since_actual:
        return FigureRole.ACTUAL
    is_complete = len(since_actual) > 1 and _NEW_MEASURE.search(before) is not None
    return FigureRole.ACTUAL if is_complete else FigureRole.NONE


def _with_actual(figures: list[Figure]) -> list[Figure]:
    """'Payrolls rose by 272,000, above the 180,000 expected': without another, what changed by is what is reported."""
    if any(figure.role is FigureRole.ACTUAL for figure in figures):
        return figures
    for index, figure in enumerate(figures):
        if figure.role is FigureRole.CHANGE:
            return [*figures[:index], replace(figure, role=FigureRole.ACTUAL), *figures[index + 1 :]]
    return figures


def _binds_to_next(after: str, match: re.Match[str], is_followed: bool) -> bool:
    """Whether words behind a figure belong to the figure that follows: ', expected 175K', ' (est. 0.2%'."""
    if not is_followed:
        return False
    opens = re.match(r"\s*[,;(/|\[]|\s+(?:vs|versus|against|while|and|compared)\b|\s*[-–—]\s", after)
    rest = after[match.end() :]
    return opens is not None and len(rest) <= 12 and not re.search(r"[.;)\]]", rest)
