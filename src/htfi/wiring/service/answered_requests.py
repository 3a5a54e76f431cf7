"""What was asked for under an idempotency key and what was answered, in a SQLite file beside the run.

A key is written down with a token before anything is done. So a service that was killed in between knows, when the
same is asked again, that it may have been done, and what is done is named after the token: it is done once.
Source: draft-ietf-httpapi-idempotency-key-header.
"""

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.files import open_private
from htfi.domain.time import NS_PER_DAY, Clock, SystemClock
from htfi.wiring.request_token import RequestToken, new_token

ANSWERS = "answered-requests.sqlite"  # of a run's folder
KEPT_NS = NS_PER_DAY
MAX_KEYS = 10_000  # of a caller, within `KEPT_NS`

_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    caller TEXT NOT NULL, key TEXT NOT NULL, asked TEXT NOT NULL, at_ns INTEGER NOT NULL, token TEXT NOT NULL,
    status INTEGER, media_type TEXT, body BLOB, PRIMARY KEY (caller, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON requests (at_ns);
"""


class KeyReused(HtfiError):
    """An idempotency key came before with another request."""


class RequestUnderWay(HtfiError):
    """The request of a key is being answered."""


class TooManyKeys(HtfiError):
    """A caller has used too many keys within the time that they are kept."""


class StoredAnswer(NamedTuple):
    """The first answer to a request."""

    status: int
    media_type: str
    body: bytes


class AnsweredRequests:
    """Opened with its first key; used by any thread."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self._path, self._clock = folder / ANSWERS, clock or SystemClock()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._under_way: set[tuple[str, str]] = set()

    def begin(self, caller: str, key: str, asked: str) -> RequestToken | StoredAnswer:
        """The token to act under, or what was answered before. `asked` is the digest of the request.

        Raises: KeyReused, RequestUnderWay, TooManyKeys, DependencyUnavailable.
        """
        with self._transaction() as database:
            now_ns = self._clock.now_ns()
            database.execute("DELETE FROM requests WHERE at_ns < ?", (now_ns - KEPT_NS,))
            found = database.execute(
                "SELECT asked, at_ns, token, status, media_type, body FROM requests WHERE caller = ? AND key = ?",
                (caller, key),
            ).fetchone()
            if found is not None and found[0] != asked:
                raise KeyReused("the Idempotency-Key came before with another request: give each its own")
            if (caller, key) in self._under_way:
                raise RequestUnderWay("the request of this Idempotency-Key is being answered: ask again soon")
            if found is not None and found[3] is not None:
                return StoredAnswer(*found[3:])
            if found is not None:
                token = RequestToken(found[1], found[2], is_again=True)
            else:
                (num,) = database.execute(
                    "SELECT count(*) FROM requests WHERE caller = ?", (caller,)
                ).fetchone()
                if num >= MAX_KEYS:
                    raise TooManyKeys(f"{MAX_KEYS:,} Idempotency-Keys were used within a day: wait")
                token = RequestToken(now_ns, new_token(self._clock).text)
                database.execute(
                    "INSERT INTO requests VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)",
                    (caller, key, asked, token.at_ns, token.text),
                )
            self._under_way.add((caller, key))
            return token

    def answer(self, caller: str, key: str, answer: StoredAnswer) -> None:
        """Keep what was answered. Raises: DependencyUnavailable, where a repetition is done again under its token."""
        self._end(caller, key, "UPDATE requests SET status = ?, media_type = ?, body = ?", answer)

    def forget(self, caller: str, key: str) -> None:
        """Nothing was done. Raises: DependencyUnavailable."""
        self._end(caller, key, "DELETE FROM requests", ())

    def leave_open(self, caller: str, key: str) -> None:
        """It is not known whether it was done: who asks again is answered under the same token."""
        with self._lock:
            self._under_way.discard((caller, key))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _end(self, caller: str, key: str, change: str, values: tuple[object, ...]) -> None:
        try:
            with self._transaction() as database:
                database.execute(f"{change} WHERE caller = ? AND key = ?", (*values, caller, key))
        finally:
            self.leave_open(caller, key)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _opened(self._path)
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except (sqlite3.Error, OSError) as error:
                self._rollback()
                raise DependencyUnavailable(
                    f"{self._path}: {error}: free some disk space, or ask without an Idempotency-Key"
                ) from error

    def _rollback(self) -> None:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                connection.close()
                self._connection = None


def _opened(path: Path) -> sqlite3.Connection:
    os.close(open_private(path, os.O_RDWR))
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
