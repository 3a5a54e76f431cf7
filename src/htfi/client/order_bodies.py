"""Bodies of orders: orders, positions, costs, cancels."""

from typing import Any

import msgspec


class CancelQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who asks to cancel an order and why."""

    why: str
    by: str = ""


class CancelAllQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same of every open order of a scope: firm, or client:, trader:, desk:, algo: or instrument: and a name."""

    why: str
    by: str = ""
    scope: str = "firm"


class OrderBody(msgspec.Struct, frozen=True):
    """An order. Lots are whole; prices in the instrument's currency; `decision` is an index in the ledger."""

    number: int  # in the order in which they were sent, from 1 on
    order: str
    sent: str
    instrument: str
    venue: str
    side: str
    lots: int
    limit: str | None
    status: str
    is_open: bool
    filled: int
    average_price: float | None
    fees: float
    slippage_bps: float | None
    parent: str | None
    decision: int | None
    reason: str


class OrderPage(msgspec.Struct, frozen=True):
    """Orders, newest first; `next` is the number to ask for those before, None on the last page."""

    items: list[OrderBody]
    next: int | None


class OrderDetail(msgspec.Struct, frozen=True):
    """An order with every message on it, or one that an algorithm worked with its children: one of the two is None."""

    order: OrderBody | None
    messages: list[dict[str, Any]]
    parent: dict[str, Any] | None
    children: list[OrderBody]


class PositionBody(msgspec.Struct, frozen=True):
    """What is held of an instrument in an account. Money in the instrument's currency."""

    account: str
    instrument: str
    lots: int
    price: float | None
    realised: float
    unrealised: float
    fees: float
    net: float
    shortfall: float
    traded: float
    num_fills: int


class PositionsBody(msgspec.Struct, frozen=True):
    """All positions, and what does not add up."""

    items: list[PositionBody]
    problems: list[str]


class CostsBody(msgspec.Struct, frozen=True):
    """What trading cost, a group for each value of `by`, and all together; in basis points (docs/execution.md)."""

    by: str
    markouts_s: list[int]
    groups: list[dict[str, Any]]
    all: dict[str, Any] | None


class CancelAnswer(msgspec.Struct, frozen=True):
    """That it was asked for, and when the run does it."""

    detail: str
