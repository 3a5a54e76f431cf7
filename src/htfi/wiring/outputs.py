"""A run's folder: its files, continued as written, made from the ledger or compared with it.

The folder is private to its owner; what a killed run had begun is removed. No file that can be edited is believed.
"""

import stat
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from htfi.adapters.keys.mark_key import MARK_KEY_FILE
from htfi.adapters.stores import decision_table
from htfi.adapters.stores.admissions import ADMITTED_FILE, REQUESTED_FILE, read_admissions
from htfi.adapters.stores.control_folder import CONTROL_FOLDER
from htfi.adapters.stores.decision_table import TABLE
from htfi.adapters.stores.decisions import (
    JOURNAL,
    DecisionJournal,
    ReleasedLine,
    WithheldLine,
    line_of,
    line_subject,
)
from htfi.adapters.stores.held_news import HELD_NEWS
from htfi.adapters.stores.journal_check import LedgerEntries, RowDifferences, check_journal, repair_journal
from htfi.adapters.stores.posted_news import POSTED_FILE, PostedNewsReader
from htfi.adapters.stores.snapshot import read_whole
from htfi.adapters.stores.sqlite_log import PUBLISHED
from htfi.domain.content_marking import MARKING_FILE, TEXT_FIELDS, marking_file, marking_meta
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput, UnreadableEntry
from htfi.domain.files import (
    altered_lines,
    check_plain,
    remove_temporary_files,
    restrict_to_owner,
    write_atomically,
)
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.governance.regulation.record import MarkedFile
from htfi.pipeline.ports import Position
from htfi.pipeline.record.decoded_once import Decode, decode_each
from htfi.pipeline.record.unread import newest_decision
from htfi.wiring.control import GOVERNANCE_FOLDER, check_governance
from htfi.wiring.deletions import check_deletions
from htfi.wiring.ledger import DATABASE, SIGNING_KEY, is_running, open_ledger_readonly
from htfi.wiring.models.config import CACHE_FOLDER
from htfi.wiring.settings import SETTINGS_FILE

STATE = "state.bin"
QUARANTINE = "quarantine.jsonl"
INBOX = "inbox"
PEERS = "peers.jsonl"
NODES_FILE = "nodes.json"  # of an edge's run
STATEMENTS = "statements.jsonl"
EVENTS = "scheduled_events.json"  # what was learnt of a calendar
NOTICES = "input_notices.json"  # faults of prices and of the calendar
REPORT = "report.html"
DELETION_PENDING = "deletion.pending"  # while parts of deleted entries may lie in derived files
_HEAD_BYTES = 4_096
_MARKED = (JOURNAL, TABLE, REPORT, STATEMENTS)

_FILES = frozenset(
    {
        DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}.lock", SIGNING_KEY, PUBLISHED, SETTINGS_FILE,
        STATE, JOURNAL, TABLE, REPORT, QUARANTINE, HELD_NEWS, REQUESTED_FILE, ADMITTED_FILE, POSTED_FILE, PEERS,
        NODES_FILE, STATEMENTS, EVENTS, NOTICES, MARKING_FILE, MARK_KEY_FILE, DELETION_PENDING,
    }
)  # fmt: skip
_FOLDERS = (INBOX, CACHE_FOLDER, GOVERNANCE_FOLDER, CONTROL_FOLDER)
_OWNED_FILES = (STATE, SETTINGS_FILE, JOURNAL, TABLE, STATEMENTS)  # nobody else replaces these

Notify = Callable[[str], None]

LONG_INPUT_BYTES = 512 * 1024  # of all files together: some eight thousand rows of CSV


class OutputFile(StrEnum):
    """A file that a run derives from its ledger, and that may be left out."""

    LINES = "jsonl"
    TABLE = "parquet"


def choose_outputs(
    folder: Path, asked: Collection[OutputFile] | None, num_bytes: Sequence[int | None], *, is_piped: bool
) -> frozenset[OutputFile]:
    """The derived files of a run: those asked for, else the table of long files and both of all else.

    `num_bytes` are the sizes of its sources, None of one without end. Who reads a pipe needs the lines, which say what
    he has got; a file that is there is kept whole.
    """
    is_long = None not in num_bytes and sum(num or 0 for num in num_bytes) > LONG_INPUT_BYTES
    chosen = set(OutputFile) if asked is None else set(asked)
    if asked is None and is_long:
        chosen.remove(OutputFile.LINES)
    if is_piped or (folder / JOURNAL).exists():
        chosen.add(OutputFile.LINES)
    if (folder / TABLE).exists():
        chosen.add(OutputFile.TABLE)
    return frozenset(chosen)


