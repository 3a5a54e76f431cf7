"""What trading cost, order by order, from the order event stream: transaction cost analysis. Pure, money in nanos.

The cost of an order is its implementation shortfall (Perold 1988): what fills cost beyond the market's middle when it
was sent, their fees, and what was missed by lots that were not filled. The first part is split at the middle when a
fill came: spread is beyond it, move is how far the market had gone. A markout is how far the middle moved in the
order's favour after a fill; below zero, those on the other side knew more (adverse selection).

The record holds the market where an order is judged by it and some seconds apart, so a middle may be some seconds old.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from htfi.domain.order_states import OrderStatus
from htfi.domain.orders import Liquidity, MarketSnapshot, NewOrder, OrderEvent, OrderFilled, OrderMessage
from htfi.domain.time import NS_PER_S, format_ns
from htfi.execution.accounting import Accounts, OrderAccount
from htfi.execution.instruments import NANOS

MARKOUTS_S = (10, 60, 300)


@dataclass(frozen=True, slots=True)
class OrderCosts:
    """One order. `value` and `wanted_value` are what was filled and wanted at the middle when it was sent."""

    order_id: str
    day: str
    instrument: str
    venue: str
    algo: str
    currency: str
    wanted: int
    filled: int
    num_fills: int
    is_refused: bool
    value: int
    wanted_value: int
    spread: int
    move: int
    fees: int
    missed: int
    taken: int  # of `value`, by fills that removed liquidity
    wait_ns: int | None  # to the first fill
    markouts: tuple[int, ...]  # nanos, by MARKOUTS_S
    markout_values: tuple[int, ...]  # of the fills for which it is known

    @property
    def cost(self) -> int:
        """Beyond the middle when it was sent, with fees and what was missed."""
        return self.spread + self.move + self.fees + self.missed


@dataclass(frozen=True, slots=True)
class CostGroup:
    """Several orders, in basis points of what was filled; `missed_bps` and `cost_bps` of what was wanted.

    None where there is nothing to divide by. `error_bps` is the standard error of the slippage over orders.
    """

    name: str
    num_orders: int
    num_refused: int
    num_fills: int
    filled_share: float
    value: int
    slippage_bps: float | None
    error_bps: float | None
    spread_bps: float | None
    move_bps: float | None
    fees_bps: float | None
    missed_bps: float | None
    cost_bps: float | None
    markouts_bps: tuple[float | None, ...]
    taken_share: float | None
    wait_s: float | None  # median


COST_KEYS: Mapping[str, Callable[[OrderCosts], str]] = MappingProxyType({
    "day": lambda one: one.day,
    "venue": lambda one: one.venue,
    "algorithm": lambda one: one.algo or "–",
    "instrument": lambda one: one.instrument,
    "order": lambda one: one.order_id,
})  # fmt: skip


@dataclass(slots=True)
class _Watched:
    """A fill whose markout is due."""

    due_ns: int
    place: int  # in MARKOUTS_S
    key: tuple[str, str]  # order, execution


@dataclass(slots=True)
class _MarketMiddle:
    """Of one instrument at one venue."""

    middle: int = 0
    watched: list[deque[_Watched]] = field(default_factory=lambda: [deque[_Watched]() for _ in MARKOUTS_S])


class CostSurvey:
    """Order events in, costs out. One pass."""

    def __init__(self) -> None:
        self.accounts = Accounts()
        self._markets: dict[tuple[str, str], _MarketMiddle] = {}
        self._at_fill: dict[tuple[str, str], int] = {}  # middle, by order and execution
        self._later: dict[tuple[str, str], list[int]] = {}  # middles after it, 0: not known
        self._last: dict[str, int] = {}  # middle when the order ended, or now

    def take_all(self, events: Iterable[OrderEvent]) -> "CostSurvey":
        for event in events:
            self.take(event)
        return self

    def take(self, event: OrderEvent) -> None:
        """One event, in order of the record."""
        self.accounts.take(event)
        if isinstance(event, MarketSnapshot):
            self._take_market(event)
        elif isinstance(event, OrderMessage) and not isinstance(event, NewOrder):
            self._take_message(event)

    def costs(self) -> list[OrderCosts]:
        """Of every order, in the order in which they were sent."""
        return [self._costs(order) for order in self.accounts.orders.values()]

    def _take_market(self, event: MarketSnapshot) -> None:
        market = self._market(event.instrument, event.venue)
        middle = self.accounts.middle(event.instrument, event.venue)
        if not middle:
            return
        market.middle = middle
        for span_s, waiting in zip(MARKOUTS_S, market.watched, strict=True):
            while waiting and waiting[0].due_ns <= event.at_ns:
                one = waiting.popleft()
                if event.at_ns <= one.due_ns + span_s * NS_PER_S:  # later than that is another span
                    self._later[one.key][one.place] = middle

    def _take_message(self, event: OrderMessage) -> None:
        order = self.accounts.orders.get(event.order_id)
        if order is None:
            return
        market = self._market(order.new.instrument, order.new.venue)
        if isinstance(event, OrderFilled) and (event.order_id, event.exec_id) not in self._at_fill:
            key = (event.order_id, event.exec_id)
            self._at_fill[key], self._later[key] = market.middle, [0] * len(MARKOUTS_S)
            for place, span_s in enumerate(MARKOUTS_S):
                market.watched[place].append(_Watched(event.at_ns + span_s * NS_PER_S, place, key))
        if not order.state.is_open:
            self._last[event.order_id] = market.middle

    def _market(self, instrument: str, venue: str) -> _MarketMiddle:
        return self._markets.setdefault((instrument, venue), _MarketMiddle())

    def _costs(self, order: OrderAccount) -> OrderCosts:
        new, sign, arrival = order.new, order.new.side.sign, order.arrival
        unit = self.accounts.unit(new.instrument)
        instrument = self.accounts.instruments.get(new.instrument)
        spread = move = taken = filled = 0
        markouts, known = [0] * len(MARKOUTS_S), [0] * len(MARKOUTS_S)
        for fill in order.fills.values():
            key, price = (new.order_id, fill.exec_id), int(fill.price * NANOS)
            middle = self._at_fill.get(key, 0) or arrival
            value = fill.quantity * unit
            filled += fill.quantity
            spread += sign * (price - middle) * value // NANOS
            move += sign * (middle - arrival) * value // NANOS
            if fill.liquidity is Liquidity.REMOVED:
                taken += arrival * value // NANOS
            for place, later in enumerate(self._later.get(key, ())):
                if later:
                    markouts[place] += sign * (later - price) * value // NANOS
                    known[place] += price * value // NANOS
        is_refused = order.state.status is OrderStatus.REJECTED
        wanted = 0 if is_refused else order.state.quantity
        last = self._last.get(new.order_id) or self._market(new.instrument, new.venue).middle or arrival
        has_arrival = arrival > 0
        return OrderCosts(
            order_id=new.order_id,
            day=format_ns(new.at_ns)[:10],
            instrument=new.instrument,
            venue=new.venue,
            algo=new.algo,
            currency="" if instrument is None else instrument.currency,
            wanted=wanted,
            filled=filled,
            num_fills=len(order.fills),
            is_refused=is_refused,
            value=arrival * filled * unit // NANOS,
            wanted_value=arrival * wanted * unit // NANOS,
            spread=spread if has_arrival else 0,
            move=move if has_arrival else 0,
            fees=order.fees,
            missed=sign * (last - arrival) * max(0, wanted - filled) * unit // NANOS if has_arrival else 0,
            taken=taken,
            wait_ns=min((fill.at_ns for fill in order.fills.values()), default=new.at_ns) - new.at_ns
            if order.fills
            else None,
            markouts=tuple(markouts),
            markout_values=tuple(known),
        )


def group_costs(costs: Sequence[OrderCosts], key: Callable[[OrderCosts], str]) -> list[CostGroup]:
    """The orders of each value of `key`, in the order of their names."""
    groups: dict[str, list[OrderCosts]] = {}
    for one in costs:
        groups.setdefault(key(one), []).append(one)
    return [sum_costs(name, groups[name]) for name in sorted(groups)]


def sum_costs(name: str, costs: Sequence[OrderCosts]) -> CostGroup:
    """Orders together, each by its size."""
    value, wanted_value = sum(one.value for one in costs), sum(one.wanted_value for one in costs)
    wanted, filled = sum(one.wanted for one in costs), sum(one.filled for one in costs)
    slippage = _bps(sum(one.spread + one.move for one in costs), value)
    waits = sorted(one.wait_ns for one in costs if one.wait_ns is not None)
    spans = range(len(MARKOUTS_S))
    return CostGroup(
        name=name,
        num_orders=len(costs),
        num_refused=sum(one.is_refused for one in costs),
        num_fills=sum(one.num_fills for one in costs),
        filled_share=filled / wanted if wanted else 0.0,
        value=value,
        slippage_bps=slippage,
        error_bps=_error_bps(costs, value, slippage),
        spread_bps=_bps(sum(one.spread for one in costs), value),
        move_bps=_bps(sum(one.move for one in costs), value),
        fees_bps=_bps(sum(one.fees for one in costs), value),
        missed_bps=_bps(sum(one.missed for one in costs), wanted_value),
        cost_bps=_bps(sum(one.cost for one in costs), wanted_value),
        markouts_bps=tuple(
            _bps(sum(one.markouts[span] for one in costs), sum(one.markout_values[span] for one in costs))
            for span in spans
        ),
        taken_share=sum(one.taken for one in costs) / value if value else None,
        wait_s=waits[len(waits) // 2] / NS_PER_S if waits else None,
    )


def _bps(amount: int, value: int) -> float | None:
    return amount / value * 1e4 if value else None


def _error_bps(costs: Sequence[OrderCosts], value: int, slippage_bps: float | None) -> float | None:
    """Of the ratio Σ cost / Σ value over orders, linearised; None for fewer than two that were filled."""
    filled = [one for one in costs if one.value]
    if slippage_bps is None or len(filled) < 2:
        return None
    away = [one.spread + one.move - slippage_bps / 1e4 * one.value for one in filled]
    scale = len(filled) / (len(filled) - 1)
    return (scale * sum(one * one for one in away)) ** 0.5 / value * 1e4
