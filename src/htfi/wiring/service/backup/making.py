"""A backup of a service's folder while the service and its runs go on.

The order of copying makes the copies fit: what is derived from a ledger and the orders that follow from it come before
the ledger, the governance log and the news that it refers to after it. So no copy tells of what the copied ledger does
not hold, and nothing that the ledger refers to is missing.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from htfi import __version__
from htfi.adapters.keys.mark_key import MARK_KEY_FILE
from htfi.adapters.stores.decision_table import TABLE
from htfi.adapters.stores.decisions import JOURNAL
from htfi.adapters.stores.order_log import ORDERS
from htfi.adapters.stores.sqlite_copy import JOURNALS, MAGIC, copy_database, remove_journals
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.domain.files import make_private, open_new
from htfi.domain.time import SystemClock, format_ns
from htfi.governance.ledger.log import LogReader
from htfi.wiring.governance_log import GOVERNANCE_DATABASE
from htfi.wiring.ledger import DATABASE, SIGNING_KEY, is_running, open_ledger_readonly
from htfi.wiring.models.config import CACHE_FOLDER
from htfi.wiring.order_record import ORDERS_FOLDER
from htfi.wiring.outputs import (
    NODES_FILE,
    REPORT,
    STATE,
    STATEMENTS,
    check_outputs,
    recorded_run,
    repair_journal,
)
from htfi.wiring.service.answered_requests import ANSWERS
from htfi.wiring.service.backup.draft_folder import draft_folder
from htfi.wiring.service.backup.manifest import (
    CONTENT,
    FORMAT,
    MANIFEST,
    ROWS,
    BackupFile,
    BackupLedger,
    Manifest,
    digest_of,
    encode_manifest,
    files_below,
)
from htfi.wiring.service.tenants import SERVICE_DATABASE_FILE, ServiceFolder, read_service, read_service_rows

_FIRST = (STATE, JOURNAL, TABLE, "checkpoint", STATEMENTS, REPORT, NODES_FILE, ANSWERS)
_LOGS = (DATABASE, GOVERNANCE_DATABASE)
_SKIPPED_ENDINGS = (".lock", ".new", *JOURNALS)
_CHUNK_BYTES = 1 << 20
_KEY_HEAD_BYTES = 65_536


def make_backup(folder: Path, place: Path, *, with_keys: bool = False) -> Manifest:
    """Copy a service's folder and the rows of its database to a new folder, which appears whole or not at all.

    Raises: InvalidInput, IntegrityError where a log does not hold, DependencyUnavailable.
    """
    service = read_service(folder)
    root = folder.resolve()
    if place.resolve().is_relative_to(root):
        raise InvalidInput(f"{place} lies in the service's folder: name a folder elsewhere")
    with draft_folder(place) as draft:
        content = draft / CONTENT
        make_private(content)
        left_out = [
            f"{what} of {name}, {where}: it lies outside of the service's folder"
            for name, run in service.runs().items()
            for what, where in (("the run", run.folder), ("the governance folder", run.governance))
            if where is not None and not where.resolve().is_relative_to(root)
        ]
        keys: list[str] = []
        for source in sorted(_files(folder, left_out), key=lambda path: _turn(path.relative_to(folder))):
            name = source.relative_to(folder)
            if not with_keys and _is_private_key(source):
                keys.append(name.as_posix())
            else:
                _copy(source, content / name)
        num_steps, rows = read_service_rows(service)
        _write_rows(draft / ROWS, rows)
        ledgers, remarks = _completed(service, content)
        manifest = Manifest(
            FORMAT, __version__, format_ns(SystemClock().now_ns()), num_steps,
            {name: len(given) for name, given in rows.items()}, with_keys, tuple(sorted(keys)), tuple(left_out),
            tuple(remarks), tuple(ledgers),
            tuple(
                BackupFile(one.relative_to(draft).as_posix(), *digest_of(one)) for one in files_below(draft)
            ),
        )  # fmt: skip
        _write_new(draft / MANIFEST, encode_manifest(manifest))
    return manifest


def check_log(database: Path) -> BackupLedger:
    """Verify a log as it lies there. The path in what is returned is its name alone. Raises: IntegrityError, …"""
    with closing(open_ledger_readonly(database.parent, database.name)) as log:
        log.verify()
        found = BackupLedger(database.name, log.size, str(log.checkpoint(log.size)[1]))
    remove_journals(database)
    return found


def logs_below(folder: Path) -> list[Path]:
    """The databases of the transparency logs in a folder, in order."""
    return sorted(path for name in _LOGS for path in folder.rglob(name))


def _files(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """What is copied; of the rest that which somebody may miss joins `left_out`."""
    for top, folders, names in os.walk(folder):
        here = Path(top)
        if (here / DATABASE).exists() and CACHE_FOLDER in folders:
            folders.remove(CACHE_FOLDER)  # may be deleted, and is written by other processes
        left_out += [f"{here / one}: is a link" for one in folders if (here / one).is_symlink()]
        for name in names:
            path = here / name
            is_derived = name == TABLE and is_running(here)  # made again at the end of the run
            is_database = here == folder and name.startswith(SERVICE_DATABASE_FILE)  # its rows are copied
            if name.endswith(_SKIPPED_ENDINGS) or is_derived or is_database:
                continue
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield path
            elif stat.S_ISLNK(mode):
                left_out.append(f"{path}: is a link")


def _turn(name: Path) -> tuple[int, str]:
    """When a file is copied."""
    if name.name in _FIRST:
        turn = 0
    elif name.name == DATABASE:
        turn = 1 if name.parent.name == ORDERS_FOLDER else 3
    elif name.name == ORDERS:
        turn = 2
    else:
        turn = 4 if name.name == GOVERNANCE_DATABASE else 5
    return turn, name.as_posix()


def _copy(source: Path, target: Path) -> None:
    """Copy what a file holds now; of lines, those that are whole. A file that was deleted meanwhile is passed over."""
    make_private(target.parent)
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            copy_database(source, target)
            return
        file.seek(0)
        left = os.fstat(descriptor).st_size
        with os.fdopen(open_new(target), "wb") as copy:
            while left and (data := file.read(min(left, _CHUNK_BYTES))):
                copy.write(data)
                left -= len(data)
    if source.suffix == ".jsonl":
        with target.open("r+b") as copy:
            _cut_part_of_line(copy)


def _cut_part_of_line(file: BinaryIO) -> None:
    """Leave the lines that have an end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - _CHUNK_BYTES)
        file.seek(begin)
        at = file.read(end - begin).rfind(b"\n")
        if at >= 0:
            file.truncate(begin + at + 1)
            return
        end = begin
    file.truncate(0)


