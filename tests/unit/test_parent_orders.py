"""The worker of parent orders at two simulated venues: never more than the parent, learnt latencies, a clean end."""

import random
from collections.abc import Sequence
from decimal import Decimal

import pytest

from htfi.domain.decision import Receipt
from htfi.domain.events import Quote
from htfi.domain.order_limits import OrderLimits
from htfi.domain.order_scopes import cancel_of_order, covers
from htfi.domain.orders import (
    CancelRequest,
    DecisionNoted,
    InstrumentTerms,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderSide,
    ParentOrder,
    TradingDisabled,
    UrgencyChanged,
)
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.algorithms.config import AlgorithmConfig
from htfi.execution.algorithms.planning import Algorithm
from htfi.execution.intents import OrderIntent
from htfi.execution.order_entry import OrderEntry
from htfi.execution.order_routing.venues import FillRecord, VenueTerms
from htfi.execution.parent_orders import ParentWorker
from htfi.execution.worked_orders import ParentTerms, WorkedOrder
from htfi.simulation.venue.config import SimulatedVenueConfig
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue

S = NS_PER_S
LOTS = 1_000
LATENCY_MS = {"FAST": 1.0, "SLOW": 40.0}


class World:
    """One instrument at two venues, with a worker; events as they are recorded."""

    def __init__(self, side: OrderSide = OrderSide.BUY, seed: int = 1) -> None:
        self.events: list[OrderEvent] = []
        self.side, self._rng, self._middle, self.now = side, random.Random(seed), 10_000, 10 * S
        self.market = SimulatedVenues({
            name: SimulatedVenue(name, SimulatedVenueConfig(request_ms=ms, report_ms=ms))
            for name, ms in LATENCY_MS.items()
        })  # fmt: skip
        self.entry = OrderEntry(self, dict.fromkeys(LATENCY_MS, self.market))
        self.worker = ParentWorker(
            self.entry,
            [VenueTerms(name) for name in LATENCY_MS],
            AlgorithmConfig(duration_s=60.0, patience_s=4.0),
        )
        limits = OrderLimits(max_messages_per_s=10_000, max_repeated_executions=10_000, max_order_value=1e9)
        self.entry.put_in_force([
            InstrumentTerms(at_ns=self.now, instrument="AAA", tick=Decimal("0.01")), *limits.in_force(self.now, "test")
        ])  # fmt: skip
        self.market.list_instrument(self.entry.state.instruments["AAA"])

    def append(self, events: Sequence[OrderEvent]) -> None:
        self.events += events

    def begin(self, algorithm: Algorithm, urgency: float = 0.0) -> WorkedOrder:
        receipt = Receipt(1, "b" * 64)
        self.entry.put_in_force([
            DecisionNoted(at_ns=self.now, receipt=receipt, instrument="AAA", is_released=True, as_of_ns=self.now)
        ])  # fmt: skip
        limit = 10_300 if self.side is OrderSide.BUY else 9_700
        order = OrderIntent(
            at_ns=self.now, order_id="p", instrument="AAA", venue="", side=self.side, lots=LOTS, price_ticks=limit,
            receipt=receipt, algo=algorithm.value, trader="t",
        )  # fmt: skip
        terms = ParentTerms("p", "AAA", self.side, LOTS, limit, order)
        return self.worker.begin(terms, algorithm, self.now, urgency, "forecast")

    def pass_time(self, seconds: float) -> None:
        """Quotes come every tenth of a second; after each what is open may not add up to more than the parent."""
        for _ in range(round(seconds * 10)):
            self.now += 100 * NS_PER_MS
            self._middle += self._rng.choice((-1, 0, 0, 1))
            for name in LATENCY_MS:
                bid, ask = self._middle - self._rng.choice((1, 2)), self._middle + self._rng.choice((1, 2))
                size = float(self._rng.randrange(10, 200))
                quote = Quote(self.now, self.now, "t", 0, "AAA", bid / 100, size, ask / 100, size, name)
                self.worker.run_until(self.now - 1)
                self.market.observe(quote)
            self.worker.run_until(self.now)
            assert self.filled + sum(one.state.leaves for one in self.entry.open_orders()) <= LOTS

    @property
    def filled(self) -> int:
        return sum(one.quantity for one in self.events if isinstance(one, OrderFilled))


