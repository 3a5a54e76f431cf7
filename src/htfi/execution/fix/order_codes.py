"""What requests and reports have in common: codes of FIX for sides, types and times, and how fields are read."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import msgspec

from htfi.domain.order_states import OrderState
from htfi.domain.orders import NewOrder, OrderSide, OrderType, TimeInForce
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.timestamps import parse_timestamp

Composed = tuple[str, list[tuple[int, str]]]  # MsgType and body
T = TypeVar("T")

SIDES = {OrderSide.BUY: "1", OrderSide.SELL: "2", OrderSide.SELL_SHORT: "5"}
ORDER_TYPES = {OrderType.MARKET: "1", OrderType.LIMIT: "2", OrderType.STOP: "3", OrderType.STOP_LIMIT: "4"}
TIMES_IN_FORCE = {
    TimeInForce.DAY: "0", TimeInForce.GOOD_TILL_CANCEL: "1", TimeInForce.AT_THE_OPENING: "2",
    TimeInForce.IMMEDIATE_OR_CANCEL: "3", TimeInForce.FILL_OR_KILL: "4", TimeInForce.AT_THE_CLOSE: "7",
}  # fmt: skip


class Unreadable(msgspec.Struct, frozen=True):
    """Why a checked message gives no event: for a BusinessMessageReject (35=j) or the log."""

    why: str
    tag: int = 0


class OrderContext(msgspec.Struct, frozen=True):
    """What messages about an order repeat of it: as it stands after the event that a report is of."""

    order: NewOrder
    cl_ord_id: str  # of the request that was accepted last
    state: OrderState
    price: Decimal | None = None
    filled_value: Decimal = Decimal(0)  # lots times price, of all fills


class NotRead(Exception):
    """A field that gives no event: it is caught where the message is read."""

    def __init__(self, why: str, tag: int) -> None:
        super().__init__(why)
        self.reason = Unreadable(why, tag)


def time_of(message: FixMessage) -> int:
    """TransactTime (60), or SendingTime (52)."""
    return parse_timestamp(message.get(60)) or parse_timestamp(message.get(52)) or 0


def text_field(text: str) -> list[tuple[int, str]]:
    plain = text.encode("ascii", "replace").decode().replace("\x01", " ")
    return [(58, plain)] if plain else []


def needed(message: FixMessage, tag: int) -> str:
    value = message.get(tag)
    if not value:
        raise NotRead(f"field {tag} is missing", tag)
    return value


def lots(message: FixMessage, tag: int) -> int:
    value = number(message, tag)
    if value is None or value <= 0 or value != value.to_integral_value():
        raise NotRead(f"field {tag} is no positive whole number of lots", tag)
    return int(value)


def number(message: FixMessage, tag: int) -> Decimal | None:
    text = message.get(tag)
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        raise NotRead(f"field {tag} is not a number", tag) from None


def value_of(message: FixMessage, tag: int, codes: Mapping[T, str]) -> T:
    for value, code in codes.items():
        if code == message.get(tag):
            return value
    raise NotRead(f"field {tag} is {message.get(tag)[:20]}, which we do not trade", tag)
