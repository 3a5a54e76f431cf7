"""Requests to a venue to and from FIX: new orders, replaces, cancels, mass cancels. A lot is one unit of OrderQty (38).

FIX 4.4 has no field for the algorithm and the desk: it leaves them out.
"""

from collections.abc import Mapping
from typing import assert_never

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import (
    CancelRequest,
    MassCancelRequest,
    NewOrder,
    OrderType,
    ReplaceRequest,
    TimeInForce,
)
from htfi.execution.fix.checking import entries
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import (
    ORDER_TYPES,
    SIDES,
    TIMES_IN_FORCE,
    Composed,
    NotRead,
    OrderContext,
    Unreadable,
    lots,
    needed,
    number,
    text_field,
    time_of,
    value_of,
)
from htfi.execution.fix.timestamps import format_timestamp

Request = NewOrder | ReplaceRequest | CancelRequest | MassCancelRequest

_CLIENT, _TRADER, _DESK, _ALGORITHM = "3", "12", "76", "122"  # PartyRole (452)
_ALL_ORDERS, _OF_INSTRUMENT = "7", "1"  # MassCancelRequestType (530)


def order_request(
    request: Request, cl_ord_id: str, dictionary: Dictionary, context: OrderContext | None = None
) -> Composed:
    """The message of a request. `context` is of the order that is to be canceled or replaced.

    Raises: InvalidInput, where the version cannot say it.
    """
    match request:
        case NewOrder():
            return "D", _new_order(request, cl_ord_id, dictionary)
        case MassCancelRequest():
            return "q", _mass_cancel(request, cl_ord_id, dictionary)
        case ReplaceRequest() | CancelRequest():
            if context is None:
                raise InvalidInput(f"order {request.order_id}: it is not known, so that it cannot be changed")
            order = context.order
            body = [(41, context.cl_ord_id), (11, cl_ord_id)]
            if request.venue_order_id:
                body.append((37, request.venue_order_id))
            body += [(55, order.instrument), (54, SIDES[order.side]), (60, format_timestamp(request.at_ns))]
            if isinstance(request, CancelRequest):
                return "F", [*body, (38, str(context.state.quantity))]
            body += [(38, str(request.quantity)), (40, ORDER_TYPES[order.order_type])]
            if request.price is not None:
                body.append((44, f"{request.price:f}"))
            return "G", [*body, (59, _time_in_force(order))]
        case _:
            assert_never(request)


def read_request(
    message: FixMessage, dictionary: Dictionary, order_ids: Mapping[str, str]
) -> Request | Unreadable:
    """The request of a checked message; `order_ids` gives the order of each ClOrdID (11) that was accepted."""
    at_ns = time_of(message)
    cl_ord_id = message.get(11)
    try:
        if message.msg_type == "D":
            return _read_new_order(message, dictionary, at_ns)
        if message.msg_type == "q":
            parties = _read_parties(message, dictionary)
            return MassCancelRequest(
                at_ns=at_ns, why=message.get(58), instrument=message.get(55), client=parties.get(_CLIENT, ""),
                trader=parties.get(_TRADER, ""), desk=parties.get(_DESK, ""), algo=parties.get(_ALGORITHM, ""),
            )  # fmt: skip
        if message.msg_type not in ("F", "G"):
            return Unreadable(f"a message of type {message.msg_type} is no request")
        order_id = order_ids.get(message.get(41))
        if order_id is None:
            return Unreadable("unknown order", 41)
        if message.msg_type == "F":
            return CancelRequest(
                at_ns=at_ns, order_id=order_id, cl_ord_id=cl_ord_id, venue_order_id=message.get(37)
            )
        return ReplaceRequest(
            at_ns=at_ns, order_id=order_id, cl_ord_id=cl_ord_id, venue_order_id=message.get(37),
            quantity=lots(message, 38), price=number(message, 44),
        )  # fmt: skip
    except NotRead as error:
        return error.reason


