"""The page itself: complete, bounded, safe against what it shows."""

import json
import re

import pytest
from click.testing import CliRunner

from htfi.apps.cli.report.command import command, write_report
from htfi.apps.cli.report.tracks import POINTS_IN_ALL, SERIES_DRAWN
from htfi.domain.errors import DependencyUnavailable, InvalidInput

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def data_of(page: str):
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def without_bundle(page: str) -> str:
    """The page without plotly's own code, which holds all kinds of text."""
    start, end = page.index("<script>", page.index('id="data"')), page.rindex("<script>")
    return page[:start] + page[end:]


def test_the_page_holds_data_charts_and_tables_and_calls_nobody(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(80, ("SPX", "VIX"), withhold_every=9))
    page = write_report(tmp_path).read_text()
    data = data_of(page)
    assert [track["name"] for track in data["tracks"]] == ["SPX/1d", "VIX/1d"]
    assert len(data["tracks"][0]["bars"]) == 80
    assert page.count("* plotly.js (cartesian") == 1
    assert "default-src 'none'" in page
    own = without_bundle(page)
    assert not re.findall(r"(?:src|href)\s*=|url\(|fetch\(|@import", own)
    for name in ("fused", "random walk", "Quarantine", "settings digest", "cdcd"):
        assert name in own


def test_text_from_outside_is_never_markup(tmp_path, make_decisions, write_journal):
    decisions = make_decisions(80, (EVIL, "SPX"), headline=EVIL)
    write_journal(tmp_path, decisions)
    rejection = {"source": EVIL, "row": 1, "reason": EVIL, "detail": EVIL, "raw": EVIL}
    (tmp_path / "quarantine.jsonl").write_text(json.dumps(rejection) + "\n")
    page = write_report(tmp_path).read_text()
    own = without_bundle(page)
    assert "<img" not in own
    assert "alert(1)</script>" not in own
    assert "&lt;img src=x onerror=alert(2)&gt;" in own
    assert data_of(page)["tracks"][0]["name"] in {f"{EVIL}/1d", "SPX/1d"}


def test_the_quarantine_is_listed_by_reason_with_examples(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(10))
    rows = [
        {"source": "a.csv", "row": n, "reason": "price is not positive", "detail": "-1", "raw": f"raw-{n}"}
        for n in range(1, 8)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "quarantine.jsonl").write_text(lines + '{"source":"cut off')
    page = write_report(tmp_path).read_text()
    assert "price is not positive" in page
    assert "a.csv (7)" in page
    assert "raw-3" in page
    assert "raw-4" not in page


def test_news_is_marked_where_it_is_first_cited(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(25))
    marks = data_of(write_report(tmp_path).read_text())["tracks"][0]["marks"]
    assert [mark["bar"] for mark in marks] == [0, 10, 20]
    assert marks[0]["headlines"] == ["Fed cuts rates by 50 bp"]


def test_many_series_are_cut_to_the_telling_ones_and_the_page_says_so(
    tmp_path, make_decisions, write_journal
):
    symbols = tuple(f"S{k:02}" for k in range(40))
    write_journal(tmp_path, make_decisions(12, symbols))
    page = write_report(tmp_path).read_text()
    assert len(data_of(page)["tracks"]) == SERIES_DRAWN
    assert f"{SERIES_DRAWN} of 40 series are drawn" in page
    assert all(symbol in page for symbol in symbols)


def test_a_long_series_is_thinned_and_the_page_says_so(tmp_path, make_decisions, write_journal, monkeypatch):
    monkeypatch.setattr("htfi.apps.cli.report.tracks.POINTS_PER_SERIES", 100)
    write_journal(tmp_path, make_decisions(250))
    page = write_report(tmp_path).read_text()
    (track,) = data_of(page)["tracks"]
    assert (track["stride"], track["num_bars"]) == (3, 250)
    assert len(track["bars"]) <= 110
    assert "one bar in 3;" in page
    assert data_of(page)["num_scored"] == [249, 245, 228]


@pytest.mark.slow
def test_a_hundred_thousand_decisions_make_a_page_of_bounded_size(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(200, tuple(f"S{k:03}" for k in range(500))))
    page = write_report(tmp_path)
    assert page.stat().st_size <= 12_000_000
    assert sum(len(track["bars"]) for track in data_of(page.read_text())["tracks"]) <= POINTS_IN_ALL


def test_a_folder_without_decisions_is_refused_in_one_line(tmp_path, write_journal):
    with pytest.raises(InvalidInput, match="there is no ledger"):
        write_report(tmp_path)
    (tmp_path / "decisions.jsonl").write_text("{}\n")
    with pytest.raises(InvalidInput, match=r"has decisions\.jsonl but no ledger\.db"):
        write_report(tmp_path)
    write_journal(tmp_path, [])
    with pytest.raises(InvalidInput, match="holds no released decision yet"):
        write_report(tmp_path)


def test_an_unwritable_page_is_said_in_one_line(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(3))
    with pytest.raises(DependencyUnavailable, match="cannot be written: No such file or directory"):
        write_report(tmp_path, tmp_path / "missing" / "report.html")


def test_the_command_writes_where_it_is_told(tmp_path, make_decisions, write_journal):
    write_journal(tmp_path, make_decisions(3))
    result = CliRunner().invoke(command, [str(tmp_path), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    assert result.output.startswith(str(tmp_path / "page.html"))
    assert not (tmp_path / "report.html").exists()
