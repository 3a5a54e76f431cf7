"""Bodies: passages within a budget, tables of figures, quotations with their speakers."""

from pathlib import Path

import pytest

from growth import assert_in_proportion
from htfi.narrative.facts.figures import FigureUnit
from htfi.narrative.facts.passages.quotations import MAX_QUOTATIONS, find_quotations
from htfi.narrative.facts.passages.selection import MAX_BODY_CHARS, select_passages
from htfi.narrative.facts.passages.tables import (
    MAX_ROWS,
    TableRow,
    find_table_rows,
    table_rows_as_sentences,
)
from htfi.narrative.facts.surprises import find_surprises

STATEMENT = (Path(__file__).parents[1] / "data/fomc/2024-09-18.txt").read_text(encoding="utf-8")
FILLER = (
    "The company was founded long ago and has offices in several towns with pleasant views of the river. "
)
FACT = "Acme Corp raised its full-year profit guidance to $4.20 a share from $3.90."


def test_body_within_the_budget_is_kept_whole():
    found = select_passages(STATEMENT, budget_chars=10_000)
    assert found.num_sentences == len(found.passages) > 10
    assert not found.is_cut
    assert all(" ".join(STATEMENT[one.start : one.end].split()) == one.text for one in found.passages)


@pytest.mark.parametrize("place", [0.0, 0.5, 0.98])
def test_sentence_that_matters_is_found_wherever_it_stands(place: float):
    filler = [f"{FILLER.strip()} Item {number}." for number in range(300)]
    filler.insert(int(place * len(filler)), FACT)
    found = select_passages(" ".join(filler), "Acme lifts outlook", ("Acme",), 1_000)
    assert FACT in found.text
    assert sum(len(one.text) + 1 for one in found.passages) <= 1_000
    assert [one.start for one in found.passages] == sorted(one.start for one in found.passages)
    assert max(found.passages, key=lambda one: one.relevance).text == FACT


def test_decision_is_among_the_passages_of_a_statement():
    found = select_passages(STATEMENT, "Federal Reserve issues FOMC statement", ("Fed",), 700)
    assert "decided to lower the target range" in found.text
    assert len(found.text) <= 700


def test_repeated_sentences_are_taken_once_and_boilerplate_last():
    notice = "Forward-looking statements involve risk factors and Acme undertakes no obligation to update $1 or $2."
    body = " ".join([FACT] * 40 + [notice] * 40 + [FILLER] * 40)
    found = select_passages(body, "Acme", ("Acme",), 400)
    assert [one.text for one in found.passages].count(FACT) == 1
    relevance = {one.text: one.relevance for one in found.passages}
    assert relevance[FACT] == 1.0
    assert relevance.get(notice, 0.0) < 0.2


def test_text_cut_in_the_middle_is_marked():
    assert select_passages("Profit rose. Sales fell by 3 perc").is_cut
    assert not select_passages("Profit rose. Sales fell by 3 percent.").is_cut
    assert not select_passages("").is_cut
    assert not select_passages("Profit rose by 3 percent.\n\nThe press office").is_cut


def test_other_languages_are_read_by_figures_place_and_names():
    body = (
        "Die Bank ist alt. " * 200
        + "Die EZB senkt den Leitzins um 25 Basispunkte auf 2,0 Prozent. "
        + "Das Wetter ist gut. " * 200
    )
    assert "25 Basispunkte" in select_passages(body, "EZB senkt Zins", ("EZB",), 500).text
    chinese = "公司成立多年。" * 300 + "央行宣布降准50个基点至6.5%。" + "天气很好。" * 300
    assert "50" in select_passages(chinese, "央行降准", ("央行",), 300).text


@pytest.mark.parametrize(
    "text",
    [
        "a " * 150_000,
        "x" * 300_000,
        '"' * 300_000,
        "1 | 2 | 3\n" * 30_000,
        "Name said: " * 30_000,
        "\n" * 300_000,
    ],
)
def test_texts_of_any_shape_are_bounded(text: str):
    found = select_passages(text, "x", ("x",), 500)
    find_table_rows(text)
    find_quotations(text)
    assert sum(len(one.text) + 1 for one in found.passages) <= 500
    assert all(one.end <= MAX_BODY_CHARS for one in found.passages)


