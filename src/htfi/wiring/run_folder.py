"""A run's folder as it is taken up: private to its owner, without what a killed run had begun, its files as written."""

import stat
from collections.abc import Callable
from pathlib import Path

from htfi.adapters.stores.admissions import ADMITTED_FILE, REQUESTED_FILE
from htfi.adapters.stores.decision_table import TABLE
from htfi.adapters.stores.decisions import JOURNAL
from htfi.adapters.stores.held_news import HELD_NEWS
from htfi.adapters.stores.sqlite_log import PUBLISHED
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import altered_lines, remove_temporary_files, restrict_to_owner
from htfi.pipeline.ports import Position
from htfi.wiring.ledger import DATABASE, SIGNING_KEY
from htfi.wiring.models.caching import CACHE_FOLDER
from htfi.wiring.settings import SETTINGS_FILE

STATE = "state.bin"
QUARANTINE = "quarantine.jsonl"
INBOX = "inbox"
PEERS = "peers.jsonl"
REPORT = "report.html"

_FILES = frozenset(
    {
        DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}.lock", SIGNING_KEY, PUBLISHED, SETTINGS_FILE,
        STATE, JOURNAL, TABLE, REPORT, QUARANTINE, HELD_NEWS, REQUESTED_FILE, ADMITTED_FILE, PEERS,
    }
)  # fmt: skip
_FOLDERS = (INBOX, CACHE_FOLDER)
_OWNED_FILES = (STATE, SETTINGS_FILE, JOURNAL, TABLE)  # nobody else replaces these

Notify = Callable[[str], None]


def claim_folder(folder: Path, tell: Notify) -> None:
    """Take what is a run's from everybody but its owner, and drafts away; only the folder's one owner calls it.

    A folder that holds other things too stays as open as it is, and `tell` hears of it.
    """
    try:
        remove_temporary_files(folder, _OWNED_FILES)
        names = sorted(one.name for one in folder.iterdir())
    except OSError as error:
        raise DependencyUnavailable(f"cannot write to {folder}: {error.strerror}") from error
    num_open = sum(_made_private(folder / name, tell) for name in names if name in _FILES)
    for name in _FOLDERS:
        if (folder / name).is_symlink():
            raise DependencyUnavailable(f"{folder / name} is a link to another place: take it away")
        if name in names:
            num_open += _made_private(folder / name, tell)
            num_open += sum(_made_private(one, tell) for one in sorted((folder / name).iterdir()))
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077 and {*names} - _FILES - {*_FOLDERS}:
        tell(
            f"{folder} holds other things too and stays open to others (mode {mode:o}); a run's files in it are its "
            "owner's alone"
        )
    else:
        num_open += _made_private(folder, tell)
    if num_open:
        tell(f"{folder} was open to others (files and folders: {num_open}): it is its owner's alone now")


def changed_since_save(folder: Path, quarantine: Position, held: Position) -> str:
    """What is not as it was when the state was saved, in words; empty where all is. Raises: DependencyUnavailable."""
    for name, position in ((QUARANTINE, quarantine), (HELD_NEWS, held)):
        path, num_bytes = folder / name, int(position["num_bytes"])
        try:
            number = next(altered_lines(path, num_bytes), None) if num_bytes else None
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error
        if number is not None:
            return f"{name} was changed in line {number}"
    return ""


def _made_private(place: Path, tell: Notify) -> bool:
    try:
        return restrict_to_owner(place)
    except OSError as error:
        tell(
            f"{place} is open to others and stays so: {error.strerror}; its owner can close it with chmod go-rwx"
        )
        return False
