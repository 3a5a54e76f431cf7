"""Releases and earnings with what was expected, told in many notations: does the reader find the side of the surprise?

The staged calendar gives actual, expected and prior figures. Each row is told in a notation drawn at random, its
figures as wires, calendars, tables and sentences write them. The truth is the sign of actual minus expected.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from htfi.narrative.facts.surprises import Verdict, find_surprises
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.prices import read_rows
from htfi_eval.eval.reading.scores import Interval, mean_by_day

_RELEASES = "calendar/ff_merged_2007_201910.parquet"
_EARNINGS = "calendar/earnings_us_2012_2017.parquet"
_PLACES = {
    "USD": ("US", "U.S.", "United States"),
    "EUR": ("Euro zone", "euro-area", "Eurozone"),
    "GBP": ("UK", "British", "U.K."),
    "JPY": ("Japan", "Japanese", "Japan's"),
    "CAD": ("Canada", "Canadian", "Canada's"),
    "AUD": ("Australia", "Australian", "Aussie"),
    "NZD": ("New Zealand", "NZ", "New Zealand's"),
    "CHF": ("Swiss", "Switzerland", "Switzerland's"),
    "CNY": ("China", "Chinese", "China's"),
}
_NUMBER = re.compile(r"(-?)(\d+(?:\.\d+)?)([%KMBT]?)")
_SCALES = {"K": 3, "M": 6, "B": 9, "T": 12}
_WORDS = {"K": "thousand", "M": "million", "B": "billion", "T": "trillion"}
_WIRE = {"K": "k", "M": "mln", "B": "bln", "T": "trln"}

# `p` place, `e` event, `a` actual, `f` expected, `q` prior. Wires, calendars, tables, notes and sentences.
RELEASE_NOTATIONS = (
    "{p} {e}: {a} vs {f} expected",
    "{p} {e} {a} vs. {f} est; prior {q}",
    "{p} {e} {a} (forecast {f}, previous {q})",
    "{p} {e} Actual: {a} Forecast: {f} Previous: {q}",
    "{p} {e} comes in at {a}, economists had expected {f}",
    "*{P} {E} {a}; EST. {f}",
    "{p} {e} | {a} | cons {f} | prev {q}",
    "Consensus {f}: {p} {e} {a}",
    "{p} {e} prints {a} versus consensus of {f}, after {q} in the prior month",
    "{p} {e} at {a} against a forecast of {f}",
    "{p} {e} came to {a}; a poll of analysts had pointed to {f}",
    "Economists polled had predicted {f} for {p} {e}; the figure was {a}",
    "{p} {e} registers {a}, compared with the {f} that markets had pencilled in and {q} last time",
    "{p} {e} {a} [F/C {f}] [PREV {q}]",
    "{p}: {e} A: {a} E: {f} P: {q}",
    "{e} ({p}): act {a}, exp {f}, prior {q}",
    "Released: {p} {e}. Reading {a}. Median estimate {f}. Earlier reading {q}.",
    "{p} {e} was {a}, whereas the Street was looking for {f}",
    "{p} {e} {a} / {f} exp / {q} prev",
    "Against expectations of {f}, {p} {e} was {a}",
)
_EPS_NOTATIONS = (
    "{s} Q{k} EPS {a} vs {f} expected",
    "{s} earnings per share {a}, analysts' estimate {f}",
    "{s} reports quarterly EPS of {a}; consensus {f}",
    "{s} Q{k} adj. EPS {a}, est. {f}",
    "*{s} {k}Q EPS {a}, EST. {f}",
    "{s} posted quarterly earnings of {a} per share against the {f} that analysts expected",
    "{s} earnings: {a} per share vs. {f} per share expected by analysts",
    "Analysts expected {f} per share from {s}; it earned {a} per share",
    "{s}: EPS {a} (consensus {f})",
    "{s} EPS of {a} {v} consensus of {f}",
    "{s} EPS {v2} by {d}: {a} against {f}",
    "{s} (Q{k}) EPS actual {a} | estimate {f}",
)


class StatedRelease(NamedTuple):
    """One release as told, its notation and the sign of the surprise."""

    text: str
    notation: str
    sign: int
    row: int


@dataclass(frozen=True, slots=True)
class ComparisonFigures:
    """The share of comparisons whose side is right, by notation; `mistakes` are told lines with what was understood."""

    name: str
    right: Interval
    by_notation: dict[str, tuple[int, float]]
    mistakes: list[dict[str, object]]


def release_comparisons(data: Path, sample: int | None, seed: int) -> list[StatedRelease] | None:
    """Releases with actual and expected figures, each told once; None where the calendar is not staged."""
    if not (data / _RELEASES).is_file():
        return None
    rows = read_rows(data / _RELEASES)
    columns = ("currency", "event", "actual", "forecast", "previous", "actual_num", "forecast_num")
    found: list[tuple[str, str, str, str, str, int]] = []
    for place, event, actual, expected, prior, figure, wanted in zip(
        *(rows[name].tolist() for name in columns), strict=True
    ):
        is_plain = all(
            isinstance(one, str) and _NUMBER.fullmatch(one) for one in (actual, expected, prior or "0")
        )
        if is_plain and place in _PLACES and np.isfinite(figure) and np.isfinite(wanted):
            found.append((place, event, actual, expected, prior or "0", _sign(figure - wanted)))
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    return [_stated_release(rng, row, *found[row]) for row in _drawn(len(found), sample, rng)]


def earnings_comparisons(data: Path, sample: int | None, seed: int) -> list[StatedRelease] | None:
    """Earnings per share with analysts' expectation, each told once; None where they are not staged."""
    if not (data / _EARNINGS).is_file():
        return None
    rows = read_rows(data / _EARNINGS)
    found = [
        (str(symbol), float(actual), float(expected))
        for symbol, actual, expected in zip(
            *(rows[name].tolist() for name in ("symbol", "actual_num", "forecast_num")), strict=True
        )
        if np.isfinite(actual) and np.isfinite(expected)
    ]
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    return [_stated_earnings(rng, row, *found[row]) for row in _drawn(len(found), sample, rng)]


