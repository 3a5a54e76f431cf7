"""Deletion under a retention class: the bytes are gone, the root and every proof stand, and only by order."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from htfi.adapters.stores.decisions import journal_line
from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError, InvalidInput, LedgerUnavailable
from htfi.domain.files import add_checksum
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import Reenabled, RetentionEnded, encode_governance
from htfi.governance.ledger.export import prove_inclusion
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.governance.regulation.retention import DECISION, NEWS_BODY, retention_class
from htfi.library.ledgers import open_ledger as open_library_ledger
from htfi.library.ledgers import verify_log
from htfi.pipeline.record.entry import encode_entry
from htfi.wiring.control import GovernanceLogFile, governance_entries
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.outputs import write_parquet
from htfi.wiring.retention import apply_retention, plan_retention

NUM, NUM_OLD = 60, 25
HEADLINE = "Zyxel wins a very particular contract"


@pytest.fixture
def run(tmp_path: Path, make_decisions) -> Path:
    """A run's folder of 60 daily decisions, with what was derived from them and what was held back."""
    folder = tmp_path / "run"
    decisions: list[Decision] = make_decisions(NUM, headline=HEADLINE)[:NUM_OLD]
    decisions += make_decisions(NUM, headline="Fed cuts rates by 50 bp")[NUM_OLD:]
    log = open_ledger(folder, origin="htfi.run")
    lines = []
    for start in range(0, NUM, 10):
        entries = [encode_entry(one) for one in decisions[start : start + 10]]
        receipts = log.append(entries)
        lines += [journal_line(*pair) for pair in zip(receipts, entries, strict=True)]
    (folder / "decisions.jsonl").write_bytes(b"".join(lines))
    write_parquet(folder, log)
    log.close()
    (folder / "held_news.jsonl").write_bytes(add_checksum(b'{"number":1}', 0) + b"\n")
    (folder / "state.bin").write_bytes(HEADLINE.encode())
    (folder / "report.html").write_text(HEADLINE)
    return folder


def newest_ns(run: Path) -> int:
    return plan_retention(run, 0, {}).newest_ns


def delete_old(run: Path, by: str = "Ann Lee"):
    """Delete all but the newest decisions."""
    kept_days = NUM - NUM_OLD - 1
    return apply_retention(
        run, newest_ns(run), {DECISION: kept_days}, [retention_class(DECISION)], by, "five years are over"
    )


def verify(run: Path) -> tuple[list[str], list[str], int]:
    log = open_ledger_readonly(run)
    try:
        audit, _, held, wrong = verify_log(run, log)
        return list(held), list(wrong), audit.num_deleted
    finally:
        log.close()


def root(run: Path) -> bytes:
    log = open_ledger_readonly(run)
    try:
        return log.checkpoint()[0].root
    finally:
        log.close()


def test_the_bytes_are_gone_and_the_root_stands(run: Path) -> None:
    old = open_ledger_readonly(run)
    before = old.checkpoint()[0].root
    old.close()
    probe = HEADLINE.encode()
    assert probe in (run / "ledger.db").read_bytes() + (run / "ledger.db-wal").read_bytes()
    plan = delete_old(run)
    assert [len(one.entries) for one in plan.due] == [NUM_OLD]
    for path in run.rglob("*"):
        if path.is_file():
            assert probe not in path.read_bytes(), path
    held, wrong, num_deleted = verify(run)
    assert (wrong, num_deleted, root(run)) == ([], NUM_OLD, before)
    assert any("authorised by Ann Lee: five years are over" in line for line in held)


def test_files_derived_from_the_ledger_are_written_again_without_it(run: Path) -> None:
    delete_old(run)
    held, _, _ = verify(run)
    assert held[:2] == [
        f"{name}: {NUM} lines, each as in the ledger" for name in ("decisions.jsonl", "decisions.parquet")
    ]
    lines = (run / "decisions.jsonl").read_bytes().splitlines()
    assert lines[0].endswith(b'"deleted":"decision"}')
    assert not (run / "report.html").exists()
    assert not (run / "state.bin").exists()


def test_readers_get_what_is_left(run: Path) -> None:
    delete_old(run)
    with open_library_ledger(run) as ledger:
        assert len(list(ledger)) == NUM - NUM_OLD
        with pytest.raises(
            InvalidInput, match=r"entry 3 was deleted at .* under the retention class decision"
        ):
            ledger[3]
        assert ledger.verify().num_deleted == NUM_OLD
    log = open_ledger_readonly(run)
    assert [is_tombstone(entry) for entry in log.entries()] == [True] * NUM_OLD + [False] * (NUM - NUM_OLD)
    with pytest.raises(InvalidInput, match="stands in the tree"):
        prove_inclusion(log, 3)
    assert prove_inclusion(log, NUM - 1).index == NUM - 1
    assert log.consistency_proof(10, NUM)
    log.close()


