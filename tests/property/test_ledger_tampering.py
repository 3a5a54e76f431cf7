"""Whatever byte of a stored ledger is altered, verification finds it and names it; nothing else alarms it."""

import random
import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.keys.ed25519 import signing_key
from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.checkpoint import cosign
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.ledger.note import VerifierKey
from htfi.wiring.ledger import open_ledger, open_ledger_for_cosigning, open_ledger_readonly

ORIGIN = "htfi.example/tampering"
GROUPS = (1, 2, 97, 156, 1, 300)  # cuts in the middle of tiles, and at 256
NUM_ENTRIES = sum(GROUPS)
ENTRIES = [random.Random(index).randbytes(40 + index % 60) for index in range(NUM_ENTRIES)]

# how to read the cells of a column, and how to replace one
CELLS = (
    ("SELECT rowid, body FROM entries ORDER BY idx", "UPDATE entries SET body = ? WHERE rowid = ?"),
    ("SELECT rowid, hashes FROM tiles ORDER BY level, idx", "UPDATE tiles SET hashes = ? WHERE rowid = ?"),
    ("SELECT rowid, note FROM checkpoints ORDER BY size", "UPDATE checkpoints SET note = ? WHERE rowid = ?"),
    ("SELECT rowid, line FROM cosignatures", "UPDATE cosignatures SET line = ? WHERE rowid = ?"),
    (
        "SELECT rowid, verifier_key FROM cosignatures",
        "UPDATE cosignatures SET verifier_key = ? WHERE rowid = ?",
    ),
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    log = open_ledger(folder, origin=ORIGIN, durable=False)
    start = 0
    for group in GROUPS:
        log.append(ENTRIES[start : start + group])
        start += group
    log.close()
    view = open_ledger_for_cosigning(folder)
    signer = signing_key("w.example", b"\x02" * 32)
    note = view.checkpoint()[1]
    key = VerifierKey("w.example", 4, signer.public_key)
    view.add_cosignature(NUM_ENTRIES, key, cosign(note.text, "w.example", 1_700_000_000, signer))
    view.close()
    return folder


def verify(folder: Path) -> None:
    view = open_ledger_readonly(folder)
    try:
        view.verify()
    finally:
        view.close()


def test_untouched_ledger_verifies(ledger: Path) -> None:
    view = open_ledger_readonly(ledger)
    audit = view.verify()
    assert (audit.size, audit.num_checkpoints, audit.num_cosignatures) == (NUM_ENTRIES, len(GROUPS) + 1, 1)
    assert audit.root == view.root()
    view.close()


@given(st.data(), st.integers(0, len(CELLS) - 1))
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_altered_byte_of_any_cell_is_found(ledger: Path, data: st.DataObject, which: int) -> None:
    read, write = CELLS[which]
    database = sqlite3.connect(ledger / "ledger.db", isolation_level=None)
    rows = database.execute(read).fetchall()
    row_id, value = rows[data.draw(st.integers(0, len(rows) - 1))]
    content = bytearray(value if isinstance(value, bytes) else value.encode())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    # CAST keeps a text a text even where its bytes are no UTF-8 any more.
    sql = write if isinstance(value, bytes) else write.replace("= ? WHERE", "= CAST(? AS TEXT) WHERE")
    database.execute(sql, (bytes(content), row_id))
    try:
        with pytest.raises(IntegrityError, match=r"ledger\.db"):
            verify(ledger)
    finally:
        database.execute(write, (value, row_id))
        database.close()
    verify(ledger)


@given(st.integers(0, NUM_ENTRIES - 1), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_altered_entry_is_named(ledger: Path, index: int, data: st.DataObject) -> None:
    content = bytearray(ENTRIES[index])
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1
    with (
        altered_entry(ledger, index, bytes(content)),
        pytest.raises(IntegrityError, match=rf"db: entry {index} was altered: it no longer"),
    ):
        verify(ledger)


@given(st.integers(0, NUM_ENTRIES - 1))
@settings(max_examples=examples(30), deadline=None)
def test_entry_altered_together_with_its_hash_is_placed_between_checkpoints(ledger: Path, index: int) -> None:
    forged = b"forged"
    database = sqlite3.connect(ledger / "ledger.db", isolation_level=None)
    (tile,) = database.execute(
        "SELECT hashes FROM tiles WHERE level = 0 AND idx = ?", (index // 256,)
    ).fetchone()
    hashes = bytearray(tile)
    hashes[index % 256 * 32 : index % 256 * 32 + 32] = leaf_hash(forged)
    write = "UPDATE tiles SET hashes = ? WHERE level = 0 AND idx = ?"
    database.execute(write, (bytes(hashes), index // 256))
    try:
        with altered_entry(ledger, index, forged), pytest.raises(IntegrityError) as caught:
            verify(ledger)
    finally:
        database.execute(write, (tile, index // 256))
        database.close()
    found = re.search(r"one of entries (\d+) to (\d+) was altered together with its hash", str(caught.value))
    assert found is not None
    assert int(found[1]) <= index <= int(found[2])


@pytest.mark.parametrize("index", [0, 255, 256, NUM_ENTRIES - 1])
def test_altered_hash_is_told_from_an_altered_entry(ledger: Path, index: int) -> None:
    database = sqlite3.connect(ledger / "ledger.db", isolation_level=None)
    (tile,) = database.execute(
        "SELECT hashes FROM tiles WHERE level = 0 AND idx = ?", (index // 256,)
    ).fetchone()
    hashes = bytearray(tile)
    hashes[index % 256 * 32] ^= 1
    write = "UPDATE tiles SET hashes = ? WHERE level = 0 AND idx = ?"
    database.execute(write, (bytes(hashes), index // 256))
    try:
        with pytest.raises(
            IntegrityError, match=f"hash kept for entry {index} was altered; the entry itself is intact"
        ):
            verify(ledger)
    finally:
        database.execute(write, (tile, index // 256))
        database.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM entries WHERE idx = 300", "entry 300 is missing"),
        (
            f"DELETE FROM entries WHERE idx = {NUM_ENTRIES - 1}",
            "holds 556 entries, but its newest checkpoint is of size 557",
        ),
        (
            f"INSERT INTO entries VALUES ({NUM_ENTRIES}, x'00')",
            "holds 558 entries, but its newest checkpoint is of size 557",
        ),
        ("DELETE FROM tiles WHERE level = 1", "hash tile 1/0 was altered; the entries themselves are intact"),
        ("UPDATE checkpoints SET size = 98 WHERE size = 100", "checkpoint kept for size 98 is of size 100"),
        (
            f"DELETE FROM checkpoints WHERE size = {NUM_ENTRIES}",
            "holds 557 entries, but its newest checkpoint is of size 257",
        ),
        ("UPDATE meta SET value = 'nobody'", "damaged"),
        ("DELETE FROM meta", "does not name the key that signs it"),
        ("UPDATE entries SET body = 'text' WHERE idx = 3", "entry 3 is not a blob"),
        ("DROP TABLE tiles", "is damaged or not a ledger"),
    ],
)
def test_missing_and_foreign_rows_are_found(
    ledger: Path, tmp_path: Path, statement: str, message: str
) -> None:
    shutil.copy(ledger / "ledger.db", tmp_path)
    database = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    database.execute(statement)
    database.close()
    with pytest.raises(IntegrityError, match=message):
        verify(tmp_path)


def test_flipped_bytes_of_the_file_never_change_what_a_verified_ledger_says(
    ledger: Path, tmp_path: Path
) -> None:
    """Bytes in free space say nothing; every other flip must be found. Seeded, so that it never flickers."""
    noise = random.Random(11)
    pristine = (ledger / "ledger.db").read_bytes()
    path, num_found = tmp_path / "ledger.db", 0
    for _ in range(200):
        content = bytearray(pristine)
        content[noise.randrange(len(content))] ^= 1 << noise.randrange(8)
        path.write_bytes(content)
        try:
            view = open_ledger_readonly(tmp_path)
            try:
                view.verify()
                assert list(view.entries()) == ENTRIES
            finally:
                view.close()
        except IntegrityError:
            num_found += 1
    assert num_found > 20


@contextmanager
def altered_entry(folder: Path, index: int, body: bytes) -> Generator[None]:
    database = sqlite3.connect(folder / "ledger.db", isolation_level=None)
    database.execute("UPDATE entries SET body = ? WHERE idx = ?", (body, index))
    try:
        yield
    finally:
        database.execute("UPDATE entries SET body = ? WHERE idx = ?", (ENTRIES[index], index))
        database.close()
