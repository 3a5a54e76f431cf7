"""The journal of released decisions on a real folder, and the table made from it."""

import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from htfi.adapters.stores.decisions import DecisionJournal, ReleasedLine, WithheldLine
from htfi.domain.decision import Receipt, encode_decision
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.wiring import outputs
from htfi.wiring.ledger import open_ledger, open_ledger_readonly


def release_all(journal, decisions, start=0):
    for index in range(start, len(decisions)):
        journal.release(Receipt(index, f"{index:064x}"), encode_decision(decisions[index]))


def write_parquet(folder):
    log = open_ledger_readonly(folder)
    try:
        return outputs.write_parquet(folder, log)
    finally:
        log.close()


def test_a_line_holds_the_entry_byte_for_byte(tmp_path, make_decisions):
    (decision,) = make_decisions(1)
    journal = DecisionJournal(tmp_path)
    journal.release(Receipt(0, "ab" * 32), encode_decision(decision))
    journal.close()
    expected = b'{"index":0,"leaf_hash":"%s","decision":%s}\n' % (b"ab" * 32, encode_decision(decision))
    assert (tmp_path / "decisions.jsonl").read_bytes() == expected


def test_reading_gives_back_what_was_released(tmp_path, make_decisions, write_journal, read_journal):
    decisions = make_decisions(20, ("SPX", "VIX"), withhold_every=7)
    write_journal(tmp_path, decisions)
    lines = read_journal(tmp_path)
    assert [line.index for line in lines] == list(range(40))
    for line, decision in zip(lines, decisions, strict=True):
        if isinstance(line, ReleasedLine):
            assert line.decision == decision
        else:
            assert (line.id, line.last_price) == (decision.id, decision.last_price)
    assert sum(isinstance(line, WithheldLine) for line in lines) == 5


def test_a_withheld_decision_leaves_its_reasons_but_nothing_of_its_forecast(
    tmp_path, make_decisions, write_journal
):
    write_journal(tmp_path, make_decisions(1, withhold_every=1))
    line = json.loads((tmp_path / "decisions.jsonl").read_bytes())
    assert line["withheld"] is True
    assert line["reasons"] == ["too wide"]
    assert not {"decision", "forecast", "rationale", "features"} & set(line)


def test_text_that_looks_like_a_verdict_does_not_keep_a_decision_back(
    tmp_path, make_decisions, write_journal, read_journal
):
    write_journal(tmp_path, make_decisions(1, headline='"verdict":{"outcome":"withhold","reasons":[]}}'))
    (line,) = read_journal(tmp_path)
    assert isinstance(line, ReleasedLine)


def test_a_symbol_that_looks_like_a_mark_is_read_as_released(
    tmp_path, make_decisions, write_journal, read_journal
):
    write_journal(tmp_path, make_decisions(1, symbols=('"withheld":true',)))
    (line,) = read_journal(tmp_path)
    assert isinstance(line, ReleasedLine)


def test_the_cursor_is_found_again_behind_withheld_lines(
    tmp_path, make_decisions, write_journal, read_journal
):
    decisions = make_decisions(10, withhold_every=5)
    write_journal(tmp_path, decisions[:5])
    journal = DecisionJournal(tmp_path)
    assert journal.num_released == 5
    release_all(journal, decisions, start=5)
    journal.close()
    assert [line.index for line in read_journal(tmp_path)] == list(range(10))


@pytest.mark.parametrize("index", [0, 3])
def test_an_entry_out_of_turn_is_refused(tmp_path, make_decisions, write_journal, index):
    decisions = make_decisions(4)
    write_journal(tmp_path, decisions[:2])
    journal = DecisionJournal(tmp_path)
    with pytest.raises(IntegrityError, match=f"entry {index} cannot follow 1"):
        journal.release(Receipt(index, "00" * 32), encode_decision(decisions[index]))
    journal.close()


def test_the_mirror_gets_each_line_once_over_two_runs(tmp_path, make_decisions):
    decisions, seen = make_decisions(6, withhold_every=3), BytesIO()
    for stop in (3, 6):
        journal = DecisionJournal(tmp_path, mirror=seen)
        release_all(journal, decisions[:stop], start=journal.num_released)
        journal.close()
        assert journal.mirror is not None
        assert journal.mirror.finish(60.0)
    assert seen.getvalue() == (tmp_path / "decisions.jsonl").read_bytes()


def test_lines_reach_the_file_with_the_group(tmp_path, make_decisions, read_journal):
    journal = DecisionJournal(tmp_path)
    release_all(journal, make_decisions(3))
    journal.flush()
    assert len(read_journal(tmp_path)) == 3
    journal.close()


def test_the_table_has_the_journals_values_and_nulls_for_what_was_kept_back(
    tmp_path, make_decisions, write_journal
):
    decisions = make_decisions(8, ("SPX", "VIX"), withhold_every=5)
    write_journal(tmp_path, decisions)
    rows = pq.read_table(write_parquet(tmp_path)).to_pylist()
    assert [row["id"] for row in rows] == [decision.id for decision in decisions]
    kept, back = rows[0], rows[4]
    assert kept["h5_q95"] == decisions[0].forecast.quantiles[1][-2]
    assert kept["as_of"].value == decisions[0].as_of_ns
    assert kept["as_of"].to_pydatetime() == datetime(2007, 10, 11, 20, tzinfo=UTC)
    assert kept["rationale"] == decisions[0].rationale.text
    assert (back["outcome"], back["reasons"], back["h1_q50"]) == ("withhold", ["too wide"], None)


def test_the_table_of_an_empty_journal_is_empty(tmp_path, write_journal):
    write_journal(tmp_path, [])
    assert pq.read_table(write_parquet(tmp_path)).num_rows == 0


def test_a_table_that_cannot_be_finished_leaves_the_old_one(tmp_path, make_decisions, write_journal):
    decisions = make_decisions(5)
    write_journal(tmp_path, decisions)
    before = write_parquet(tmp_path).read_bytes()
    names = sorted(path.name for path in tmp_path.iterdir())
    ledger = open_ledger(tmp_path, origin="htfi.example/run")
    ledger.append([b"{}"])
    ledger.close()
    with pytest.raises(IntegrityError, match="entry 5 is not a decision"):
        write_parquet(tmp_path)
    assert (tmp_path / "decisions.parquet").read_bytes() == before
    assert sorted({*names, "checkpoint"}) == sorted(path.name for path in tmp_path.iterdir())


def test_a_folder_in_the_journals_place_is_said_in_one_line(tmp_path: Path):
    (tmp_path / "decisions.jsonl").mkdir()
    with pytest.raises(DependencyUnavailable, match=r"decisions\.jsonl: cannot be opened: Is a directory"):
        DecisionJournal(tmp_path)