@pytest.mark.slow
def test_work_is_in_proportion_to_the_text():
    def work(num_chars: int) -> None:
        text = (
            f"{FACT} {FILLER} “We did well this quarter,” said Jane Doe. Sales | 1.5 | 2.5\n"
            * (num_chars // 200)
        )[:num_chars]
        select_passages(text, "Acme", ("Acme",), 500)
        find_table_rows(text)
        find_quotations(text)
        table_rows_as_sentences(text)

    assert_in_proportion(work, 20_000, 160_000)


def test_table_with_a_header_gives_each_figure_its_role():
    body = """Economic data
Indicator | Actual | Forecast | Previous
----------|--------|----------|---------
Nonfarm payrolls | 187K | 170K | 105K
Unemployment rate | 3.8% | 3.5% | 3.5%
"""
    assert find_table_rows(body) == [
        TableRow("Nonfarm payrolls", 187e3, 170e3, 105e3),
        TableRow("Unemployment rate", 3.8, 3.5, 3.5, FigureUnit.PERCENT),
    ]


def test_order_of_columns_follows_the_header():
    body = "Indicator\tPrevious\tForecast\tActual\nISM index\t46.4\t47.0\t47.6\n"
    assert find_table_rows(body) == [TableRow("ISM index", 47.6, 47.0, 46.4)]


def test_results_of_two_periods_are_reported_and_before():
    body = """                    Q3 2024     Q3 2023    Change
Revenue            $94.9 bn    $89.5 bn      6%
Diluted EPS          $1.64       $1.46      12%
Net loss ........ $(12) million  $(15) million
"""
    rows = find_table_rows(body)
    assert rows[0] == TableRow("Revenue", 94.9e9, None, 89.5e9, FigureUnit.MONEY, "USD")
    assert rows[1] == TableRow("Diluted EPS", 1.64, None, 1.46, FigureUnit.MONEY, "USD")
    assert (rows[2].label, rows[2].actual, rows[2].prior) == ("Net loss", -12e6, -15e6)


def test_labelled_line_is_a_row():
    assert find_table_rows("Core CPI: 0.3% (est. 0.2%; prev 0.4%)") == [
        TableRow("Core CPI", 0.3, 0.2, 0.4, FigureUnit.PERCENT)
    ]


def test_prose_is_no_table_and_rows_are_bounded():
    assert (
        find_table_rows("This is prose  with wide   blanks and 3 numbers.\nAnother line: of words alone.")
        == []
    )
    assert len(find_table_rows("Item | 1.5\n" * 1_500)) == MAX_ROWS


def test_rows_become_sentences_that_keep_their_meaning_on_one_line():
    body = (
        "Economic data\nIndicator | Actual | Forecast | Previous\nPayrolls | 187K | 170K | 105K\n"
        "Jobless rate | 3.8% | 3.5% | 3.5%\nThe end."
    )
    sentences = table_rows_as_sentences(body)
    assert "Payrolls: 187K (expected 170K, previous 105K)." in sentences.splitlines()
    found = find_surprises(" ".join(sentences.split()))
    assert (found[0].actual, found[0].expected, found[0].prior) == (187e3, 170e3, 105e3)
    assert find_table_rows(sentences)[1] == TableRow("Jobless rate", 3.8, 3.5, 3.5, FigureUnit.PERCENT)


@pytest.mark.parametrize(
    "text", [STATEMENT, "", "A line  with wide blanks.\nAnd 3 more.", "<b>x</b>\t12\t</i>", "[x](y)\t12\t13"]
)
def test_body_without_plain_tables_stays_as_it_is(text: str):
    assert table_rows_as_sentences(text) == text


def test_quotations_have_their_speakers():
    body = (
        '"We are well positioned to wait," Powell said on Wednesday. “Inflation has eased, but it remains high,” said '
        "Chair Jerome H. Powell at a press conference. “The economy is strong,” he added. Tim Cook, Apple's chief "
        'executive, said: "We set a revenue record this quarter."\n\nLagarde told reporters: “We are in a good place.” '
        "« Nous restons vigilants sur les prix », a déclaré Christine Lagarde."
    )
    found = find_quotations(body)
    assert [one.speaker for one in found] == [
        "Powell", "Jerome H. Powell", "Jerome H. Powell", "Tim Cook", "Lagarde", "Christine Lagarde",
    ]  # fmt: skip
    assert found[3].text == "We set a revenue record this quarter."
    assert body[found[0].start : found[0].end] == '"We are well positioned to wait,"'


def test_quotation_without_a_speaker_has_none():
    assert [
        one.speaker for one in find_quotations('A sign read "no entry without a permit" at the gate.')
    ] == [""]
    assert len(find_quotations('"a quotation of words" ' * 999)) == MAX_QUOTATIONS
    assert find_quotations('An open "quotation that never ends') == []
