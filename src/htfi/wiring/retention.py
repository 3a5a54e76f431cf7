"""Lists and deletes what a run's record no longer has to keep; the order of deletion is recorded first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from htfi.adapters.stores.owner_lock import OwnerLock
from htfi.adapters.stores.sqlite_log import SqliteLog, open_store
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import sync_folder, write_atomically
from htfi.domain.governance import MAX_CAUSE_CHARS
from htfi.governance.control.entries import DeletedFile, RetentionEnded, encode_governance
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.governance.ports import Tombstone
from htfi.governance.regulation.retention import (
    RETENTION_CLASSES,
    DatedEntry,
    DatedFile,
    DueDeletion,
    RetentionClass,
    deletion_spans,
    due_deletions,
    is_in_class,
    split_orders,
)
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.control import GovernanceLogFile
from htfi.wiring.ledger import DATABASE, open_ledger_readonly, signature_verifier
from htfi.wiring.outputs import (
    DELETION_PENDING,
    JOURNAL,
    REPORT,
    STATE,
    TABLE,
    recorded_run,
    repair_journal,
    write_parquet,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What is due in a run's folder, by class, and what of it the ledger holds in all.

    `finishes_earlier`: a deletion that was interrupted was finished before.
    """

    due: list[DueDeletion]
    num_entries: int
    num_deleted: int
    newest_ns: int
    finishes_earlier: bool = False

    @property
    def is_empty(self) -> bool:
        return not any(one.entries or one.files for one in self.due)


def plan_retention(
    run: Path,
    now_ns: int,
    days: Mapping[str, int],
    chosen: Sequence[RetentionClass] = RETENTION_CLASSES,
    progress: Progress | None = None,
) -> RetentionPlan:
    """What is due at an instant. Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
    log = open_ledger_readonly(run)
    try:
        return _plan(run, log, now_ns, days, chosen, progress)
    finally:
        log.close()


def apply_retention(
    run: Path,
    now_ns: int,
    days: Mapping[str, int],
    chosen: Sequence[RetentionClass],
    by: str,
    why: str,
    progress: Progress | None = None,
) -> RetentionPlan:
    """Delete what is due, by order of a named person: first the order is recorded, then the content deleted.

    A command that was killed is repeated: what was ordered and not deleted is due again, and what the deleted entries
    left in other files is taken away. Raises: InvalidInput where no
    person and reason are named, or nothing is due; IntegrityError where the ledger does not hold;
    LedgerUnavailable, also where the run has not ended; DependencyUnavailable.
    """
    person, reason = (
        required_words(text, what) for text, what in ((by, "--by: a name"), (why, "--why: a reason"))
    )
    if not (run / DATABASE).is_file():
        raise InvalidInput(f"{run} is not the folder of a run: it has no {DATABASE}")
    lock = OwnerLock(run / DATABASE)
    try:
        store = open_store(run / DATABASE, lock)
    except BaseException:
        lock.release()
        raise
    try:
        log = LogReader(store, signature_verifier())
        log.verify()
        is_pending = (run / DELETION_PENDING).exists()
        if is_pending:
            _finish(run, store, log)
        plan = replace(_plan(run, log, now_ns, days, chosen, progress), finishes_earlier=is_pending)
        if plan.is_empty:
            return plan
        tombstones = _record_orders(run, plan, now_ns, person, reason)
        if tombstones:
            _mark_pending(run)
            store.delete(tombstones)
        _delete_files(run, [file.name for one in plan.due for file in one.files])
        if tombstones:
            _finish(run, store, log)
    finally:
        store.close()
    return plan


def _plan(
    run: Path,
    log: LogReader,
    now_ns: int,
    days: Mapping[str, int],
    chosen: Sequence[RetentionClass],
    progress: Progress | None,
) -> RetentionPlan:
    entries: list[DatedEntry] = []
    size, num_deleted, newest_ns = log.size, 0, 0
    for index, (entry, leaf) in enumerate(log.signed_entries(size)):
        decision = try_decode_entry(entry)
        num_deleted += is_tombstone(entry)
        if decision is not None:
            entries.append(DatedEntry(index, decision.as_of_ns, leaf))
            newest_ns = max(newest_ns, decision.as_of_ns)
        if progress is not None:
            progress(index + 1, size)
    files = [file for file in _files(run) if any(is_in_class(file.name, one) for one in RETENTION_CLASSES)]
    return RetentionPlan(
        due_deletions(entries, files, newest_ns, now_ns, days, chosen), size, num_deleted, newest_ns
    )


def _files(run: Path) -> Iterator[DatedFile]:
    try:
        for path in sorted(run.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield DatedFile(path.relative_to(run).as_posix(), path.stat().st_size)
    except OSError as error:
        raise DependencyUnavailable(f"{run}: cannot be read: {error.strerror}") from error


def _record_orders(run: Path, plan: RetentionPlan, now_ns: int, by: str, why: str) -> list[Tombstone]:
    """Append the orders to the run's governance log; the tombstones that they allow."""
    tombstones: list[Tombstone] = []
    governance = GovernanceLogFile(run)
    try:
        for one in plan.due:
            if not one.entries and not one.files:
                continue
            leaves = {entry.index: entry.leaf_hash for entry in one.entries}
            files = tuple(_deleted_file(run, file) for file in one.files)
            name = one.retention.name
            spans = tuple(deletion_spans(one.entries))
            for order in split_orders(RetentionEnded(now_ns, plan.num_entries, name, by, why, spans, files)):
                receipt = governance.append(encode_governance(order))
                tombstones += [
                    Tombstone(index, leaves[index], name, now_ns, receipt.index)
                    for span in order.spans
                    for index in range(span.start, span.stop)
                ]
    finally:
        governance.close()
    return tombstones


def _deleted_file(run: Path, file: DatedFile) -> DeletedFile:
    try:
        return DeletedFile(file.name, file.num_bytes, sha256((run / file.name).read_bytes()).hexdigest())
    except OSError as error:
        raise DependencyUnavailable(f"{run / file.name}: cannot be read: {error.strerror}") from error


def _mark_pending(run: Path) -> None:
    """From now on, until `_finish`, parts of deleted entries may lie in other places than the ledger's table."""
    try:
        write_atomically(run / DELETION_PENDING, b"")
    except OSError as error:
        raise DependencyUnavailable(
            f"{run / DELETION_PENDING}: cannot be written: {error.strerror}"
        ) from error


def _finish(run: Path, store: SqliteLog, log: LogReader) -> None:
    """Take away what deleted entries left: freed pages, derived files, page, saved state. May be repeated."""
    store.remove_freed()
    if (run / JOURNAL).exists():
        repair_journal(run, recorded_run(log).entries, log.size)
    if (run / TABLE).exists():
        write_parquet(run, log)
    _delete_files(run, (REPORT, STATE))
    _delete_files(run, (DELETION_PENDING,))


def _delete_files(run: Path, names: Sequence[str]) -> None:
    try:
        for name in names:
            (run / name).unlink(missing_ok=True)
        sync_folder(run)
    except OSError as error:
        raise DependencyUnavailable(
            f"{run}: a file could not be deleted: {error.strerror}; the order is recorded, run the command again"
        ) from error


def required_words(text: str, what: str) -> str:
    """A name or a reason for the governance log. Raises: InvalidInput where it says nothing."""
    kept = " ".join(text.split())[:MAX_CAUSE_CHARS]
    if not any(char.isalnum() for char in kept):
        raise InvalidInput(f"{what} is required: the governance log states who did it and why")
    return kept
