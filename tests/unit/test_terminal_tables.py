"""Tables and facts on terminals of 80 and 160 columns: nothing a person must type or read is cut."""

import pytest
from rich.cells import cell_len

from htfi.apps.display.tables import print_facts, print_line, print_table, wrap_words
from htfi_eval.results import Evaluation, print_result, split_notes

PATH = "/srv/models/a-long-folder-name/of-some-depth/mini-target-int8@d7d586dafc64"


@pytest.fixture(params=[80, 160])
def columns(request, monkeypatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def words_of(text: str) -> set[str]:
    return {word.strip("┃│") for word in text.split()}


@pytest.mark.parametrize("num_columns", [1, 2, 7, 14])
def test_a_table_keeps_to_the_width_and_breaks_no_name_and_no_number(columns, capsys, num_columns):
    heads = ["name", *(f"parameters of {k}" for k in range(1, num_columns))]
    rows = [[f"mini-target-{r}", *(f"{1234567 * k:,}" for k in range(1, num_columns))] for r in range(3)]
    print_table(heads, rows, title="Models", notes=["one core, five runs"])
    out = capsys.readouterr().out
    assert out.count("\n") >= 5
    assert max(map(cell_len, out.splitlines())) <= columns
    assert "…" not in out
    assert {cell for row in rows for cell in row} <= words_of(out)
    assert out.splitlines()[-1] == "one core, five runs"


def test_a_table_that_goes_on_beneath_itself_names_its_rows_again(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(["name", *(f"column-number-{k}" for k in range(8))], [["first", *"12345678"]])
    out = capsys.readouterr().out
    parts = out.count("first")
    assert parts > 1
    assert parts == out.count("name ")


def test_a_part_below_another_repeats_all_columns_that_tell_its_rows_apart(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [[event, model, *"12345678"] for event in ("fall", "fear") for model in ("warning", "VIX")]
    print_table(["event", "model", *(f"column-number-{k}" for k in range(8))], rows)
    out = capsys.readouterr().out
    parts = out.count("event")
    assert parts > 1
    assert out.count("model") == parts
    assert max(map(cell_len, out.splitlines())) <= 80
    for row in ("fall  │ warning", "fall  │ VIX", "fear  │ warning", "fear  │ VIX"):
        assert out.count(row) == parts


def test_a_part_below_another_leaves_out_rows_without_a_value_there(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [["first", *"12345678"], ["second", "1", *[""] * 7]]
    print_table(["name", *(f"column-number-{k}" for k in range(8))], rows)
    out = capsys.readouterr().out
    assert out.count("first") > 1
    assert out.count("second") == 1


def test_what_is_longer_than_a_line_stays_whole(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(["folder", "digest", "size"], [[PATH * 2, "d7d586dafc64", "8.5 MB"]])
    print_facts({"folder": PATH * 2, "size": "8.5 MB"})
    print_line(f"page written to {PATH * 2}")
    out = capsys.readouterr().out
    assert out.count(PATH * 2) == 3
    assert out.count("8.5 MB") == 2


def test_long_texts_wrap_at_blanks_before_a_table_is_parted(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(["no.", "headline", "status"], [["12", "Fed cuts its target rate by 50 bp " * 4, "held"]])
    out = capsys.readouterr().out
    assert out.count("no.") == 1
    assert max(map(cell_len, out.splitlines())) <= 80


def test_figures_align_right_and_words_left(columns, capsys):
    print_table(["way", "tokens/s", "word"], [["plain", "2,905", "b"], ["chain of 8", "557.2", "bb"]])
    lines = capsys.readouterr().out.splitlines()
    assert "│    2,905 │ b " in lines[3]
    assert "│ plain " in lines[3]


def test_facts_hang_under_themselves_and_hide_no_blanks(columns, capsys):
    print_facts({"name": "mini", "as it came": "two  blanks " + "word " * 60})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name        mini"
    assert lines[1].startswith("as it came  two  blanks word")
    assert len(lines) > 2
    assert all(line.startswith(" " * 12 + "word") for line in lines[2:])
    assert max(map(len, lines)) <= columns


def test_a_line_in_a_file_is_not_wrapped(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_line("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1


def test_wrapping_loses_no_character_but_the_blanks_at_which_it_breaks():
    text = "a  b " + "c" * 30 + " d"
    assert wrap_words(text, 8) == ["a  b", "c" * 30, "d"]
    assert wrap_words("", 8) == [""]


def test_a_row_that_says_only_its_name_is_a_note_under_the_table(columns, capsys):
    rows = [{"what": "plain", "tokens/s": 2905.0}, {"what": "river: is not installed"}]
    assert split_notes(rows, ["five runs"]) == ([rows[0]], ["river: is not installed", "five runs"])
    print_result(Evaluation(name="decode", metrics={"gain": 1.5}, rows=rows, notes=["five runs"]), None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:-2] == ["river: is not installed", "five runs"]
    assert lines[-2].endswith("; seed 0")
    assert lines[-1] == "gain = 1.5"
    assert lines[-5].startswith("└")


def test_where_long_names_leave_no_room_a_part_repeats_the_first_of_them_alone(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    long = [f"{letter * 19} {letter * 19}" for letter in "ab"]
    rows = [["same", *long, "x" * 34, "1"], ["same", *long, "y" * 34, "2"]]
    print_table(["set", "first long name", "second long name", "third", "value"], rows)
    out = capsys.readouterr().out
    assert max(map(cell_len, out.splitlines())) <= 80
    assert out.count("│ same ") > 2
    assert out.count("y" * 34) == 1
