"""decisions.jsonl and decisions.parquet against the ledger: edits are named, believed by nobody, mended by a run."""

import io
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from htfi.adapters.stores.decisions import JOURNAL, DecisionJournal
from htfi.adapters.stores.journal_check import repair_journal
from htfi.apps.cli.main import cli
from htfi.apps.cli.report.command import write_report
from htfi.domain.decision import encode_decision
from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.record import decoded_once
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring import outputs
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.outputs import (
    LONG_INPUT_BYTES,
    OutputFile,
    RecordedRun,
    check_outputs,
    choose_outputs,
    recorded_run,
    write_parquet,
)
from htfi.wiring.run import open_run
from htfi.wiring.settings import Settings, override
from htfi_eval.bench.ticks.startup import write_inputs

NUM = 40
Lines = list[bytes]


def rehashed(line: bytes) -> bytes:
    """A line edited by somebody who knows how its leaf hash is made."""
    head, _, rest = line.partition(b'"decision":')
    decision = rest[:-2].replace(b"Volatility is", b"HACKED 99.9%")
    assert decision != rest[:-2]
    stated = leaf_hash(decision).hex().encode()
    return (
        re.sub(rb'"leaf_hash":"\w+"', b'"leaf_hash":"%s"' % stated, head) + b'"decision":' + decision + b"}\n"
    )


def renumbered(line: bytes, index: int) -> bytes:
    return re.sub(rb'^\{"index":\d+', b'{"index":%d' % index, line)


EDITS: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "a rationale": (
        lambda told: [*told[:6], told[6].replace(b"Volatility is", b"HACKED 99.9%"), *told[7:]],
        "line 7 is not as recorded;",
    ),
    "a rationale and its hash": (
        lambda told: [*told[:6], rehashed(told[6]), *told[7:]],
        "line 7 is not as recorded;",
    ),
    "a withheld line": (
        lambda told: [line.replace(b"too wide", b"too good") for line in told],
        "lines 10, 20, 30, 40 are not as recorded;",
    ),
    "a line deleted": (lambda told: told[:8] + told[9:], "entry 8 has no line;"),
    "lines deleted": (lambda told: told[:8] + told[11:20] + told[21:], "entries 8–10, 20 have no line;"),
    "the last line deleted": (lambda told: told[:-1], "the last 1 of 40 entries have no line;"),
    "a line repeated": (lambda told: [*told[:4], told[2], *told[4:]], "line 5 is extra;"),
    "two lines swapped": (
        lambda told: [*told[:4], told[5], told[4], *told[6:]],
        "line 6 is out of order;",
    ),
    "a line put in": (lambda told: [*told[:3], b'{"index":3}\n', *told[3:]], "line 4 is extra;"),
    "words put in": (lambda told: [*told[:3], b"\xff words\n", *told[3:]], "line 4 is extra;"),
    "the last line again as a further one": (
        lambda told: [*told, renumbered(told[-1], NUM), b"more\n"],
        "lines 41–42 are extra;",
    ),
    "much": (
        lambda told: [*told[:2], b"x\n", *told[3:9], told[15], *told[9:15], *told[16:30], *told[31:]],
        "line 3 is not as recorded; lines 11–16 are out of order; entry 30 has no line;",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, make_decisions, write_journal) -> Path:
    write_journal(tmp_path, make_decisions(NUM, withhold_every=10))
    ledger = open_ledger(tmp_path, origin="htfi.example/run")
    write_parquet(tmp_path, ledger)
    ledger.close()
    return tmp_path


def wrong(folder: Path) -> list[str]:
    ledger = open_ledger_readonly(folder)
    try:
        return check_outputs(folder, ledger)[1]
    finally:
        ledger.close()


