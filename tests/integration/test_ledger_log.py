"""The ledger of a folder: one owner, many readers, one key, groups whole or not at all."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from htfi.adapters.stores.owner_lock import OwnerLock
from htfi.domain.errors import IntegrityError, InvalidInput, LedgerUnavailable
from htfi.governance.ledger.merkle import leaf_hash, verify_consistency, verify_inclusion
from htfi.governance.ledger.note import parse_note
from htfi.wiring.ledger import open_ledger, open_ledger_readonly

ORIGIN = "htfi.example/log"
ENTRIES = [b"entry %d" % index for index in range(600)]

WRITER = """
import sys
from pathlib import Path
from htfi.wiring.ledger import open_ledger
log = open_ledger(Path(sys.argv[1]), origin="htfi.example/log")
print("open", flush=True)
for start in range(0, 6000, 60):
    log.append([b"entry %d" % index for index in range(start, start + 60)])
print("done", flush=True)
sys.stdin.read()
log.close()
"""


def fill(folder: Path, *groups: int) -> None:
    log = open_ledger(folder, origin=ORIGIN)
    for group in groups:
        log.append(ENTRIES[log.size : log.size + group])
    log.close()


def test_reopened_ledger_goes_on_where_it_stood(tmp_path: Path) -> None:
    for group in (1, 255, 1, 100, 243):
        fill(tmp_path, group)
    view = open_ledger_readonly(tmp_path)
    assert list(view.entries()) == ENTRIES
    assert view.entry(257) == ENTRIES[257]
    assert view.verify().num_checkpoints == 6
    view.close()


def test_root_depends_on_the_entries_alone(tmp_path: Path) -> None:
    roots = set[bytes]()
    for name, groups in (("a", (600,)), ("b", (1, 599)), ("c", (100,) * 6)):
        fill(tmp_path / name, *groups)  # each with a key of its own
        view = open_ledger_readonly(tmp_path / name)
        roots.add(view.root())
        view.close()
    assert len(roots) == 1


def test_proofs_hold_for_old_and_new_sizes(tmp_path: Path) -> None:
    fill(tmp_path, 300, 300)
    view = open_ledger_readonly(tmp_path)
    for size in (1, 255, 256, 257, 511, 600):
        root = view.root(size)
        for index in {0, size // 2, size - 1}:
            proof = view.inclusion_proof(index, size)
            assert verify_inclusion(leaf_hash(ENTRIES[index]), index, size, proof, root)
        assert verify_consistency(size, 600, view.consistency_proof(size), root, view.root())
    view.close()


@pytest.mark.parametrize("index", [-1, 600])
def test_entry_and_proof_outside_the_log_are_refused(tmp_path: Path, index: int) -> None:
    fill(tmp_path, 600)
    view = open_ledger_readonly(tmp_path)
    with pytest.raises(InvalidInput, match=f"has no entry {index}: it holds 600"):
        view.entry(index)
    with pytest.raises(InvalidInput, match=f"entry {index} is not among the first 600"):
        view.inclusion_proof(index)
    with pytest.raises(InvalidInput, match="has no tree of 601 entries: it holds 600"):
        view.root(601)
    with pytest.raises(InvalidInput, match="cannot extend one of 601"):
        view.consistency_proof(601)
    with pytest.raises(InvalidInput, match="no checkpoint of size 5: the nearest are of 0 and 600"):
        view.checkpoint(5)
    view.close()


def test_closing_publishes_the_newest_checkpoint(tmp_path: Path) -> None:
    fill(tmp_path, 10, 20)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["checkpoint", "ledger.db", "ledger.db.lock", "signing.key"]
    view = open_ledger_readonly(tmp_path)
    checkpoint, note = view.checkpoint()
    assert checkpoint.size == 30
    assert checkpoint.root == view.root()
    assert parse_note((tmp_path / "checkpoint").read_text()) == note
    view.close()


def test_group_that_fails_halfway_leaves_no_trace(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    database = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    database.execute(
        "CREATE TRIGGER no15 BEFORE INSERT ON entries WHEN new.idx = 15 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    log = open_ledger(tmp_path, origin=ORIGIN)
    root = log.root()
    with pytest.raises(LedgerUnavailable, match="cannot write to"):
        log.append(ENTRIES[10:30])
    assert (log.size, log.root(), log.verify().size) == (10, root, 10)
    database.execute("DROP TRIGGER no15")
    database.close()
    assert log.append(ENTRIES[10:30])[-1].index == 29
    assert log.verify().size == 30
    log.close()


def test_entry_too_long_for_a_bundle_is_refused_with_its_group(tmp_path: Path) -> None:
    log = open_ledger(tmp_path, origin=ORIGIN)
    log.append([b"z" * 65_535])
    with pytest.raises(InvalidInput, match="entry 2 is 65536 bytes: an entry holds at most 65535"):
        log.append([b"fine", b"z" * 65_536])
    assert log.size == 1
    log.close()


def test_second_process_is_refused_by_one_line_with_the_holders_pid(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "open\n"
    with pytest.raises(LedgerUnavailable) as caught:
        open_ledger(tmp_path, origin=ORIGIN)
    path = tmp_path / "ledger.db"
    assert str(caught.value) == (
        f"{path} is in use by process {writer.pid}: wait until it ends, or choose another folder"
    )
    writer.communicate()
    assert writer.returncode == 0
    open_ledger(tmp_path, origin=ORIGIN).close()


def test_same_process_cannot_open_it_twice_either(tmp_path: Path) -> None:
    log = open_ledger(tmp_path, origin=ORIGIN)
    with pytest.raises(LedgerUnavailable, match="is in use by process"):
        open_ledger(tmp_path, origin=ORIGIN)
    log.close()
    log.close()
    OwnerLock(tmp_path / "ledger.db").release()


def test_readers_verify_whole_ledgers_while_a_writer_runs(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "open\n"
    view = open_ledger_readonly(tmp_path)
    sizes: list[int] = []
    while not sizes or sizes[-1] < 6000:
        audit = view.verify()
        assert audit.size % 60 == 0
        size = view.size
        assert verify_consistency(
            audit.size, size, view.consistency_proof(audit.size, size), audit.root, view.root(size)
        )
        sizes.append(audit.size)
    assert sizes == sorted(sizes)
    view.close()
    writer.communicate()
    assert writer.returncode == 0


def test_other_key_lost_key_and_other_origin_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    fill(tmp_path / "other", 5)
    key = tmp_path / "signing.key"
    own = key.read_bytes()
    key.write_bytes((tmp_path / "other" / "signing.key").read_bytes())
    with pytest.raises(InvalidInput, match="this is another signing key"):
        open_ledger(tmp_path, origin=ORIGIN)
    key.write_text("garbage")
    with pytest.raises(InvalidInput, match="is not a signing key"):
        open_ledger(tmp_path, origin=ORIGIN)
    key.unlink()
    with pytest.raises(InvalidInput, match=r"is missing, so .* cannot grow: restore the key"):
        open_ledger(tmp_path, origin=ORIGIN)
    assert not key.exists()
    key.write_bytes(own)
    with pytest.raises(InvalidInput, match=r"is the log 'htfi.example/log', not 'htfi.example/x'"):
        open_ledger(tmp_path, origin="htfi.example/x")
    with pytest.raises(InvalidInput, match="cannot name a key"):
        open_ledger(tmp_path, origin="two words")
    open_ledger(tmp_path, origin=ORIGIN).close()


def test_checkpoint_signed_by_another_key_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    fill(tmp_path / "other", 5)
    other = open_ledger_readonly(tmp_path / "other")
    note = str(other.checkpoint()[1])
    other.close()
    database = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    database.execute("UPDATE checkpoints SET note = ? WHERE size = 5", (note,))
    database.close()
    with pytest.raises(IntegrityError, match="is not signed by"):
        open_ledger(tmp_path, origin=ORIGIN)


def test_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable, match=r"cannot write to .*: Not a directory"):
        open_ledger(tmp_path / "file" / "run", origin=ORIGIN)
