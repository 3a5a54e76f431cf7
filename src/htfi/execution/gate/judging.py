"""The gate: whether an order may be sent. A pure function of the gate's state and an intent; unknown means no.

`CHECKS` is the whole of it, in the order in which they are made; each states the article that asks for it. All
objections are given, not only the first. A cancel is never held back by a limit or a stop: it is judged by form alone.
"""

from collections.abc import Callable

from htfi.execution.gate.asked import AskedOrder, asked_order, is_free
from htfi.execution.gate.checks.decision import check_decision, check_parent
from htfi.execution.gate.checks.form import check_clock, check_form, check_instrument, check_order_id
from htfi.execution.gate.checks.limits import (
    check_disabled,
    check_identical,
    check_messages,
    check_no_limits,
    check_open_value,
    check_order_size,
    check_order_value,
    check_permission,
    check_position_value,
    check_self_trade,
)
from htfi.execution.gate.checks.market import (
    check_book_distance,
    check_collar,
    check_market,
    check_window_collar,
)
from htfi.execution.gate.objections import OVERRIDABLE, GateCheck, Objection
from htfi.execution.gate.state import GateState
from htfi.execution.intents import CancelIntent, Intent

Check = Callable[[GateState, AskedOrder], Objection | None]

CHECKS: tuple[Check, ...] = (
    check_form,
    check_instrument,
    check_order_id,
    check_clock,
    check_decision,
    check_parent,
    check_disabled,  # RTS 6 art. 12, 15(5); SEC 15c3-5(c)(2)(ii)
    check_permission,  # RTS 6 art. 15(5); SEC 15c3-5(c)(2)(ii)
    check_no_limits,
    check_market,
    check_collar,  # RTS 6 art. 15(1)(a)
    check_window_collar,  # RTS 6 art. 15(1)(a), over a period
    check_book_distance,  # SEC 15c3-5(c)(1)(ii)
    check_order_value,  # RTS 6 art. 15(1)(b)
    check_order_size,  # RTS 6 art. 15(1)(c)
    check_messages,  # RTS 6 art. 15(1)(d)
    check_open_value,  # SEC 15c3-5(c)(1)(i)
    check_position_value,  # RTS 6 art. 15(4)
    check_identical,  # SEC 15c3-5(c)(1)(ii)
    check_self_trade,
)


def judge(state: GateState, intent: Intent) -> tuple[Objection, ...]:
    """All objections to an intent; none where it may be sent. Reads the state and changes nothing."""
    if isinstance(intent, CancelIntent):
        return _judge_cancel(state, intent)
    asked = asked_order(state, intent)
    if isinstance(asked, Objection):
        return (asked,)
    found = [one for check in CHECKS if (one := check(state, asked)) is not None]
    if found and state.overrides:
        found = [one for one in found if not _is_overridden(state, one, asked)]
    return tuple(found)


def _judge_cancel(state: GateState, intent: CancelIntent) -> tuple[Objection, ...]:
    order = state.orders.get(intent.order_id)
    if order is None:
        return (Objection(GateCheck.ORDER_STATE, f"no order {intent.order_id} is known"),)
    if not order.state.is_open:
        return (Objection(GateCheck.ORDER_STATE, f"order {intent.order_id} is {order.state.status.value}"),)
    if not is_free(state, order, intent.cl_ord_id):
        return (Objection(GateCheck.ORDER_ID, f"the request's id {intent.cl_ord_id!r} is in use"),)
    return ()


def _is_overridden(state: GateState, objection: Objection, asked: AskedOrder) -> bool:
    """One order, one limit, until a time, by two people (RTS 6 art. 15(6))."""
    if objection.check not in OVERRIDABLE:
        return False
    override = state.overrides.get((asked.order_id, objection.check.value))
    if override is None or asked.at_ns > override.expires_at_ns or asked.at_ns < override.at_ns:
        return False
    return bool(override.authorised_by and override.asked_by) and override.authorised_by != override.asked_by
