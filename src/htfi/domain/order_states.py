"""The life of an order by FIX's state matrix (appendix D): which event may follow which state, and what then stands.

Pure: `(state, event) → state`. The execution path advances its orders by it, and monitors judge recorded ones.
"""

from enum import StrEnum
from typing import assert_never

import msgspec

from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    FillBusted,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderExpired,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    OrderReplaced,
    ReplaceRequest,
)


class OrderStatus(StrEnum):
    """OrdStatus (39)."""

    PENDING_NEW = "pending_new"
    NEW = "new"
    PARTIALLY_FILLED = "partially_filled"
    FILLED = "filled"
    CANCELED = "canceled"
    REJECTED = "rejected"
    EXPIRED = "expired"


TERMINAL = frozenset({OrderStatus.FILLED, OrderStatus.CANCELED, OrderStatus.REJECTED, OrderStatus.EXPIRED})


class OrderState(msgspec.Struct, frozen=True, gc=False):
    """Where an order stands: quantities in lots; the requests to cancel or replace it that await an answer."""

    status: OrderStatus
    quantity: int
    filled: int = 0
    num_pending: int = 0

    @property
    def is_open(self) -> bool:
        return self.status not in TERMINAL

    @property
    def leaves(self) -> int:
        """LeavesQty (151)."""
        return self.quantity - self.filled if self.is_open else 0


class IllegalTransition(msgspec.Struct, frozen=True, gc=False):
    """An event that FIX does not allow in a state, in words; the state stays."""

    why: str


def advance(state: OrderState | None, event: OrderMessage) -> OrderState | IllegalTransition:
    """The state after an event; None before the first."""
    if isinstance(event, NewOrder):
        if state is not None:
            return IllegalTransition("the order's id was used before")
        if event.quantity <= 0:
            return IllegalTransition(f"a quantity of {event.quantity} lots")
        return OrderState(OrderStatus.PENDING_NEW, event.quantity)
    if state is None:
        return IllegalTransition("no order of this id was sent")
    match event:
        case OrderAcknowledged():
            if state.status is not OrderStatus.PENDING_NEW:
                return IllegalTransition(f"acknowledged when it was {state.status.value}")
            return _with(state, status=OrderStatus.NEW)
        case OrderRejected():
            if state.status is not OrderStatus.PENDING_NEW:
                return IllegalTransition(f"rejected when it was {state.status.value}")
            return _with(state, status=OrderStatus.REJECTED)
        case CancelRequest() | ReplaceRequest():
            # A request may cross a fill on its way: FIX answers it with a reject, it is no fault of the sender.
            return _with(state, num_pending=state.num_pending + 1)
        case CancelRejected():
            if state.num_pending == 0:
                return IllegalTransition("a cancel or replace was refused that was not asked for")
            return _with(state, num_pending=state.num_pending - 1)
        case OrderReplaced():
            if not state.is_open:
                return IllegalTransition(f"replaced when it was {state.status.value}")
            if event.quantity < state.filled:
                return IllegalTransition(
                    f"replaced by {event.quantity} lots, of which {state.filled} were filled"
                )
            status = _filled_status(state.filled, event.quantity, state.status)
            return OrderState(status, event.quantity, state.filled, max(0, state.num_pending - 1))
        case OrderCanceled():
            if not state.is_open:
                return IllegalTransition(f"canceled when it was {state.status.value}")
            return OrderState(OrderStatus.CANCELED, state.quantity, state.filled, 0)
        case OrderExpired():
            if not state.is_open:
                return IllegalTransition(f"expired when it was {state.status.value}")
            return OrderState(OrderStatus.EXPIRED, state.quantity, state.filled, 0)
        case OrderFilled():
            filled = state.filled + event.quantity
            if not state.is_open and not event.corrects:
                return IllegalTransition(f"filled when it was {state.status.value}")
            if event.quantity <= 0 or filled > state.quantity:
                return IllegalTransition(f"filled {filled} of {state.quantity} lots")
            if not state.is_open:  # a correction puts nothing back on the book
                status = OrderStatus.FILLED if filled == state.quantity else state.status
                return _with(state, filled=filled, status=status)
            return _with(state, filled=filled, status=_filled_status(filled, state.quantity, state.status))
        case FillBusted():
            if not 0 < event.quantity <= state.filled:
                return IllegalTransition(
                    f"a fill of {event.quantity} lots was busted, of {state.filled} filled"
                )
            filled = state.filled - event.quantity
            status = state.status
            if status is OrderStatus.FILLED and filled < state.quantity:  # the rest is off the book already
                status = OrderStatus.CANCELED
            return _with(state, filled=filled, status=status)
        case _:
            assert_never(event)


def count_fill(state: OrderState, event: OrderFilled) -> OrderState:
    """The state after a fill that `advance` does not allow: of a closed order, or of more than its quantity.

    The counterparty has traded all the same, so that it counts; whoever takes it raises an alert.
    """
    filled = state.filled + event.quantity
    return _with(
        state, filled=filled, status=OrderStatus.FILLED if filled >= state.quantity else state.status
    )


def _filled_status(filled: int, quantity: int, status: OrderStatus) -> OrderStatus:
    if filled == quantity:
        return OrderStatus.FILLED
    return OrderStatus.PARTIALLY_FILLED if filled else status


def _with(
    state: OrderState,
    *,
    status: OrderStatus | None = None,
    filled: int | None = None,
    num_pending: int | None = None,
) -> OrderState:
    return OrderState(
        state.status if status is None else status,
        state.quantity,
        state.filled if filled is None else filled,
        state.num_pending if num_pending is None else num_pending,
    )
