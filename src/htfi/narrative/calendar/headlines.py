"""The parts of a headline about an announcement: its figures, its clauses, and how a figure compares with expectations.

Figures as news agencies write them: 'half a point', '5-1/4 to 5-1/2 percent', '209,000'. Comparisons: 'more than
expected', 'tops forecasts'. A headline that reports nothing that has happened is refused.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from htfi.narrative.patterns import Patterns, one_of

_FRACTIONS = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8"}
_NUMBER_WORDS = {
    "zero": 0.0, "nil": 0.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0,
    "eight": 8.0, "nine": 9.0, "ten": 10.0,
}  # fmt: skip
_STEP_SHARES = {"quarter": 25, "half": 50, "full": 100, "whole": 100}
_JOB_SCALES = {"k": 1.0, "thousand": 1.0, "million": 1e3, "mln": 1e3, "m": 1e3, "": 1e-3}

_DATA = Patterns("htfi.narrative.calendar", "patterns.toml", "headlines")
NUMBER = _DATA.text("number")
_PERCENT = _DATA.text("percent")
_STEP = _DATA.filtered("step")
_NUMBER_OF_STEP = re.compile(
    r"\d|quarter|half|full|whole|one|two"
)  # each step has one: sooner found than none is
_LEVEL = _DATA.compiled("level")
_PERCENTS = re.compile(rf"(?P<sign>[-+])?(?P<value>{NUMBER}) ?{_PERCENT}")
_JOBS = _DATA.compiled("jobs")
_MONEY = _DATA.compiled("money")
_FRACTION = re.compile(r"\d+[- ]\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}")


class HeadlineFigure(NamedTuple):
    """A figure and where it stands in the text."""

    start: int
    end: int
    value: float


def plain_letters(text: str) -> str:
    """Lower case, with fractions and dashes as ASCII."""
    if text.isascii():
        return text.lower()
    for sign, decimals in _FRACTIONS.items():
        if sign in text:
            text = re.sub(rf"(\d) ?{sign}", rf"\1-{decimals}", text).replace(sign, decimals)
    text = text.translate(
        {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2212: "-", 0x2010: "-", 0x2011: "-"}
    )
    return re.sub(r"\s*[\u2013\u2014]\s*", lambda dash: " - " if " " in dash[0] else "-", text).lower()


def parse_number(text: str) -> float | None:
    """The value of a figure: '4-3/4', '1/4', '209,000', 'zero'; None where it is none."""
    if text in _NUMBER_WORDS:
        return _NUMBER_WORDS[text]
    if _FRACTION.fullmatch(text):
        *whole, share = re.split(r"[- ]", text)
        above, _, below = share.partition("/")
        if int(below) == 0:
            return None
        return (int(whole[0]) if whole else 0) + int(above) / int(below)
    if "," in text and not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return None
    return float(text.replace(",", ""))


def rate_steps_bp(text: str) -> list[HeadlineFigure]:
    """Sizes of steps in basis points, in plain letters."""
    found: list[HeadlineFigure] = []
    if _NUMBER_OF_STEP.search(text) is None:
        return found
    for match in _STEP.finditer(text):
        value: float | None
        if match["bp"]:
            value = parse_number(match["bp"])
        elif match["share"]:
            share = match["share"]
            value = 75.0 if share.startswith("three") else float(_STEP_SHARES[re.split(r"[- ]", share)[-1]])
        else:
            number = parse_number(match["points"] or match["by"])
            value = (
                number * (1.0 if number >= 10.0 else 100.0) if number is not None else None
            )  # '25 points' are of 1 bp
        if value is not None:
            found.append(HeadlineFigure(match.start(), match.end(), value))
    return found


def rate_levels(text: str) -> list[HeadlineFigure]:
    """Levels of a policy rate in percent, the upper end of a range, in plain letters."""
    found: list[HeadlineFigure] = []
    for match in _LEVEL.finditer(text):
        low = parse_number(match["low"]) if match["low"] else None
        value = parse_number(match["high"] or match["one"] or match["bare"])
        if value is not None and (match["low"] is None or (low is not None and low <= value)):
            found.append(HeadlineFigure(match.start(), match.end(), value))
    return found


def percent_figures(text: str) -> Iterator[HeadlineFigure]:
    """Every figure in percent, signed where a sign stands before it."""
    for match in _PERCENTS.finditer(text):
        value = parse_number(match["value"])
        if value is not None:
            sign = (
                -1.0
                if match["sign"] == "-" and not text[: match.start()].endswith(tuple("0123456789"))
                else 1.0
            )
            yield HeadlineFigure(match.start(), match.end(), sign * value)


def job_counts(text: str) -> Iterator[HeadlineFigure]:
    """Every count of jobs, in thousands: '209,000', '187k', '1.4 million'. Plain small numbers are no counts."""
    for match in _JOBS.finditer(text):
        value, scale = parse_number(match["value"]), match["scale"] or ""
        if value is None or (not scale and value < 1_000 and value != 0):
            continue
        yield HeadlineFigure(
            match.start(), match.end(), (-1.0 if match["sign"] == "-" else 1.0) * value * _JOB_SCALES[scale]
        )


def per_share_amounts(text: str) -> Iterator[HeadlineFigure]:
    """Every amount of money under 1,000 and not in millions: '$1.40', '63 cents'."""
    for match in _MONEY.finditer(text):
        if re.match(r" ?(?:bln|billion|bn|mln|million|m|b|trillion|trln|tn|k)\b", text[match.end() :]):
            continue
        value = parse_number(match["value"]) if match["value"] else float(match["cents"]) / 100.0
        if value is not None and value < 1_000.0:
            yield HeadlineFigure(match.start(), match.end(), -value if match["minus"] else value)


MAX_HEADLINE_CHARS = 400
_WIRE_TAGS = _DATA.compiled("wire_tags")
_GENRES = _DATA.compiled("genres")
_HEARSAY = _DATA.compiled("hearsay")
_ENDS_IN_SPEAKER = _DATA.compiled("ends_in_speaker")
_COMPARISON_WORDS = _DATA.compiled("comparison_words")
_CLAUSE_BOUNDARY = _DATA.compiled("clause_boundary")


@lru_cache(maxsize=512)
def factual_report(headline: str) -> str:
    """The headline without tags, in plain letters; empty where it does not report what has happened."""
    text = " ".join(plain_letters(headline[:MAX_HEADLINE_CHARS]).split())
    if _GENRES.match(text):
        return ""
    text = _WIRE_TAGS.sub("", text)
    says = _ENDS_IN_SPEAKER.search(text)
    if says is not None and not _COMPARISON_WORDS.search(says[0]):
        return ""
    return "" if _GENRES.match(text) or _HEARSAY.search(text) else text


def split_clauses(report: str) -> list[str]:
    """Its clauses, in order; conjunctions stand at the head of theirs."""
    return [part.strip() for part in _CLAUSE_BOUNDARY.split(report) if part and part.strip()]


def first_sentence(body: str) -> str:
    """The sentence that a body begins with, without its dateline ('WASHINGTON (Reuters) - ')."""
    text = re.sub(r"^[^a-z]{0,60}?\((?:[A-Z][\w .]{1,30})\)\s*[-–—]+\s*", "", body[:MAX_HEADLINE_CHARS])
    return re.split(r"(?<=[a-z%\d)])\.\s+(?=[A-Z\"“])", text, maxsplit=1)[0]


@lru_cache(maxsize=512)
def name_pattern(names: tuple[str, ...]) -> str:
    """A pattern for any of the names, the longest first, in plain letters."""
    return f"(?:{one_of(map(plain_letters, names))})"


UP = _DATA.text("up")
DOWN = _DATA.text("down")
_THAN_EXPECTED = _DATA.compiled("than_expected")
_BESIDE_EXPECTED = _DATA.compiled("beside_expected")
_AS_EXPECTED = _DATA.compiled("as_expected")
_SURPRISE = re.compile(r"\b(?:unexpectedly|surprisingly)\b")
_SURPRISE_MOVE = re.compile(rf"\b(?:unexpectedly|surprisingly) (?:(?P<up>{UP})|(?P<down>{DOWN}))\b")
_NEGATION = _DATA.compiled("negation")
_ABOVE = ("higher", "stronger", "hotter", "firmer", "above", "over", "beyond", "ahead of", "past")
_ABOVE_VERBS = ("beat", "top", "exceed", "surpass", "crush", "smash", "outpac", "trounc")
_BELOW = ("lower", "weaker", "softer", "cooler", "tamer", "below", "under", "short of")
_MORE = ("more", "bigger", "larger", "faster", "steeper", "sharper", "deeper", "wider")
_LESS = ("less", "smaller", "slower", "fewer", "narrower", "shallower")


class ExpectationSide(NamedTuple):
    """A comparison with what was expected: 1 above, 0 in line, −1 below; whether far; where the words stand."""

    direction: int
    is_far: bool
    start: int
    end: int


def expectation_sides(text: str, moving: int, better: int = 0) -> list[ExpectationSide] | None:
    """Every comparison with expectations in a text of plain letters; None where one remains unclear.

    `moving` is 1 where the figure is reported to rise, −1 where it falls, else 0: 'less than expected' turns with it.
    `better` is the side that is better, if there is one.
    """
    if _NEGATION.search(text):
        return None
    found: list[ExpectationSide] = []
    for match in _THAN_EXPECTED.finditer(text):
        word = match["word"]
        way = (
            (better if word == "better" else -better)
            if word in ("better", "worse")
            else _side_of_than(word, moving)
        )
        if way == 0:
            return None
        found.append(ExpectationSide(way, match["far"] is not None, match.start(), match.end()))
    for match in _BESIDE_EXPECTED.finditer(text):
        word = match["word"]
        above = word in _ABOVE or word.startswith(_ABOVE_VERBS)
        found.append(
            ExpectationSide(1 if above else -1, match["far"] is not None, match.start(), match.end())
        )
    found += [ExpectationSide(0, False, match.start(), match.end()) for match in _AS_EXPECTED.finditer(text)]
    surprise = _SURPRISE_MOVE.search(text)
    if surprise is not None:
        found.append(ExpectationSide(1 if surprise["up"] else -1, False, surprise.start(), surprise.end()))
    elif _SURPRISE.search(text):
        return None
    return sorted(found, key=lambda side: side.start)


def _side_of_than(word: str, moving: int) -> int:
    if word in _ABOVE:
        return 1
    if word in _BELOW:
        return -1
    if word in _MORE:
        return moving
    return -moving if word in _LESS else 0  # better and worse: the caller knows of what
