"""Opens what the monitors read: a run's decisions and governance log, and files of order events; runs the checks."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from htfi.adapters.stores.order_files import read_order_file
from htfi.adapters.stores.order_log import ORDERS
from htfi.domain.errors import InvalidInput
from htfi.domain.events import QuarantinedRow
from htfi.governance.ledger.log import LogReader
from htfi.governance.regulation.catalogue import CHECKS
from htfi.governance.regulation.findings import RuleRegime
from htfi.governance.regulation.monitor import (
    CheckResult,
    RecordCounts,
    RecordItem,
    Span,
    item_time_ns,
    run_checks,
)
from htfi.governance.regulation.record import GovernanceRecord, RecordedDecision, governance_record
from htfi.pipeline.record.entry import try_decode_entry
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.control import governance_leaves
from htfi.wiring.governance_log import read_governance_log
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.order_record import has_orders
from htfi.wiring.outputs import marked_outputs

MAX_KEPT_ROWS = 1_000


@dataclass(slots=True)
class SetAsideRows:
    """Rows of order files that could not be used: the first ones, and how many there were."""

    rows: list[QuarantinedRow] = field(default_factory=list[QuarantinedRow])
    num: int = 0

    def add(self, row: QuarantinedRow) -> None:
        self.num += 1
        if len(self.rows) < MAX_KEPT_ROWS:
            self.rows.append(row)


@dataclass(frozen=True, slots=True)
class RegulationResult:
    """What `check_regulation` found, and what it read."""

    results: list[CheckResult]
    counts: RecordCounts
    set_aside: SetAsideRows
    unread: UnreadEntries  # of all ledgers
    sources: tuple[str, ...]


def check_regulation(
    runs: Sequence[Path],
    order_files: Sequence[Path],
    regimes: Sequence[RuleRegime],
    span: Span,
    governance: Path | None = None,
) -> RegulationResult:
    """Run the checks of these regimes over runs' folders, order files and the governance folder of an installation.

    The order events of a run that traded are read with it.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    if not runs and not order_files:
        raise InvalidInput(
            "nothing to check: name the folder of a run, or a file of order events with --orders"
        )
    named = {path.resolve() for path in order_files}
    own = [run / ORDERS for run in runs if has_orders(run)]
    order_files = [*order_files, *(path for path in own if path.resolve() not in named)]
    set_aside = SetAsideRows()
    unread = UnreadEntries()
    streams: list[Iterator[RecordItem]] = []
    logs: list[LogReader] = []
    try:
        for run in runs:
            log = open_ledger_readonly(run)
            logs.append(log)
            streams.append(iter(_governance_items(run)))
            streams.append(_decisions(log, unread))
        if governance is not None:
            log = read_governance_log(governance)
            if log is None:
                raise InvalidInput(f"{governance} holds no governance log: name the governance folder")
            logs.append(log)
            streams.append(iter(_records(log.entries())))
        streams += [iter(read_order_file(path, set_aside.add)) for path in order_files]
        items = heapq.merge(*streams, key=item_time_ns)
        outputs = [file for run in runs for file in marked_outputs(run)]
        results, counts = run_checks(items, CHECKS, regimes, span, outputs)
    finally:
        for log in logs:
            log.close()
    sources = tuple(str(path) for path in (*runs, *order_files))
    return RegulationResult(results, counts, set_aside, unread, sources)


def _decisions(log: LogReader, unread: UnreadEntries) -> Iterator[RecordItem]:
    """Decisions with the leaf hashes that were signed."""
    for index, (entry, leaf) in enumerate(log.signed_entries()):
        decision = try_decode_entry(entry)
        if decision is None:
            unread.add(index, entry)
        else:
            yield RecordedDecision(index, leaf.hex(), decision)


def _governance_items(run: Path) -> list[GovernanceRecord]:
    return _records(entry for entry, _ in governance_leaves(run))


def _records(entries: Iterable[bytes]) -> list[GovernanceRecord]:
    records = (governance_record(index, entry) for index, entry in enumerate(entries))
    return [record for record in records if record is not None]
