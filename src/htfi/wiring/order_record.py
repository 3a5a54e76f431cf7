"""The record of a run's orders: the order log, and a transparency log of its lines in the folder `orders`.

The order log is written before an order leaves; its lines join the transparency log in groups, soon after and at the
end. Whatever a crash left out joins when the run goes on.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from itertools import chain, islice
from pathlib import Path

from htfi.adapters.stores.order_log import ORDERS, OrderLog, read_order_log
from htfi.domain.counts import counted
from htfi.domain.decision import PolicyOutcome
from htfi.domain.errors import DependencyUnavailable, HtfiError, IntegrityError
from htfi.domain.orders import AlertRaised, DecisionNoted, OrderEvent, encode_order_event
from htfi.execution.accounting import Accounts
from htfi.execution.gate.audit import rejudge
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.ledger import DATABASE, is_running, open_ledger, open_ledger_readonly
from htfi.wiring.notices import warn

ORDERS_FOLDER = "orders"  # of a run: the transparency log of its order events
ORDERS_ORIGIN = "htfi.orders"
GROUP_EVENTS = 256
MAX_PROBLEMS = 5


class RecordedOrders:
    """Implements the port `OrderRecord`."""

    def __init__(self, folder: Path) -> None:
        """Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
        self.log = OrderLog(folder)
        self.accounts = Accounts()  # as the events so far left them
        try:
            self._ledger = open_ledger(folder / ORDERS_FOLDER, origin=ORDERS_ORIGIN, durable=False)
        except BaseException:
            self.log.close()
            raise
        num_logged = self._ledger.size
        if num_logged > self.log.num_recorded:  # events made again would join the transparency log twice
            self.log.close()
            self._ledger.close()
            raise IntegrityError(
                f"{self.log.path} holds {self.log.num_recorded:,} events of {num_logged:,} recorded: "
                "restore it from a copy, or use a new folder"
            )
        self._pending = self.log.recorded_lines(num_logged)

    def append(self, events: Sequence[OrderEvent]) -> None:
        """Record events. Raises: DependencyUnavailable, IntegrityError."""
        num_before = self.log.num_events
        self.log.append(events)
        self.accounts.take_all(events)
        num_new = self.log.num_events - max(num_before, self.log.num_recorded)
        if num_new > 0:
            for event in events[-num_new:]:
                if isinstance(event, AlertRaised):
                    warn(f"order alert: {event.what}")
            self._pending += [encode_order_event(event) for event in events[-num_new:]]
            if len(self._pending) >= GROUP_EVENTS:
                self._join()

    def close(self, *, is_failing: bool = False) -> None:
        """Add what is left, unless the run fails already: then it joins when the run goes on."""
        try:
            if not is_failing:
                self._join()
        finally:
            self.log.close()
            with suppress(DependencyUnavailable) if is_failing else nullcontext():
                self._ledger.close()

    def _join(self) -> None:
        if self._pending:
            self._ledger.append(self._pending)
            self._pending = []


def append_to_ended_run(folder: Path, event: OrderEvent) -> None:
    """Record an event after the last one of a run that is not going on.

    Raises: IntegrityError, DependencyUnavailable.
    """
    record = RecordedOrders(folder)
    record.log.go_to_end()
    try:
        record.append([event])
    except BaseException:
        record.close(is_failing=True)
        raise
    record.close()


def has_orders(run: Path) -> bool:
    """Whether a run has traded."""
    return (run / ORDERS).exists()


def order_events(run: Path) -> Iterator[OrderEvent]:
    """The order events of a run, as recorded. Raises: IntegrityError, naming the line."""
    return read_order_log(run)


def check_orders(run: Path, log: LogReader, size: int) -> tuple[list[str], list[str]]:
    """What holds of a run's orders, and what does not, a line each. `log` holds its `size` decisions.

    The record is intact; each order acts on a released decision; the gate decides again as it did; orders, fills and
    positions add up.
    """
    folder, path = run / ORDERS_FOLDER, run / ORDERS
    if not folder.exists() and not path.exists():
        return [], []
    try:
        events = list(read_order_log(run))
        ledger = open_ledger_readonly(folder, DATABASE)
        try:
            num_logged = ledger.verify().size
            entries = list(ledger.entries())
        finally:
            ledger.close()
    except HtfiError as error:
        return [], [str(error)]
    wrong: list[str] = []
    lines = [encode_order_event(event) for event in events]
    altered = next((n for n, (a, b) in enumerate(zip(lines, entries, strict=False), 1) if a != b), None)
    if altered is not None:
        wrong.append(f"{path} line {altered} is not as it was recorded: restore it from a copy")
    elif num_logged > len(lines):
        wrong.append(f"{path} holds {len(lines):,} events of {num_logged:,} recorded: restore it from a copy")
    elif num_logged < len(lines) and not is_running(run):
        wrong.append(
            f"{folder} holds {num_logged:,} of {len(lines):,} order events: repeat the run's command, which adds "
            "the rest"
        )
    if wrong:  # what follows from altered lines says nothing more
        return [], wrong
    accounts = Accounts().take_all(events)
    problems = chain(accounts.problems, rejudge(events), _wrong_decisions(events, log, size))
    wrong = [f"{path}: {problem}" for problem in islice(problems, MAX_PROBLEMS)]
    if wrong:
        return [], wrong
    num_fills = sum(len(one.fills) for one in accounts.orders.values())
    return [
        f"orders: {counted(len(events), 'event')}, {counted(len(accounts.orders), 'order')}, "
        f"{counted(num_fills, 'fill')}, each as it was recorded, judged again by the gate, positions add up"
    ], []


def _wrong_decisions(events: Sequence[OrderEvent], log: LogReader, size: int) -> Iterator[str]:
    """What does not hold of the decisions that orders act on."""
    for number, event in enumerate(events, 1):
        if not isinstance(event, DecisionNoted):
            continue
        index = event.receipt.index
        if index >= size:
            yield f"event {number}: names decision {index}, which the ledger does not hold"
            continue
        entry = log.entry(index)
        decision = try_decode_entry(entry)
        if leaf_hash(entry).hex() != event.receipt.leaf_hash:
            yield f"event {number}: decision {index} of the ledger has another hash"
        elif decision is None:
            continue  # it was deleted: its tombstone has the same hash
        elif decision.symbol != event.instrument:
            yield f"event {number}: decision {index} is on {decision.symbol}, not {event.instrument}"
        elif event.is_released and decision.verdict.outcome is PolicyOutcome.WITHHOLD:
            yield f"event {number}: decision {index} was withheld, not released"
