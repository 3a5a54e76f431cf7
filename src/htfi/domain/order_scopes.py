"""Which scopes an order is in: firm, client, trader, desk, algo, instrument; and which limits and bans reach it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import structs

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import (
    LimitsInForce,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    TradingDisabled,
    TradingEnabled,
)

FIRM = "firm"
MAX_SCOPES = 10_000


def scopes_of(order: NewOrder) -> tuple[str, ...]:
    """All scopes that reach an order, the firm's first."""
    return scope_names(order.client, order.trader, order.desk, order.algo, order.instrument)


@lru_cache(maxsize=4096)
def scope_names(client: str, trader: str, desk: str, algo: str, instrument: str) -> tuple[str, ...]:
    """The scopes of an order of these parties; empty names give none."""
    named = (
        ("client", client), ("trader", trader), ("desk", desk), ("algo", algo), ("instrument", instrument)
    )  # fmt: skip
    return (FIRM, *(f"{kind}:{name}" for kind, name in named if name))


@dataclass(slots=True)
class LimitsBook:
    """The limits in force by scope."""

    by_scope: dict[str, LimitsInForce] = field(default_factory=dict[str, LimitsInForce])

    def take(self, event: OrderEvent) -> None:
        if isinstance(event, LimitsInForce) and (
            event.scope in self.by_scope or len(self.by_scope) < MAX_SCOPES
        ):
            self.by_scope[event.scope] = event

    def of(self, order: NewOrder) -> list[LimitsInForce]:
        found = (self.by_scope.get(scope) for scope in scopes_of(order))
        return [one for one in found if one is not None]


@dataclass(slots=True)
class BanBook:
    """The scopes in which no order may be sent, and since when."""

    since_ns: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, event: OrderEvent) -> None:
        if isinstance(event, TradingDisabled) and len(self.since_ns) < MAX_SCOPES:
            self.since_ns.setdefault(event.scope, event.at_ns)
        elif isinstance(event, TradingEnabled):
            self.since_ns.pop(event.scope, None)

    def of(self, order: NewOrder) -> str:
        """A scope that bans the order; empty where none does."""
        if not self.since_ns:
            return ""
        return next((scope for scope in scopes_of(order) if scope in self.since_ns), "")


def covers(request: MassCancelRequest, order: NewOrder) -> bool:
    """Whether a mass cancel reaches an order."""
    wanted: Mapping[str, str] = {
        "instrument": request.instrument, "venue": request.venue, "client": request.client,
        "trader": request.trader, "desk": request.desk, "algo": request.algo,
    }  # fmt: skip
    if request.order and request.order not in (order.order_id, order.parent_id):
        return False
    return all(not value or getattr(order, name) == value for name, value in wanted.items())


SCOPE_KINDS = ("client", "trader", "desk", "algo", "instrument")


def check_order_scope(scope: str) -> tuple[str, str]:
    """Kind and name of a scope; of the firm both are empty. Raises: InvalidInput for what is no scope."""
    kind, _, name = scope.partition(":")
    if scope == FIRM:
        return "", ""
    if kind not in SCOPE_KINDS or not name:
        raise InvalidInput(
            f"'{scope[:60]}' is no scope of orders: write firm, or one of {', '.join(SCOPE_KINDS)}, a colon and a name"
        )
    return kind, name


def mass_cancel_of(scope: str, at_ns: int, by: str, why: str, request: str = "") -> MassCancelRequest:
    """The request that cancels every open order of a scope. Raises: InvalidInput for what is no scope."""
    kind, name = check_order_scope(scope)
    stated = MassCancelRequest(at_ns=at_ns, by=by, why=why, request=request)
    return structs.replace(stated, **{kind: name}) if kind else stated


def cancel_of_order(order_id: str, at_ns: int, by: str, why: str, request: str = "") -> MassCancelRequest:
    """The request that cancels one order, or all that a parent has sent. It has no effect on one that is closed."""
    return MassCancelRequest(at_ns=at_ns, by=by, why=why, order=order_id, request=request)
