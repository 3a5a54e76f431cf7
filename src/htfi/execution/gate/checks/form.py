"""Whether an intent is an order at all: quantities, prices, ids, the instrument, the clock."""

from htfi.domain.orders import OrderType
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.asked import MAX_ID_CHARS, AskedOrder
from htfi.execution.gate.objections import GateCheck, Objection
from htfi.execution.gate.records import MAX_CLOCK_STEP_NS
from htfi.execution.gate.state import GateState
from htfi.execution.instruments import NANOS

MAX_LOTS = 10**12
MAX_TICKS = 10**15
_MAX_PRICE = MAX_TICKS * NANOS
_WITH_PRICE = frozenset({OrderType.LIMIT, OrderType.STOP_LIMIT})
_WITH_STOP = frozenset({OrderType.STOP, OrderType.STOP_LIMIT})


def check_form(state: GateState, asked: AskedOrder) -> Objection | None:
    """Its quantities and prices make an order."""
    del state
    words = ""
    if not 0 < asked.lots <= MAX_LOTS:
        words = f"a quantity of {asked.lots} lots"
    elif asked.price is not None and not 0 < asked.price <= _MAX_PRICE:
        words = "a price that is not above 0"
    elif asked.order is not None:
        if asked.lots <= asked.filled:
            words = f"a quantity of {asked.lots} lots, of which {asked.filled} are filled"
    elif asked.new is not None:
        new = asked.new
        if (new.price_ticks is not None) != (new.order_type in _WITH_PRICE):
            words = f"an order of type {new.order_type.value} with{'out' if new.price_ticks is None else ''} a price"
        elif (new.stop_ticks is not None) != (new.order_type in _WITH_STOP):
            words = f"an order of type {new.order_type.value} with{'out' if new.stop_ticks is None else ''} a stop"
        elif new.stop_ticks is not None and not 0 < new.stop_ticks <= MAX_TICKS:
            words = "a stop price that is not above 0"
        elif new.display_lots is not None and not 0 <= new.display_lots <= new.lots:
            words = f"{new.display_lots} lots shown of {new.lots}"
        elif new.parent_lots < 0 or bool(new.parent_id) != bool(new.parent_lots):
            words = "a parent order without its quantity, or the other way round"
        elif not new.client and not new.trader and not new.desk and not new.algo:
            words = "no client, trader, desk or algorithm is named"
    return Objection(GateCheck.FORM, words) if words else None


def check_instrument(state: GateState, asked: AskedOrder) -> Objection | None:
    """The instrument's terms are known."""
    del state
    if asked.instrument is None:
        return Objection(GateCheck.INSTRUMENT, f"no terms of {asked.symbol} are known")
    return None


def check_order_id(state: GateState, asked: AskedOrder) -> Objection | None:
    """Its id is one, and new."""
    if asked.new is None:
        return None
    if not 0 < len(asked.order_id) <= MAX_ID_CHARS or not asked.order_id.isprintable():
        return Objection(GateCheck.ORDER_ID, f"an order's id has 1 to {MAX_ID_CHARS} printable characters")
    if asked.order_id in state.orders:
        return Objection(GateCheck.ORDER_ID, f"the id {asked.order_id} was used before")
    return None


def check_clock(state: GateState, asked: AskedOrder) -> Objection | None:
    """Its time does not run back."""
    if asked.at_ns < state.newest_ns - MAX_CLOCK_STEP_NS:
        behind_s = (state.newest_ns - asked.at_ns) / NS_PER_S
        return Objection(GateCheck.CLOCK, f"its time lies {behind_s:.3f} s before what the gate has seen")
    return None
