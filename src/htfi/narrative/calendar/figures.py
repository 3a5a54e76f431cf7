"""Figures in headlines, as wires write them: 'half a point', '5-1/4 to 5-1/2 percent', '209,000'. Telling uses it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_FRACTIONS = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8"}
_WORDS = {
    "zero": 0.0, "nil": 0.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0,
    "eight": 8.0, "nine": 9.0, "ten": 10.0,
}  # fmt: skip
_SHARES = {"quarter": 25, "half": 50, "full": 100, "whole": 100}
_SCALES = {"k": 1.0, "thousand": 1.0, "million": 1e3, "mln": 1e3, "m": 1e3, "": 1e-3}

NUMBER = r"(?:\d+[- ]\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}|\d[\d,]*(?:\.\d+)?|\.\d+)"
_PERCENT = r"(?:%|percent(?!age)|per cent|pct(?! pts?\b| points?\b)|p\.c\.)"
_POINT = r"(?:percentage[- ]points?|percent points?|pct[- ]points?|pct[- ]pts?|ppts?|points?|pts?)"
_BP = r"(?:basis[- ]points?|bps?|b\.p\.)"
# The sizes of a step of a policy rate.
_STEP = re.compile(
    rf"(?P<bp>{NUMBER})[- ]?{_BP}\b"
    rf"|(?P<share>three[- ]quarters?|(?:a |one[- ])?(?:quarter|half)|(?:a |one )?(?:full|whole))"
    rf"(?: of)?(?: an?| one)?[- ](?:{_POINT}|{_PERCENT})(?![\w])"
    rf"|(?P<points>{NUMBER}|one|two)[- ]?(?:of a )?(?:percentage[- ]points?|percent points?|pct[- ]points?|"
    rf"pct[- ]pts?|ppts?|points?)\b"
    rf"|\bby (?:an? )?(?:surprise )?(?P<by>{NUMBER})[- ]?{_PERCENT}"
)
_BOUND = rf"(?:{NUMBER}|zero|nil)"
_LEVEL_OF = (
    r"[ :](?:an? |the |its |about |near |record low |record |low |range |target |"
    r"of |between |current |historic ){0,5}"
)
_LEVEL = re.compile(
    rf"\b(?:to|at|of|near|rate){_LEVEL_OF}(?P<one>{_BOUND})[- ]?{_PERCENT}(?! ?(?:-|to|and|-to-) ?\d)"
    rf"|\b(?:to|at|in|within|of|between|near|range|target|rate){_LEVEL_OF}"
    rf"(?P<low>{_BOUND})(?: ?{_PERCENT})?(?: ?(?:-|to|and|-to-) ?(?P<high>{_BOUND})) ?{_PERCENT}"
    rf"|\b(?:to|at){_LEVEL_OF}(?P<bare>\d{{1,2}}\.\d\d?)(?=[ ,;.]*(?:$|from\b|vs\b))"
)
_PERCENTS = re.compile(rf"(?P<sign>[-+])?(?P<value>{NUMBER}) ?{_PERCENT}")
_JOBS = re.compile(
    r"(?P<sign>(?<![\w.])[-+])?(?P<value>\d[\d,]*(?:\.\d+)?) ?(?P<scale>k|thousand|million|mln|"
    r"m)?(?![\w%.]*\d)(?! ?(?:%|percent|pct))\b"
)
_MONEY = re.compile(
    r"(?P<minus>-)?(?:\$|€|£|us\$|usd ?)(?P<value>\d[\d,]*(?:\.\d+)?)|(?P<cents>\d+(?:\.\d+)?) (?:cents|c)\b"
)
_FRACTION = re.compile(r"\d+[- ]\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}")


class Figure(NamedTuple):
    """A figure and where it stands in the text."""

    start: int
    end: int
    value: float


def plain(text: str) -> str:
    """Lower case, with fractions and dashes as ASCII."""
    for sign, told in _FRACTIONS.items():
        if sign in text:
            text = re.sub(rf"(\d) ?{sign}", rf"\1-{told}", text).replace(sign, told)
    text = text.translate(
        {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2212: "-", 0x2010: "-", 0x2011: "-"}
    )
    return re.sub(r"\s*[\u2013\u2014]\s*", lambda dash: " - " if " " in dash[0] else "-", text).lower()


def number(text: str) -> float | None:
    """The value of a figure: '4-3/4', '1/4', '209,000', 'zero'; None where it is none."""
    if text in _WORDS:
        return _WORDS[text]
    if _FRACTION.fullmatch(text):
        *whole, share = re.split(r"[- ]", text)
        above, _, below = share.partition("/")
        if int(below) == 0:
            return None
        return (int(whole[0]) if whole else 0) + int(above) / int(below)
    if "," in text and not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return None
    return float(text.replace(",", ""))


def steps_bp(text: str) -> list[Figure]:
    """Sizes of steps in basis points, in `plain` text."""
    found: list[Figure] = []
    for match in _STEP.finditer(text):
        value: float | None
        if match["bp"]:
            value = number(match["bp"])
        elif match["share"]:
            share = match["share"]
            value = 75.0 if share.startswith("three") else float(_SHARES[re.split(r"[- ]", share)[-1]])
        else:
            told = number(match["points"] or match["by"])
            value = (
                told * (1.0 if told >= 10.0 else 100.0) if told is not None else None
            )  # '25 points' are of 1 bp
        if value is not None:
            found.append(Figure(match.start(), match.end(), value))
    return found


def levels(text: str) -> list[Figure]:
    """Levels of a policy rate in percent, the upper end of a range, in `plain` text."""
    found: list[Figure] = []
    for match in _LEVEL.finditer(text):
        low = number(match["low"]) if match["low"] else None
        value = number(match["high"] or match["one"] or match["bare"])
        if value is not None and (match["low"] is None or (low is not None and low <= value)):
            found.append(Figure(match.start(), match.end(), value))
    return found


def percents(text: str) -> Iterator[Figure]:
    """Every figure in percent, signed where a sign stands before it."""
    for match in _PERCENTS.finditer(text):
        value = number(match["value"])
        if value is not None:
            sign = (
                -1.0
                if match["sign"] == "-" and not text[: match.start()].endswith(tuple("0123456789"))
                else 1.0
            )
            yield Figure(match.start(), match.end(), sign * value)


def thousands(text: str) -> Iterator[Figure]:
    """Every count of jobs, in thousands: '209,000', '187k', '1.4 million'. Plain small numbers are no counts."""
    for match in _JOBS.finditer(text):
        value, scale = number(match["value"]), match["scale"] or ""
        if value is None or (not scale and value < 1_000 and value != 0):
            continue
        yield Figure(
            match.start(), match.end(), (-1.0 if match["sign"] == "-" else 1.0) * value * _SCALES[scale]
        )


def per_share(text: str) -> Iterator[Figure]:
    """Every amount of money under 1,000 and not in millions: '$1.40', '63 cents'."""
    for match in _MONEY.finditer(text):
        if re.match(r" ?(?:bln|billion|bn|mln|million|m|b|trillion|trln|tn|k)\b", text[match.end() :]):
            continue
        value = number(match["value"]) if match["value"] else float(match["cents"]) / 100.0
        if value is not None and value < 1_000.0:
            yield Figure(match.start(), match.end(), -value if match["minus"] else value)
