"""The ledger's database: one SQLite file in WAL mode. Implements governance's `LeafStore`; wiring opens it.

One process may append: it holds an advisory lock on a file beside the database, taken before the database is opened.
Any number may read beside it, and a witness may add cosignatures. A group of entries is one transaction, synced before
it is receipted. SQLite's errors are translated here.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from htfi.adapters.stores.owner_lock import OwnerLock
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput, LedgerUnavailable
from htfi.domain.files import (
    open_new,
    remove_temporary_files,
    sync_folder,
    temporary_path,
    write_atomically,
)
from htfi.governance.ports import EntryGroup, Tombstone

APPLICATION_ID = 0x48544649  # 'HTFI', in the SQLite header
SCHEMA_VERSION = 1
DELETIONS_VERSION = 2  # since a first deletion: with the table of tombstones
PUBLISHED = "checkpoint"  # the newest signed checkpoint, as a file beside the database
PAGE_BYTES = (
    32_768  # of entries of 1.6 kB twenty, of JSON five: there 1.6× the appends of 16 KiB pages, else as many
)
WAL_PAGES = 128  # 4 MiB of write-ahead log, then `tidy` moves it into the database
MAX_WAL_PAGES = 1024  # without a checkpoint thread, a commit does it
ROWS_PER_QUERY = 64
ROWS_PER_INSERT = 64  # of one statement: half the time of a statement for each, and hardly more than of 256
BUSY_MS = 10_000  # a witness's cosignature may hold the write lock for a moment

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (idx INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE tiles (level INTEGER NOT NULL, idx INTEGER NOT NULL, hashes BLOB NOT NULL, UNIQUE (level, idx));
CREATE TABLE checkpoints (size INTEGER PRIMARY KEY, note TEXT NOT NULL);
CREATE TABLE cosignatures (
    size INTEGER NOT NULL, verifier_key TEXT NOT NULL, line TEXT NOT NULL, UNIQUE (size, verifier_key)
);
"""

_DELETIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS tombstones (
    idx INTEGER PRIMARY KEY, leaf_hash BLOB NOT NULL, class TEXT NOT NULL, at_ns INTEGER NOT NULL,
    authorisation INTEGER NOT NULL
)
"""


class SqliteLog:
    """An open ledger database; see LeafStore for what each method promises."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: OwnerLock | None) -> None:
        self.name = str(path)
        self._connection = connection
        self._lock = lock
        self._wal_bytes = 0
        self._failure: str | None = None  # set once a failed sync leaves open what the disk holds
        with self._translated("read"):
            row = connection.execute("SELECT value FROM meta WHERE name = 'verifier_key'").fetchone()
        if row is None or not isinstance(row[0], str):
            raise IntegrityError(f"{path} does not name the key that signs it: restore it from a copy")
        self.verifier_key: str = row[0]
        self._has_deletions = self._one("SELECT 1 FROM sqlite_master WHERE name = 'tombstones'") is not None

    def extent(self) -> tuple[int, int]:
        row = self._one("SELECT (SELECT max(idx) FROM entries), (SELECT max(size) FROM checkpoints)")
        if row is None or not isinstance(row[1], int):
            raise IntegrityError(f"{self.name} holds no checkpoint: restore it from a copy")
        return (0 if row[0] is None else row[0] + 1), row[1]

    def entries(self, start: int, stop: int) -> Iterator[bytes]:
        query = "SELECT idx, body FROM entries WHERE idx >= ? AND idx < ? ORDER BY idx"
        for expected, (index, body) in enumerate(self._rows(query, (start, stop)), start):
            if index != expected:
                return
            if not isinstance(body, bytes):
                raise IntegrityError(f"{self.name}: entry {index} is not a blob")
            yield body

    def tombstones(self, start: int, stop: int) -> Sequence[Tombstone]:
        if not self._has_deletions:
            return ()
        query = (
            "SELECT idx, leaf_hash, class, at_ns, authorisation FROM tombstones "
            "WHERE idx >= ? AND idx < ? ORDER BY idx"
        )
        found: list[Tombstone] = []
        for index, leaf, retention_class, at_ns, authorisation in self._rows(query, (start, stop)):
            if (
                not isinstance(leaf, bytes)
                or not isinstance(at_ns, int)
                or not isinstance(authorisation, int)
            ):
                raise IntegrityError(f"{self.name}: the tombstone of entry {index} is damaged")
            found.append(Tombstone(index, leaf, self._text(retention_class), at_ns, authorisation))
        return found

    def delete(self, tombstones: Sequence[Tombstone]) -> None:
        """Take the bytes of entries away and leave their tombstones, in one transaction.

        Freed pages still hold bytes until `remove_freed`. Raises: InvalidInput, LedgerUnavailable.
        """
        if self._lock is None:
            raise InvalidInput(f"{self.name} is open for reading only")

        def remove(connection: sqlite3.Connection) -> None:
            connection.execute(_DELETIONS_SCHEMA)
            connection.execute(f"PRAGMA user_version = {DELETIONS_VERSION}")
            for one in tombstones:
                connection.execute(
                    "INSERT INTO tombstones VALUES (?, ?, ?, ?, ?)",
                    (one.index, one.leaf_hash, one.retention_class, one.at_ns, one.authorisation),
                )
                connection.execute("UPDATE entries SET body = x'' WHERE idx = ?", (one.index,))

        self._write(remove)
        self._has_deletions = True

    def remove_freed(self) -> None:
        """Build every page of the file anew, so that no byte of a deleted entry is left in it or in its journal.

        Raises: LedgerUnavailable.
        """
        with self._translated("rewrite"):
            for statement in ("PRAGMA secure_delete = ON", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                self._connection.execute(statement)

    def tile(self, level: int, index: int) -> bytes:
        row = self._one("SELECT hashes FROM tiles WHERE level = ? AND idx = ?", (level, index))
        return row[0] if row is not None and isinstance(row[0], bytes) else b""

    def checkpoint(self, size: int) -> str | None:
        row = self._one("SELECT note FROM checkpoints WHERE size = ?", (size,))
        return None if row is None else self._text(row[0])

    def checkpoints(self) -> Iterator[tuple[int, str]]:
        for size, note in self._rows("SELECT size, note FROM checkpoints ORDER BY size"):
            yield size, self._text(note)

    def cosignatures(self, size: int) -> list[tuple[str, str]]:
        query = "SELECT verifier_key, line FROM cosignatures WHERE size = ? ORDER BY rowid"
        return [(self._text(key), self._text(line)) for key, line in self._rows(query, (size,))]

    def cosigned_sizes(self) -> list[int]:
        return [size for (size,) in self._rows("SELECT DISTINCT size FROM cosignatures ORDER BY size")]

    def append(self, group: EntryGroup) -> None:
        if self._lock is None:
            raise InvalidInput(f"{self.name} is open for reading only")

        def insert(connection: sqlite3.Connection) -> None:
            _insert_entries(connection, group)
            connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?, ?)", group.tiles)
            size = group.start + len(group.entries)
            connection.execute("INSERT INTO checkpoints VALUES (?, ?)", (size, group.checkpoint))

        self._write(insert)
        self._wal_bytes += sum(map(len, group.entries))

    def tidy(self) -> None:
        if self._wal_bytes >= WAL_PAGES * PAGE_BYTES:
            with self._translated("tidy"):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._wal_bytes = 0

    def add_cosignature(self, size: int, verifier_key: str, line: str) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO cosignatures VALUES (?, ?, ?)", (size, verifier_key, line)
            )

        self._write(insert)

    def publish(self, checkpoint: str) -> None:
        published = Path(self.name).with_name(PUBLISHED)
        try:
            write_atomically(published, checkpoint.encode())
        except OSError as error:
            raise LedgerUnavailable(
                f"cannot write {published}: {error.strerror}; every entry is recorded, "
                "free some disk space and run the same command again"
            ) from error

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _write(self, insert: Callable[[sqlite3.Connection], None]) -> None:
        if self._failure is not None:
            raise LedgerUnavailable(
                f"{self.name} failed earlier ({self._failure}): open it again to continue"
            )
        connection = self._connection
        with self._translated("write to"):
            try:
                connection.execute("BEGIN IMMEDIATE")
                insert(connection)
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                # After a failed sync the kernel may call lost pages clean: only a fresh open shows it.
                if _error_name(error).startswith("SQLITE_IOERR"):
                    self._failure = str(error)
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _one(self, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        with self._translated("read"):
            return self._connection.execute(query, values).fetchone()

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._translated("read"):
            cursor = self._connection.execute(query, values)
            rows = cursor.fetchmany(ROWS_PER_QUERY)
        while rows:
            yield from rows
            with self._translated("read"):
                rows = cursor.fetchmany(ROWS_PER_QUERY)

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise IntegrityError(
                f"{self.name}: a text in the ledger is not valid text: restore it from a copy"
            )
        return value

    def _translated(self, act: str) -> contextlib.AbstractContextManager[None]:
        return _translated(self.name, act)


def _insert_entries(connection: sqlite3.Connection, group: EntryGroup) -> None:
    # Python looks for an adapter of every value that is bytes, which takes longer than copying an entry; a bytearray
    # is bound at once.
    bodies = map(bytearray, group.entries)
    values = chain.from_iterable(enumerate(bodies, group.start))
    while part := tuple(islice(values, 2 * ROWS_PER_INSERT)):
        connection.execute(_insert_statement(len(part) // 2), part)


@lru_cache(maxsize=ROWS_PER_INSERT)
def _insert_statement(num_rows: int) -> str:
    return "INSERT INTO entries VALUES " + ",".join(["(?,?)"] * num_rows)


def create_store(path: Path, *, verifier_key: str, checkpoint: str) -> None:
    """Make an empty ledger that appears whole or not at all; the caller holds its OwnerLock.

    `checkpoint` is the signed note of size 0. Raises: LedgerUnavailable.
    """
    draft = temporary_path(path)
    try:
        remove_temporary_files(path.parent, [path.name])  # of a start that was killed
        os.close(open_new(draft))  # its journals get its rights
        with _translated(str(path), "create"), contextlib.closing(sqlite3.connect(draft)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.executescript(_SCHEMA)
            connection.execute("INSERT INTO meta VALUES ('verifier_key', ?)", (verifier_key,))
            connection.execute("INSERT INTO checkpoints VALUES (0, ?)", (checkpoint,))
            connection.commit()
            connection.execute("PRAGMA journal_mode = WAL")
        draft.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise LedgerUnavailable(f"cannot create {path}: {error.strerror}") from error


def open_store(path: Path, lock: OwnerLock, *, durable: bool = True) -> SqliteLog:
    """Open for appending. Without `durable` a commit does not wait for the disk: for measurements only.

    Raises: IntegrityError, LedgerUnavailable.
    """
    connection = _connect(path, "rw")
    with _translated(str(path), "open"):
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {MAX_WAL_PAGES}")
    return SqliteLog(path, connection, lock)


def open_store_readonly(path: Path) -> SqliteLog:
    """Open for reading, beside a running writer or from read-only media. Raises: as open_store."""
    try:
        return SqliteLog(path, _connect(path, "ro"), None)
    except LedgerUnavailable:
        # WAL readers need a -shm file; a ledger at rest on read-only media has none and cannot get one.
        if path.with_name(path.name + "-wal").exists():
            raise
        return SqliteLog(path, _connect(path, "ro&immutable=1"), None)


def open_store_for_cosigning(path: Path) -> SqliteLog:
    """Open for reading and for cosignatures, beside a running writer. Raises: as open_store."""
    connection = _connect(path, "rw")
    with _translated(str(path), "open"):
        connection.execute("PRAGMA synchronous = FULL")
    return SqliteLog(path, connection, None)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    if not path.is_file():
        raise InvalidInput(f"there is no ledger at {path}: name the folder of a run")
    if path.stat().st_size == 0:
        raise IntegrityError(f"{path} is empty, so it was truncated: restore it from a copy")
    with _translated(str(path), "open"):
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None)
        connection.text_factory = _lenient_text
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION_ID:
                raise IntegrityError(f"{path} is another program's database, not an HTFI ledger")
            if version not in (SCHEMA_VERSION, DELETIONS_VERSION):
                raise IntegrityError(
                    f"{path} is a ledger of version {version}: this program reads {SCHEMA_VERSION} and "
                    f"{DELETIONS_VERSION}"
                )
        except (sqlite3.Error, HtfiError):
            connection.close()
            raise
    return connection


@contextlib.contextmanager
def _translated(where: str, act: str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = _error_name(error)
        if (
            name in _DAMAGE_ERRORS
            or name.startswith("SQLITE_CORRUPT")
            or isinstance(error, sqlite3.InterfaceError)
        ):
            raise IntegrityError(
                f"{where} is damaged or not a ledger ({error}): restore it from a copy"
            ) from error
        reason = _ERROR_TEXTS.get(name.split("_")[1] if "_" in name else "", str(error))
        raise LedgerUnavailable(f"cannot {act} {where}: {reason}") from error


_DAMAGE_ERRORS = frozenset(
    {"SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT"}
)
_ERROR_TEXTS = {
    "FULL": "the disk is full; free some space and start again",
    "READONLY": "the file or its folder is read-only",
    "IOERR": "the disk failed, or a limit on file sizes was met; start again once it takes writes",
    "BUSY": "another process holds it for writing",
}


def _lenient_text(raw: bytes) -> str:
    """Damaged text comes back marked, so that the signature over it fails and names its place."""
    return raw.decode(errors="replace")


def _error_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