@pytest.mark.parametrize("side", [OrderSide.BUY, OrderSide.SELL])
@pytest.mark.parametrize("algorithm", [one for one in Algorithm if one is not Algorithm.DIRECT])
def test_a_parent_is_filled_whole_over_both_venues_and_ends(algorithm: Algorithm, side: OrderSide) -> None:
    world = World(side)
    world.pass_time(2)
    world.begin(algorithm)
    world.pass_time(65)
    assert world.filled == LOTS
    assert world.worker.worked("AAA") is None
    assert world.entry.open_orders() == []
    assert {one.venue for one in world.events if isinstance(one, NewOrder)} == set(LATENCY_MS)


def test_the_router_learns_the_latency_of_each_venue() -> None:
    world = World()
    world.pass_time(2)
    world.begin(Algorithm.TWAP)
    world.pass_time(65)
    venues = world.worker.router("AAA").venues
    assert venues["FAST"].round_trip_ns == pytest.approx(2 * NS_PER_MS, rel=0.01)
    assert venues["SLOW"].round_trip_ns == pytest.approx(80 * NS_PER_MS, rel=0.01)
    assert venues["SLOW"].take_chance(world.now) < 0.95 * venues["FAST"].take_chance(world.now)


def test_what_orders_found_corrects_what_is_expected_of_a_venue() -> None:
    record = FillRecord()
    assert record.factor == 1.0
    for _ in range(200):
        record.add(expected=0.8, found=0.2)
    assert record.factor == pytest.approx(0.25, abs=0.05)
    for _ in range(200):
        record.add(expected=0.2, found=0.2)
    assert record.factor == pytest.approx(1.0, abs=0.1)


def test_a_parent_and_its_urgency_are_recorded_before_its_first_child() -> None:
    world = World()
    world.pass_time(2)
    worked = world.begin(Algorithm.TWAP, urgency=99.0)
    world.pass_time(20)
    kinds = [type(one) for one in world.events if isinstance(one, ParentOrder | UrgencyChanged | NewOrder)]
    assert kinds[:3] == [ParentOrder, UrgencyChanged, NewOrder]
    assert worked.plan.urgency == 6.0  # the upper bound
    due_by_time = round(LOTS * 20 / 60)
    assert world.filled > 1.5 * due_by_time


def test_a_parent_that_is_stopped_cancels_what_is_open() -> None:
    world = World()
    world.pass_time(2)
    world.begin(Algorithm.PEG)
    world.pass_time(1)
    assert world.entry.open_orders()
    world.worker.stop_all(MassCancelRequest(at_ns=world.now, instrument="AAA", by="Ann"), world.now)
    world.pass_time(1)
    assert any(isinstance(one, CancelRequest) for one in world.events)
    assert world.entry.open_orders() == []
    assert world.worker.worked("AAA") is None
    filled = world.filled
    world.pass_time(60)
    assert world.filled == filled


def test_a_mass_cancel_of_another_instrument_leaves_a_parent_alone() -> None:
    world = World()
    world.pass_time(2)
    world.begin(Algorithm.PEG)
    world.worker.stop_all(MassCancelRequest(at_ns=world.now, instrument="BBB", by="Ann"), world.now)
    world.pass_time(1)
    assert world.worker.worked("AAA") is not None


def test_a_ban_ends_a_parent_after_one_refusal_per_child() -> None:
    world = World()
    world.pass_time(2)
    world.begin(Algorithm.TWAP)
    world.pass_time(1)
    world.entry.put_in_force([TradingDisabled(at_ns=world.now, scope="firm", cause="test")])
    world.pass_time(30)
    refused = [one for one in world.events if isinstance(one, OrderRejected)]
    assert 1 <= len(refused) <= len(LATENCY_MS)
    assert world.worker.worked("AAA") is None


def test_the_same_events_give_the_same_orders() -> None:
    first, second = World(seed=7), World(seed=7)
    for world in (first, second):
        world.pass_time(2)
        world.begin(Algorithm.VWAP)
        world.pass_time(30)
    assert len(first.events) > 20
    assert first.events == second.events


@pytest.mark.parametrize(("which", "is_left"), [("parent", False), ("child", False), ("another", True)])
def test_a_cancel_of_one_order_ends_its_parent_and_no_other(which: str, is_left: bool) -> None:
    world = World()
    world.pass_time(2)
    world.begin(Algorithm.PEG)
    world.pass_time(1)
    child = world.entry.open_orders()[0].new
    named = {"parent": child.parent_id, "child": child.order_id, "another": "d99"}[which]
    request = cancel_of_order(named, world.now, "Ann", "bad price")
    world.worker.stop_all(request, world.now)
    world.entry.cancel_all(request)
    world.pass_time(1)
    assert (world.worker.worked("AAA") is not None) is is_left
    assert bool(world.entry.open_orders()) is is_left
    assert covers(request, child) is not is_left
