"""`htfi quarantine` on a run's folder: what is held back, what hid in it, and the word that lets it out."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi.adapters.stores.admissions import ADMITTED_FILE, REQUESTED_FILE, AdmissionsFile
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile
from htfi.apps.cli.main import cli
from htfi.apps.cli.quarantine import command
from htfi.apps.cli.quarantine_view import visible
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.domain.events import News
from htfi.domain.news import Screening
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.pipeline.operator_actions import AppliedAction
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.outputs import check_outputs

START = 1_700_000_000 * 10**9
Ask = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose run held back three items, two of which bear the same id."""
    run = tmp_path / "run"
    open_ledger(run, origin="htfi.run").close()
    held, sanitiser = HeldNewsFile(run / HELD_NEWS), Sanitiser()
    for row, (source, name, headline, publisher) in enumerate(
        (
            ("telegram", "t1", "Ac\u200bme \u202eto\u202c soar \x1b[31m[bold]now[/]", "Reuteгs"),
            ("blog", "b1", "Acme to buy Beta", "Bloornberg"),
            ("blog", "b1", "Acme to sell Beta \\u0041", "Bloornberg"),
        ),
        1,
    ):
        item = News(START + row, START, source, row, name, headline, ("ACME",), publisher=publisher)
        screened = sanitiser.screen(item)
        assert screened.verdict is Screening.QUARANTINE
        held.hold(item, screened)
    held.close()
    return run


@pytest.fixture
def ask() -> Ask:
    def run(*words: object) -> Result:
        result = CliRunner().invoke(command, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, HtfiError | SystemExit):
            raise result.exception
        return result

    return run


def refused(result: Result) -> str:
    """The one line that a person sees; `htfi` prints it and ends with status 1."""
    assert isinstance(result.exception, HtfiError)
    line = str(result.exception)
    assert "\n" not in line
    return line


def test_list_tells_what_is_held_back_by_source_and_rule(folder: Path, ask: Ask):
    table = ask("list", folder).output
    assert all(word in table for word in ("telegram", "blog", "impersonation", "held"))
    assert "\x1b" not in table
    rows = [
        json.loads(line) for line in ask("list", folder, "--source", "blog", "--json").output.splitlines()
    ]
    assert [row["number"] for row in rows] == [2, 3]
    assert ask("list", folder, "--rule", "no-such-rule").output.endswith("has no news in quarantine\n")


def test_show_hides_nothing_and_names_every_finding(folder: Path, ask: Ask):
    shown = ask("show", folder, "t1").output
    assert "Ac\\u200bme \\u202eto\\u202c soar \\x1b[31m[bold]now[/]" in shown
    assert "Reute\\u0433s" in shown
    assert "impersonation: its publisher's name is written like Reuters" in shown
    assert all(char.isprintable() for char in shown.replace("\n", ""))
    told = json.loads(ask("show", folder, "1", "--json").output)
    assert told["item"]["headline"].startswith("Ac\u200bme")
    assert told["status"] == "held"


def test_release_is_written_down_with_name_and_reason_and_shown(folder: Path, ask: Ask):
    result = ask("admit", folder, "t1", "--by", "Ann Lee", "--why", "confirmed by the company")
    assert result.exit_code == 0
    assert "admitted by Ann Lee: it enters when the run" in result.output
    (line,) = (folder / REQUESTED_FILE).read_text().splitlines()
    assert {"id": "t1", "by": "Ann Lee", "why": "confirmed by the company"}.items() <= json.loads(
        line
    ).items()
    assert "asked" in ask("list", folder).output
    releases = AdmissionsFile(folder)
    releases.record_applied(AppliedAction(releases.requested()[0], 12, START + 99))
    shown = ask("show", folder, "t1").output
    assert "t1: released" in shown
    assert "admitted by Ann Lee: confirmed by the company" in shown
    assert "after event 12" in shown
    assert (folder / ADMITTED_FILE).exists()


def test_admit_works_by_its_earlier_name_too_which_no_help_shows(folder: Path, ask: Ask):
    result = ask("release", folder, "t1", "--by", "Ann Lee", "--why", "checked")
    assert result.exit_code == 0
    assert "admitted by Ann Lee" in result.output
    shown = ask("--help").output
    assert "admit" in shown
    assert not re.search(r"^  release", shown, re.MULTILINE)


def test_suspicion_works_by_its_earlier_name_too_which_no_help_shows():
    assert CliRunner().invoke(cli, ["secure", "--help"]).output == (
        CliRunner().invoke(cli, ["suspicion", "--help"]).output.replace("cli suspicion", "cli secure")
    )
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert "suspicion  " in shown
    assert not re.search(r"^  secure", shown, re.MULTILINE)