def mend(folder: Path, num_released: int = 0) -> str:
    ledger = open_ledger(folder, origin="htfi.example/run")
    try:
        return repair_journal(folder, recorded_run(ledger).entries, num_released)
    finally:
        ledger.close()


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_journal_is_named_line_by_line_and_mended(folder: Path, edit: str) -> None:
    change, words = EDITS[edit]
    path = folder / JOURNAL
    whole = path.read_bytes()
    assert wrong(folder) == []
    path.write_bytes(b"".join(change(whole.splitlines(keepends=True))))
    (found,) = wrong(folder)
    assert found.startswith(f"{path}: {words}")
    assert found.endswith("repeat the run's command, which writes the file from the ledger")
    verified = CliRunner().invoke(cli, ["ledger", "verify", str(folder)])
    assert verified.exit_code == 1
    assert str(verified.exception) == found
    page = write_report(folder)
    assert "HACKED" not in page.read_text()
    assert mend(folder, num_released=NUM)
    assert path.read_bytes() == whole
    assert wrong(folder) == []
    assert mend(folder, num_released=NUM) == ""


@pytest.mark.slow
def test_random_edits_are_always_found_and_always_mended(folder: Path) -> None:
    path, rng = folder / JOURNAL, random.Random(3)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for _ in range(60):
        told = list(lines)
        while told == lines or rng.random() < 0.5:
            at = rng.randrange(len(told))
            act = rng.randrange(4)
            if act == 0:
                del told[at]
            elif act == 1:
                told.insert(at, rng.choice(lines))
            elif act == 2:
                told[at] = told[at].replace(b"0", b"1", 1)
            else:
                other = rng.randrange(len(told))
                told[at], told[other] = told[other], told[at]
        path.write_bytes(b"".join(told))
        assert len(wrong(folder)) == 1
        mend(folder, num_released=NUM)
        assert path.read_bytes() == whole


def test_a_part_of_a_line_behind_the_last_is_named(folder: Path) -> None:
    path = folder / JOURNAL
    whole = path.read_bytes()
    path.write_bytes(whole + b"x")
    assert wrong(folder) == [
        f"{path}: its last line has no end; repeat the run's command, which writes the file from the ledger"
    ]


def test_what_is_not_released_yet_is_left_to_be_released(folder: Path) -> None:
    path = folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"edited\n", *lines[4:30]]))
    assert mend(folder) == "line 4 is not as recorded"
    assert path.read_bytes() == b"".join(lines[:30])
    path.unlink()
    assert mend(folder) == ""
    assert mend(folder, num_released=20) == "it is missing"
    assert path.read_bytes() == b"".join(lines[:20])


def test_lines_of_a_ledger_that_was_cut_are_kept(folder: Path, make_decisions, write_journal) -> None:
    whole = (folder / JOURNAL).read_bytes()
    write_journal(folder, make_decisions(NUM, withhold_every=10)[: NUM - 15])
    (folder / JOURNAL).write_bytes(whole)
    assert "the ledger does not hold: it was replaced or cut" in wrong(folder)[0]
    assert mend(folder) == ""
    assert (folder / JOURNAL).read_bytes() == whole


def test_a_line_of_a_later_version_behind_the_end_is_an_entry_that_the_ledger_lost(folder: Path) -> None:
    path = folder / JOURNAL
    entry = b'{"id":"SPX/1d@2999-01-01T00:00:00Z","later":1}'
    line = b'{"index":%d,"leaf_hash":"%s","decision":%s}\n' % (NUM, leaf_hash(entry).hex().encode(), entry)
    whole = path.read_bytes() + line
    path.write_bytes(whole)
    assert (
        "the last 1 are of entries that the ledger does not hold: it was replaced or cut" in wrong(folder)[0]
    )
    assert mend(folder) == ""
    assert path.read_bytes() == whole


def test_a_run_that_goes_on_is_verified_beside(folder: Path, make_decisions, monkeypatch) -> None:
    """Entries that have no line yet, and lines that were released while somebody looked."""
    ledger = open_ledger(folder, origin="htfi.example/run")
    journal = DecisionJournal(folder)
    more = [encode_decision(decision) for decision in make_decisions(NUM + 6)[NUM:]]
    receipts = ledger.append(more)
    assert wrong(folder) == []

    def released(view: LogReader) -> RecordedRun:
        found = recorded_run(view)
        for receipt, entry in zip(receipts, more, strict=True):
            journal.release(receipt, entry)
        journal.flush()
        ledger.append([more[0]])
        return found

    monkeypatch.setattr(outputs, "recorded_run", released)
    assert wrong(folder) == []
    journal.close()
    monkeypatch.undo()
    ledger.close()
    assert "the last 1 of 47 entries have no line" in wrong(folder)[0]


