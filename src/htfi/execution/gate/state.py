"""What the gate knows: a state over the order event stream, so that a replay of the stream gives the same verdicts.

`GateState.apply` takes one recorded event and may answer with events to be recorded in their turn (a lock after
repeated executions). Judging reads the state and changes nothing (`gate.judging`). Whole numbers only: prices in nanos
of a unit of price, values in nanos of a unit of currency.
"""

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from msgspec import structs

from htfi.domain.order_scopes import FIRM, scope_names
from htfi.domain.order_states import IllegalTransition, advance, count_fill
from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    DecisionNoted,
    FillBusted,
    InstrumentTerms,
    LimitOverride,
    LimitsInForce,
    MarketSnapshot,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    OrderType,
    ParentOrder,
    Reconciled,
    RejectedBy,
    ReplaceRequest,
    TradingDisabled,
    TradingEnabled,
    UrgencyChanged,
)
from htfi.execution.gate.limits import limits_of
from htfi.execution.gate.records import (
    MAX_CLOCK_STEP_NS,
    IdenticalOrders,
    KnownDecision,
    KnownMarket,
    KnownParent,
    LiveOrder,
    OrderParty,
    RestingPrices,
    ScopeState,
    nanos,
)
from htfi.execution.instruments import Instrument, instrument_of

MAX_DECISIONS = 100_000  # the newest are remembered: an order on an older one is refused as unknown
MAX_CLOSED_ORDERS = 100_000  # the newest are remembered: late fills, busts, ids that may not be used again
MAX_OVERRIDES = 10_000
MAX_PARENTS = 100_000  # the newest are remembered: a child of an older one is judged as if it had none
MAX_RECENT = 100_000
REFERENCE_STEPS = 32  # how finely the prices within a collar's window are remembered
REPEATED_EXECUTIONS = "repeated executions"

# What makes two orders identical: party, account, venue, side, lots, price in nanos, type.
Identity = tuple[OrderParty, str, str, OrderSide, int, int | None, OrderType]


