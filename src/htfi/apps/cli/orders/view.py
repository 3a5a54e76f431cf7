"""What `htfi orders` shows: tables of orders and positions, one order in full."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from htfi.domain.counts import counted
from htfi.domain.orders import OrderEvent, OrderFilled, OrderRejected, encode_order_event
from htfi.domain.time import format_ns
from htfi.execution.accounting import Accounts, OrderAccount, ParentAccount, PositionAccount
from htfi.execution.instruments import NANOS

if TYPE_CHECKING:
    from htfi.wiring.reconciliation import Reconciliation


def show_list(listed: Sequence[OrderAccount], num: int, folder: Path, *, as_json: bool) -> None:
    """A table of orders; `num` is how many there are."""
    from htfi.apps.display.tables import print_line, print_table

    if as_json:
        for one in listed:
            click.echo(msgspec.json.encode(_order_row(one)).decode())
        return
    if not listed:
        click.echo(f"{folder}: no such order")
        return
    columns = (
        "order",
        "sent",
        "instrument",
        "side",
        "lots",
        "limit",
        "status",
        "filled",
        "at",
        "slippage",
        "why refused",
    )
    print_table(columns, [_cells(one) for one in listed])
    if num > len(listed):
        print_line(f"The newest {len(listed):,} of {num:,} orders: --num shows more.")


def show_order(order: OrderAccount, *, as_json: bool) -> None:
    """One order: its facts, and a line for each message."""
    from htfi.apps.display.tables import print_facts, print_line

    if as_json:
        messages = [msgspec.Raw(encode_order_event(event)) for event in order.events]
        click.echo(msgspec.json.encode(_order_row(order) | {"messages": messages}).decode())
        return
    new = order.new
    acts_on = "none" if new.decision is None else f"{new.decision.index}, hash {new.decision.leaf_hash[:16]}"
    facts = {
        "order": new.order_id,
        "acts on": f"decision {acts_on}",
        "what": f"{new.side.value} {new.quantity:,} lots of {new.instrument} at {new.price}, venue {new.venue}",
        "by": f"algorithm {new.algo or '–'}, trader {new.trader or '–'}, desk {new.desk or '–'}, "
        f"client {new.client or '–'}, account {new.account or '–'}",
        "status": order.state.status.value.replace("_", " "),
        "filled": f"{order.state.filled:,} lots at {_price(order.average_price)}, fees {_money(order.fees)}",
        "slippage": f"{_bps(order.slippage_bps)} against the market when it was sent",
    }
    print_facts(facts)
    print_line("")
    for event in order.events:
        print_line(f"{format_ns(event.at_ns)}  {_event_words(event)}")


def show_parent(parent: ParentAccount, *, as_json: bool) -> None:
    """An order that an algorithm worked: what it stated, its urgencies, its children and their fills."""
    from htfi.apps.display.tables import print_facts, print_line, print_table

    order = parent.order
    if as_json:
        row = msgspec.Raw(encode_order_event(order))
        children = [_order_row(one) for one in parent.children]
        facts = {"filled": parent.filled, "fees": parent.fees / NANOS, "slippage_bps": parent.slippage_bps}
        click.echo(msgspec.json.encode({"parent": row, **facts, "children": children}).decode())
        return
    acts_on = "none" if order.decision is None else f"decision {order.decision.index}"
    print_facts({
        "parent order": order.order_id,
        "acts on": acts_on,
        "what": f"{order.side.value} {order.quantity:,} lots of {order.instrument}, at {order.limit_price} at worst",
        "worked by": f"{order.algo}, until {format_ns(order.end_ns)}, urgency from {order.min_urgency:g} to "
        f"{order.max_urgency:g}",
        "filled": f"{parent.filled:,} lots at {_price(parent.average_price)}, fees {_money(parent.fees)}",
        "slippage": f"{_bps(parent.slippage_bps)} against the market when it began",
    })  # fmt: skip
    for one in parent.urgencies:
        print_line(f"{format_ns(one.at_ns)}  urgency {one.urgency:.2f}: {one.why}")
    columns = ("order", "sent", "venue", "lots", "limit", "status", "filled", "at", "fills", "why refused")
    print_table(columns, [_child_cells(one) for one in parent.children])


def show_positions(accounts: Accounts, folder: Path, *, as_json: bool) -> None:
    """A row for each account and instrument, and what they come to."""
    from htfi.apps.display.tables import print_line, print_table

    positions = list(accounts.positions.values())
    if as_json:
        for one in positions:
            click.echo(msgspec.json.encode(_position_row(one, accounts)).decode())
        return
    if not positions:
        click.echo(f"{folder}: nothing was filled")
        return
    columns = (
        "account",
        "instrument",
        "lots",
        "price",
        "realised",
        "unrealised",
        "fees",
        "net",
        "shortfall",
        "traded",
        "fills",
    )
    print_table(columns, [_position_cells(one, accounts) for one in positions])
    realised, unrealised, fees = accounts.money()
    net = realised + unrealised - fees
    print_line(
        f"Net {_money(net)}: realised {_money(realised)}, unrealised {_money(unrealised)}, fees {_money(fees)}. "
        "Shortfall is what fills cost beyond the market's middle when their orders were sent; it is part of the result."
    )
    for problem in accounts.problems[:5]:
        print_line(f"does not add up: {problem}")


def show_breaks(found: "Reconciliation", *, as_json: bool) -> None:
    """A row for each break, and what was compared."""
    from htfi.apps.display.tables import print_line, print_table

    if as_json:
        for one in found.breaks:
            row = {"break": one.kind.value, "what": one.subject, "ours": one.ours, "theirs": one.theirs}
            click.echo(msgspec.json.encode(row).decode())
        return
    if found.breaks:
        rows = [(one.kind.value, one.subject, one.ours or "–", one.theirs or "–") for one in found.breaks]
        print_table(("break", "what", "ours", "theirs"), rows)
    print_line(
        f"{counted(found.num_fills, 'fill')} of {counted(found.num_orders, 'order')} here, "
        f"{counted(found.num_their_fills, 'execution')} there: {counted(len(found.breaks), 'break')}."
    )


def summary_line(accounts: Accounts) -> str:
    """Orders, fills and the result in one line."""
    realised, unrealised, fees = accounts.money()
    return (
        f"{len(accounts.orders):,} orders, {accounts.num_refused:,} refused, {accounts.num_fills:,} fills; "
        f"profit and loss {_money(realised + unrealised - fees)} after fees of {_money(fees)}"
    )


def short_words(accounts: Accounts) -> str:
    """The same where there is little room."""
    realised, unrealised, fees = accounts.money()
    net = (realised + unrealised - fees) / NANOS
    return f"{len(accounts.orders):,}, {accounts.num_fills:,} fills, net {net:+,.0f}"


def _order_row(order: OrderAccount) -> dict[str, object]:
    new = order.new
    return {
        "order": new.order_id,
        "sent": format_ns(new.at_ns),
        "instrument": new.instrument,
        "venue": new.venue,
        "side": new.side.value,
        "lots": order.state.quantity,
        "limit": None if new.price is None else str(new.price),
        "status": order.state.status.value,
        "filled": order.state.filled,
        "average_price": order.average_price,
        "fees": order.fees / NANOS,
        "slippage_bps": order.slippage_bps,
        "parent": new.parent_id or None,
        "decision": None if new.decision is None else new.decision.index,
        "reason": order.reason,
    }


def _cells(order: OrderAccount) -> tuple[str, ...]:
    new = order.new
    return (
        new.order_id,
        format_ns(new.at_ns),
        new.instrument,
        new.side.value,
        f"{order.state.quantity:,}",
        "market" if new.price is None else str(new.price),
        order.state.status.value.replace("_", " "),
        f"{order.state.filled:,}",
        _price(order.average_price),
        _bps(order.slippage_bps),
        order.reason,
    )


def _child_cells(order: OrderAccount) -> tuple[str, ...]:
    new = order.new
    return (
        new.order_id,
        format_ns(new.at_ns),
        new.venue,
        f"{order.state.quantity:,}",
        "market" if new.price is None else str(new.price),
        order.state.status.value.replace("_", " "),
        f"{order.state.filled:,}",
        _price(order.average_price),
        ", ".join(order.fills),
        order.reason,
    )


def _position_row(position: PositionAccount, accounts: Accounts) -> dict[str, object]:
    unit = accounts.unit(position.instrument)
    return {
        "account": position.account,
        "instrument": position.instrument,
        "lots": position.lots,
        "price": position.mark / NANOS,
        "realised": position.realised / NANOS,
        "unrealised": position.unrealised(unit) / NANOS,
        "fees": position.fees / NANOS,
        "shortfall": position.shortfall / NANOS,
        "traded": position.traded / NANOS,
        "fills": position.num_fills,
    }


def _position_cells(position: PositionAccount, accounts: Accounts) -> tuple[str, ...]:
    unrealised = position.unrealised(accounts.unit(position.instrument))
    return (
        position.account,
        position.instrument,
        f"{position.lots:,}",
        _price(position.mark / NANOS if position.mark else None),
        _money(position.realised),
        _money(unrealised),
        _money(position.fees),
        _money(position.realised + unrealised - position.fees),
        _money(position.shortfall),
        _money(position.traded),
        f"{position.num_fills:,}",
    )


def _event_words(event: OrderEvent) -> str:
    kind = type(event).__name__
    match event:
        case OrderFilled():
            fee = "" if event.fee is None else f", fee {event.fee}"
            return f"{kind}: {event.quantity:,} lots at {event.price}{fee}, execution {event.exec_id}"
        case OrderRejected():
            return f"{kind} by the {event.by.value}: {event.reason}"
        case _:
            reason = getattr(event, "reason", "")
            return f"{kind}: {reason}" if reason else kind


def _money(nanos: int) -> str:
    return f"{nanos / NANOS:,.2f}"


def _price(price: float | None) -> str:
    return "–" if price is None else f"{price:,.6g}"


def _bps(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f} bp"
