"""Order events: their bytes last, and an order's states follow FIX's matrix."""

from decimal import Decimal

import msgspec
import pytest

from htfi.domain.decision import Receipt
from htfi.domain.order_states import IllegalTransition, OrderState, OrderStatus, advance
from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    FillBusted,
    OrderExpired,
    OrderRejected,
    OrderReplaced,
    decode_order_event,
    encode_order_event,
    order_event_of,
)
from order_streams import ack, at, cancel, fill, new


def states(*events) -> OrderState:
    state = None
    for event in events:
        after = advance(state, event)
        assert isinstance(after, OrderState), after
        state = after
    return state


def refusal(*events) -> str:
    state = states(*events[:-1]) if len(events) > 1 else None
    after = advance(state, events[-1])
    assert isinstance(after, IllegalTransition)
    return after.why


def test_bytes_are_those_that_stand_in_files() -> None:
    order = new("o1", 0.0, decision=Receipt(3, "ab"))
    line = encode_order_event(order)
    assert line.startswith(b'{"kind":"new","at_ns":1728036000000000000,"order_id":"o1","instrument":"ACME"')
    assert b'"price":"100.00"' in line
    assert decode_order_event(line) == order


def test_cells_of_a_table_make_the_same_event() -> None:
    cells = {
        "kind": "fill", "at_ns": "12", "order_id": "o1", "exec_id": "x", "quantity": "3", "price": "99.5",
        "liquidity": "added",
    }  # fmt: skip
    assert order_event_of(cells).price == Decimal("99.5")


def test_half_a_lot_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="quantity"):
        order_event_of(
            {"kind": "fill", "at_ns": 12, "order_id": "o", "exec_id": "x", "quantity": "0.5", "price": "1"}
        )


def test_an_order_is_filled_in_parts() -> None:
    state = states(new("o", 0), ack("o", 1), fill("o", 2, 4), fill("o", 3, 6))
    assert (state.status, state.filled, state.leaves) == (OrderStatus.FILLED, 10, 0)


def test_a_replaced_order_keeps_what_was_filled() -> None:
    replaced = OrderReplaced(at_ns=at(3), order_id="o", quantity=20)
    assert states(new("o", 0), ack("o", 1), fill("o", 2, 4), replaced) == OrderState(
        OrderStatus.PARTIALLY_FILLED, 20, 4
    )


def test_a_cancel_that_crosses_a_fill_is_refused_and_the_order_stays_filled() -> None:
    events = new("o", 0), ack("o", 1), CancelRequest(at_ns=at(2), order_id="o"), fill("o", 3)
    assert states(*events, CancelRejected(at_ns=at(4), order_id="o")).status is OrderStatus.FILLED


def test_a_busted_fill_is_open_again_unless_the_order_was_done() -> None:
    bust = FillBusted(at_ns=at(4), order_id="o", exec_id="x", quantity=4)
    assert states(new("o", 0), ack("o", 1), fill("o", 2, 4), bust).leaves == 10
    assert states(new("o", 0), ack("o", 1), fill("o", 2), bust).status is OrderStatus.CANCELED


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((fill("o", 0),), "no order of this id"),
        ((new("o", 0), new("o", 1)), "used before"),
        ((new("o", 0, quantity=0),), "0 lots"),
        ((new("o", 0), fill("o", 1, 11)), "11 of 10"),
        ((new("o", 0), *cancel("o", 1), fill("o", 2)), "filled when it was canceled"),
        ((new("o", 0), ack("o", 1), ack("o", 2)), "acknowledged when it was new"),
        ((new("o", 0), ack("o", 1), OrderRejected(at_ns=at(2), order_id="o")), "rejected when it was new"),
        ((new("o", 0), fill("o", 1), OrderExpired(at_ns=at(2), order_id="o")), "expired when it was filled"),
        ((new("o", 0), CancelRejected(at_ns=at(1), order_id="o")), "was not asked for"),
        (
            (new("o", 0), fill("o", 1, 4), OrderReplaced(at_ns=at(2), order_id="o", quantity=3)),
            "4 were filled",
        ),
    ],
)
def test_what_the_matrix_does_not_allow_is_named(events, words) -> None:
    assert words in refusal(*events)