def test_an_edited_table_is_named_by_line(folder: Path) -> None:
    path = folder / "decisions.parquet"
    table = pq.read_table(path)
    texts = table.column("rationale").to_pylist()
    texts[11] = "HACKED"
    place = table.column_names.index("rationale")
    edited = table.set_column(place, "rationale", pa.array(texts))
    pq.write_table(pa.concat_tables([edited.slice(0, 20), edited.slice(21)]), path)
    (found,) = wrong(folder)
    assert found.startswith(f"{path}: line 12 is not as recorded; entry 20 has no line;")
    pq.write_table(table.slice(0, 30), path)
    assert "the last 10 of 40 entries have no line" in wrong(folder)[0]
    pq.write_table(table, path, row_group_size=7)  # the same, however it is cut
    assert wrong(folder) == []
    path.write_bytes(b"no table")
    assert "is not a table of decisions" in wrong(folder)[0]


def test_an_entry_edited_in_the_database_reaches_no_page(folder: Path) -> None:
    import sqlite3

    database = sqlite3.connect(folder / "ledger.db", isolation_level=None)
    (body,) = database.execute("SELECT body FROM entries WHERE idx = 5").fetchone()
    edited = body.replace(b"Volatility is", b"HACKED 99.9%")
    database.execute("UPDATE entries SET body = ? WHERE idx = 5", (edited,))
    with pytest.raises(IntegrityError, match="entry 5 or the hash kept for it was altered"):
        write_report(folder)
    (tile,) = database.execute("SELECT hashes FROM tiles WHERE level = 0 AND idx = 0").fetchone()
    tile = tile[: 5 * 32] + leaf_hash(edited) + tile[6 * 32 :]
    database.execute("UPDATE tiles SET hashes = ? WHERE level = 0 AND idx = 0", (tile,))
    database.close()
    with pytest.raises(IntegrityError, match="do not have the root signed at size 40"):
        write_report(folder)


def test_a_run_taken_up_again_mends_its_files_and_tells_nobody_twice(tmp_path: Path) -> None:
    prices, folder = tmp_path / "prices.csv", tmp_path / "run"
    rows = [f"2024-01-{1 + day:02}T21:00:00Z,AAA,{100 + day % 5}\n" for day in range(31)]
    rows += [f"2024-02-{1 + day:02}T21:00:00Z,AAA,{100 + day % 7}\n" for day in range(29)]
    prices.write_text("ts,symbol,close\n" + "".join(rows[:50]))
    settings = override(Settings(), "cache", memory_mb=0.0)

    def go() -> bytes:
        mirror = io.BytesIO()
        with open_run(settings, folder, [str(prices)], mirror=mirror) as run:
            run.run_to_end(lambda: None)
            write_parquet(folder, run.ledger)
        return mirror.getvalue()

    first = go()
    files = [folder / name for name in (JOURNAL, "decisions.parquet", "settings.json", "checkpoint")]
    before = [file.read_bytes() for file in files]
    lines = before[0].splitlines(keepends=True)
    assert first == before[0]
    assert len(lines) > 10
    files[0].write_bytes(b"".join([lines[0].replace(b'"index":0', b'"index": 0'), *lines[2:-1]]))
    for file in files[1:]:
        file.write_bytes(b"edited")
    assert len(wrong(folder)) == 4
    assert go() == b""
    assert [file.read_bytes() for file in files[:3]] == before[:3]
    assert wrong(folder) == []
    files[0].write_bytes(b"".join(lines[:4]))
    prices.write_text("ts,symbol,close\n" + "".join(rows))
    later = go()
    assert before[0] + later == files[0].read_bytes()
    assert json.loads(later.splitlines()[0])["index"] == len(lines)


LONG = [LONG_INPUT_BYTES + 1]


