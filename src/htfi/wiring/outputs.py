"""What a run leaves behind, made from its ledger or held against it: no file that can be edited is believed."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from htfi.adapters.stores import decision_table
from htfi.adapters.stores.decisions import JOURNAL, DecisionJournal, Released, Withheld, parse_line, subject
from htfi.adapters.stores.differences import Differences
from htfi.adapters.stores.held_news import HELD_NEWS
from htfi.adapters.stores.journal_check import Entries, check_journal, mend_journal
from htfi.adapters.stores.releases import read_releases
from htfi.adapters.stores.snapshot import read_whole
from htfi.adapters.stores.sqlite_log import PUBLISHED
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.line_sums import changed_lines
from htfi.governance.ledger.log import LogView
from htfi.wiring.ledger import DATABASE, is_going_on, open_ledger_readonly
from htfi.wiring.run_folder import QUARANTINE
from htfi.wiring.settings import SETTINGS

__all__ = [
    "JOURNAL",
    "DecisionJournal",
    "Recorded",
    "Released",
    "Withheld",
    "check_outputs",
    "mend_journal",
    "open_recorded",
    "recorded",
    "subject",
    "write_parquet",
]

AGAIN = "give the run's command again: it writes the file from the ledger"


class _Settings(msgspec.Struct):
    settings_digest: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The decisions that a run's ledger holds, as its journal has them: those kept back without their forecast."""

    log: LogView
    entries: Entries

    @property
    def size(self) -> int:
        return self.entries.size

    def lines(self) -> Iterator[Released | Withheld]:
        """From the first on, each time. Raises: IntegrityError where the ledger does not hold."""
        for index, line in enumerate(self.entries.lines()):
            yield parse_line(line, f"entry {index}")


def recorded(log: LogView) -> Recorded:
    """What a ledger holds now; what a running writer adds is left out."""
    size = log.size
    return Recorded(log, Entries(size, lambda: log.signed_entries(size), log.entry))


@contextmanager
def open_recorded(folder: Path) -> Generator[Recorded]:
    """The decisions of a run's folder, also while the run goes on. Raises: as `open_ledger_readonly`."""
    if not (folder / DATABASE).exists() and (folder / JOURNAL).exists():
        raise InvalidInput(
            f"{folder} has {JOURNAL} but no {DATABASE}: without the ledger nobody can tell whether a line is as it was "
            "recorded; restore it from a copy"
        )
    log = open_ledger_readonly(folder)
    try:
        yield recorded(log)
    finally:
        log.close()


def write_parquet(folder: Path, log: LogView) -> Path:
    """decisions.parquet from the ledger. Raises: DependencyUnavailable, IntegrityError."""
    return decision_table.write_parquet(folder, recorded(log).entries)


def check_outputs(folder: Path, log: LogView) -> tuple[list[str], list[str]]:
    """What holds of the files beside a ledger that was verified, and what does not, a line each.

    While the run goes on its newest entries may not have been released yet.
    """
    going_on = is_going_on(folder)
    held: list[str] = []
    wrong: list[str] = []
    num_bytes = _journal_bytes(
        folder
    )  # before the ledger's size is asked: what is released by now is recorded by then
    entries = recorded(log).entries
    for name in (JOURNAL, decision_table.TABLE):
        try:
            if name == JOURNAL:
                found = check_journal(folder, entries, num_bytes)
            else:
                found = decision_table.check_parquet(folder, entries)
        except IntegrityError as error:
            wrong.append(f"{error}: {AGAIN}")
            continue
        if found is None:
            if name == JOURNAL and entries.size and (folder / SETTINGS).exists() and not going_on:
                wrong.append(f"{folder / name} is missing; {AGAIN}")
            continue
        if found.num_beyond:
            wrong.append(
                f"{folder / name}: {found.words}; the last {found.num_beyond:,} are of entries that the ledger does "
                "not hold: it was replaced or cut; restore it"
            )
        elif found.words or (found.num_accounted < entries.size and not going_on):
            wrong.append(f"{folder / name}: {found.words or _behind(found, entries.size)}; {AGAIN}")
        else:
            held.append(f"{name}: {found.num_rows:,} lines, every one as the ledger has it")
    for name, problem in (
        (PUBLISHED, _published(folder, log)),
        (SETTINGS, _settings(folder, log, entries.size)),
    ):
        if problem:
            wrong.append(f"{folder / name}: {problem}; {AGAIN}")
    return held, wrong + ([] if going_on else _unwritten(folder))


def _unwritten(folder: Path) -> list[str]:
    """What in the files that a run appends to is not as it was written, a line each."""
    wrong: list[str] = []
    for name in (QUARANTINE, HELD_NEWS):
        try:
            number = next(changed_lines(folder / name, (folder / name).stat().st_size), None)
        except OSError:  # not there, or not ours to read: nothing to hold
            continue
        if number is not None:
            wrong.append(
                f"{folder / name}: line {number} is not as it was written; give the run's command again: it makes the "
                "file from its inputs"
            )
    try:
        read_releases(folder)
    except IntegrityError as error:
        wrong.append(str(error))
    return wrong


def _journal_bytes(folder: Path) -> int:
    """How long the journal is; 0 where there is none."""
    try:
        return (folder / JOURNAL).stat().st_size
    except OSError:
        return 0


def _behind(found: Differences, size: int) -> str:
    return f"the last {size - found.num_accounted:,} of {size:,} entries have no line"


def _published(folder: Path, log: LogView) -> str:
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


def _settings(folder: Path, log: LogView, size: int) -> str:
    """What is wrong with the settings beside the ledger; empty for nothing, also where there are none."""
    data = read_whole(folder / SETTINGS)
    if data is None or not size:
        return ""
    try:
        digest = msgspec.json.decode(log.entry(size - 1), type=_Settings).settings_digest
    except msgspec.DecodeError:
        return ""
    return "" if sha256(data).hexdigest() == digest else "is not what the decisions were made under"
