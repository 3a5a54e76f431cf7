"""A comparison of statements as HTML and as text."""

from pathlib import Path

from htfi.apps.display.page import page_html
from htfi.apps.display.statements import comparison_html, comparison_text
from htfi.narrative.facts.statements.comparison import compare_statements

TEXTS = Path(__file__).parents[1] / "data/fomc"
OLD = "Growth is moderate. Inflation is elevated. The Committee decided to keep its target at 5 percent."
NEW = "Growth is solid. Inflation is elevated. The Committee cut its target by 25 bp to 4.75 percent."


def stances(texts: list[str]) -> list[float]:
    return [0.5 if "solid" in text else 0.0 for text in texts]


def test_page_marks_what_came_and_went_and_folds_what_stayed():
    html = comparison_html(compare_statements(OLD, NEW, bank="fed", stances=stances))
    assert "<li>cut by 25 bp to 4.75%; before: held at 5%</li>" in html
    assert (
        '<p class="changed">Growth is <del>moderate.</del> <ins>solid.</ins> <i>(hawkish +0.50)</i></p>'
        in html
    )
    assert "<details><summary>1 sentence unchanged</summary><p>Inflation is elevated.</p></details>" in html


def test_text_marks_what_came_and_went_and_counts_what_stayed():
    lines = comparison_text(compare_statements(OLD, NEW, bank="fed")).plain.splitlines()
    assert lines[0] == "cut by 25 bp to 4.75%; before: held at 5%"
    assert "  Growth is -[moderate.] +[solid.] " in lines
    assert "  … 1 sentence unchanged" in lines


def test_text_from_outside_is_escaped():
    html = comparison_html(
        compare_statements("Safe <b>words</b>.", "Safe <script>alert(1)</script> words & more.")
    )
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "&amp;" in html


def test_whole_statement_fits_a_page_without_scripts():
    texts = [(TEXTS / f"2024-{day}.txt").read_text(encoding="utf-8") for day in ("07-31", "09-18")]
    page = page_html("Statement", comparison_html(compare_statements(*texts)))
    assert "cut by 50 bp to 4.75–5%" in page
    assert "<script" not in page
    assert page.count("<ins>") >= 5
    assert page.count("<del>") >= 5