def test_the_order_is_in_the_governance_log(run: Path) -> None:
    delete_old(run)
    (order,) = governance_entries(run)
    assert isinstance(order, RetentionEnded)
    assert (order.retention_class, order.by, order.before) == (DECISION, "Ann Lee", NUM)
    assert [(one.start, one.stop) for one in order.spans] == [(0, NUM_OLD)]


def test_a_second_deletion_adds_to_the_first(run: Path) -> None:
    delete_old(run)
    apply_retention(run, newest_ns(run), {DECISION: 9}, [retention_class(DECISION)], "Bob", "shorter by law")
    held, wrong, num_deleted = verify(run)
    assert (wrong, num_deleted) == ([], NUM - 10)
    assert sum("deleted under" in line for line in held) == 2


def test_nothing_due_deletes_nothing(run: Path) -> None:
    plan = apply_retention(run, newest_ns(run), {}, [retention_class(DECISION)], "Ann", "a try")
    assert plan.is_empty
    assert not (run / "governance").exists()


def test_files_of_a_class_go_once_the_run_is_as_old(run: Path) -> None:
    news = [retention_class(NEWS_BODY)]
    assert apply_retention(run, newest_ns(run) + NS_PER_DAY, {NEWS_BODY: 30}, news, "Ann", "a try").is_empty
    apply_retention(run, newest_ns(run) + 31 * NS_PER_DAY, {NEWS_BODY: 30}, news, "Ann", "licence ended")
    assert not (run / "held_news.jsonl").exists()
    (order,) = governance_entries(run)
    assert [one.name for one in order.files] == ["held_news.jsonl"]
    assert verify(run)[1:] == ([], 0)


def change(run: Path, *statements: str) -> None:
    connection = sqlite3.connect(run / "ledger.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_bytes_that_are_gone_without_a_tombstone_fail(run: Path) -> None:
    delete_old(run)
    change(run, f"UPDATE entries SET body = x'' WHERE idx = {NUM_OLD}")
    with pytest.raises(IntegrityError, match=f"entry {NUM_OLD} was altered"):
        verify(run)
    change(run, "DELETE FROM tombstones WHERE idx = 3")
    with pytest.raises(IntegrityError, match="entry 3 was altered"):
        verify(run)


def test_a_tombstone_without_an_order_fails(run: Path) -> None:
    delete_old(run)
    shutil.copytree(run, run.with_name("copy"))
    leaf = f"(SELECT substr(hashes, {32 * NUM_OLD + 1}, 32) FROM tiles WHERE level = 0 AND idx = 0)"
    change(
        run,
        f"INSERT INTO tombstones VALUES ({NUM_OLD}, {leaf}, 'decision', 1, 0)",
        f"UPDATE entries SET body = x'' WHERE idx = {NUM_OLD}",
    )
    _, wrong, num_deleted = verify(run)
    assert num_deleted == NUM_OLD + 1
    assert any(
        "the order that entry 0 of the governance log holds does not cover them" in line for line in wrong
    )
    copy = run.with_name("copy")
    shutil.rmtree(copy / "governance")
    assert any("orders no deletion" in line for line in verify(copy)[1])


def test_a_tombstone_with_another_leaf_or_beside_its_entry_fails(run: Path) -> None:
    delete_old(run)
    shutil.copytree(run, run.with_name("copy"))
    change(run, "UPDATE tombstones SET leaf_hash = zeroblob(32) WHERE idx = 3")
    with pytest.raises(IntegrityError, match="entry 3 was altered"):
        verify(run)
    change(
        run.with_name("copy"), f"INSERT INTO tombstones VALUES ({NUM - 1}, zeroblob(32), 'decision', 1, 0)"
    )
    with pytest.raises(IntegrityError, match=f"entry {NUM - 1} has a tombstone and is still there"):
        verify(run.with_name("copy"))


def test_a_run_that_has_not_ended_is_refused(run: Path) -> None:
    log = open_ledger(run, origin="htfi.run")
    with pytest.raises(LedgerUnavailable, match="in use by process"):
        delete_old(run)
    log.close()


def test_a_person_and_a_reason_are_required(run: Path) -> None:
    with pytest.raises(InvalidInput, match="--by: a name is required"):
        delete_old(run, by="  ")
    with pytest.raises(InvalidInput, match="not the folder of a run"):
        apply_retention(run / "nothing", 1, {}, [retention_class(DECISION)], "Ann", "a try")


def test_an_order_that_was_not_carried_out_is_no_fault_and_is_repeated(run: Path) -> None:
    """As after kill -9 between the order and the deletion."""
    governance = GovernanceLogFile(run)
    governance.append(encode_governance(RetentionEnded(1, NUM, DECISION, "Ann", "over")))
    governance.append(encode_governance(Reenabled(2, NUM, "firm", "Bob", "fine", "r")))
    governance.close()
    assert verify(run)[1] == []
    delete_old(run)
    _, wrong, num_deleted = verify(run)
    assert (wrong, num_deleted) == ([], NUM_OLD)
