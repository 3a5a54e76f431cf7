"""A copy of a SQLite database that others go on writing: what it held at one instant."""

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import open_new

MAGIC = b"SQLite format 3\0"
JOURNALS = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database
_WAIT_S = 10.0


def copy_database(source: Path, target: Path) -> None:
    """Copy it by SQLite's backup in one step: writers go on, a checkpoint of the write-ahead log waits meanwhile.

    Raises: DependencyUnavailable.
    """
    try:
        os.close(open_new(target))
        with (
            contextlib.closing(
                sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True, timeout=_WAIT_S)
            ) as given,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            copy.execute("PRAGMA synchronous = OFF")  # the caller syncs the file
            given.backup(copy)
    except (sqlite3.Error, OSError) as error:
        raise DependencyUnavailable(f"{source}: cannot be copied to {target}: {error}") from error
    remove_journals(target)


def remove_journals(database: Path) -> None:
    """What readers of a copy left beside it, which is empty. Raises: OSError."""
    for suffix in JOURNALS:
        database.with_name(database.name + suffix).unlink(missing_ok=True)
