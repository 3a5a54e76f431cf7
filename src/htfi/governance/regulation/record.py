"""What the checks read, in order of time: decisions, governance entries and order events with what they act on.

`RecordReader` follows the open orders and the markets once, for all checks, in bounded memory.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from htfi.domain.decision import Decision
from htfi.domain.order_states import IllegalTransition, OrderState, advance
from htfi.domain.orders import (
    InstrumentTerms,
    MarketSnapshot,
    NewOrder,
    OrderEvent,
    OrderMessage,
    OrderReplaced,
    SessionPhase,
)
from htfi.governance.regulation.tape import MarketTape

MAX_TRACKED_ORDERS = 200_000  # open ones and the newest closed ones; the oldest are forgotten, and counted
MAX_CLOSED_ORDERS = 20_000
MAX_MARKETS = 20_000
MAX_TAPES = 2_000


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision in the ledger."""

    index: int
    leaf_hash: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class GovernanceRecord:
    """An entry of the governance log: `{"kind": …, "at_ns": …, …}`."""

    index: int
    kind: str
    at_ns: int
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file of a run with generated text, and whether it or a file beside it says so in machine-readable form."""

    name: str
    is_marked: bool


@dataclass(slots=True)
class TrackedOrder:
    """An order as its events left it: prices as floats, for distances alone."""

    new: NewOrder
    state: OrderState
    price: float | None
    entered_ns: int
    closed_ns: int = 0
    fill_value: float = 0.0

    @property
    def party(self) -> str:
        return party_of(self.new)


@dataclass(slots=True)
class SeenMarket:
    """The newest that was seen of an instrument at a venue."""

    at_ns: int = 0
    bid: float | None = None
    ask: float | None = None
    last: float | None = None
    phase: SessionPhase | None = None

    @property
    def mid(self) -> float | None:
        if self.bid and self.ask:
            return (self.bid + self.ask) / 2
        return self.last

    def take(self, event: MarketSnapshot) -> None:
        self.at_ns = event.at_ns
        if event.bid is not None:
            self.bid = float(event.bid)
        if event.ask is not None:
            self.ask = float(event.ask)
        if event.last is not None:
            self.last = float(event.last)
        if event.phase is not None:
            self.phase = event.phase


@dataclass(slots=True)
class Observation:
    """One order event, the order it is about as it stands after it, and the market as it stood then.

    `illegal` says what FIX's state matrix does not allow; `before` is the order's state before the event.
    """

    event: OrderEvent
    at_ns: int
    order: TrackedOrder | None = None
    before: OrderState | None = None
    illegal: str = ""
    market: SeenMarket | None = None


@dataclass(slots=True)
class RecordReader:
    """Follows orders, markets and instruments through the stream."""

    orders: dict[str, TrackedOrder] = field(default_factory=dict[str, TrackedOrder])
    markets: "OrderedDict[tuple[str, str], SeenMarket]" = field(
        default_factory=OrderedDict[tuple[str, str], SeenMarket]
    )
    tapes: "OrderedDict[tuple[str, str], MarketTape]" = field(
        default_factory=OrderedDict[tuple[str, str], MarketTape]
    )
    terms: dict[str, InstrumentTerms] = field(default_factory=dict[str, InstrumentTerms])
    num_forgotten: int = 0
    _closed: "OrderedDict[str, None]" = field(default_factory=OrderedDict[str, None])

    def observe(self, event: OrderEvent) -> Observation:
        seen = Observation(event, event.at_ns)
        if isinstance(event, MarketSnapshot):
            seen.market = self._market(event.instrument, event.venue)
            seen.market.take(event)
            self._tape(event)
        elif isinstance(event, InstrumentTerms):
            if len(self.terms) < MAX_MARKETS or event.instrument in self.terms:
                self.terms[event.instrument] = event
        elif isinstance(event, OrderMessage):
            self._take_message(event, seen)
        return seen

    def value(self, instrument: str, quantity: int, price: float) -> float:
        """In the instrument's currency; one lot is one unit where its terms are not known."""
        terms = self.terms.get(instrument)
        if terms is None:
            return quantity * price
        return quantity * terms.lot_size * float(terms.multiplier) * price

    def open_orders(self) -> Iterator[TrackedOrder]:
        return (order for order in self.orders.values() if order.state.is_open)

    def market_of(self, instrument: str, venue: str) -> SeenMarket | None:
        return self.markets.get((instrument, venue))

    def _take_message(self, event: OrderMessage, seen: Observation) -> None:
        order = self.orders.get(event.order_id)
        seen.before = None if order is None else order.state
        after = advance(seen.before, event)
        if isinstance(after, IllegalTransition):
            seen.illegal = after.why
        elif isinstance(event, NewOrder):
            price = None if event.price is None else float(event.price)
            order = self.orders[event.order_id] = TrackedOrder(event, after, price, event.at_ns)
            self._bound()
        elif order is not None:
            order.state = after
            if isinstance(event, OrderReplaced) and event.price is not None:
                order.price = float(event.price)
            if not after.is_open and not order.closed_ns:
                order.closed_ns = event.at_ns
                self._closed[event.order_id] = None
                if len(self._closed) > MAX_CLOSED_ORDERS:
                    self.orders.pop(self._closed.popitem(last=False)[0], None)
        seen.order = order
        if order is not None:
            seen.market = self.markets.get((order.new.instrument, order.new.venue))

    def _bound(self) -> None:
        if len(self.orders) > MAX_TRACKED_ORDERS:
            oldest = next(iter(self.orders))
            del self.orders[oldest]
            self._closed.pop(oldest, None)
            self.num_forgotten += 1

    def _tape(self, event: MarketSnapshot) -> None:
        key = (event.instrument, event.venue)
        tape = self.tapes.get(key)
        if tape is None:
            tape = self.tapes[key] = MarketTape()
            if len(self.tapes) > MAX_TAPES:
                self.tapes.popitem(last=False)
        tape.take(event.at_ns, self.markets[key].mid, event.last_quantity)

    def _market(self, instrument: str, venue: str) -> SeenMarket:
        key = (instrument, venue)
        found = self.markets.get(key)
        if found is None:
            found = self.markets[key] = SeenMarket()
            if len(self.markets) > MAX_MARKETS:
                self.markets.popitem(last=False)
        return found


def party_of(order: NewOrder) -> str:
    """On whose behalf: the client, else account, trader, desk or algo, whichever is named first."""
    for kind, name in (
        ("client", order.client),
        ("account", order.account),
        ("trader", order.trader),
        ("desk", order.desk),
        ("algo", order.algo),
    ):
        if name:
            return f"{kind}:{name}"
    return "firm"


def governance_record(index: int, entry: bytes) -> GovernanceRecord | None:
    """What an entry of a governance log holds; None where it is not one."""
    try:
        fields = msgspec.json.decode(entry, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    kind, at_ns = fields.get("kind"), fields.get("at_ns")
    if not isinstance(kind, str) or not isinstance(at_ns, int):
        return None
    return GovernanceRecord(index, kind, at_ns, fields)
