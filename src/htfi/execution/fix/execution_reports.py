"""Reports of a venue to and from FIX: executions, rejected cancels, business rejects.

FIX 4.4 has no TrdMatchID (880) in reports: it leaves it out.
"""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TypedDict, assert_never

from msgspec import structs

from htfi.domain.errors import InvalidInput
from htfi.domain.order_states import OrderStatus
from htfi.domain.orders import (
    CancelRejected,
    FillBusted,
    Liquidity,
    OrderAcknowledged,
    OrderCanceled,
    OrderExpired,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    RejectedBy,
)
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import (
    ORDER_TYPES,
    SIDES,
    Composed,
    NotRead,
    OrderContext,
    Unreadable,
    lots,
    needed,
    number,
    text_field,
    time_of,
)
from htfi.execution.fix.timestamps import format_timestamp

Report = (
    OrderAcknowledged | OrderRejected | OrderReplaced | OrderCanceled | CancelRejected | OrderFilled | FillBusted
    | OrderExpired
)  # fmt: skip

_STATUSES = {
    OrderStatus.PENDING_NEW: "A", OrderStatus.NEW: "0", OrderStatus.PARTIALLY_FILLED: "1", OrderStatus.FILLED: "2",
    OrderStatus.CANCELED: "4", OrderStatus.REJECTED: "8", OrderStatus.EXPIRED: "C",
}  # fmt: skip
_ABSOLUTE = "3"  # CommType (13): an amount
_LIQUIDITIES = {Liquidity.ADDED: "1", Liquidity.REMOVED: "2", Liquidity.AUCTION: "4"}


class _Common(TypedDict):
    at_ns: int
    order_id: str
    cl_ord_id: str
    venue_order_id: str


def execution_report(
    event: Report, context: OrderContext, exec_id: str, dictionary: Dictionary, *, is_replace: bool = False
) -> Composed:
    """What a venue sends of an event. `is_replace`: a CancelRejected answers a request to replace."""
    order, state = context.order, context.state
    status = _STATUSES[state.status]
    venue_id = event.venue_order_id or "NONE"
    cl_ord_id = event.cl_ord_id or event.order_id
    if isinstance(event, CancelRejected):
        body = [
            (37, venue_id),
            (11, cl_ord_id),
            (41, context.cl_ord_id),
            (39, status),
            (434, "2" if is_replace else "1"),
        ]
        return "9", [*body, (60, format_timestamp(event.at_ns)), *text_field(event.reason)]
    body = [(37, venue_id), (11, cl_ord_id)]
    if isinstance(event, OrderReplaced | OrderCanceled) and context.cl_ord_id != cl_ord_id:
        body.append((41, context.cl_ord_id))
    body += [
        (17, exec_id),
        (150, _exec_type(event)),
        (39, status),
        (55, order.instrument),
        (54, SIDES[order.side]),
    ]
    body += [(38, str(state.quantity)), (40, ORDER_TYPES[order.order_type])]
    if context.price is not None:
        body.append((44, f"{context.price:f}"))
    if isinstance(event, FillBusted):
        body += [(19, event.exec_id), (32, str(event.quantity))]
    if isinstance(event, OrderFilled):
        body += [(32, str(event.quantity)), (31, f"{event.price:f}")]
        if event.liquidity is not None:
            liquid = _LIQUIDITIES[event.liquidity]
            if liquid in dictionary.fields[851][1]:
                body.append((851, liquid))
        if event.fee is not None:
            body += [(12, f"{event.fee:f}"), (13, _ABSOLUTE)]
        if event.match_id and 880 in dictionary.messages["8"].fields:
            body.append((880, event.match_id))
    average = context.filled_value / state.filled if state.filled else Decimal(0)
    body += [(151, str(state.leaves)), (14, str(state.filled)), (6, f"{average.normalize():f}")]
    body.append((60, format_timestamp(event.at_ns)))
    if isinstance(event, OrderRejected | OrderCanceled):
        body += text_field(event.reason)
    return "8", body


def read_report(
    message: FixMessage, order_ids: Mapping[str, str], fills: Mapping[str, int] = MappingProxyType({})
) -> tuple[Report, ...] | Unreadable:
    """The events of an ExecutionReport (35=8) or OrderCancelReject (35=9): none where nothing of the order changed.

    A corrected trade is a bust and a fill. `order_ids` gives the order of each ClOrdID (11) that we sent, `fills` the
    lots of each execution that came before, which a bust need not repeat.
    """
    cl_ord_id = message.get(11)
    order_id = order_ids.get(cl_ord_id) or order_ids.get(message.get(41))
    if order_id is None:
        return Unreadable(f"an execution of an unknown order, ClOrdID {cl_ord_id or 'missing'}", 11)
    common: _Common = {
        "at_ns": time_of(message),
        "order_id": order_id,
        "cl_ord_id": cl_ord_id,
        "venue_order_id": message.get(37),
    }
    reason = message.get(58)
    if message.msg_type == "9":
        return (CancelRejected(**common, reason=reason),)
    try:
        match message.get(150):
            case "0":
                return (OrderAcknowledged(**common),)
            case "8":
                return (OrderRejected(**common, by=RejectedBy.VENUE, reason=reason),)
            case "4":
                return (OrderCanceled(**common, reason=reason),)
            case "5" | "D":
                return (OrderReplaced(**common, quantity=lots(message, 38), price=number(message, 44)),)
            case "3" | "C":
                return (OrderExpired(**common),)
            case "F":
                return (_read_fill(message, common),)
            case "H":
                return (_read_bust(message, common, fills),)
            case "G":
                bust = _read_bust(message, common, fills)
                return (bust, structs.replace(_read_fill(message, common), corrects=bust.exec_id))
            case _:  # pending, stopped, suspended, calculated or a status that was asked for
                return ()
    except NotRead as error:
        return error.reason


def business_reject(message: FixMessage, reason: int, text: str) -> Composed:
    """BusinessMessageReject (35=j): 1 unknown id, 3 unsupported type, 5 a conditionally required field is missing."""
    return "j", [(45, message.get(34)), (58, text), (372, message.msg_type), (380, str(reason))]


def _exec_type(event: Report) -> str:
    match event:
        case OrderAcknowledged():
            return "0"
        case OrderRejected():
            return "8"
        case OrderReplaced():
            return "5"
        case OrderCanceled():
            return "4"
        case OrderFilled():
            return "F"
        case FillBusted():
            return "H"
        case OrderExpired():
            return "C"
        case CancelRejected():
            raise InvalidInput("a cancel that was rejected is no execution report")
        case _:
            assert_never(event)


def _read_bust(message: FixMessage, common: _Common, fills: Mapping[str, int]) -> FillBusted:
    busted = needed(message, 19)
    return FillBusted(**common, exec_id=busted, quantity=fills.get(busted) or lots(message, 32))


def _read_fill(message: FixMessage, common: _Common) -> OrderFilled:
    price = number(message, 31)
    if price is None:
        raise NotRead("a trade without LastPx", 31)
    liquidity = next((kind for kind, code in _LIQUIDITIES.items() if code == message.get(851)), None)
    return OrderFilled(
        **common, exec_id=needed(message, 17), quantity=lots(message, 32), price=price, liquidity=liquidity,
        match_id=message.get(880), fee=number(message, 12) if message.get(13) in ("", _ABSOLUTE) else None,
    )  # fmt: skip
