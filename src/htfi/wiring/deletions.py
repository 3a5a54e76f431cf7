"""Whether what was deleted of a run's ledger was ordered: its tombstones beside its governance log."""

from pathlib import Path

from htfi.domain.counts import counted
from htfi.domain.errors import HtfiError
from htfi.domain.time import format_ns
from htfi.governance.control.entries import RetentionEnded
from htfi.governance.ledger.log import LogReader
from htfi.governance.regulation.retention import unordered_deletions
from htfi.wiring.control import GOVERNANCE_FOLDER, governance_entries


def deletion_orders(run: Path) -> dict[int, RetentionEnded]:
    """The orders of deletion in a run's governance log, by index. Raises: as `governance_entries`."""
    return {
        index: entry
        for index, entry in enumerate(governance_entries(run))
        if isinstance(entry, RetentionEnded)
    }


def check_deletions(run: Path, log: LogReader, size: int) -> tuple[list[str], list[str]]:
    """What was deleted of the first `size` entries by order, and what without one, a line each."""
    tombstones = log.tombstones(0, size)
    if not tombstones:
        return [], []
    try:
        orders = deletion_orders(run)
    except HtfiError as error:
        return [], [f"{run / GOVERNANCE_FOLDER}: {error}"]
    wrong = unordered_deletions(tombstones, orders)
    if wrong:
        return [], [f"{run}: {line}" for line in wrong]
    held: list[str] = []
    for index in sorted({one.authorisation for one in tombstones}):
        order, num = orders[index], sum(one.authorisation == index for one in tombstones)
        held.append(
            f"{counted(num, 'entry', 'entries')} deleted under the retention class {order.retention_class} at "
            f"{format_ns(order.at_ns)}, authorised by {order.by}: {order.why}"
        )
    return held, []
