"""`htfi orders`: orders, positions and costs of a run that trades, and what people ask of it."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.options import by_option, why_option

if TYPE_CHECKING:
    from htfi.wiring.trading import OrderRequest

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SCOPE = click.option(
    "--scope",
    default="firm",
    show_default=True,
    metavar="SCOPE",
    help="firm, or client:NAME, trader:NAME, desk:NAME, algo:NAME, instrument:NAME.",
)


@click.group("orders", short_help="Orders of a run: list, show, costs, cancel, reconcile.")
def command() -> None:
    """Show what a run did by orders, and ask it to cancel or to stop trading.

    DIR is the folder of a run, as `htfi trade --out DIR` made it. ID is an order's.

    \b
    Examples:
      htfi orders list DIR
      htfi orders show DIR d17
      htfi orders show DIR d17.3
      htfi orders positions DIR
      htfi orders costs DIR --html costs.html
      htfi orders cancel-all DIR --scope instrument:SPX --by Ann --why "halted"
      htfi orders reconcile DIR --drop-copy drop.fix --statement held.csv
    """


@command.command("list", short_help="List orders, the newest last.")
@FOLDER
@click.option("--open", "only_open", is_flag=True, help="Only orders that may still be filled.")
@click.option("--refused", is_flag=True, help="Only orders that the gate or the venue refused.")
@click.option("--instrument", metavar="SYMBOL", help="Only orders in this instrument.")
@click.option("--num", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
@JSON
def list_command(
    folder: Path, only_open: bool, refused: bool, instrument: str | None, num: int, as_json: bool
) -> None:
    """List the orders of a run.

    \b
    Examples:
      htfi orders list DIR --open
      htfi orders list DIR --refused --json
    """
    from htfi.apps.cli.orders import view
    from htfi.wiring.trading import read_accounts

    accounts = read_accounts(folder)
    listed = [
        one
        for one in accounts.orders.values()
        if (not only_open or one.state.is_open)
        and (not refused or one.reason)
        and (instrument is None or one.new.instrument == instrument)
    ]
    view.show_list(listed[-num:], len(listed), folder, as_json=as_json)


@command.command(short_help="Show one order and everything that happened to it.")
@FOLDER
@click.argument("order_id", metavar="ID")
@JSON
def show(folder: Path, order_id: str, as_json: bool) -> None:
    """Show one order: what it acted on, every message on it, what it cost; its children where it has some.

    \b
    Examples:
      htfi orders show DIR d17
    """
    from htfi.apps.cli.orders import view
    from htfi.domain.errors import InvalidInput
    from htfi.wiring.trading import read_accounts

    accounts = read_accounts(folder)
    parent = accounts.parents.get(order_id)
    if parent is not None:
        view.show_parent(parent, as_json=as_json)
        return
    found = accounts.orders.get(order_id)
    if found is None:
        raise InvalidInput(f"{folder} has no order {order_id[:60]}: `htfi orders list {folder}` shows them")
    view.show_order(found, as_json=as_json)


@command.command(short_help="Positions, profit and loss, and what trading cost.")
@FOLDER
@JSON
def positions(folder: Path, as_json: bool) -> None:
    """Show positions with profit and loss, fees, and the shortfall against the price at the decision.

    \b
    Examples:
      htfi orders positions DIR --json
    """
    from htfi.apps.cli.orders import view
    from htfi.wiring.trading import read_accounts

    view.show_positions(read_accounts(folder), folder, as_json=as_json)


@command.command(short_help="What trading cost: slippage, fees, what was missed; a page of plots.")
@FOLDER
@click.option(
    "--by",
    type=click.Choice(["day", "venue", "algorithm", "instrument", "order"]),
    default="algorithm",
    show_default=True,
    help="What a row is of.",
)
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
@JSON
def costs(folder: Path, by: str, html_file: Path | None, as_json: bool) -> None:
    """Analyse what the orders of a run cost, and how prices went on after their fills.

    \b
    Examples:
      htfi orders costs DIR
      htfi orders costs DIR --by day --html costs.html
      htfi orders costs DIR --by order --json
    """
    from htfi.apps.cli.orders.costs import show_costs
    from htfi.wiring.trading import read_costs

    show_costs(read_costs(folder), folder, by, html_file, as_json=as_json)


@command.command(short_help="Compare fills and positions with the other side's; exit status 1 at a break.")
@FOLDER
@click.option(
    "--drop-copy", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Executions: FIX messages, one a line, or CSV with exec_id, cl_ord_id, instrument, side, quantity, price.",
)  # fmt: skip
@click.option(
    "--statement", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Positions: CSV with instrument, quantity in lots (sold: negative), and account where it has several.",
)  # fmt: skip
@click.option(
    "--day", type=click.DateTime(["%Y-%m-%d"]), help="Only fills of this UTC day; positions at its end."
)
@click.option(
    "--with", "with_whom", default="venue", show_default=True, help="Whose files they are, for the record."
)
@JSON
def reconcile(
    folder: Path,
    drop_copy: Path | None,
    statement: Path | None,
    day: datetime | None,
    with_whom: str,
    as_json: bool,
) -> None:
    """Compare what a run has filled and holds with what the venue, broker or clearing member says.

    Every difference is a break: a fill that one side lacks, another price, quantity, side or instrument, an execution
    of an order that the run did not send, another position. The comparison joins the record. Exit status 1 says that
    there are breaks.

    \b
    Examples:
      htfi orders reconcile DIR --drop-copy executions.fix
      htfi orders reconcile DIR --statement held.csv --day 2026-03-02
    """
    from htfi.apps.cli.orders import view
    from htfi.domain.time import NS_PER_S
    from htfi.wiring.reconciliation import reconcile_run

    day_ns = None if day is None else int(day.replace(tzinfo=UTC).timestamp()) * NS_PER_S
    found = reconcile_run(folder, drop_copy, statement, with_whom, day_ns)
    view.show_breaks(found, as_json=as_json)
    if found.breaks:
        sys.exit(1)


@command.command(short_help="Cancel one order.")
@FOLDER
@click.argument("order_id", metavar="ID")
@by_option("Name of the person who asks for it.")
@why_option
def cancel(folder: Path, order_id: str, by: str, why: str) -> None:
    """Ask a run to cancel one order; of an order that an algorithm works all that it has sent, and it sends no more.

    \b
    Examples:
      htfi orders cancel DIR d17 --by "Ann Lee" --why "bad price"
    """
    from htfi.domain.errors import InvalidInput
    from htfi.domain.order_scopes import cancel_of_order
    from htfi.wiring.trading import read_accounts

    accounts = read_accounts(folder)
    if order_id not in accounts.parents and order_id not in accounts.orders:
        raise InvalidInput(f"{folder} has no order {order_id[:60]}: `htfi orders list {folder}` shows them")
    _ask(folder, cancel_of_order(order_id, time.time_ns(), by, why), f"cancel {order_id}")


@command.command("cancel-all", short_help="Cancel every open order of a scope.")
@FOLDER
@SCOPE
@by_option("Name of the person who asks for it.")
@why_option
def cancel_all(folder: Path, scope: str, by: str, why: str) -> None:
    """Ask a run to cancel all open orders of a scope. It trades on afterwards: `htfi stop DIR` ends that.

    \b
    Examples:
      htfi orders cancel-all DIR --by "Ann Lee" --why "bad prices"
      htfi orders cancel-all DIR --scope algo:direct --by Ann --why "loop"
    """
    from htfi.domain.order_scopes import mass_cancel_of

    _ask(folder, mass_cancel_of(scope, time.time_ns(), by, why), f"cancel all of {scope}")


@command.command(short_help="No order of a scope is sent any more, and what is open is cancelled.")
@FOLDER
@SCOPE
@by_option("Name of the person who asks for it.")
@why_option
def disable(folder: Path, scope: str, by: str, why: str) -> None:
    """Disable trading in a scope until `htfi orders enable`; decisions are still made and released.

    \b
    Examples:
      htfi orders disable DIR --scope instrument:SPX --by "Ann Lee" --why "halted"
    """
    from htfi.domain.order_scopes import check_order_scope, mass_cancel_of
    from htfi.domain.orders import TradingDisabled

    check_order_scope(scope)
    now_ns = time.time_ns()
    _ask(folder, TradingDisabled(at_ns=now_ns, scope=scope, cause=why, by=by), f"disable {scope}")
    _ask(folder, mass_cancel_of(scope, now_ns + 1, by, why), f"cancel all of {scope}")


@command.command(short_help="Orders of a scope may be sent again.")
@FOLDER
@SCOPE
@by_option("Name of the person who asks for it.")
@why_option
def enable(folder: Path, scope: str, by: str, why: str) -> None:
    """Enable trading in exactly this scope again, also after a lock for repeated executions.

    \b
    Examples:
      htfi orders enable DIR --scope algo:direct --by Ann --why "mended"
    """
    from htfi.domain.order_scopes import check_order_scope
    from htfi.domain.orders import TradingEnabled

    check_order_scope(scope)
    _ask(folder, TradingEnabled(at_ns=time.time_ns(), scope=scope, by=by, why=why), f"enable {scope}")


def _ask(folder: Path, request: "OrderRequest", what: str) -> None:
    from htfi.wiring.trading import request_of_orders

    goes_on = request_of_orders(folder, request)
    when = "does it with its next event" if goes_on else "does it when it resumes"
    click.echo(f"asked to {what}; the run in {folder} {when}")