@pytest.mark.parametrize(
    ("there", "asked", "num_bytes", "is_piped", "chosen"),
    [
        ((), None, [10], False, "jsonl,parquet"),
        ((), None, [LONG_INPUT_BYTES // 2, LONG_INPUT_BYTES // 2], False, "jsonl,parquet"),
        ((), None, LONG, False, "parquet"),
        ((), None, [*LONG, None], False, "jsonl,parquet"),
        ((), None, LONG, True, "jsonl,parquet"),
        ((), "jsonl", LONG, False, "jsonl"),
        ((), "parquet", [10], False, "parquet"),
        ((), "", [10], False, ""),
        ((), "", [10], True, "jsonl"),
        ((JOURNAL,), None, LONG, False, "jsonl,parquet"),
        ((JOURNAL,), "parquet", LONG, False, "jsonl,parquet"),
        (("decisions.parquet",), "", LONG, False, "parquet"),
    ],
)
def test_the_files_of_a_run_follow_from_what_is_asked_and_what_is_there(
    tmp_path: Path,
    there: Sequence[str],
    asked: str | None,
    num_bytes: list[int | None],
    is_piped: bool,
    chosen: str,
) -> None:
    for name in there:
        (tmp_path / name).touch()
    wanted = None if asked is None else [OutputFile(name) for name in asked.split(",") if name]
    found = choose_outputs(tmp_path, wanted, num_bytes, is_piped=is_piped)
    assert ",".join(sorted(found)) == chosen


def test_a_run_writes_the_files_that_are_asked_for_and_makes_up_for_those_it_left(tmp_path: Path) -> None:
    prices, folder, whole = tmp_path / "prices.csv", tmp_path / "run", tmp_path / "whole"
    rows = [f"2024-01-{1 + day:02}T21:00:00Z,AAA,{100 + day % 5}\n" for day in range(31)]
    prices.write_text("ts,symbol,close\n" + "".join(rows))

    def go(folder: Path, *options: str) -> set[str]:
        words = ["run", str(prices), "--plain", "--no-report", "--out", str(folder), *options]
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert wrong(folder) == []
        return {JOURNAL, "decisions.parquet"} & {file.name for file in folder.iterdir()}

    assert go(whole) == {JOURNAL, "decisions.parquet"}
    assert go(folder, "--outputs", "none") == set()
    assert go(folder, "--outputs", "parquet") == {"decisions.parquet"}
    assert go(folder, "--outputs", "jsonl") == {JOURNAL, "decisions.parquet"}
    lines = (folder / JOURNAL).read_bytes()
    assert lines == (whole / JOURNAL).read_bytes()
    assert lines.count(b"\n") > 5
    prices.write_text("ts,symbol,close\n" + "".join(rows) + "2024-02-01T21:00:00Z,AAA,103\n")
    assert go(folder, "--outputs", "none") == {JOURNAL, "decisions.parquet"}
    assert (folder / JOURNAL).read_bytes().count(b"\n") == lines.count(b"\n") + 1
    refused = CliRunner().invoke(cli, ["run", str(prices), "--outputs", "csv", "--out", str(tmp_path / "no")])
    assert "'csv': name jsonl, parquet, both with a comma, or none" in f"{refused.exception}{refused.output}"
    assert not (tmp_path / "no").exists()


def test_what_a_run_made_its_lines_of_is_what_its_ledger_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the files of a run's end need not decode it; with a reading, whose record has most fields."""
    settings = override(Settings(), "cache", memory_mb=0.0)
    files = [str(file) for file in write_inputs(tmp_path)]
    with open_run(settings, tmp_path / "run", files, outputs=[OutputFile.LINES]) as run:
        run.run_to_end(lambda: None)
        recorded = list(recorded_run(run.ledger).entries.entries())
        monkeypatch.setattr(decoded_once, "decode_entry", None)
        assert run.decoded is not None
        held = [run.decoded(receipt, entry) for receipt, entry in recorded]
    assert any(one.view is not None for one in held)
    assert held == [decode_entry(entry) for _, entry in recorded]
