"""The limits of a scope as whole numbers, so that a comparison is exact: shares in billionths, money in nanos."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import LimitsInForce
from htfi.execution.instruments import NANOS

ANY = "*"
SHARE = 10**9  # 1.0 as a share


@dataclass(frozen=True, slots=True)
class ScopeLimits:
    """What `LimitsInForce` says, in whole numbers; None where there is no such limit."""

    scope: str
    price_collar: int | None
    window_collar: int | None
    collar_window_ns: int
    max_book_distance: int | None
    max_order_value: int | None
    max_order_lots: int | None
    max_messages_per_s: int | None
    max_repeated_executions: int | None
    repeated_window_ns: int
    max_open_value: int | None
    max_position_value: int | None
    max_market_age_ns: int | None
    max_decision_age_ns: int | None
    max_identical_orders: int | None
    max_parent_ns: int | None
    permitted: frozenset[str] | None
    restricted: frozenset[str]

    def ban_on(self, instrument: str) -> str:
        """Why an instrument may not be traded, in words; empty where it may."""
        if instrument in self.restricted:
            return f"{instrument} is restricted for {self.scope}"
        if self.permitted is not None and instrument not in self.permitted:
            return f"{instrument} is not among what {self.scope} may trade"
        return ""


NO_LIMITS = ScopeLimits(
    "", None, None, 0, None, None, None, None, None, 0, None, None, None, None, None, None, None, frozenset()
)
# No order goes without these.
REQUIRED = (
    "price_collar", "max_order_value", "max_order_lots", "max_messages_per_s", "max_open_value",
    "max_position_value", "max_market_age_ns", "max_decision_age_ns", "max_repeated_executions",
)  # fmt: skip
_TIGHTEST = (
    "price_collar", "max_book_distance", "max_order_value", "max_order_lots", "max_messages_per_s",
    "max_open_value", "max_position_value", "max_market_age_ns", "max_decision_age_ns", "max_identical_orders",
    "max_parent_ns",
)  # fmt: skip


def tightest_of(limits: Sequence[ScopeLimits]) -> ScopeLimits:
    """Of each limit the tightest; windows stay with the scope that states them."""
    found = {
        name: min(values)
        for name in _TIGHTEST
        if (values := [value for one in limits if (value := getattr(one, name)) is not None])
    }
    repeated = min(
        (one for one in limits if one.max_repeated_executions is not None),
        key=lambda one: one.max_repeated_executions or 0,
        default=NO_LIMITS,
    )
    return replace(
        NO_LIMITS,
        **found,
        max_repeated_executions=repeated.max_repeated_executions,
        repeated_window_ns=repeated.repeated_window_ns,
    )


def limits_of(event: LimitsInForce) -> ScopeLimits:
    """Limits in whole numbers, rounded to the tighter side. Raises: InvalidInput, naming the limit that is none."""
    return ScopeLimits(
        event.scope,
        _share(event, "price_collar"),
        _share(event, "window_collar"),
        _count(event, "collar_window_ns") or 0,
        _share(event, "max_book_distance"),
        _money(event, "max_order_value"),
        _count(event, "max_order_quantity"),
        _count(event, "max_messages_per_s"),
        _count(event, "max_repeated_executions"),
        _count(event, "repeated_window_ns") or 0,
        _money(event, "max_open_value"),
        _money(event, "max_position_value"),
        _count(event, "max_market_age_ns"),
        _count(event, "max_decision_age_ns"),
        _count(event, "max_identical_orders"),
        _count(event, "max_parent_ns"),
        frozenset(event.permitted) if event.permitted and ANY not in event.permitted else None,
        frozenset(event.restricted),
    )


def _share(event: LimitsInForce, name: str) -> int | None:
    value: float | None = getattr(event, name)
    if value is None:
        return None
    if not 0.0 <= value <= 1e6:  # NaN is in no bounds
        raise InvalidInput(f"{name} of {event.scope} is {value}: a share from 0 on is expected")
    return int((Decimal(value) * SHARE).to_integral_value(ROUND_FLOOR))


def _money(event: LimitsInForce, name: str) -> int | None:
    value: Decimal | None = getattr(event, name)
    if value is None:
        return None
    if not value.is_finite() or value < 0:
        raise InvalidInput(f"{name} of {event.scope} is {value}: an amount from 0 on is expected")
    return int((value * NANOS).to_integral_value(ROUND_FLOOR))


def _count(event: LimitsInForce, name: str) -> int | None:
    value: int | None = getattr(event, name)
    if value is not None and value < 0:
        raise InvalidInput(f"{name} of {event.scope} is {value}: a number from 0 on is expected")
    return value
