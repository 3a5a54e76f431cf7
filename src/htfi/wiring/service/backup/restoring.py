"""A service's folder from a backup: every file is checked against the manifest and every log verified first."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.files import make_private, open_new
from htfi.wiring.service.backup.draft_folder import draft_folder
from htfi.wiring.service.backup.making import check_log, logs_below
from htfi.wiring.service.backup.manifest import (
    CONTENT,
    MANIFEST,
    ROWS,
    BackupFile,
    Manifest,
    files_below,
    read_manifest,
)
from htfi.wiring.service.tenants import SERVICE_DATABASE_FILE, open_database, read_service

_CHUNK_BYTES = 1 << 20
SQLITE = "sqlite"


def restore_backup(backup: Path, place: Path, database: str | None = None) -> Manifest:
    """Make a service's folder of a backup; it appears whole or not at all.

    `database`: where its rows go, an empty PostgreSQL or `sqlite`; None for what service.toml states, which must then
    be SQLite, so that a restore for trial does not write into the database of the service. Raises: InvalidInput,
    IntegrityError naming what was altered, DependencyUnavailable.
    """
    manifest = read_manifest(backup)
    there = {one.relative_to(backup).as_posix() for one in files_below(backup)} - {MANIFEST}
    stated = {one.path for one in manifest.files}
    for name in sorted(there ^ stated):
        is_more = name in there
        raise IntegrityError(f"{backup / name}: {'is not in the manifest' if is_more else 'is missing'}")
    with draft_folder(place) as draft:
        rows = b""
        for one in manifest.files:
            if one.path == ROWS:
                rows = b"".join(_checked(backup, one))
            else:
                _write(draft / Path(one.path).relative_to(CONTENT), _checked(backup, one))
        _check_logs(manifest, draft)
        _load_rows(manifest, rows, draft, database)
    return manifest


def _checked(backup: Path, one: BackupFile) -> Iterator[bytes]:
    """A file's content in pieces. Raises: IntegrityError at its end where it is not as stated."""
    digest, num_bytes = hashlib.sha256(), 0
    descriptor = os.open(backup / one.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(_CHUNK_BYTES):
            digest.update(data)
            num_bytes += len(data)
            yield data
    if (num_bytes, digest.hexdigest()) != (one.num_bytes, one.sha256):
        raise IntegrityError(
            f"{backup / one.path}: was altered: it is not as the manifest states; use another backup"
        )


def _write(path: Path, pieces: Iterator[bytes]) -> None:
    make_private(path.parent)
    with os.fdopen(open_new(path), "wb") as file:
        for data in pieces:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check_logs(manifest: Manifest, draft: Path) -> None:
    stated = {one.path: one for one in manifest.ledgers}
    found = {path.relative_to(draft).as_posix(): path for path in logs_below(draft)}
    if set(stated) != set(found):
        raise IntegrityError(f"{MANIFEST}: names other logs than the backup holds: it was altered")
    for name, path in found.items():
        log = check_log(path)
        if (log.size, log.checkpoint) != (stated[name].size, stated[name].checkpoint):
            raise IntegrityError(f"{name}: is not the log that the manifest states: the backup was altered")


def _load_rows(manifest: Manifest, data: bytes, draft: Path, database: str | None) -> None:
    service = read_service(draft)
    if not manifest.num_steps:
        return
    if database is None and service.config.database:
        raise InvalidInput(
            f"the service of this backup has its rows in {service.config.database.split('@')[-1]}: name an empty "
            "database with --database postgresql://USER@HOST/NAME, or --database sqlite for one in the folder"
        )
    from htfi.adapters.sql.portable_tables import check_rows, write_tables

    try:
        given = [msgspec.json.decode(line, type=tuple[str, dict[str, Any]]) for line in data.splitlines()]
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{ROWS}: is damaged: {error}") from error
    where = "" if database in (None, SQLITE) else database
    with closing(open_database(service, where, migrates=False)) as store:
        write_tables(store, manifest.num_steps, check_rows(manifest.num_steps, given))
        store.migrate()
    if not where:
        (draft / SERVICE_DATABASE_FILE).chmod(0o600)