def _is_private_key(path: Path) -> bool:
    if path.suffix == ".key" or path.name in (SIGNING_KEY, MARK_KEY_FILE):
        return True
    try:
        with path.open("rb") as file:
            head = file.read(_KEY_HEAD_BYTES)
    except FileNotFoundError:
        return False
    return b"PRIVATE KEY-----" in head or head.startswith(b"PRIVATE+KEY+")


def _write_rows(path: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    lines = (msgspec.json.encode([name, row]) + b"\n" for name, given in rows.items() for row in given)
    _write_new(path, b"".join(lines))


def _write_new(path: Path, data: bytes) -> None:
    with os.fdopen(open_new(path), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _completed(service: ServiceFolder, content: Path) -> tuple[list[BackupLedger], list[str]]:
    """Bring journals to their ledger's end; verify every log, and compare what lies beside those of runs."""
    ledgers = [
        msgspec.structs.replace(check_log(path), path=path.relative_to(content).as_posix())
        for path in logs_below(content)
    ]
    remarks: list[str] = []
    for name, place in service.runs().items():
        run = content / os.path.relpath(place.folder, service.folder)
        if not (run / DATABASE).is_file():
            continue
        with closing(open_ledger_readonly(run)) as log:
            if (run / JOURNAL).exists():
                repair_journal(run, recorded_run(log).entries, log.size)
            remarks += [
                f"{name}: {line}".replace(str(content), str(service.folder)) for line in _wrong(run, log)
            ]
        remove_journals(run / DATABASE)
    return ledgers, remarks


def _wrong(run: Path, log: LogReader) -> list[str]:
    try:
        return check_outputs(run, log)[1]
    except HtfiError as error:
        return [str(error)]
    finally:
        for path in logs_below(run):
            remove_journals(path)
