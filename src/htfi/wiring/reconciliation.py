"""Reconciles a run with the files of the other side, and records that it was done (RTS 6 art. 17(3))."""

import time
from dataclasses import dataclass
from pathlib import Path

from htfi.adapters.stores.counterparty_tables import (
    EXECUTION_COLUMNS,
    POSITION_COLUMNS,
    decimal_of,
    read_rows,
    read_text,
    whole_lots,
)
from htfi.adapters.stores.order_requests import write_order_request
from htfi.domain.errors import InvalidInput
from htfi.domain.orders import Reconciled
from htfi.domain.time import NS_PER_DAY
from htfi.execution.accounting import Accounts
from htfi.execution.fix.drop_copy import read_drop_copy, side_sign
from htfi.execution.reconciliation import (
    Break,
    Execution,
    PositionKey,
    compare_executions,
    compare_positions,
    events_until,
    executions_of,
)
from htfi.wiring.ledger import is_running
from htfi.wiring.order_record import append_to_ended_run, has_orders, order_events
from htfi.wiring.venue_link import run_prefix


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What was compared, and what differs."""

    num_orders: int
    num_fills: int
    num_their_fills: int
    breaks: tuple[Break, ...]


def reconcile_run(
    folder: Path, drop_copy: Path | None, statement: Path | None, with_whom: str, day_ns: int | None = None
) -> Reconciliation:
    """Compare a run's fills with a drop copy, its positions with a statement; the comparison is recorded.

    With a day, the UTC instant that it begins: fills of that day, positions at its end. Raises: InvalidInput,
    IntegrityError, DependencyUnavailable.
    """
    if not has_orders(folder):
        raise InvalidInput(
            f"{folder} has no orders: name the folder of a run that `htfi trade --out` has filled"
        )
    if drop_copy is None and statement is None:
        raise InvalidInput("there is nothing to compare with: give --drop-copy or --statement, or both")
    begin_ns, end_ns = (0, 1 << 63) if day_ns is None else (day_ns, day_ns + NS_PER_DAY)
    accounts = Accounts().take_all(order_events(folder))
    ours = executions_of(accounts, begin_ns, end_ns)
    breaks: list[Break] = []
    theirs: list[Execution] = []
    if drop_copy is not None:
        theirs = _executions(drop_copy, run_prefix(folder))
        breaks += compare_executions(ours, theirs, accounts.orders)
    if statement is not None:
        positions, with_accounts = _positions(statement)
        held = Accounts().take_all(events_until(order_events(folder), end_ns)).positions
        own = {key: one.lots for key, one in held.items() if one.lots}
        breaks += compare_positions(own, positions, with_accounts=with_accounts)
    found = Reconciliation(len({one.order_id for one in ours}), len(ours), len(theirs), tuple(breaks))
    _record(folder, with_whom, found)
    return found


def _record(folder: Path, with_whom: str, found: Reconciliation) -> None:
    event = Reconciled(
        at_ns=time.time_ns(),
        with_whom=with_whom,
        num_orders=found.num_orders,
        num_fills=found.num_fills,
        num_differences=len(found.breaks),
    )
    if is_running(folder):
        write_order_request(folder, event)
    else:
        append_to_ended_run(folder, event)


def _executions(path: Path, prefix: str) -> list[Execution]:
    text = read_text(path)
    if text.lstrip().startswith("8=FIX"):
        return read_drop_copy(text.split("\n"), prefix, str(path))
    found: dict[str, Execution] = {}
    for where, row in read_rows(path, EXECUTION_COLUMNS):
        sign = side_sign(row["side"])
        if sign is None:
            raise InvalidInput(f"{where}: side is '{row['side'][:20]}': buy, sell or sell_short is expected")
        if not row["exec_id"] or row["exec_id"] in found:
            raise InvalidInput(f"{where}: exec_id '{row['exec_id'][:40]}' is missing or stands twice")
        found[row["exec_id"]] = Execution(
            row["exec_id"],
            row["cl_ord_id"].removeprefix(prefix),
            row["instrument"],
            sign,
            abs(whole_lots(where, row["quantity"])),
            decimal_of(where, row["price"]),
        )
    return list(found.values())


def _positions(path: Path) -> tuple[dict[PositionKey, int], bool]:
    """Positions in lots, and whether the statement names accounts."""
    found: dict[PositionKey, int] = {}
    with_accounts = False
    for where, row in read_rows(path, POSITION_COLUMNS):
        with_accounts = with_accounts or "account" in row
        key = (row.get("account", ""), row["instrument"])
        if key in found:
            raise InvalidInput(f"{where}: {' '.join(key).strip()} stands twice")
        found[key] = whole_lots(where, row["quantity"])
    return found, with_accounts