def _new_order(order: NewOrder, cl_ord_id: str, dictionary: Dictionary) -> list[tuple[int, str]]:
    body = [(11, cl_ord_id)]
    body += _parties(dictionary, client=order.client, trader=order.trader, desk=order.desk, algo=order.algo)
    if order.account:
        body.append((1, order.account))
    body += [
        (100, order.venue),
        (55, order.instrument),
        (54, SIDES[order.side]),
        (60, format_timestamp(order.at_ns)),
    ]
    body += [(38, str(order.quantity)), (40, ORDER_TYPES[order.order_type])]
    if order.price is not None:
        body.append((44, f"{order.price:f}"))
    if order.stop_price is not None:
        body.append((99, f"{order.stop_price:f}"))
    body.append((59, _time_in_force(order)))
    if order.display_quantity is not None:
        body.append((_display_tag(dictionary), str(order.display_quantity)))
    return [(tag, value) for tag, value in body if value]


def _time_in_force(order: NewOrder) -> str:
    code = TIMES_IN_FORCE.get(order.time_in_force)
    if code is None:
        raise InvalidInput(
            f"order {order.order_id}: {order.time_in_force.value} has no date: give good_till_cancel"
        )
    return code


def _display_tag(dictionary: Dictionary) -> int:
    """DisplayQty (1138), or MaxFloor (111) before it."""
    return 1138 if 1138 in dictionary.messages["D"].fields else 111


def _parties(
    dictionary: Dictionary, *, client: str, trader: str, desk: str, algo: str
) -> list[tuple[int, str]]:
    roles = dictionary.fields[452][1]
    named = ((_CLIENT, client), (_TRADER, trader), (_DESK, desk), (_ALGORITHM, algo))
    known = [(role, name) for role, name in named if name and role in roles]
    if not known:
        return []
    fields = [(453, str(len(known)))]
    for role, name in known:
        fields += [(448, name), (447, "D"), (452, role)]  # D: names that the parties have agreed on
    return fields


def _read_parties(message: FixMessage, dictionary: Dictionary) -> dict[str, str]:
    return {entry.get(452, ""): entry.get(448, "") for entry in entries(message, dictionary, 453)}


def _mass_cancel(request: MassCancelRequest, cl_ord_id: str, dictionary: Dictionary) -> list[tuple[int, str]]:
    body = [(11, cl_ord_id)]
    if request.order:
        raise InvalidInput(
            f"a mass cancel names no order ({request.order[:60]}): send its own cancel request"
        )
    scope = {"client": request.client, "trader": request.trader, "desk": request.desk, "algo": request.algo}
    if any(scope.values()):
        if 453 not in dictionary.messages["q"].fields:
            named = ", ".join(name for name, value in scope.items() if value)
            raise InvalidInput(
                f"{dictionary.name} cannot cancel all orders of one {named}: cancel them one by one"
            )
        body += _parties(dictionary, **scope)
    body.append((530, _OF_INSTRUMENT if request.instrument else _ALL_ORDERS))
    if request.instrument:
        body.append((55, request.instrument))
    return [*body, (60, format_timestamp(request.at_ns)), *text_field(request.why)]


def _read_new_order(message: FixMessage, dictionary: Dictionary, at_ns: int) -> NewOrder:
    parties = _read_parties(message, dictionary)
    display = _display_tag(dictionary)
    order_type = value_of(message, 40, ORDER_TYPES)
    if order_type in (OrderType.LIMIT, OrderType.STOP_LIMIT) and not message.get(44):
        raise NotRead("a limit order without Price", 44)
    if order_type in (OrderType.STOP, OrderType.STOP_LIMIT) and not message.get(99):
        raise NotRead("a stop order without StopPx", 99)
    return NewOrder(
        at_ns=at_ns,
        order_id=message.get(11),
        cl_ord_id=message.get(11),
        instrument=needed(message, 55),
        venue=message.get(100),
        side=value_of(message, 54, SIDES),
        quantity=lots(message, 38),
        order_type=order_type,
        price=number(message, 44),
        stop_price=number(message, 99),
        time_in_force=value_of(message, 59, TIMES_IN_FORCE) if message.get(59) else TimeInForce.DAY,
        display_quantity=lots(message, display) if message.get(display) else None,
        algo=parties.get(_ALGORITHM, ""),
        trader=parties.get(_TRADER, ""),
        desk=parties.get(_DESK, ""),
        client=parties.get(_CLIENT, ""),
        account=message.get(1),
    )
