"""The gate's verdicts derived again from the order event stream: who verifies a record calls `rejudge`. Pure."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import (
    CancelRequest,
    NewOrder,
    OrderEvent,
    OrderRejected,
    RejectedBy,
    ReplaceRequest,
)
from htfi.execution.gate.checks.market import TOO_COARSE
from htfi.execution.gate.judging import judge
from htfi.execution.gate.objections import Objection
from htfi.execution.gate.state import GateState
from htfi.execution.instruments import Instrument
from htfi.execution.intents import CancelIntent, Intent, OrderIntent, ReplaceIntent


def rejudge(events: Iterable[OrderEvent]) -> Iterator[str]:
    """A line on each event at which the gate, given the events before, decides otherwise than the record says."""
    state = GateState()
    expected: list[OrderEvent] = []  # what follows from the event before
    refused: tuple[str, str] | None = None  # the order that the gate refuses, and why
    for number, event in enumerate(events, 1):
        if expected:
            if event != expected[0]:
                yield f"event {number}: {type(expected[0]).__name__} should follow from the event before"
                expected.clear()
            else:
                expected.pop(0)
        if refused is not None:
            order_id, why = refused
            refused = None
            if not (isinstance(event, OrderRejected) and event.order_id == order_id):
                yield f"event {number}: order {order_id} was sent, though the gate refuses it: {why}"
            elif event.reason not in (why, _as_before_ticks(why)):
                yield f"event {number}: order {order_id} is refused for another reason than the record says: {why}"
        elif isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            yield f"event {number}: order {event.order_id} is recorded as refused, though the gate lets it pass"
        try:
            if isinstance(event, NewOrder | ReplaceRequest | CancelRequest):
                objections = judge(state, _intent(event, state))
                if objections and isinstance(event, NewOrder):
                    refused = event.order_id, reasons(objections)
                elif objections:
                    kind = type(event).__name__
                    yield f"event {number}: {kind} on order {event.order_id} was sent: {reasons(objections)}"
            expected += state.apply(event)
        except InvalidInput as error:
            yield f"event {number}: {error}"
    if refused is not None:
        yield f"the record ends after order {refused[0]}, which the gate refuses: {refused[1]}"


def _as_before_ticks(why: str) -> str:
    """As earlier versions recorded it, which did not name the tick of an instrument without a price."""
    return re.sub(rf"{re.escape(TOO_COARSE)} [0-9.]+", "", why)


def reasons(objections: Iterable[Objection]) -> str:
    """Objections as the record states them."""
    return "; ".join(f"{one.check.value}: {one.words}" for one in objections)


def _intent(request: NewOrder | ReplaceRequest | CancelRequest, state: GateState) -> Intent:
    """What somebody wanted who sent a request. Raises: InvalidInput where its price lies between two ticks."""
    match request:
        case NewOrder():
            instrument = state.instruments.get(request.instrument)
            return OrderIntent(
                at_ns=request.at_ns,
                order_id=request.order_id,
                instrument=request.instrument,
                venue=request.venue,
                side=request.side,
                lots=request.quantity,
                price_ticks=_ticks(request.price, instrument),
                receipt=request.decision,
                order_type=request.order_type,
                stop_ticks=_ticks(request.stop_price, instrument),
                time_in_force=request.time_in_force,
                display_lots=request.display_quantity,
                algo=request.algo,
                trader=request.trader,
                desk=request.desk,
                client=request.client,
                account=request.account,
                parent_id=request.parent_id,
                parent_lots=request.parent_quantity,
            )
        case ReplaceRequest():
            order = state.orders.get(request.order_id)
            instrument = None if order is None else state.instruments.get(order.new.instrument)
            return ReplaceIntent(
                at_ns=request.at_ns,
                order_id=request.order_id,
                cl_ord_id=request.cl_ord_id,
                lots=request.quantity,
                price_ticks=_ticks(request.price, instrument),
            )
        case CancelRequest():
            return CancelIntent(
                at_ns=request.at_ns,
                order_id=request.order_id,
                cl_ord_id=request.cl_ord_id,
                by=request.by,
            )


def _ticks(price: Decimal | None, instrument: Instrument | None) -> int | None:
    return None if price is None or instrument is None else instrument.ticks(price)