def claim_folder(folder: Path, report: Notify) -> None:
    """Take what is a run's from everybody but its owner, and drafts away; only the folder's one owner calls it.

    A folder that holds other things too stays as open as it is, and `report` hears of it.
    """
    try:
        remove_temporary_files(folder, _OWNED_FILES)
        names = sorted(one.name for one in folder.iterdir())
    except OSError as error:
        raise DependencyUnavailable(f"cannot write to {folder}: {error.strerror}") from error
    for name in sorted(_FILES.intersection(names)):
        try:
            check_plain(folder / name)
        except OSError as error:
            raise DependencyUnavailable(f"{folder / name} {error.strerror}") from error
    num_open = sum(_made_private(folder / name, report) for name in names if name in _FILES)
    for name in _FOLDERS:
        if (folder / name).is_symlink():
            raise DependencyUnavailable(f"{folder / name} is a link to another place: remove it")
        if name in names:
            num_open += _made_private(folder / name, report)
            num_open += sum(_made_private(one, report) for one in sorted((folder / name).iterdir()))
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077 and {*names} - _FILES - {*_FOLDERS}:
        report(
            f"{folder} holds other files too, so other users can still open it (mode {mode:o}); only the owner "
            "can read the run's "
            "files in it"
        )
    else:
        num_open += _made_private(folder, report)
    _mark_content(folder)
    if num_open:
        report(
            f"{folder} was open to other users (files and folders: {num_open}); now only its owner can read it"
        )


def _mark_content(folder: Path) -> None:
    """Mark the generated text of the folder's files, whose lines and pages readers may take apart."""
    path, content = folder / MARKING_FILE, marking_file(_MARKED, TEXT_FIELDS)
    try:
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)
    except OSError as error:
        raise DependencyUnavailable(
            f"cannot write {path}: {error.strerror}; free some disk space and run the same command again"
        ) from error


def marked_outputs(folder: Path) -> list[MarkedFile]:
    """The files of a run that hold generated text, and whether each is marked. Raises: DependencyUnavailable."""
    found: list[MarkedFile] = []
    try:
        has_file = (folder / MARKING_FILE).is_file()
        for name in (JOURNAL, TABLE, REPORT):
            path = folder / name
            if not path.is_file():
                continue
            if name == REPORT:
                with path.open("rb") as file:
                    is_marked = marking_meta().encode() in file.read(_HEAD_BYTES)
            else:
                is_marked = has_file or (name == TABLE and decision_table.is_marked(path))
            found.append(MarkedFile(f"{folder / name}", is_marked))
    except OSError as error:
        raise DependencyUnavailable(f"{folder}: cannot be read: {error.strerror}") from error
    return found


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


def _made_private(place: Path, report: Notify) -> bool:
    try:
        return restrict_to_owner(place)
    except OSError as error:
        report(
            f"{place} is open to other users, and this cannot be changed: {error.strerror}; its owner can run "
            "chmod go-rwx"
        )
        return False


__all__ = [
    "JOURNAL",
    "TABLE",
    "DecisionJournal",
    "RecordedRun",
    "ReleasedLine",
    "WithheldLine",
    "check_outputs",
    "decision_columns",
    "line_subject",
    "open_recorded",
    "recorded_run",
    "repair_journal",
    "write_parquet",
]

RERUN_HINT = "repeat the run's command, which writes the file from the ledger"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The decisions that a run's ledger holds, as its journal has them: those kept back without their forecast."""

    log: LogReader
    entries: LedgerEntries

    @property
    def size(self) -> int:
        return self.entries.size

    def decoded_by(self, decode: Decode) -> "RecordedRun":
        """The same, for readers of several passes, and such as share what was decoded."""
        return replace(self, entries=replace(self.entries, decode=decode).held())

    def lines(self) -> Iterator[ReleasedLine | WithheldLine]:
        """From the first on, each time, without the deleted ones. Raises: IntegrityError where the ledger does not
        hold.
        """
        for receipt, entry in self.entries.entries():
            if not is_tombstone(entry):
                yield line_of(receipt, entry, self.entries.decode)


def recorded_run(log: LogReader) -> RecordedRun:
    """What a ledger holds now; what a running writer adds is left out."""
    size = log.size
    return RecordedRun(log, LedgerEntries(size, lambda: log.signed_entries(size), log.entry))


@contextmanager
def open_recorded(folder: Path) -> Generator[RecordedRun]:
    """The decisions of a run's folder, also during the run. Raises: as `open_ledger_readonly`."""
    if not (folder / DATABASE).exists() and (folder / JOURNAL).exists():
        raise InvalidInput(
            f"{folder} has {JOURNAL} but no {DATABASE}: without the ledger no line can be verified "
            "recorded; restore it from a copy"
        )
    log = open_ledger_readonly(folder)
    try:
        yield recorded_run(log)
    finally:
        log.close()


def write_parquet(folder: Path, log: LogReader, decode: Decode = decode_each) -> Path:
    """decisions.parquet from the ledger. Raises: DependencyUnavailable, IntegrityError."""
    return decision_table.write_parquet(folder, recorded_run(log).decoded_by(decode).entries)


