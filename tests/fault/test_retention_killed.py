"""SIGKILL at any instant of a deletion under retention: the log verifies, and the next run completes it."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.adapters.stores.decisions import journal_line
from htfi.adapters.stores.sqlite_log import SqliteLog
from htfi.domain.files import add_checksum
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import RetentionEnded
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.regulation.retention import DECISION, NEWS_BODY, RETENTION_CLASSES
from htfi.library.ledgers import verify_log
from htfi.pipeline.record.entry import encode_entry
from htfi.wiring import retention
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.outputs import write_parquet
from htfi.wiring.retention import apply_retention, plan_retention

NUM, NUM_OLD = 40, 25
PROBE = "Zyxel wins a very particular contract"
DAYS = {DECISION: NUM - NUM_OLD, NEWS_BODY: 0}

# Places of the deletion at which the process is killed: before the call of that name, or after it.
STEPS: dict[str, tuple[object, str, bool]] = {
    "before the order": (retention, "_record_orders", False),
    "after the order": (retention, "_record_orders", True),
    "before the bytes go": (SqliteLog, "delete", False),
    "after the bytes went": (SqliteLog, "delete", True),
    "before pages are written anew": (SqliteLog, "remove_freed", False),
    "after pages were written anew": (SqliteLog, "remove_freed", True),
    "before the table": (retention, "write_parquet", False),
    "after the table": (retention, "write_parquet", True),
    "before files go": (retention, "_delete_files", False),
    "after a first file went": (retention, "_delete_files", True),
}


@pytest.fixture
def run(tmp_path: Path, make_decisions) -> Path:
    """A run's folder of daily decisions, with what was derived from them and what was held back."""
    folder = tmp_path / "run"
    entries = [encode_entry(one) for one in make_decisions(NUM, headline=PROBE)[:NUM_OLD]]
    entries += [encode_entry(one) for one in make_decisions(NUM, headline="Fed cuts rates")[NUM_OLD:]]
    log = open_ledger(folder, origin="htfi.run")
    receipts = log.append(entries)
    lines = [journal_line(*pair) for pair in zip(receipts, entries, strict=True)]
    (folder / "decisions.jsonl").write_bytes(b"".join(lines))
    write_parquet(folder, log)
    log.close()
    (folder / "held_news.jsonl").write_bytes(add_checksum(b'{"headline":"%b"}' % PROBE.encode(), 0) + b"\n")
    (folder / "state.bin").write_bytes(PROBE.encode())
    (folder / "report.html").write_text(PROBE)
    return folder


def delete(run: Path) -> retention.RetentionPlan:
    now_ns = plan_retention(run, 0, {}).newest_ns + NS_PER_DAY // 2
    return apply_retention(run, now_ns, DAYS, RETENTION_CLASSES, "Ann Lee", "five years are over")


def killed(run: Path, prepare: Callable[[], None], after_s: float | None = None) -> bool:
    """Delete in a process of its own, which kills itself as `prepare` says, or is killed; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            delete(run)
        finally:
            os._exit(0)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def kill_at(step: str) -> None:
    """Let the process end itself there."""
    owner, name, is_after = STEPS[step]
    call = getattr(owner, name)

    def ended(*arguments: object, **named: object) -> object:
        if is_after:
            call(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it was killed")

    setattr(owner, name, ended)


def root_of(run: Path) -> bytes:
    log = open_ledger_readonly(run)
    try:
        return log.checkpoint()[0].root
    finally:
        log.close()


def verified(run: Path) -> tuple[int, list[str]]:
    """How many entries a ledger that verifies has lost, and what beside it does not hold."""
    log = open_ledger_readonly(run)
    try:
        audit, _, _, wrong = verify_log(run, log)
        return audit.num_deleted, list(wrong)
    finally:
        log.close()


def check_completed_by_the_next_run(run: Path, root: bytes) -> None:
    num_deleted, wrong = verified(run)
    assert num_deleted in (0, NUM_OLD)  # all or none, in one transaction
    if (run / "deletion.pending").exists():
        assert "run `htfi regulate retention apply` again" in wrong[0]
    else:
        assert wrong == []
    assert root_of(run) == root
    delete(run)
    assert verified(run) == (NUM_OLD, [])
    assert root_of(run) == root
    files = [path for path in run.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if PROBE.encode() in path.read_bytes()] == []
    assert not {"deletion.pending", "held_news.jsonl", "report.html", "state.bin"} & {
        path.name for path in files
    }
    orders = [one for one in governance_entries(run) if isinstance(one, RetentionEnded)]
    assert delete(run).is_empty  # a third time there is nothing to do, and nothing is recorded
    assert [one for one in governance_entries(run) if isinstance(one, RetentionEnded)] == orders


@pytest.mark.parametrize("step", STEPS)
def test_deletion_killed_at_a_step_is_completed_by_the_next_run(run: Path, step: str) -> None:
    root = root_of(run)
    assert killed(run, lambda: kill_at(step)), step
    check_completed_by_the_next_run(run, root)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]
)
def test_deletion_killed_at_a_random_instant_is_completed_by_the_next_run(run: Path, seed: int) -> None:
    root = root_of(run)
    killed(run, lambda: None, random.Random(seed).uniform(0.0, 0.12))
    check_completed_by_the_next_run(run, root)


def test_what_is_left_is_proved_and_what_is_gone_keeps_its_place(run: Path) -> None:
    old = open_ledger_readonly(run)
    leaves = [leaf_hash(entry) for entry in old.entries()]
    proofs = [old.inclusion_proof(index) for index in range(NUM)]
    old.close()
    delete(run)
    log = open_ledger_readonly(run)
    try:
        assert [leaf for _, leaf in log.signed_entries()] == leaves
        assert [log.inclusion_proof(index) for index in range(NUM)] == proofs
    finally:
        log.close()