@dataclass(slots=True)
class GateState:
    """All that a verdict depends on."""

    instruments: dict[str, Instrument] = field(default_factory=dict[str, Instrument])
    markets: dict[tuple[str, str], KnownMarket] = field(default_factory=dict[tuple[str, str], KnownMarket])
    decisions: "OrderedDict[int, KnownDecision]" = field(default_factory=OrderedDict[int, KnownDecision])
    parents: "OrderedDict[str, KnownParent]" = field(default_factory=OrderedDict[str, KnownParent])
    scopes: dict[str, ScopeState] = field(default_factory=lambda: {FIRM: ScopeState(FIRM)})
    orders: dict[str, LiveOrder] = field(default_factory=dict[str, LiveOrder])
    resting: dict[tuple[str, str], RestingPrices] = field(
        default_factory=dict[tuple[str, str], RestingPrices]
    )
    recent: "OrderedDict[Identity, IdenticalOrders]" = field(
        default_factory=OrderedDict[Identity, IdenticalOrders]
    )
    executions: dict[tuple[str, str, str], deque[int]] = field(
        default_factory=dict[tuple[str, str, str], deque[int]]
    )
    overrides: "OrderedDict[tuple[str, str], LimitOverride]" = field(
        default_factory=OrderedDict[tuple[str, str], LimitOverride]
    )
    positions: dict[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )  # account and instrument → lots bought less sold
    newest_ns: int = 0
    reference_window_ns: int = 0  # the longest window of a collar; 0 where there is none
    _closed: deque[str] = field(default_factory=deque[str])
    _parties: dict[tuple[str, ...], OrderParty] = field(default_factory=dict[tuple[str, ...], OrderParty])

    def party(self, client: str, trader: str, desk: str, algo: str, instrument: str) -> OrderParty:
        """The scopes that reach an order of these parties, and their limits."""
        key = (client, trader, desk, algo, instrument)
        found = self._parties.get(key)
        if found is None:
            found = OrderParty(instrument, tuple(self.scope(name) for name in scope_names(*key)))
            self._parties[key] = found
        return found

    def scope(self, name: str) -> ScopeState:
        """A scope by name; made where it is new."""
        found = self.scopes.get(name)
        if found is None:
            found = self.scopes[name] = ScopeState(name)
        return found

    def apply(self, event: OrderEvent) -> tuple[OrderEvent, ...]:
        """Take in a recorded event; what follows from it must be recorded too, and applied.

        A message that FIX's state matrix does not allow, or a fill that is known, changes nothing but the newest time;
        a fill that it does not allow counts.
        Raises: InvalidInput for limits or terms that are none.
        """
        self.newest_ns = max(self.newest_ns, event.at_ns)
        match event:
            case MarketSnapshot():
                self._take_market(event)
            case DecisionNoted():
                self._note_decision(event)
            case LimitsInForce():
                self.scope(event.scope).limits = limits_of(event)
                for party in self._parties.values():
                    party.read_limits()
                self.reference_window_ns = max(
                    (
                        one.limits.collar_window_ns
                        for one in self.scopes.values()
                        if one.limits is not None and one.limits.window_collar is not None
                    ),
                    default=0,
                )
            case InstrumentTerms():
                self.instruments[event.instrument] = instrument_of(event)
            case TradingDisabled():
                self.scope(event.scope).disabled = event.cause or "disabled"
            case TradingEnabled():
                self._enable(event)
            case LimitOverride():
                self.overrides[event.order_id, event.limit] = event
                if len(self.overrides) > MAX_OVERRIDES:
                    self.overrides.popitem(last=False)
            case NewOrder():
                self._take_new(event)
            case ParentOrder():
                self._take_parent(event)
            case UrgencyChanged():
                if event.order_id in self.parents:
                    self.parents[event.order_id].urgency = event.urgency
            case MassCancelRequest() | AlertRaised() | Reconciled():
                pass  # a mass cancel becomes a cancel for each order
            case _:
                return self._take_message(event)
        return ()

    def _take_market(self, event: MarketSnapshot) -> None:
        key = (event.instrument, event.venue)
        market = self.markets.get(key)
        if market is None:
            market = self.markets[key] = KnownMarket()
        market.at_ns = event.at_ns
        if event.bid is not None:
            market.bid = nanos(event.bid)
        if event.ask is not None:
            market.ask = nanos(event.ask)
        if event.last is not None:
            market.last = nanos(event.last)
        if event.phase is not None:
            market.phase = event.phase
        reference = market.doubled_reference
        window = self.reference_window_ns
        if not window or not reference:
            return
        references = market.references
        if not references or event.at_ns - references[-1][0] >= window // REFERENCE_STEPS:
            references.append((event.at_ns, reference))
        while len(references) > 1 and references[1][0] <= event.at_ns - window:
            references.popleft()

    def _note_decision(self, event: DecisionNoted) -> None:
        noted = KnownDecision(event.receipt.leaf_hash, event.instrument, event.at_ns, event.is_released)
        before = None if event.amends is None else self.decisions.get(event.amends)
        if before is not None:
            before.is_superseded = True
        self.decisions[event.receipt.index] = noted
        if len(self.decisions) > MAX_DECISIONS:
            self.decisions.popitem(last=False)

    def _take_parent(self, event: ParentOrder) -> None:
        """The first parent of an id counts; one that claims to be older than what was seen does not."""
        if event.order_id in self.parents or event.at_ns < self.newest_ns - MAX_CLOCK_STEP_NS:
            return
        limit = None if event.limit_price is None else nanos(event.limit_price)
        self.parents[event.order_id] = KnownParent(event, limit, event.min_urgency)
        if len(self.parents) > MAX_PARENTS:
            self.parents.popitem(last=False)

    def _enable(self, event: TradingEnabled) -> None:
        if not event.by:
            return
        self.scope(event.scope).disabled = ""
        for key in list(self.executions):
            if event.scope in (FIRM, f"algo:{key[0]}", f"instrument:{key[1]}"):
                del self.executions[key]

    def _take_new(self, event: NewOrder) -> None:
        before = self.orders.get(event.order_id)
        state = advance(None if before is None else before.state, event)
        if isinstance(state, IllegalTransition):
            return
        party = self.party(event.client, event.trader, event.desk, event.algo, event.instrument)
        market = self.markets.get((event.instrument, event.venue))
        if event.price is not None:
            price = nanos(event.price)
        else:
            price = 0 if market is None else market.doubled_reference // 2
        sent = self._alike(event, price, party).add(event.at_ns)
        order = self.orders[event.order_id] = LiveOrder(event, state, price, party, sent)
        for scope in party.scopes:
            scope.message_times.append(event.at_ns)
        self._rest(order)
        self._count_open(order)
        self._claim_decision(order)
        self._count_used(order)

    def _alike(self, new: NewOrder, price: int, party: OrderParty) -> IdenticalOrders:
        """The orders that are as this one."""
        stated = None if new.price is None else price
        identity = (party, new.account, new.venue, new.side, new.quantity, stated, new.order_type)
        alike = self.recent.get(identity)
        if alike is not None:
            self.recent.move_to_end(identity)
            return alike
        alike = self.recent[identity] = IdenticalOrders()
        if len(self.recent) > MAX_RECENT:
            self.recent.popitem(last=False)
        return alike

    def _take_message(self, event: OrderMessage) -> tuple[OrderEvent, ...]:
        order = self.orders.get(event.order_id)
        if order is None or (isinstance(event, OrderFilled) and event.exec_id in order.fills):
            return ()
        if isinstance(event, FillBusted):
            if event.exec_id not in order.fills:
                return ()
            event = structs.replace(
                event, quantity=order.fills[event.exec_id][0]
            )  # the whole fill, whatever it says
        was_open = order.state.is_open
        state = advance(order.state, event)
        if isinstance(state, IllegalTransition):
            if not isinstance(event, OrderFilled) or event.quantity <= 0:
                return ()
            state = count_fill(order.state, event)
        order.state = state
        follows: tuple[OrderEvent, ...] = ()
        match event:
            case OrderFilled():
                order.fills[event.exec_id] = event.quantity, nanos(event.price)
                self._add_fill(order, event.quantity, nanos(event.price))
                follows = self._count_execution(order, event.at_ns)
            case FillBusted():
                lots, price = order.fills.pop(event.exec_id)
                self._add_fill(order, -lots, price)
            case CancelRequest() | ReplaceRequest():
                order.pending.add(event.cl_ord_id)
                for scope in order.party.scopes:
                    scope.message_times.append(event.at_ns)
            case OrderReplaced():
                order.pending.discard(event.cl_ord_id)
                if event.price is not None:
                    self._unrest(order)
                    order.price = nanos(event.price)
                    self._rest(order)
            case OrderRejected():
                if event.by is RejectedBy.GATE:  # it was not sent
                    self._uncount_message(order)
            case _:
                order.pending.discard(event.cl_ord_id)
        if was_open and not state.is_open:
            self._close(order)
        self._count_open(order)
        self._count_used(order)
        if isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            self._free_decision(order)
        return follows

    def _close(self, order: LiveOrder) -> None:
        self._unrest(order)
        order.pending.clear()
        order.sent.close()
        self._closed.append(order.new.order_id)
        if len(self._closed) > MAX_CLOSED_ORDERS:
            del self.orders[self._closed.popleft()]

    def _count_open(self, order: LiveOrder) -> None:
        """What the open part of an order is worth, in each of its scopes."""
        value = self._value(order.new.instrument, order.state.leaves, order.price)
        change = value - order.value
        if change:
            order.value = value
            for scope in order.party.scopes:
                scope.open_value += change

    def _add_fill(self, order: LiveOrder, lots: int, price: int) -> None:
        sign, key = order.new.side.sign, (order.new.account, order.new.instrument)
        self.positions[key] = self.positions.get(key, 0) + sign * lots
        value = sign * self._value(order.new.instrument, lots, price)
        for scope in order.party.scopes:
            scope.add_fill(order.new.instrument, value)

    def _value(self, symbol: str, lots: int, price: int) -> int:
        instrument = self.instruments.get(symbol)
        if instrument is None:
            return lots * price
        return lots * price * instrument.value_nanos // instrument.tick_nanos

    def _count_execution(self, order: LiveOrder, at_ns: int) -> tuple[OrderEvent, ...]:
        """Lock an algorithm that executes too often on one side (RTS 6 art. 15(3)); the tightest limit counts."""
        algo, limits = order.new.algo, order.party.tightest
        limit = limits.max_repeated_executions
        if not algo or limit is None:
            return ()
        key = (algo, order.new.instrument, order.new.side.value)
        times = self.executions.get(key)
        if times is None or times.maxlen != limit + 1:
            times = self.executions[key] = deque(times or (), maxlen=limit + 1)
        times.append(at_ns)
        if len(times) <= limit or times[0] < at_ns - limits.repeated_window_ns:
            return ()
        scope = f"algo:{algo}"
        if self.scope(scope).disabled:
            return ()
        cause = f"{REPEATED_EXECUTIONS}: {len(times)} of {key[1]} on one side, {limit} are allowed"
        return (TradingDisabled(at_ns=at_ns, scope=scope, cause=cause),)

    def _uncount_message(self, order: LiveOrder) -> None:
        for scope in order.party.scopes:
            if scope.message_times and scope.message_times[-1] == order.new.at_ns:
                scope.message_times.pop()

    def _claim_decision(self, order: LiveOrder) -> None:
        """The first order on a decision makes its parent the one that acts on it."""
        decision = self._decision_of(order)
        if decision is None:
            return
        use, parent_id = decision.use, order.new.parent_id or order.new.order_id
        if not use.parent_id:
            use.parent_id = parent_id
            use.parent_lots = order.new.parent_quantity or order.new.quantity
        if use.parent_id == parent_id:
            use.num_orders += 1
            order.counts_for_decision = True

    def _count_used(self, order: LiveOrder) -> None:
        """What an order takes of its decision: its lots while it is open, what was filled once it is closed."""
        decision = self._decision_of(order)
        if decision is None:
            return
        lots = order.state.quantity if order.state.is_open else order.state.filled
        decision.use.lots += lots - order.used_lots
        order.used_lots = lots

    def _free_decision(self, order: LiveOrder) -> None:
        """An order that was never sent has not acted on its decision; without any another parent may."""
        decision = self._decision_of(order)
        if decision is None or not order.counts_for_decision:
            return
        decision.use.num_orders -= 1
        if not decision.use.num_orders:
            decision.use.parent_id = ""

    def _decision_of(self, order: LiveOrder) -> KnownDecision | None:
        receipt = order.new.decision
        return None if receipt is None else self.decisions.get(receipt.index)

    def _rest(self, order: LiveOrder) -> None:
        if order.new.price is not None:
            insort(self._resting(order).side(order.new.side.sign), order.price)

    def _unrest(self, order: LiveOrder) -> None:
        if order.new.price is not None:
            prices = self._resting(order).side(order.new.side.sign)
            del prices[bisect_left(prices, order.price)]

    def _resting(self, order: LiveOrder) -> RestingPrices:
        key = (order.new.instrument, order.new.venue)
        found = self.resting.get(key)
        if found is None:
            found = self.resting[key] = RestingPrices()
        return found
