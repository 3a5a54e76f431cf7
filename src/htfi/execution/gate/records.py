"""What the gate remembers of scopes, markets, decisions and own orders. `gate.state` keeps it, `judging` reads it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from htfi.domain.order_states import OrderState
from htfi.domain.orders import NewOrder, ParentOrder, SessionPhase
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.limits import NO_LIMITS, REQUIRED, ScopeLimits, tightest_of
from htfi.execution.instruments import NANOS

MAX_CLOCK_STEP_NS = NS_PER_S  # how far the clock of an intent may lag behind what the gate has seen
MAX_MESSAGES_PER_S = 100_000  # of a scope: what is counted
MAX_IDENTICAL_SEEN = 64  # orders alike: older ones are not counted


@dataclass(slots=True)
class ScopeState:
    """A scope's limits and what has been used of them."""

    name: str
    limits: ScopeLimits | None = None
    disabled: str = ""  # why no order of the scope may be sent
    open_value: int = 0  # of open orders
    filled: dict[str, int] = field(default_factory=dict[str, int])  # instrument → signed value of fills
    filled_value: int = 0  # the sum of their sizes
    message_times: deque[int] = field(default_factory=lambda: deque[int](maxlen=MAX_MESSAGES_PER_S))

    def add_fill(self, instrument: str, value: int) -> None:
        before = self.filled.get(instrument, 0)
        self.filled[instrument] = before + value
        self.filled_value += abs(before + value) - abs(before)


ScopeLimit = tuple[ScopeState, int]


@dataclass(slots=True, eq=False)
class OrderParty:
    """The scopes of an order, the firm's first, and the limits that hold for it: of each the tightest.

    What is used of a limit is a scope's own, so of messages, open and position values each scope's limit is there.
    `window_collars` are windows in nanoseconds with their collars; `missing` names a limit that no order goes without,
    `ban` says why the instrument may not be traded.
    """

    instrument: str
    scopes: tuple[ScopeState, ...]
    tightest: ScopeLimits = NO_LIMITS
    message_limits: tuple[ScopeLimit, ...] = ()
    open_limits: tuple[ScopeLimit, ...] = ()
    position_limits: tuple[ScopeLimit, ...] = ()
    window_collars: tuple[tuple[int, int], ...] = ()
    missing: str = ""
    ban: str = ""

    def __post_init__(self) -> None:
        self.read_limits()

    def read_limits(self) -> None:
        """Take the limits of the scopes as they now are."""
        limited = [(one, one.limits) for one in self.scopes if one.limits is not None]
        limits = [one for _, one in limited]
        self.tightest = tightest_of(limits)
        self.message_limits = _stated((scope, one.max_messages_per_s) for scope, one in limited)
        self.open_limits = _stated((scope, one.max_open_value) for scope, one in limited)
        self.position_limits = _stated((scope, one.max_position_value) for scope, one in limited)
        self.window_collars = tuple(
            dict.fromkeys(
                (one.collar_window_ns, one.window_collar) for one in limits if one.window_collar is not None
            )
        )
        self.missing = next((name for name in REQUIRED if getattr(self.tightest, name) is None), "")
        self.ban = next((words for one in limits if (words := one.ban_on(self.instrument))), "")


def _stated(limits: Iterable[tuple[ScopeState, int | None]]) -> tuple[ScopeLimit, ...]:
    return tuple((scope, limit) for scope, limit in limits if limit is not None)


@dataclass(slots=True)
class KnownMarket:
    """The newest that was seen of an instrument at a venue; 0 stands for a price that is not known."""

    at_ns: int = 0
    bid: int = 0
    ask: int = 0
    last: int = 0
    phase: SessionPhase | None = None
    references: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])

    @property
    def doubled_reference(self) -> int:
        """Twice the middle of bid and ask, or of the last price; 0 where there is none."""
        return self.bid + self.ask if self.bid and self.ask else 2 * self.last


@dataclass(slots=True)
class DecisionUse:
    """The parent order that acts on a decision, how many orders it has sent, and how many of its lots are taken."""

    parent_id: str = ""
    parent_lots: int = 0
    num_orders: int = 0
    lots: int = 0


@dataclass(slots=True)
class KnownDecision:
    """A decision in the ledger."""

    leaf_hash: str
    instrument: str
    noted_ns: int
    is_released: bool
    is_superseded: bool = False
    use: DecisionUse = field(default_factory=DecisionUse)


@dataclass(slots=True)
class KnownParent:
    """An order that an algorithm works, and how urgently it does."""

    order: ParentOrder
    limit: int | None  # nanos
    urgency: float

    def max_lots(self, at_ns: int) -> int:
        """Lots that may be open or filled by an instant."""
        for bound in self.order.pace:
            if at_ns <= bound.until_ns:
                return bound.max_lots
        return self.order.quantity

    @property
    def is_urgency_in_bounds(self) -> bool:
        return self.order.min_urgency <= self.urgency <= self.order.max_urgency


@dataclass(slots=True, eq=False)
class SentOrder:
    """When an order was sent, and whether it is open; `group` is None where newer ones have taken its place there."""

    at_ns: int
    group: "IdenticalOrders | None"
    is_open: bool = True

    def close(self) -> None:
        """The order has ended."""
        self.is_open = False
        if self.group is not None:
            self.group.num_open -= 1


@dataclass(slots=True, eq=False)
class IdenticalOrders:
    """The newest orders that are alike, and how many of them are open."""

    orders: deque[SentOrder] = field(default_factory=deque[SentOrder])
    num_open: int = 0

    def add(self, at_ns: int) -> SentOrder:
        """Remember an order that was sent just now."""
        if len(self.orders) == MAX_IDENTICAL_SEEN:
            oldest = self.orders.popleft()
            oldest.group = None
            self.num_open -= oldest.is_open
        sent = SentOrder(at_ns, self)
        self.orders.append(sent)
        self.num_open += 1
        return sent

    def num_since(self, at_ns: int) -> int:
        """How many that were sent at an instant or later are open."""
        return sum(1 for one in self.orders if one.at_ns >= at_ns and one.is_open)


@dataclass(slots=True, eq=False)
class LiveOrder:
    """An order of our own, as its events left it."""

    new: NewOrder
    state: OrderState
    price: int  # nanos; at market the price that its value is counted at
    party: OrderParty
    sent: SentOrder  # among those alike
    value: int = 0  # of what is open, as it is counted
    used_lots: int = 0  # of its decision
    counts_for_decision: bool = False  # whether it is an order of the parent that acts on its decision
    pending: set[str] = field(
        default_factory=set[str]
    )  # requests to cancel or replace it that await an answer
    fills: dict[str, tuple[int, int]] = field(
        default_factory=dict[str, tuple[int, int]]
    )  # ExecID → lots, price


@dataclass(slots=True)
class RestingPrices:
    """Prices of our own open orders in an instrument at a venue, sorted."""

    buys: list[int] = field(default_factory=list[int])
    sells: list[int] = field(default_factory=list[int])

    def side(self, sign: int) -> list[int]:
        return self.buys if sign > 0 else self.sells


def nanos(price: Decimal) -> int:
    """A price in nanos; digits beyond the ninth are cut."""
    return int(price * NANOS)
