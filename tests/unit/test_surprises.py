"""What was reported against what was expected, in the notations of wires, tables and several languages."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import assert_in_proportion
from htfi.narrative.facts.figures import FigureRole, FigureUnit, find_figures
from htfi.narrative.facts.surprises import Side, Surprise, Verdict, find_surprises

LINES = Path(__file__).parents[1] / "data" / "facts" / "surprises.tsv"


def _lines() -> list[tuple[str, str]]:
    rows = [
        line.split("\t", 1)
        for line in LINES.read_text(encoding="utf-8").splitlines()
        if line[:1] not in ("#", "")
    ]
    return [(verdicts, text.replace("\\n", "\n")) for verdicts, text in rows]


def _first(text: str) -> Surprise:
    found = find_surprises(text)
    assert found, text
    return found[0]


@pytest.mark.parametrize(("verdicts", "text"), _lines())
def test_verdict_of_each_notation(verdicts: str, text: str) -> None:
    found = [one.verdict.value for one in find_surprises(text)] or [Verdict.UNCLEAR.value]
    wanted = verdicts.split(";")
    assert found[: len(wanted)] == wanted
    assert len(wanted) == 1 or len(found) == len(wanted)


@pytest.mark.parametrize(
    ("text", "actual", "expected"),
    [
        ("Payrolls 273K vs 175K expected", 273e3, 175e3),
        ("U.S. payrolls surge 517,000, far above forecast of 185,000", 517e3, 185e3),
        ("Nonfarm payrolls rose by 517,000, forecast 185,000", 517e3, 185e3),
        ("US jobless claims fall to 210,000, below the 220,000 expected", 210e3, 220e3),
        ("BBVA ganó 3.431 millones, los analistas esperaban 3.320", 3.431e9, 3.32e9),
        ("Siemens Ergebnis 2,82 Mrd €, Konsens 2.750 Mio €", 2.82e9, 2.75e9),
        ("Next EPS 402.1p v 395p f'cast", 4.021, 3.95),
        ("Adobe beats by $0.29 with EPS of $5.40", 5.40, 5.11),
        ("Starbucks EPS $0.80, misses by 23 cents", 0.80, 1.03),
        ("ADP +152k, a miss of 23k", 152e3, 175e3),
        ("Intel EPS $0.54 (+$0.03 vs. cons.)", 0.54, 0.51),
        ("Lyft loss per share $(0.11) vs $(0.14) expected", -0.11, -0.14),
        ("Moderna Q4 loss/shr $2.91, est. $2.68", -2.91, -2.68),
        ("Wayfair posts a loss of 20 cents where the Street sought a 4-cent gain", -0.20, 0.04),
        ("Infosys PAT Rs 6,921 cr, poll Rs 6,778 cr", 6_921e7, 6_778e7),
        ("Guides next-quarter revenue $10.7B +/- $300M vs $9.88B consensus", 10.7e9, 9.88e9),
        ("Nat gas storage +85 Bcf; surveys ranged +88 to +97", 85e9, 92.5e9),
        ("UK GDP flat in October; economists had expected growth of 0.1%", 0.0, 0.1),
        ("NFP whisper was 250, print 256 (k), Dow Jones consensus 155", 256.0, 155.0),
        ("EPS $0.35; guided $0.24; poll $0.25", 0.35, 0.25),
        ("Payrolls +114k; lowest of 75 guesses was +70k, median +175k", 114e3, 175e3),
        ("Q2: 2.53 / 2.44 / 3.06 (actual / expected / year ago)", 2.53, 2.44),
        ("Ticker | Rev act | Rev est || INTC | 13.3B | 13.0B", 13.3e9, 13.0e9),
    ],
)
def test_figures_of_a_comparison(text: str, actual: float, expected: float) -> None:
    found = _first(text)
    assert found.actual == pytest.approx(actual)
    assert found.expected == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "measure", "is_good"),
    [
        ("EPS $1.40 vs $1.35 est", "earnings per share", True),
        ("Plug Power LPS $0.25 vs LPS $0.24 consensus", "earnings per share", False),
        ("Snap net loss $150m, analysts expected a loss of $180m", "profit", True),
        ("Loss narrower than Wall Street feared", "results", True),
        ("Gross margin 18.0% vs. 38.0% est.", "margin", False),
        ("Citi expenses $13.25bn, consensus $13.31bn", "costs", True),
        ("Wells Fargo provision $1.24bn v $1.15bn expected", "impairments and provisions", False),
        ("Postpaid churn 0.89% (est. 0.91%)", "churn", True),
        ("Target inventories $13.1bn vs. $12.6bn consensus", "company inventories", False),
        ("5.07M net adds, est. 4.52M", "subscribers", True),
        ("Gross bookings $40.1B; Street $40.97B", "bookings", False),
        ("Burberry comps -20% vs. -18.6% est.", "comparable sales", False),
        ("Combined ratio 93.1%, consensus 94.0%", "combined ratio", True),
        ("Sees FY EPS $7.00-$8.00 vs. Street $8.56", "earnings per share", False),
        ("Jobless claims better than expected", "jobless claims", True),
        ("Unemployment rate 4.3%, worse than expected", "unemployment rate", False),
        ("Chiffre d'affaires 3,7 Md€ contre 3,68 Md€ attendus", "revenue", True),
        ("Umsatz besser als erwartet", "revenue", True),
    ],
)
def test_side_of_a_measure(text: str, measure: str, is_good: bool) -> None:
    found = _first(text)
    assert found.measure == measure
    assert found.is_good is is_good


def test_crude_build_above_expectations_is_supply_and_neither_good_nor_bad() -> None:
    found = _first("Crude inventories +3.1M bbl vs. +0.9M bbl expected")
    assert (found.side, found.verdict, found.is_good) == (Side.SUPPLY, Verdict.ABOVE, None)


def test_several_measures_of_a_line_give_several_comparisons() -> None:
    found = find_surprises("Coca-Cola tops by two cents, revenue light by $40M")
    assert [(one.measure, one.verdict) for one in found] == [
        ("earnings per share", Verdict.ABOVE),
        ("revenue", Verdict.BELOW),
    ]


def test_usual_size_of_a_company_figure_is_a_share_of_what_was_expected() -> None:
    assert _first("Revenue $10.4bn vs $10.0bn expected").usual_sizes == pytest.approx(2.0)
    assert math.isnan(_first("Nike misses by a nickel").usual_sizes)


def test_names_dates_and_terms_are_no_figures() -> None:
    text = "IPCA-15, S&P 500, Q2, 10-year notes, FTSE 100, May 14, 8:30 ET, 75 economists, 2024 and 1H: 3.2%"
    assert [text[one.start : one.end] for one in find_figures(text)] == ["3.2%"]


@pytest.mark.parametrize(
    ("text", "value", "high", "unit"),
    [
        ("$(0.11)", -0.11, None, FigureUnit.MONEY),
        ("402.1p", 4.021, None, FigureUnit.MONEY),
        ("€9.5bn-€10.0bn", 9.5e9, 10e9, FigureUnit.MONEY),
        ("half a point", 0.5, None, FigureUnit.PERCENTAGE_POINTS),
        ("a penny", 0.01, None, FigureUnit.MONEY),
        ("25 bps", 25.0, None, FigureUnit.BASIS_POINTS),
        ("2,3 %", 2.3, None, FigureUnit.PERCENT),
        ("9.358 millones", 9.358e9, None, FigureUnit.NUMBER),
        ("3 431 millions d'euros, contre", 3.431e9, None, FigureUnit.NUMBER),
        ("CHF1'234.5m", 1234.5e6, None, FigureUnit.MONEY),
        ("-0.3 to +0.1 percent", -0.3, 0.1, FigureUnit.PERCENT),
        ("zwischen 1,2 und 1,4 Mrd Euro", 1.2e9, 1.4e9, FigureUnit.MONEY),
    ],
)
def test_figure_in_a_notation(text: str, value: float, high: float | None, unit: FigureUnit) -> None:
    (found,) = find_figures(text)
    assert found.value == pytest.approx(value)
    assert found.high == (None if high is None else pytest.approx(high))
    assert found.unit is unit


def test_roles_of_a_release() -> None:
    roles = [one.role for one in find_figures("CPI +0.3% (est. 0.2%; prev 0.4%), beating by 0.1 points")]
    assert roles[:3] == [FigureRole.ACTUAL, FigureRole.EXPECTED, FigureRole.PRIOR]


PIECES = [
    "1", "1,", "1.111", "1 111", "$(", "(1", "-", "%E ", "est ", "beats ", "above the the ", "consensus ", "loss of ",
    "actual / expected ", "EPS ", "| ", "\n", "analysts a b ", "by ", "two cents ", "1-1/", "Mrd erwartet ",
    "incl $1 a-", "not be ", "FTSE ", "1 to ", "in line ", "İ", "🎉", "\u202f1", "¶", "revised ", "..", "'",
    "1% vs 1% est; ",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    figures = find_figures(text)
    assert all(0 <= one.start < one.end <= len(text) for one in figures)
    assert all(isinstance(one.verdict, Verdict) for one in find_surprises(text))


@pytest.mark.parametrize("piece", PIECES)
def test_work_grows_no_faster_than_the_text(piece: str) -> None:
    assert_in_proportion(lambda num: find_surprises((piece * num)[:num]), 20_000, 160_000)
