"""An intent with all that it is judged by, looked up once."""

from typing import NamedTuple

from htfi.domain.decision import Receipt
from htfi.domain.order_states import TERMINAL, OrderStatus
from htfi.execution.gate.limits import ScopeLimits
from htfi.execution.gate.objections import GateCheck, Objection
from htfi.execution.gate.records import KnownMarket, KnownParent, LiveOrder, OrderParty
from htfi.execution.gate.state import GateState
from htfi.execution.instruments import Instrument
from htfi.execution.intents import OrderIntent, ReplaceIntent

MAX_ID_CHARS = 64


class AskedOrder(NamedTuple):
    """A new order, or an order as a replace would leave it."""

    order_id: str
    at_ns: int
    symbol: str
    venue: str
    sign: int
    lots: int  # of the whole order
    filled: int
    price: int | None  # nanos; None at market
    instrument: Instrument | None
    market: KnownMarket | None
    reference: int  # twice the market's middle in nanos; 0 where none is known
    value: int | None  # of all its lots, nanos; None where it is not known
    added_value: (
        int | None
    )  # by how much the worth of open orders would grow, nanos; None where it is not known
    party: OrderParty
    tightest: ScopeLimits
    receipt: Receipt | None
    parent: KnownParent | None  # the order that an algorithm works by this one
    new: OrderIntent | None
    order: LiveOrder | None  # that a replace changes


def asked_order(state: GateState, intent: OrderIntent | ReplaceIntent) -> AskedOrder | Objection:
    """What an intent asks for; an objection where its order cannot be replaced."""
    if isinstance(intent, OrderIntent):
        return _asked_new(state, intent)
    return _asked_replace(state, intent)


def is_free(state: GateState, order: LiveOrder, cl_ord_id: str) -> bool:
    """Whether a request on an order may have an id."""
    return (
        0 < len(cl_ord_id) <= MAX_ID_CHARS
        and cl_ord_id not in order.pending
        and cl_ord_id not in state.orders
    )


def _asked_new(state: GateState, intent: OrderIntent) -> AskedOrder:
    symbol, venue, lots, ticks = intent.instrument, intent.venue, intent.lots, intent.price_ticks
    instrument = state.instruments.get(symbol)
    market = state.markets.get((symbol, venue))
    party = state.party(intent.client, intent.trader, intent.desk, intent.algo, symbol)
    reference = 0 if market is None else market.doubled_reference
    price = None if ticks is None or instrument is None else ticks * instrument.tick_nanos
    value = _value(lots, price, reference, instrument)
    parent_id = intent.parent_id
    return AskedOrder(
        intent.order_id, intent.at_ns, symbol, venue, intent.side.sign, lots, 0, price, instrument, market, reference,
        value, value, party, party.tightest, intent.receipt, state.parents.get(parent_id) if parent_id else None,
        intent, None,
    )  # fmt: skip


def _asked_replace(state: GateState, intent: ReplaceIntent) -> AskedOrder | Objection:
    order = state.orders.get(intent.order_id)
    if order is None:
        return Objection(GateCheck.ORDER_STATE, f"no order {intent.order_id} is known")
    if order.state.status in TERMINAL or order.state.status is OrderStatus.PENDING_NEW:
        return Objection(
            GateCheck.ORDER_STATE,
            f"order {intent.order_id} is {order.state.status.value}: it cannot be replaced",
        )
    if order.pending:
        return Objection(
            GateCheck.ORDER_STATE, f"order {intent.order_id} awaits an answer to {min(order.pending)}"
        )
    if not is_free(state, order, intent.cl_ord_id):
        return Objection(GateCheck.ORDER_ID, f"the request's id {intent.cl_ord_id!r} is in use")
    new = order.new
    instrument = state.instruments.get(new.instrument)
    price = order.price if new.price is not None else None
    if intent.price_ticks is not None:
        if price is None or instrument is None:
            return Objection(GateCheck.FORM, "an order at market has no price to replace")
        price = intent.price_ticks * instrument.tick_nanos
    market = state.markets.get((new.instrument, new.venue))
    reference = 0 if market is None else market.doubled_reference
    left = _value(intent.lots - order.state.filled, price, reference, instrument)
    return AskedOrder(
        intent.order_id, intent.at_ns, new.instrument, new.venue, new.side.sign, intent.lots, order.state.filled, price,
        instrument, market, reference, _value(intent.lots, price, reference, instrument),
        None if left is None else left - order.value, order.party, order.party.tightest, new.decision,
        state.parents.get(new.parent_id) if new.parent_id else None, None, order,
    )  # fmt: skip


def _value(lots: int, price: int | None, reference: int, instrument: Instrument | None) -> int | None:
    """What so many lots are worth, in nanos, at market by the market's middle; None where that is not known."""
    if instrument is None:
        return None
    if price is None:
        if not reference:
            return None
        price = reference // 2
    return lots * price * instrument.value_nanos // instrument.tick_nanos