def test_release_while_the_run_goes_on_says_that_it_is_picked_up(folder: Path, ask: Ask):
    ledger = open_ledger(folder, origin="htfi.run")
    try:
        output = ask("admit", folder, "t1", "--by", "Ann Lee", "--why", "checked").output
    finally:
        ledger.close()
    assert "picks it up within seconds" in output


def test_second_release_is_refused_in_one_line(folder: Path, ask: Ask):
    ask("admit", folder, "t1", "--by", "Ann Lee", "--why", "checked")
    again = ask("admit", folder, "1", "--by", "Bob", "--why", "me too")
    assert refused(again) == "item 1 (t1) was already admitted by Ann Lee"
    assert len((folder / REQUESTED_FILE).read_text().splitlines()) == 1


@pytest.mark.parametrize("by", ["", "  ", "\u200b", "--"])
def test_release_without_a_name_is_refused(folder: Path, ask: Ask, by: str):
    assert "a name is required" in refused(ask("admit", folder, "t1", f"--by={by}", "--why", "checked"))
    assert ask("admit", folder, "t1", "--why", "checked").exit_code == 2
    assert not (folder / REQUESTED_FILE).exists()


def test_what_cannot_be_told_apart_or_found_is_told_in_one_line(folder: Path, ask: Ask, tmp_path: Path):
    assert "give a number instead: 2, 3" in refused(ask("show", folder, "b1"))
    assert "has no item 'zz'" in refused(ask("show", folder, "zz"))
    assert "has no item '" in refused(ask("show", folder, "9" * 5_000))
    assert "is not the folder of a run" in refused(ask("list", tmp_path))
    assert "is not the folder of a run" in refused(ask("list", tmp_path / "nowhere"))
    assert isinstance(ask("list", tmp_path / "nowhere").exception, InvalidInput)


@pytest.mark.parametrize("damage", [b"{}\n", b"\xff\xfe\n", b"[1,2]\n", b"null\n"])
def test_damaged_file_is_told_in_one_line(folder: Path, ask: Ask, damage: bytes):
    for name in (HELD_NEWS, REQUESTED_FILE):
        kept = (folder / name).read_bytes() if (folder / name).exists() else b""
        (folder / name).write_bytes(damage)
        result = ask("list", folder)
        assert f"{name}, line 1" in refused(result)
        assert isinstance(result.exception, IntegrityError)
        (folder / name).write_bytes(kept)


def test_folder_of_a_run_that_held_nothing_back_has_an_empty_list(tmp_path: Path, ask: Ask):
    open_ledger(tmp_path / "run", origin="htfi.run").close()
    assert ask("list", tmp_path / "run").output.endswith("has no news in quarantine\n")
    assert ask("list", tmp_path / "run", "--json").output == ""


def test_text_in_another_script_is_shown_as_it_is_and_tricks_in_latin_text_are_not():
    assert visible("茅台 净利润") == "茅台 净利润"
    assert visible("Газпром") == "Газпром"
    assert visible("Société Générale – 5 €") == "Société Générale – 5 €"
    assert visible("Gаzprom buys") == "G\\u0430zprom buys"
    assert visible("ﬁne \\ ｂuy") == "\\ufb01ne \\\\ \\uff42uy"
    assert visible("x" * 5_000).endswith("and 1,000 more characters")


def test_an_edited_item_is_not_shown_and_not_released(folder: Path, ask: Ask):
    file = folder / HELD_NEWS
    file.write_bytes(file.read_bytes().replace(b"Acme to buy Beta", b"Acme to buy Zeta"))
    for words in (
        ("list", folder),
        ("show", folder, "2"),
        ("admit", folder, "2", "--by", "A", "--why", "b"),
    ):
        assert "line 2: was changed after the run: repeat the run's command" in refused(ask(*words))
    assert not (folder / REQUESTED_FILE).exists()


def test_an_edited_word_is_not_believed(folder: Path, ask: Ask):
    assert ask("admit", folder, "2", "--by", "Ann Lee", "--why", "confirmed").exit_code == 0
    file = folder / REQUESTED_FILE
    file.write_bytes(file.read_bytes().replace(b"Ann Lee", b"Ann Law"))
    assert "releases.jsonl, line 1: is not as it was written" in refused(ask("list", folder))
    ledger = open_ledger_readonly(folder)
    _, wrong = check_outputs(folder, ledger)
    ledger.close()
    assert [line.partition(": ")[0].rpartition("/")[2] for line in wrong] == ["releases.jsonl, line 1"]
