"""Whether an order keeps to the limits of its scopes: stops, permissions, sizes, messages, exposure, orders alike."""

from htfi.domain.time import NS_PER_S
from htfi.execution.gate.asked import AskedOrder
from htfi.execution.gate.objections import GateCheck, Objection
from htfi.execution.gate.state import GateState
from htfi.execution.instruments import NANOS


def check_disabled(state: GateState, asked: AskedOrder) -> Objection | None:
    """No scope of the order is disabled."""
    del state
    for scope in asked.party.scopes:
        if scope.disabled:
            return Objection(GateCheck.DISABLED, f"{scope.name} is disabled: {scope.disabled}")
    return None


def check_permission(state: GateState, asked: AskedOrder) -> Objection | None:
    """The instrument may be traded."""
    del state
    return Objection(GateCheck.PERMISSION, asked.party.ban) if asked.party.ban else None


def check_no_limits(state: GateState, asked: AskedOrder) -> Objection | None:
    """An order for which a collar, value, quantity, rate or exposure has no limit is not let through."""
    del state
    missing = asked.party.missing
    return (
        Objection(GateCheck.NO_LIMITS, f"no limit {missing} is in force for the order") if missing else None
    )


def check_order_value(state: GateState, asked: AskedOrder) -> Objection | None:
    """The order is not worth too much."""
    del state
    limit, value = asked.tightest.max_order_value, asked.value
    if limit is not None and value is not None and value > limit:
        return Objection(
            GateCheck.ORDER_VALUE, f"a value of {value / NANOS:,.2f}, {limit / NANOS:,.2f} is allowed"
        )
    return None


def check_order_size(state: GateState, asked: AskedOrder) -> Objection | None:
    """The order has not too many lots."""
    del state
    limit = asked.tightest.max_order_lots
    if limit is not None and asked.lots > limit:
        return Objection(GateCheck.ORDER_QUANTITY, f"{asked.lots} lots, {limit} are allowed")
    return None


def check_messages(state: GateState, asked: AskedOrder) -> Objection | None:
    """No scope has sent too many messages within a second."""
    del state
    since_ns = asked.at_ns - NS_PER_S
    for scope, limit in asked.party.message_limits:
        times = scope.message_times
        if not limit or (len(times) >= limit and times[-limit] > since_ns):
            return Objection(
                GateCheck.MESSAGES, f"{scope.name} has sent {limit} messages within a second already"
            )
    return None


def check_open_value(state: GateState, asked: AskedOrder) -> Objection | None:
    """Credit: open orders, as if the order stood."""
    del state
    more = asked.added_value
    if more is None:
        return None
    for scope, limit in asked.party.open_limits:
        if (is_open := scope.open_value + more) > limit:
            return Objection(
                GateCheck.OPEN_VALUE,
                f"open orders of {scope.name} would be worth {is_open / NANOS:,.2f}, {limit / NANOS:,.2f} is allowed",
            )
    return None


def check_position_value(state: GateState, asked: AskedOrder) -> Objection | None:
    """Market risk: open orders and what was filled, as if the order stood."""
    del state
    more = asked.added_value
    if more is None:
        return None
    for scope, limit in asked.party.position_limits:
        if (total := scope.open_value + more + scope.filled_value) > limit:
            return Objection(
                GateCheck.POSITION_VALUE,
                f"positions and open orders of {scope.name} would be worth {total / NANOS:,.2f}, "
                f"{limit / NANOS:,.2f} is allowed",
            )
    return None


def check_identical(state: GateState, asked: AskedOrder) -> Objection | None:
    """Not too many orders that were sent within a second and are open are alike."""
    new, limit = asked.new, asked.tightest.max_identical_orders
    if new is None or limit is None:
        return None
    identity = (
        asked.party, new.account, new.venue, new.side, new.lots, asked.price, new.order_type,
    )  # fmt: skip
    alike = state.recent.get(identity)
    num = 0 if alike is None or not alike.num_open else alike.num_since(asked.at_ns - NS_PER_S)
    if num >= limit and alike is not None:
        return Objection(GateCheck.IDENTICAL, f"{num} orders alike that were sent within a second are open")
    return None


def check_self_trade(state: GateState, asked: AskedOrder) -> Objection | None:
    """The order would not meet an open one of our own."""
    resting, price = state.resting.get((asked.symbol, asked.venue)), asked.price
    if resting is None:
        return None
    if asked.sign > 0:
        crosses = bool(resting.sells) and (price is None or price >= resting.sells[0])
    else:
        crosses = bool(resting.buys) and (price is None or price <= resting.buys[-1])
    return (
        Objection(GateCheck.SELF_TRADE, "it would trade with an open order of our own") if crosses else None
    )
