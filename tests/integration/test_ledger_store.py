"""The LeafStore contract, on a hand-written fake and on SQLite; and the files that are no ledger of ours."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from htfi.adapters.keys.ed25519 import signing_key, verify_signature
from htfi.adapters.stores.owner_lock import OwnerLock
from htfi.adapters.stores.sqlite_log import create_store, open_store, open_store_readonly
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.ledger.checkpoint import Checkpoint, log_key, sign_checkpoint
from htfi.governance.ledger.log import TransparencyLog
from htfi.governance.ledger.merkle import EMPTY_ROOT, leaf_hash, perfect_root
from htfi.governance.ports import EntryGroup, LeafStore, Tombstone
from htfi.wiring.ledger import open_ledger, open_ledger_readonly

ORIGIN = "htfi.example/store"
SIGNER = signing_key(ORIGIN, b"\x05" * 32)
GENESIS = str(sign_checkpoint(Checkpoint(ORIGIN, 0, EMPTY_ROOT), SIGNER))
VERIFIER_KEY = str(log_key(ORIGIN, SIGNER))

Open = Callable[[], LeafStore]


class MemoryStore:
    """The simplest store that keeps the contract."""

    name = "memory"
    verifier_key = VERIFIER_KEY

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.notes = {0: GENESIS}
        self.lines: dict[int, dict[str, str]] = {}
        self.published = ""

    def extent(self) -> tuple[int, int]:
        return len(self.bodies), max(self.notes)

    def entries(self, start: int, stop: int) -> Iterator[bytes]:
        return iter(self.bodies[start:stop])

    def tombstones(self, start: int, stop: int) -> Sequence[Tombstone]:
        return ()

    def tile(self, level: int, index: int) -> bytes:
        return self.tiles.get((level, index), b"")

    def checkpoint(self, size: int) -> str | None:
        return self.notes.get(size)

    def checkpoints(self) -> Iterator[tuple[int, str]]:
        return iter(sorted(self.notes.items()))

    def cosignatures(self, size: int) -> list[tuple[str, str]]:
        return list(self.lines.get(size, {}).items())

    def cosigned_sizes(self) -> list[int]:
        return sorted(self.lines)

    def append(self, group: EntryGroup) -> None:
        self.bodies += group.entries
        self.tiles.update({(level, index): hashes for level, index, hashes in group.tiles})
        self.notes[len(self.bodies)] = group.checkpoint

    def add_cosignature(self, size: int, verifier_key: str, line: str) -> None:
        self.lines.setdefault(size, {})[verifier_key] = line

    def publish(self, checkpoint: str) -> None:
        self.published = checkpoint

    def close(self) -> None:
        pass


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeafStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    path = tmp_path / "ledger.db"
    lock = OwnerLock(path)
    create_store(path, verifier_key=VERIFIER_KEY, checkpoint=GENESIS)
    opened = open_store(path, lock)
    yield opened
    opened.close()


def test_new_store_is_empty_with_its_first_checkpoint(store: LeafStore) -> None:
    assert store.extent() == (0, 0)
    assert list(store.checkpoints()) == [(0, GENESIS)]
    assert store.checkpoint(0) == GENESIS
    assert store.checkpoint(1) is None
    assert list(store.entries(0, 10)) == []
    assert store.tile(0, 0) == b""
    assert store.verifier_key == VERIFIER_KEY


def test_group_is_kept_whole_and_tiles_replace_their_forerunners(store: LeafStore) -> None:
    store.append(EntryGroup(0, [b"a", b"", b"\x00\xff"], [(0, 0, b"3" * 96)], "note 3"))
    store.append(EntryGroup(3, [b"d"], [(0, 0, b"4" * 128), (1, 0, b"5" * 32)], "note 4"))
    assert store.extent() == (4, 4)
    assert list(store.entries(1, 4)) == [b"", b"\x00\xff", b"d"]
    assert store.tile(0, 0) == b"4" * 128
    assert store.tile(1, 0) == b"5" * 32
    assert list(store.checkpoints()) == [(0, GENESIS), (3, "note 3"), (4, "note 4")]


def test_newer_cosignature_of_a_witness_replaces_the_older(store: LeafStore) -> None:
    store.append(EntryGroup(0, [b"a"], [], "note 1"))
    store.add_cosignature(1, "w1", "first")
    store.add_cosignature(1, "w2", "other")
    store.add_cosignature(1, "w1", "second")
    assert sorted(store.cosignatures(1)) == [("w1", "second"), ("w2", "other")]
    assert store.cosignatures(0) == []
    assert store.cosigned_sizes() == [1]


def test_log_over_any_store_has_the_naive_root(store: LeafStore) -> None:
    log = TransparencyLog(store, SIGNER, verify_signature)
    entries = [b"%d" % index for index in range(512)]
    for start, stop in ((0, 1), (1, 300), (300, 512)):
        receipts = log.append(entries[start:stop])
        assert [receipt.index for receipt in receipts] == list(range(start, stop))
    leaves = [leaf_hash(entry) for entry in entries]
    assert [receipt.leaf_hash for receipt in receipts] == [leaf.hex() for leaf in leaves[300:]]
    assert log.root() == perfect_root(leaves)
    assert TransparencyLog(store, SIGNER, verify_signature).append([b"next"])[0].index == 512
    assert log.append([]) == []


def make_ledger(folder: Path) -> Path:
    log = open_ledger(folder, origin=ORIGIN)
    log.append([b"%d" % index for index in range(300)])
    log.close()
    return folder / "ledger.db"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b""), "is empty, so it was truncated"),
        (lambda path: path.write_bytes(b"not a database, by any means" * 100), "is damaged or not a ledger"),
        (lambda path: path.write_bytes(path.read_bytes()[:20_000]), "is damaged or not a ledger"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "is damaged or not a ledger"),
        (lambda path: execute(path, "PRAGMA application_id = 7"), "is another program's database"),
        (lambda path: execute(path, "PRAGMA user_version = 9"), "is a ledger of version 9"),
        (lambda path: execute(path, "DROP TABLE entries"), "is damaged or not a ledger"),
        (lambda path: execute(path, "UPDATE tiles SET hashes = x''"), "hash tile .* is cut short"),
        (
            lambda path: execute(path, "UPDATE tiles SET hashes = zeroblob(8192)"),
            "do not give the signed root",
        ),
        (
            lambda path: execute(path, "DELETE FROM entries WHERE idx = 299"),
            "holds 299 entries, but its checkpoint",
        ),
    ],
)
def test_damaged_or_foreign_file_is_refused_in_one_line(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(make_ledger(tmp_path))
    with pytest.raises(IntegrityError, match=message) as caught:
        open_ledger(tmp_path, origin=ORIGIN)
    assert "\n" not in str(caught.value)
    with pytest.raises(IntegrityError):  # and the lock was let go
        open_ledger(tmp_path, origin=ORIGIN)


def test_absent_ledger_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no ledger at"):
        open_ledger_readonly(tmp_path)


def test_reader_cannot_append(tmp_path: Path) -> None:
    store = open_store_readonly(make_ledger(tmp_path))
    with pytest.raises(InvalidInput, match="for reading only"):
        store.append(EntryGroup(300, [b"x"], [], "note"))
    store.close()


def test_half_made_ledger_of_a_killed_start_is_made_anew(tmp_path: Path) -> None:
    drafts = [tmp_path / f"ledger.db.0123abcd.new{ending}" for ending in ("", "-journal")]
    for draft in drafts:
        draft.write_bytes(b"half a database")
    make_ledger(tmp_path)
    assert not any(draft.exists() for draft in drafts)


def execute(path: Path, statement: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(statement)
    database.close()
