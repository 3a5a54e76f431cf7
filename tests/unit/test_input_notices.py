"""What was noticed about a run's input stands in a file of the run and on its page."""

from pathlib import Path

from htfi.apps.cli.report.tables import NOTICES_LISTED, notices_html
from htfi.wiring.notice_file import InputNotices, read_notices, write_notices
from htfi.wiring.outputs import NOTICES

SPLIT = "AAPL/1d 2024-01-09: prices are not adjusted for a split of 2 to 1"
RENAME = "FB/1d ends on 2024-01-18 where META/1d begins on 2024-01-19 at its price"


def test_a_resumed_run_keeps_what_its_earlier_starts_found_in_prices(tmp_path: Path) -> None:
    write_notices(tmp_path, InputNotices(prices=[SPLIT], series=["no forecast of A/1d"]), resumed=False)
    write_notices(tmp_path, InputNotices(prices=[RENAME, SPLIT], calendar=["c"]), resumed=True)
    assert read_notices(tmp_path) == InputNotices(prices=[SPLIT, RENAME], calendar=["c"])
    write_notices(tmp_path, InputNotices(prices=[RENAME]), resumed=False)
    assert read_notices(tmp_path) == InputNotices(prices=[RENAME])


def test_a_run_that_noticed_nothing_has_no_file_and_no_section(tmp_path: Path) -> None:
    write_notices(tmp_path, InputNotices(prices=[SPLIT]), resumed=False)
    write_notices(tmp_path, InputNotices(), resumed=False)
    assert not (tmp_path / NOTICES).exists()
    assert notices_html(read_notices(tmp_path)) == ""
    (tmp_path / NOTICES).write_text("{")
    assert read_notices(tmp_path) == InputNotices()


def test_the_page_lists_lines_by_what_they_are_about_and_counts_the_rest() -> None:
    page = notices_html(InputNotices(prices=[SPLIT, "<b>"] + ["x"] * NOTICES_LISTED, calendar=["zone"]))
    assert page.count("<li>") == NOTICES_LISTED + 1
    assert f'<h3>Prices</h3><ul class="notices"><li>{SPLIT}</li><li>&lt;b&gt;</li>' in page
    assert "and 2 more" in page
    assert "<h3>Calendar</h3>" in page
    assert "<h3>Series without a forecast</h3>" not in page