def decision_columns(log: LogReader) -> Any:
    """The table of decisions.parquet (an arro3.core.Table), from the ledger. Raises: IntegrityError."""
    return decision_table.read_decisions(recorded_run(log).entries)


def check_outputs(folder: Path, log: LogReader) -> tuple[list[str], list[str]]:
    """What holds of the files that lie beside a ledger that was verified, and what does not, a line each.

    During the run its newest entries may not have been released yet.
    """
    going_on = is_running(folder)
    held: list[str] = []
    wrong: list[str] = []
    if (folder / DELETION_PENDING).exists():
        wrong.append(
            f"{folder}: a deletion has not ended, so files beside the ledger may hold parts of deleted entries: run "
            "`htfi regulate retention apply` again"
        )
    num_bytes = _journal_bytes(
        folder
    )  # before the ledger's size is asked: what has been released is recorded by then
    entries = recorded_run(log).entries
    for name in (JOURNAL, decision_table.TABLE):
        try:
            if name == JOURNAL:
                found = check_journal(folder, entries, num_bytes)
            else:
                found = decision_table.check_parquet(folder, entries)
        except UnreadableEntry as error:
            wrong.append(f"{folder / name}: cannot be compared: {error}")
            continue
        except IntegrityError as error:
            wrong.append(f"{error}: {RERUN_HINT}")
            continue
        if found is None:
            continue
        if found.num_beyond:
            wrong.append(
                f"{folder / name}: {found.description}; the last {found.num_beyond:,} are of entries that the ledger "
                "does not hold: it was replaced or cut; restore it"
            )
        elif found.description or (found.num_accounted < entries.size and not going_on):
            wrong.append(
                f"{folder / name}: {found.description or _missing_lines(found, entries.size)}; {RERUN_HINT}"
            )
        else:
            held.append(f"{name}: {counted(found.num_rows, 'line')}, each as in the ledger")
    for name, problem in (
        (PUBLISHED, _checkpoint_problem(folder, log)),
        (SETTINGS_FILE, _settings_problem(folder, log, entries.size)),
    ):
        if problem:
            wrong.append(f"{folder / name}: {problem}")
    if not going_on:
        wrong += _changed_files(folder)
    from htfi.wiring.order_record import check_orders  # late: a run looks at no orders of others

    for check in (check_governance, check_deletions, check_orders):
        found, problems = check(folder, log, entries.size)
        held += found
        wrong += problems
    return held, wrong


def _changed_files(folder: Path) -> list[str]:
    """What in the files that a run appends to is not as it was written, a line each."""
    wrong: list[str] = []
    for name in (QUARANTINE, HELD_NEWS):
        try:
            number = next(altered_lines(folder / name, (folder / name).stat().st_size), None)
        except OSError:  # not there, or not ours to read: nothing to hold
            continue
        if number is not None:
            wrong.append(
                f"{folder / name}: line {number} was changed after the run; repeat the run's command, which makes the "
                "file from its inputs"
            )
    try:
        read_admissions(folder)
        PostedNewsReader(folder).read_new()
    except IntegrityError as error:
        wrong.append(str(error))
    return wrong


def _journal_bytes(folder: Path) -> int:
    """How long the journal is; 0 where there is none."""
    try:
        return (folder / JOURNAL).stat().st_size
    except OSError:
        return 0


def _missing_lines(found: RowDifferences, size: int) -> str:
    return f"the last {size - found.num_accounted:,} of {size:,} entries have no line"


def _checkpoint_problem(folder: Path, log: LogReader) -> str:
    """What is wrong with the checkpoint that lies beside the ledger; empty for nothing, also where there is none."""
    data = read_whole(folder / PUBLISHED)
    if data is None:
        return ""
    text, _, signatures = data.decode(errors="replace").partition("\n\n")
    size = text.split("\n")[1] if "\n" in text else ""
    try:
        known = log.checkpoint(int(size))[1] if size.isdecimal() and len(size) < 19 else None
    except InvalidInput:
        known = None
    if known is None or text + "\n" != known.text:
        return f"is not a checkpoint of this ledger; {RERUN_HINT}"
    # A witness may have added lines to the file alone.
    is_signed = str(known.signatures[0]) in signatures.split("\n")
    return "" if is_signed else f"lacks the ledger's signature; {RERUN_HINT}"


def _settings_problem(folder: Path, log: LogReader, size: int) -> str:
    """What is wrong with the settings beside the ledger; empty for nothing, also where there are none."""
    data = read_whole(folder / SETTINGS_FILE)
    if data is None or not size:
        return ""
    try:
        newest = newest_decision(log, size)
    except UnreadableEntry as error:
        return f"cannot be compared: {error}"
    if newest is None or sha256(data).hexdigest() == newest.settings_digest:
        return ""
    return f"is not the settings of the recorded decisions; {RERUN_HINT}"
