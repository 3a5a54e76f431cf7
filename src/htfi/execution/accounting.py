"""Positions, profit and loss, and what trading cost: all of it from the order event stream. Pure, in whole numbers.

Money is in nanos of the instrument's currency. A position has the average price of what opened it; what closes it is
realised against that. Costs are compared with the price at which the decision was taken: the middle of the market that
the order was judged by (implementation shortfall, Perold 1988).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from htfi.domain.order_states import IllegalTransition, OrderState, advance, count_fill
from htfi.domain.orders import (
    AlertRaised,
    FillBusted,
    InstrumentTerms,
    MarketSnapshot,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    ParentOrder,
    UrgencyChanged,
)
from htfi.execution.instruments import NANOS, Instrument, instrument_of


@dataclass(slots=True)
class PositionAccount:
    """What is held of an instrument in an account. `cost` is what the open lots were bought or sold for, signed."""

    account: str
    instrument: str
    lots: int = 0
    cost: int = 0
    realised: int = 0
    fees: int = 0
    shortfall: int = 0  # what fills cost beyond the price at the decision
    traded: int = 0  # value of all fills
    num_fills: int = 0
    mark: int = 0  # the newest price in nanos; 0: none is known

    def add(self, lots: int, price: int, unit: int) -> None:
        """Take in a fill of signed lots at a price in nanos; `unit` is what a lot is worth at 1."""
        value = lots * price * unit // NANOS
        if self.lots and (self.lots > 0) != (lots > 0):
            closed = min(abs(lots), abs(self.lots))
            cost = self.cost * closed // abs(self.lots)
            got = value * closed // abs(lots)
            self.realised -= got + cost
            self.cost -= cost
            self.cost += value - got
        else:
            self.cost += value
        self.lots += lots

    def unrealised(self, unit: int) -> int:
        """Of the open lots at the newest price."""
        return self.lots * self.mark * unit // NANOS - self.cost if self.mark else 0


@dataclass(slots=True)
class OrderAccount:
    """An order and what became of it."""

    new: NewOrder
    state: OrderState
    events: list[OrderMessage]
    arrival: int = 0  # middle of the market when it was sent, nanos; 0: not known
    filled_value: int = 0  # Σ lots × price in nanos
    fees: int = 0
    reason: str = ""  # of a refusal or a rejection
    lots_out_of_turn: int = 0  # filled when it was closed, or beyond its quantity
    fills: dict[str, OrderFilled] = field(default_factory=dict[str, OrderFilled])

    @property
    def average_price(self) -> float | None:
        """Of its fills; None where there is none."""
        return self.filled_value / self.state.filled / NANOS if self.state.filled else None

    @property
    def slippage_bps(self) -> float | None:
        """How much worse than the price at the decision it was filled, in basis points of that; None: not known."""
        if not self.state.filled or not self.arrival:
            return None
        average = self.filled_value / self.state.filled
        return self.new.side.sign * (average - self.arrival) / self.arrival * 1e4


@dataclass(slots=True)
class ParentAccount:
    """An order that an algorithm worked: its children by id, and the urgencies that it was worked with."""

    order: ParentOrder
    arrival: int = (
        0  # middle of the market when it began, at the venue that it was seen at last, nanos; 0: not known
    )
    children: list[OrderAccount] = field(default_factory=list[OrderAccount])
    urgencies: list[UrgencyChanged] = field(default_factory=list[UrgencyChanged])

    @property
    def filled(self) -> int:
        return sum(one.state.filled for one in self.children)

    @property
    def lots_out_of_turn(self) -> int:
        """Lots that venues filled against the state of their orders: they may exceed what the parent asked for."""
        return sum(one.lots_out_of_turn for one in self.children)

    @property
    def fees(self) -> int:
        return sum(one.fees for one in self.children)

    @property
    def average_price(self) -> float | None:
        """Of its fills; None where there is none."""
        filled = self.filled
        return sum(one.filled_value for one in self.children) / filled / NANOS if filled else None

    @property
    def slippage_bps(self) -> float | None:
        """How much worse than the market at its beginning it was filled, in basis points; None: not known."""
        average = self.average_price
        if average is None or not self.arrival:
            return None
        return self.order.side.sign * (average * NANOS - self.arrival) / self.arrival * 1e4


class Accounts:
    """Orders and positions as the stream left them."""

    def __init__(self) -> None:
        self.orders: dict[str, OrderAccount] = {}
        self.parents: dict[str, ParentAccount] = {}
        self.positions: dict[tuple[str, str], PositionAccount] = {}
        self.instruments: dict[str, Instrument] = {}
        self.num_events = 0
        self.num_fills = 0
        self.num_refused = 0
        self._problems: list[str] = []
        self._unalerted: dict[str, str] = {}  # fills out of turn by order, while no alert has said so
        self._middle: dict[tuple[str, str], int] = {}
        self._newest_middle: dict[str, int] = {}  # by instrument, of any venue

    @property
    def problems(self) -> list[str]:
        """What does not add up; a fill out of turn does where an alert on its order follows."""
        return [*self._problems, *self._unalerted.values()]

    def take_all(self, events: Iterable[OrderEvent]) -> "Accounts":
        for event in events:
            self.take(event)
        return self

    def take(self, event: OrderEvent) -> None:
        """One event; what cannot follow from those before is a problem, named by its place."""
        self.num_events += 1
        match event:
            case InstrumentTerms():
                self.instruments[event.instrument] = instrument_of(event)
            case MarketSnapshot():
                self._mark(event)
            case NewOrder():
                state = advance(None, event) if event.order_id not in self.orders else None
                if not isinstance(state, OrderState):
                    self._problem(event, "the order's id was used before" if state is None else state.why)
                    return
                arrival = self.middle(event.instrument, event.venue)
                order = self.orders[event.order_id] = OrderAccount(event, state, [event], arrival)
                if event.parent_id in self.parents:
                    self.parents[event.parent_id].children.append(order)
            case ParentOrder():
                arrival = self._newest_middle.get(event.instrument, 0)
                self.parents.setdefault(event.order_id, ParentAccount(event, arrival))
            case UrgencyChanged():
                if event.order_id in self.parents:
                    self.parents[event.order_id].urgencies.append(event)
            case AlertRaised():
                self._unalerted.pop(event.order_id, None)
            case _:
                if isinstance(event, OrderMessage):
                    self._take_message(event)

    def middle(self, instrument: str, venue: str) -> int:
        """The newest middle of the market in nanos, the last price where no side is quoted; 0: not known."""
        return self._middle.get((instrument, venue), 0)

    def money(self) -> tuple[int, int, int]:
        """Realised, unrealised, fees of all positions, in nanos; currencies are not converted."""
        positions = self.positions.values()
        return (
            sum(one.realised for one in positions),
            sum(one.unrealised(self.unit(one.instrument)) for one in positions),
            sum(one.fees for one in positions),
        )

    def unit(self, symbol: str) -> int:
        """What a lot is worth at a price of 1, in nanos."""
        instrument = self.instruments.get(symbol)
        return NANOS if instrument is None else instrument.value_nanos * NANOS // instrument.tick_nanos

    def open_orders(self) -> Iterator[OrderAccount]:
        return (one for one in self.orders.values() if one.state.is_open)

    def _take_message(self, event: OrderMessage) -> None:
        order = self.orders.get(event.order_id)
        if order is None:
            self._problem(event, "no order of this id was sent")
            return
        if isinstance(event, FillBusted) and event.exec_id in order.fills:
            event = structs.replace(event, quantity=order.fills[event.exec_id].quantity)
        state = advance(order.state, event)
        if isinstance(state, IllegalTransition):
            if not isinstance(event, OrderFilled) or event.quantity <= 0 or event.exec_id in order.fills:
                self._problem(event, state.why)
                return
            self._unalerted[event.order_id] = self._place(event, f"{state.why}, and no alert says so")
            order.lots_out_of_turn += event.quantity
            state = count_fill(order.state, event)
        order.events.append(event)
        match event:
            case OrderFilled():
                if event.exec_id in order.fills:
                    self._problem(event, f"execution {event.exec_id} is recorded twice")
                    return
                order.fills[event.exec_id] = event
                self._add_fill(order, event, 1)
                parent = self.parents.get(order.new.parent_id)
                if parent is not None and (
                    parent.filled + event.quantity - parent.lots_out_of_turn > parent.order.quantity
                ):
                    self._problem(
                        event, f"parent order {order.new.parent_id} is filled with more than it asked for"
                    )
            case FillBusted():
                fill = order.fills.pop(event.exec_id, None)
                if fill is None:
                    self._problem(event, f"execution {event.exec_id} is not known")
                    return
                self._add_fill(order, fill, -1)
            case OrderRejected():
                order.reason = event.reason
                self.num_refused += 1
            case _:
                pass
        order.state = state

    def _add_fill(self, order: OrderAccount, fill: OrderFilled, sign: int) -> None:
        new, price, lots = order.new, int(fill.price * NANOS), sign * fill.quantity
        key = (new.account, new.instrument)
        position = self.positions.get(key)
        if position is None:
            position = self.positions[key] = PositionAccount(*key)
        unit, fee = self.unit(new.instrument), 0 if fill.fee is None else int(fill.fee * NANOS)
        position.add(new.side.sign * lots, price, unit)
        position.fees += sign * fee
        position.traded += lots * price * unit // NANOS
        position.num_fills += sign
        self.num_fills += sign
        if order.arrival:
            position.shortfall += new.side.sign * lots * (price - order.arrival) * unit // NANOS
        if not position.mark:
            position.mark = price
        order.filled_value += lots * price
        order.fees += sign * fee

    def _mark(self, event: MarketSnapshot) -> None:
        key = (event.instrument, event.venue)
        if event.bid and event.ask:
            middle = int((event.bid + event.ask) * NANOS) // 2
        elif event.last is not None:
            middle = int(event.last * NANOS)
        else:
            return
        self._middle[key] = middle
        self._newest_middle[event.instrument] = middle
        for (_, instrument), position in self.positions.items():
            if instrument == event.instrument:
                position.mark = middle

    def _problem(self, event: OrderMessage, why: str) -> None:
        self._problems.append(self._place(event, why))

    def _place(self, event: OrderMessage, why: str) -> str:
        return f"event {self.num_events} on order {event.order_id}: {why}"