def judge_comparisons(
    name: str, told: Sequence[StatedRelease], seed: int, progress: ProgressCallback, max_mistakes: int = 40
) -> ComparisonFigures:
    """Hold what the reader understands against the figures."""
    right = np.zeros(len(told))
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    mistakes: list[dict[str, object]] = []
    for number, one in enumerate(told):
        surprises = find_surprises(one.text)
        said = surprises[0].verdict if surprises else None
        is_right = said is not None and _SIGN_OF.get(said) == one.sign
        right[number] = is_right
        hits[one.notation].append(is_right)
        if not is_right:
            mistakes.append(
                {
                    "set": name,
                    "expected": _WORD_OF[one.sign],
                    "got": said.value if said else "nothing",
                    "text": one.text,
                }
            )
        if number % 1_000 == 999:
            progress(number + 1, len(told))
    progress(len(told), len(told))
    return ComparisonFigures(
        name,
        mean_by_day(right, np.arange(len(told)), seed),
        {notation: (len(seen), sum(seen) / len(seen)) for notation, seen in sorted(hits.items())},
        mistakes[:max_mistakes],
    )


_SIGN_OF = {Verdict.ABOVE: 1, Verdict.IN_LINE: 0, Verdict.BELOW: -1}
_WORD_OF = {1: "above", 0: "in line", -1: "below"}


def _drawn(num: int, sample: int | None, rng: np.random.Generator) -> list[int]:
    if sample is None or num <= sample:
        return list(range(num))
    return sorted(rng.choice(num, sample, replace=False).tolist())


def _stated_release(
    rng: np.random.Generator,
    row: int,
    place: str,
    event: str,
    actual: str,
    expected: str,
    prior: str,
    sign: int,
) -> StatedRelease:
    notation = RELEASE_NOTATIONS[int(rng.integers(len(RELEASE_NOTATIONS)))]
    style = _STYLES[int(rng.integers(len(_STYLES)))]
    name = _PLACES[place][int(rng.integers(3))]
    if event.split()[0] in _COUNTRIES:
        name = ""  # the event names its own country
    text = notation.format(
        p=name, P=name.upper(), e=event, E=event.upper(), a=style(actual), f=style(expected), q=style(prior)
    )
    return StatedRelease(
        re.sub(r"\s+", " ", text).replace("() ", "").replace(" :", ":").strip(), notation, sign, row
    )


_COUNTRIES = frozenset(
    ("German", "French", "Italian", "Spanish", "Tokyo", "US", "Eurozone", "BOJ", "Chinese", "UK", "Greek")
)


def _as_stated(figure: str) -> str:
    return figure


def _in_words(figure: str) -> str:
    """'212K' as '212,000', '1.60M' as '1.60 million', '0.2%' as '0.2 percent'."""
    minus, digits, unit = _parts(figure)
    if unit == "K" and "." not in digits:
        return f"{minus}{int(digits):,},000"
    return (
        f"{minus}{digits} {_WORDS[unit]}"
        if unit in _WORDS
        else f"{minus}{digits}{' percent' if unit else ''}"
    )


def _as_wires_do(figure: str) -> str:
    """'1.60M' as '1.60 mln', '0.2%' as '0.2 pct', a minus as a dash."""
    minus, digits, unit = _parts(figure)
    sign = "−" if minus else ""
    return f"{sign}{digits} {_WIRE[unit]}" if unit in _WIRE else f"{sign}{digits}{' pct' if unit else ''}"


def _with_sign(figure: str) -> str:
    minus, digits, unit = _parts(figure)
    return f"{minus or '+'}{digits}{unit.lower() if unit in _WORDS else unit}"


_STYLES: tuple[Callable[[str], str], ...] = (_as_stated, _as_stated, _in_words, _as_wires_do, _with_sign)


def _parts(figure: str) -> tuple[str, str, str]:
    match = _NUMBER.fullmatch(figure)
    assert match is not None  # rows with other figures were left out
    return match[1], match[2], match[3]


def _stated_earnings(
    rng: np.random.Generator, row: int, symbol: str, actual: float, expected: float
) -> StatedRelease:
    notation = _EPS_NOTATIONS[int(rng.integers(len(_EPS_NOTATIONS)))]
    styles = (_dollars, _dollars, _in_brackets, _bare)
    style = styles[int(rng.integers(len(styles)))]
    if "per share" in notation and min(actual, expected) > 0.0 and rng.random() < 0.5:
        style = _cents
    sign = _sign(round(actual - expected, 6))
    text = notation.format(
        s=symbol, k=int(rng.integers(1, 5)), a=style(actual), f=style(expected), d=_dollars(abs(actual - expected)),
        v={1: "tops", 0: "in line with", -1: "below"}[sign], v2={1: "beats", 0: "in line", -1: "misses"}[sign],
    )  # fmt: skip
    return StatedRelease(text, notation, sign, row)


def _dollars(value: float) -> str:
    return f"{'-' if value < 0.0 else ''}${abs(value):.2f}"


def _in_brackets(value: float) -> str:
    return f"(${abs(value):.2f})" if value < 0.0 else f"${value:.2f}"


def _bare(value: float) -> str:
    return f"{value:.2f}"


def _cents(value: float) -> str:
    return f"{round(value * 100)} cents" if value < 1.0 else _dollars(value)


def _sign(value: float) -> int:
    return int(value > 0.0) - int(value < 0.0)
