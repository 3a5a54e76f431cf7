"""`htfi orders`: orders, positions and costs of a run that trades, and what people ask of it."""

import time
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


@click.group("orders", short_help="Orders of a run: list, show, positions, cancel all.")
def command() -> None:
    """Show what a run did by orders, and ask it to cancel or to stop trading.

    DIR is the folder of a run, as `htfi trade --out DIR` made it. ID is an order's.

    \b
    Examples:
      htfi orders list DIR
      htfi orders show DIR d17
      htfi orders show DIR d17.3
      htfi orders positions DIR
      htfi orders cancel-all DIR --scope instrument:SPX --by Ann --why "halted"
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
