"""What a run leaves behind, made from its ledger or held against it: no file that can be edited is believed."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from htfi.adapters.stores import decision_table
from htfi.adapters.stores.admissions import read_admissions
from htfi.adapters.stores.decisions import (
    JOURNAL,
    DecisionJournal,
    ReleasedLine,
    WithheldLine,
    line_subject,
    parse_line,
)
from htfi.adapters.stores.held_news import HELD_NEWS
from htfi.adapters.stores.journal_check import LedgerEntries, RowDifferences, check_journal, repair_journal
from htfi.adapters.stores.snapshot import read_whole
from htfi.adapters.stores.sqlite_log import PUBLISHED
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.files import altered_lines
from htfi.governance.ledger.log import LogReader
from htfi.wiring.ledger import DATABASE, is_running, open_ledger_readonly
from htfi.wiring.run_folder import QUARANTINE
from htfi.wiring.settings import SETTINGS_FILE

__all__ = [
    "JOURNAL",
    "DecisionJournal",
    "RecordedRun",
    "ReleasedLine",
    "WithheldLine",
    "check_outputs",
    "line_subject",
    "open_recorded",
    "recorded_run",
    "repair_journal",
    "write_parquet",
]

RERUN_HINT = "give the run's command again: it writes the file from the ledger"


class _SettingsDigest(msgspec.Struct):
    settings_digest: str


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The decisions that a run's ledger holds, as its journal has them: those kept back without their forecast."""

    log: LogReader
    entries: LedgerEntries

    @property
    def size(self) -> int:
        return self.entries.size

    def lines(self) -> Iterator[ReleasedLine | WithheldLine]:
        """From the first on, each time. Raises: IntegrityError where the ledger does not hold."""
        for index, line in enumerate(self.entries.lines()):
            yield parse_line(line, f"entry {index}")


def recorded_run(log: LogReader) -> RecordedRun:
    """What a ledger holds now; what a running writer adds is left out."""
    size = log.size
    return RecordedRun(log, LedgerEntries(size, lambda: log.signed_entries(size), log.entry))


@contextmanager
def open_recorded(folder: Path) -> Generator[RecordedRun]:
    """The decisions of a run's folder, also while the run goes on. Raises: as `open_ledger_readonly`."""
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


def write_parquet(folder: Path, log: LogReader) -> Path:
    """decisions.parquet from the ledger. Raises: DependencyUnavailable, IntegrityError."""
    return decision_table.write_parquet(folder, recorded_run(log).entries)


def check_outputs(folder: Path, log: LogReader) -> tuple[list[str], list[str]]:
    """What holds of the files beside a ledger that was verified, and what does not, a line each.

    While the run goes on its newest entries may not have been released yet.
    """
    going_on = is_running(folder)
    held: list[str] = []
    wrong: list[str] = []
    num_bytes = _journal_bytes(
        folder
    )  # before the ledger's size is asked: what is released by now is recorded by then
    entries = recorded_run(log).entries
    for name in (JOURNAL, decision_table.TABLE):
        try:
            if name == JOURNAL:
                found = check_journal(folder, entries, num_bytes)
            else:
                found = decision_table.check_parquet(folder, entries)
        except IntegrityError as error:
            wrong.append(f"{error}: {RERUN_HINT}")
            continue
        if found is None:
            if name == JOURNAL and entries.size and (folder / SETTINGS_FILE).exists() and not going_on:
                wrong.append(f"{folder / name} is missing; {RERUN_HINT}")
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
            held.append(f"{name}: {found.num_rows:,} lines, every one as the ledger has it")
    for name, problem in (
        (PUBLISHED, _checkpoint_problem(folder, log)),
        (SETTINGS_FILE, _settings_problem(folder, log, entries.size)),
    ):
        if problem:
            wrong.append(f"{folder / name}: {problem}; {RERUN_HINT}")
    return held, wrong + ([] if going_on else _changed_files(folder))


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
                f"{folder / name}: line {number} is not as it was written; give the run's command again: it makes the "
                "file from its inputs"
            )
    try:
        read_admissions(folder)
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
    text = data.decode(errors="replace").partition("\n\n")[0] + "\n"
    size = text.split("\n")[1] if text.count("\n") > 1 else ""
    try:
        known = log.checkpoint(int(size))[1].text if size.isdecimal() and len(size) < 19 else ""
    except InvalidInput:
        known = ""
    return "" if text == known else "is no checkpoint of this ledger"


def _settings_problem(folder: Path, log: LogReader, size: int) -> str:
    """What is wrong with the settings beside the ledger; empty for nothing, also where there are none."""
    data = read_whole(folder / SETTINGS_FILE)
    if data is None or not size:
        return ""
    try:
        digest = msgspec.json.decode(log.entry(size - 1), type=_SettingsDigest).settings_digest
    except msgspec.DecodeError:
        return ""
    return "" if sha256(data).hexdigest() == digest else "is not what the decisions were made under"
