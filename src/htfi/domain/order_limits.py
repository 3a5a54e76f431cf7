"""Limits on orders as settings and policy bundles state them, and as the gate and regulators' monitors read them."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from msgspec import Meta

from htfi.domain.order_scopes import check_order_scope
from htfi.domain.orders import LimitsInForce
from htfi.domain.settings import check_bounds, setting, setting_from
from htfi.domain.time import NS_PER_S

_Share = Annotated[float, Meta(ge=0.0, le=10.0)]
_Money = Annotated[float, Meta(ge=0.0, le=1e15)]
_Lots = Annotated[int, Meta(ge=0, le=10**12)]
_Number = Annotated[int, Meta(ge=0, le=100_000)]
_Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]


@dataclass(frozen=True, slots=True)
class ScopeOrderLimits:
    """Limits of one scope, as in `OrderLimits`; None where it has none of its own."""

    price_collar: _Share | None = None
    window_collar: _Share | None = None
    collar_window_s: _Seconds | None = None
    max_book_distance: _Share | None = None
    max_order_value: _Money | None = None
    max_order_quantity: _Lots | None = None
    max_messages_per_s: _Number | None = None
    max_repeated_executions: _Number | None = None
    repeated_window_s: _Seconds | None = None
    max_open_value: _Money | None = None
    max_position_value: _Money | None = None
    max_market_age_s: _Seconds | None = None
    max_decision_age_s: _Seconds | None = None
    max_identical_orders: _Number | None = None
    max_parent_s: _Seconds | None = None
    permitted: tuple[str, ...] | None = None
    restricted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """Table `[order_limits]`: what every order must keep to, by the firm's limits or by tighter ones of a scope.

    `by_scope` names scopes as client:NAME, trader:NAME, desk:NAME, algo:NAME, instrument:NAME, each with limits of the
    same names; what it states holds beside the firm's, so that it can only tighten.
    """

    price_collar: _Share = setting(0.05, "largest distance of an order's price from the market", "0–1")
    window_collar: _Share = setting(0.10, "the same from the market some time ago", "0–1")
    collar_window_s: _Seconds = setting(300.0, "how long ago that is")
    max_book_distance: _Share = setting(0.02, "how far a price may reach beyond the opposite best", "0–1")
    max_order_value: _Money = setting(1_000_000.0, "largest value of an order", "currency")
    max_order_quantity: _Lots = setting(1_000_000, "largest quantity of an order", "lots")
    max_messages_per_s: _Number = setting(50, "messages to venues within a second", "messages")
    max_repeated_executions: _Number = setting(
        50, "executions of an algorithm on one side before it is locked", "executions"
    )
    repeated_window_s: _Seconds = setting(1.0, "within what time they count")
    max_open_value: _Money = setting(5_000_000.0, "largest value of all open orders", "currency")
    max_position_value: _Money = setting(
        10_000_000.0, "largest value of positions and open orders", "currency"
    )
    max_market_age_s: _Seconds = setting(60.0, "largest age of the market data that an order is judged by")
    max_decision_age_s: _Seconds = setting(60.0, "largest age of the decision that an order acts on")
    max_identical_orders: _Number = setting(2, "open orders alike that were sent within a second", "orders")
    max_parent_s: _Seconds = setting(3600.0, "longest time that an algorithm may work a parent order")
    permitted: tuple[str, ...] = setting(("*",), "instruments that may be traded; '*' permits all")
    restricted: tuple[str, ...] = setting((), "instruments that may not")
    by_scope: dict[str, ScopeOrderLimits] = setting_from(
        dict[str, ScopeOrderLimits], "tighter limits of scopes, by name"
    )

    def __post_init__(self) -> None:
        check_bounds("order_limits", self)
        for scope in self.by_scope:
            check_order_scope(scope)

    def in_force(self, at_ns: int, by: str) -> Iterator[LimitsInForce]:
        """The events that put these limits in force, the firm's first."""
        yield _event("firm", self, at_ns, by)
        for scope, limits in self.by_scope.items():
            yield _event(scope, limits, at_ns, by)


def _event(scope: str, limits: OrderLimits | ScopeOrderLimits, at_ns: int, by: str) -> LimitsInForce:
    permitted = limits.permitted
    window_s, repeated_s = limits.collar_window_s, limits.repeated_window_s
    return LimitsInForce(
        at_ns=at_ns,
        scope=scope,
        by=by,
        price_collar=limits.price_collar,
        max_order_value=_money(limits.max_order_value),
        max_order_quantity=limits.max_order_quantity,
        max_messages_per_s=limits.max_messages_per_s,
        max_repeated_executions=limits.max_repeated_executions,
        repeated_window_ns=NS_PER_S if repeated_s is None else _ns(repeated_s),
        max_open_value=_money(limits.max_open_value),
        max_position_value=_money(limits.max_position_value),
        permitted=() if permitted is None else permitted,
        restricted=limits.restricted,
        window_collar=limits.window_collar,
        collar_window_ns=300 * NS_PER_S if window_s is None else _ns(window_s),
        max_book_distance=limits.max_book_distance,
        max_market_age_ns=None if limits.max_market_age_s is None else _ns(limits.max_market_age_s),
        max_decision_age_ns=None if limits.max_decision_age_s is None else _ns(limits.max_decision_age_s),
        max_identical_orders=limits.max_identical_orders,
        max_parent_ns=None if limits.max_parent_s is None else _ns(limits.max_parent_s),
    )


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _money(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(repr(amount))
