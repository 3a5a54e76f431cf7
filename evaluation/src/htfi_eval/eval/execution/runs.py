"""Parent orders worked on a recorded day: the code that `htfi trade` runs, gate included, at simulated venues.

A run takes one side, one algorithm and one set of venues through the session's windows. The router learns as it goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from htfi.domain.decision import Receipt
from htfi.domain.events import Trade
from htfi.domain.order_limits import OrderLimits
from htfi.domain.orders import (
    DecisionNoted,
    InstrumentTerms,
    Liquidity,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderSide,
)
from htfi.domain.time import NS_PER_S
from htfi.execution.algorithms.config import AlgorithmConfig
from htfi.execution.algorithms.planning import Algorithm
from htfi.execution.instruments import NANOS
from htfi.execution.intents import OrderIntent
from htfi.execution.order_entry import OrderEntry
from htfi.execution.parent_orders import ParentWorker
from htfi.execution.worked_orders import ParentTerms
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi_eval.eval.execution.assumed_venues import config_of, terms_of
from htfi_eval.eval.execution.data import OFF_EXCHANGE, MarketDay

WARM_UP_NS = 60 * NS_PER_S  # of market data before a parent begins
DRAIN_NS = NS_PER_S  # after its end, for answers that are on their way
MARK_OUT_NS = 10 * NS_PER_S  # after a fill, where the market is then
LIMIT_SHARE = 0.01  # how far from the market's middle a parent's limit lies
_LIMITS = OrderLimits(
    max_order_value=1e9,
    max_order_quantity=10**9,
    max_messages_per_s=100_000,
    max_repeated_executions=100_000,
    max_open_value=1e12,
    max_position_value=1e13,
    max_identical_orders=1_000,
)


@dataclass(frozen=True, slots=True)
class OrderWindow:
    """When a parent order is worked, and how many lots it has."""

    start_ns: int
    end_ns: int
    lots: int


@dataclass(slots=True)
class ParentResult:
    """A parent order and what became of it. Prices in ticks, fees in ticks × lots."""

    window: OrderWindow
    sign: int
    arrival2: int  # twice the middle at its start
    fills: list[tuple[int, int, int, bool, str]] = field(
        default_factory=list[tuple[int, int, int, bool, str]]
    )  # time, lots, price, whether it added liquidity, venue
    fees: float = 0.0
    num_children: int = 0

    @property
    def filled(self) -> int:
        return sum(one[1] for one in self.fills)


class _Record:
    """Keeps orders and fills."""

    def __init__(self) -> None:
        self.parents: dict[str, ParentResult] = {}
        self._orders: dict[str, NewOrder] = {}

    def append(self, events: Sequence[OrderEvent]) -> None:
        for event in events:
            if isinstance(event, NewOrder):
                self._orders[event.order_id] = event
                self.parents[event.parent_id].num_children += 1
            elif isinstance(event, OrderFilled):
                new = self._orders[event.order_id]
                result = self.parents[new.parent_id]
                added = event.liquidity is Liquidity.ADDED
                ticks = int(event.price * 100)
                result.fills.append((event.at_ns, event.quantity, ticks, added, new.venue))
                result.fees += 100 * float(event.fee or 0)


def work_day(
    day: MarketDay,
    windows: Sequence[OrderWindow],
    venues: Sequence[str],
    algorithm: Algorithm,
    side: OrderSide,
    config: AlgorithmConfig,
    *,
    equal_fees: bool = False,
) -> list[ParentResult]:
    """Work a parent order in each window, one after the other, at these venues alone."""
    configs = {one: config_of(one, day, equal_fees=equal_fees) for one in venues}
    link = SimulatedVenues({one: SimulatedVenue(one, configs[one]) for one in venues})
    record = _Record()
    entry = OrderEntry(record, dict.fromkeys(venues, link))
    worker = ParentWorker(entry, [terms_of(one, configs[one]) for one in venues], config)
    began_ns = day.open_ns
    entry.put_in_force([
        InstrumentTerms(at_ns=began_ns, instrument=day.symbol, tick=Decimal("0.01")),
        *_LIMITS.in_force(began_ns, "eval"),
    ])  # fmt: skip
    link.list_instrument(entry.state.instruments[day.symbol])
    only = set(venues)
    for number, window in enumerate(windows):
        from_ns = max(day.open_ns, window.start_ns - WARM_UP_NS)
        for quote in day.quotes_at(from_ns):
            if quote.venue in only:
                link.observe(quote)
        is_begun = False
        for item in day.between(from_ns, window.end_ns + DRAIN_NS):
            now_ns = item.available_at_ns
            if not is_begun and now_ns >= window.start_ns:
                is_begun = True
                worker.run_until(window.start_ns)
                result = _begin(worker, entry, day, window, side, algorithm, number)
                record.parents[f"p{number}"] = result
            is_trade = isinstance(item, Trade)
            if item.venue not in only and not is_trade:
                continue
            worker.run_until(now_ns - 1)
            if item.venue in only:
                link.observe(item)
            if is_trade and item.venue != OFF_EXCHANGE:
                worker.traded(day.symbol, int(item.size), now_ns)
            worker.run_until(now_ns)
        worker.run_until(window.end_ns + DRAIN_NS)
        assert worker.worked(day.symbol) is None, "a parent order outlived its end"
    return list(record.parents.values())


def _begin(
    worker: ParentWorker,
    entry: OrderEntry,
    day: MarketDay,
    window: OrderWindow,
    side: OrderSide,
    algorithm: Algorithm,
    number: int,
) -> ParentResult:
    receipt, at_ns = Receipt(number, f"{number:064x}"), window.start_ns
    entry.put_in_force([
        DecisionNoted(at_ns=at_ns, receipt=receipt, instrument=day.symbol, is_released=True, as_of_ns=at_ns)
    ])  # fmt: skip
    arrival2 = day.mid2(at_ns)
    limit = round(arrival2 / 2 * (1 + side.sign * LIMIT_SHARE))
    order = OrderIntent(
        at_ns=at_ns, order_id=f"p{number}", instrument=day.symbol, venue="", side=side, lots=window.lots,
        price_ticks=limit, receipt=receipt, algo=algorithm.value, trader="eval", account="eval",
    )  # fmt: skip
    terms = ParentTerms(order.order_id, day.symbol, side, window.lots, limit, order)
    worker.begin(terms, algorithm, at_ns, 0.0, "")
    return ParentResult(window, side.sign, arrival2)


assert NANOS == 10**9
