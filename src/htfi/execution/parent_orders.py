"""Works parent orders: planners say what should stand, the router says where, order entry judges, records and sends.

One shell for all algorithms. It keeps what is open, compares it with the planner's target, and sends or cancels the
difference; a child is never sent for lots that another child still has open, so that late fills cannot add up to more
than the parent. Time is that of the events and of `act`.
"""

from collections.abc import Callable, Iterable, Sequence

from htfi.domain.orders import (
    CancelRejected,
    FillBusted,
    MarketSnapshot,
    MassCancelRequest,
    OrderEvent,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    ParentOrder,
    RejectedBy,
    TimeInForce,
    UrgencyChanged,
)
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.execution.algorithms.config import AlgorithmConfig
from htfi.execution.algorithms.observed import ObservedMarket
from htfi.execution.algorithms.planning import (
    Algorithm,
    LotsFilled,
    MarketMoved,
    ParentSpec,
    PlanEvent,
    UrgencyAsked,
    VolumeTraded,
    advance,
    pace_of,
    start,
    target,
)
from htfi.execution.algorithms.schedules import shortfall_urgency
from htfi.execution.gate.judging import GateCheck
from htfi.execution.instruments import NANOS, Instrument
from htfi.execution.intents import Intent, OrderIntent
from htfi.execution.order_entry import OrderEntry
from htfi.execution.order_routing.router import VenueRoute, route_rest, route_take
from htfi.execution.order_routing.venues import RouterState, VenueTerms
from htfi.execution.seen_markets import SeenMarkets
from htfi.execution.turns import RunTurn
from htfi.execution.worked_orders import ChildOrder, ParentTerms, WorkedOrder, leaves_by_venue

PARTS = 20  # pieces of a parent: less than one is not sent before the end
STEPS_OF_PATIENCE = 10
MIN_STEP_NS = 100 * NS_PER_MS
RETRY_NS = NS_PER_S  # after the gate or a venue has refused a child, or a venue a cancel
SWEPT_LEVELS = 3  # prices that the rest of an order may sweep at the end; before that one
# Objections that no later child of the same parent would be spared.
_LASTING = frozenset({
    GateCheck.DISABLED, GateCheck.PERMISSION, GateCheck.NO_LIMITS, GateCheck.DECISION_MISSING,
    GateCheck.DECISION_UNKNOWN, GateCheck.DECISION_ALTERED, GateCheck.DECISION_WITHHELD, GateCheck.DECISION_AMENDED,
    GateCheck.DECISION_AGE, GateCheck.DECISION_SYMBOL, GateCheck.DECISION_USED,
})  # fmt: skip


class ParentWorker:
    """Parents in, children out; one parent of an instrument at a time."""

    def __init__(
        self,
        entry: OrderEntry,
        venues: Sequence[VenueTerms],
        config: AlgorithmConfig,
        turn: RunTurn | None = None,
    ) -> None:
        """`turn`, where venues have clocks of their own, counts each time that something is done: reports which came
        before it are taken before it when the run is made again.
        """
        self._entry, self.config = entry, config
        self._seen = SeenMarkets(venues)
        self._turn = RunTurn() if turn is None else turn
        self._worked: dict[str, WorkedOrder] = {}  # by instrument
        self._by_id: dict[str, WorkedOrder] = {}  # child → its parent
        self.num_refused = 0

    def router(self, symbol: str) -> RouterState:
        """What is known of the venues for an instrument."""
        return self._seen.router(symbol)

    def observed(self, symbol: str) -> ObservedMarket:
        """What was seen of an instrument's market."""
        return self._seen.observed(symbol)

    def worked(self, symbol: str) -> WorkedOrder | None:
        """The parent order of an instrument that is being worked; None where there is none."""
        return self._worked.get(symbol)

    def parents(self) -> list[tuple[str, str]]:
        """The parents that are being worked and are not stopped: id and instrument."""
        return [(one.terms.order_id, symbol) for symbol, one in self._worked.items() if not one.is_stopped]

    def begin(
        self, terms: ParentTerms, algorithm: Algorithm, at_ns: int, urgency: float, why: str
    ) -> WorkedOrder:
        """Record a parent order and begin to work it. `urgency` is what `why`, a forecast or news, adds."""
        assert terms.instrument not in self._worked, "one parent of an instrument at a time"
        order = terms.order
        party = self._entry.state.party(order.client, order.trader, order.desk, order.algo, terms.instrument)
        self.router(terms.instrument).max_age_ns = party.tightest.max_market_age_ns or 0
        spec = self._spec(terms, algorithm, at_ns)
        worked = WorkedOrder(terms, spec, start(spec), wake_ns=at_ns)
        self._worked[terms.instrument] = worked
        instrument = self._instrument(terms.instrument)
        events: list[OrderEvent] = [
            ParentOrder(
                at_ns=at_ns,
                order_id=terms.order_id,
                instrument=terms.instrument,
                side=terms.side,
                quantity=terms.lots,
                algo=order.algo,
                end_ns=spec.end_ns,
                limit_price=instrument.price(terms.limit_ticks),
                decision=order.receipt,
                min_urgency=spec.min_urgency,
                max_urgency=spec.max_urgency,
                pace=pace_of(spec),
                trader=order.trader,
                desk=order.desk,
                client=order.client,
                account=order.account,
            )
        ]
        self._entry.put_in_force(events)
        self._advance(worked, MarketMoved(self._seen.market(terms.instrument)))
        self.change_urgency(worked, spec.base_urgency + urgency, at_ns, why)
        return worked

    def change_urgency(self, worked: WorkedOrder, urgency: float, at_ns: int, why: str) -> None:
        """Work an order sooner or later, within its bounds; recorded where that changes anything."""
        before = worked.plan.urgency
        self._advance(worked, UrgencyAsked(urgency))
        if worked.plan.urgency != before or not worked.num_children:
            self._entry.put_in_force(
                [
                    UrgencyChanged(
                        at_ns=at_ns, order_id=worked.terms.order_id, urgency=worked.plan.urgency, why=why
                    )
                ]
            )

    def stop(self, symbol: str, at_ns: int) -> None:
        """Cancel what is open of an instrument's parent and send nothing more of it."""
        worked = self._worked.get(symbol)
        if worked is not None:
            worked.is_stopped = True
            worked.wake_ns = at_ns

    def stop_all(self, request: MassCancelRequest, at_ns: int) -> None:
        """The same for every parent that a mass cancel reaches, or some of whose children it does."""
        for symbol, worked in self._worked.items():
            order = worked.terms.order
            pairs = (
                (request.instrument, symbol), (request.client, order.client), (request.trader, order.trader),
                (request.desk, order.desk), (request.algo, order.algo),
            )  # fmt: skip
            own_child = self._by_id.get(request.order) is worked
            is_named = not request.order or request.order == order.order_id or own_child
            if is_named and all(not asked or asked == own for asked, own in pairs):
                self.stop(symbol, at_ns)

    def traded(self, symbol: str, lots: int, at_ns: int) -> None:
        """Somebody traded, at whichever venue."""
        self.observed(symbol).traded(lots, at_ns)
        worked = self._worked.get(symbol)
        if worked is not None:
            self._advance(worked, VolumeTraded(lots))

    def take(self, event: OrderEvent) -> None:
        """A report or market data that order entry has taken in."""
        if isinstance(event, MarketSnapshot):
            self._take_market(event)
        elif isinstance(event, OrderMessage) and event.order_id in self._by_id:
            self._take_report(self._by_id[event.order_id], event)

    def next_wake_ns(self) -> int | None:
        """When something may have to be done next; None where nothing is worked."""
        return min((one.wake_ns for one in self._worked.values()), default=None)

    def run_until(
        self,
        until_ns: int,
        after: Callable[[int], None] = lambda _: None,
        max_reports: Callable[[], int] = lambda: 1,
    ) -> None:
        """Take in what venues report by an instant, and do what becomes due, in order of time.

        `after` is called after each of them with its instant; `max_reports` says how many may be taken together: more
        than one where all that come are of one instant.
        """
        while True:
            wake_ns = self.next_wake_ns()
            is_due = wake_ns is not None and wake_ns <= until_ns
            reports = self._entry.next_reports(
                wake_ns if is_due and wake_ns is not None else until_ns, max_reports()
            )
            if reports:
                self._entry.receive(reports, self.take)
                after(reports[-1].at_ns)
            elif is_due and wake_ns is not None:
                self.act(wake_ns)
                after(wake_ns)
            else:
                return

    def act(self, at_ns: int) -> None:
        """Do what is due by an instant."""
        for worked in list(self._worked.values()):
            if worked.wake_ns <= at_ns:
                self._work(worked, at_ns)
        self._turn.number += 1

    def _spec(self, terms: ParentTerms, algorithm: Algorithm, at_ns: int) -> ParentSpec:
        config, seen = self.config, self.observed(terms.instrument)
        end_ns = at_ns + config.duration_ns
        base = 0.0
        if algorithm is Algorithm.SHORTFALL:
            market, instrument = self._seen.market(terms.instrument), self._instrument(terms.instrument)
            tick = instrument.value_nanos / NANOS / instrument.lot_size  # currency, of a share
            base = shortfall_urgency(
                config.risk_aversion,
                tick * seen.variance**0.5,
                tick * max(0, market.ask - market.bid),
                seen.volume.unbiased(at_ns) * instrument.lot_size,
                config.duration_s,
            )
        return ParentSpec(
            algorithm=algorithm,
            sign=terms.side.sign,
            lots=terms.lots,
            start_ns=at_ns,
            end_ns=end_ns,
            limit_ticks=terms.limit_ticks,
            patience_ns=config.patience_ns,
            participation=config.participation,
            base_urgency=min(config.max_urgency, base),
            min_urgency=config.min_urgency,
            max_urgency=config.max_urgency,
            curve=seen.curve(at_ns, end_ns) if algorithm is Algorithm.VWAP else (),
        )

    def _take_market(self, event: MarketSnapshot) -> None:
        instrument = self._entry.state.instruments.get(event.instrument)
        worked = self._worked.get(event.instrument)
        is_sniper = worked is not None and worked.spec.algorithm is Algorithm.SNIPER
        market = None if instrument is None else self._seen.take(event, instrument, with_sizes=is_sniper)
        if worked is None or market is None:
            return
        before = worked.plan.market
        self._advance(worked, MarketMoved(market))
        if market.bid != before.bid or market.ask != before.ask or (is_sniper and market != before):
            worked.wake_ns = min(worked.wake_ns, event.at_ns)

    def _take_report(self, worked: WorkedOrder, event: OrderMessage) -> None:
        child = worked.children.get(event.order_id)
        if child is None:
            if isinstance(event, OrderFilled | FillBusted):  # after it was closed
                sign = 1 if isinstance(event, OrderFilled) else -1
                self._advance(worked, LotsFilled(sign * event.quantity))
            return
        if not child.is_answered:
            child.is_answered = True
            if not isinstance(event, OrderRejected):
                self.router(worked.terms.instrument).answered(child.venue, event.at_ns - child.sent_ns)
        if isinstance(event, OrderFilled):
            child.filled += event.quantity
            self._advance(worked, LotsFilled(event.quantity))
            if child.is_take:
                self._spent(worked, child, event.quantity)
            else:
                sign = worked.spec.sign
                self._seen.mark(worked.terms.instrument, child.venue, sign, event.quantity, event.at_ns)
        elif isinstance(event, FillBusted):
            child.filled -= event.quantity
            self._advance(worked, LotsFilled(-event.quantity))
        elif isinstance(event, CancelRejected):
            child.is_cancelling = False
            child.cancel_from_ns = event.at_ns + RETRY_NS  # else it might be refused again, without end
        elif isinstance(event, OrderRejected):
            worked.retry_ns = event.at_ns + RETRY_NS
            if event.by is RejectedBy.LINK:
                self.router(worked.terms.instrument).lost(child.venue, event.at_ns)
        if not self._entry.state.orders[event.order_id].state.is_open:
            self._close(worked, child)
        worked.wake_ns = min(worked.wake_ns, event.at_ns)

    def _close(self, worked: WorkedOrder, child: ChildOrder) -> None:
        del worked.children[child.order_id]
        router, share = self.router(worked.terms.instrument), child.filled / child.lots
        if child.is_take:
            router.took(child.venue, child.expected, share)
            if child.leaves:
                self._spent(worked, child, None)
        else:
            router.rested(child.venue, child.expected, share)

    def _spent(self, worked: WorkedOrder, child: ChildOrder, lots: int | None) -> None:
        """What a child took is not there any more; the market is another where that was all of it."""
        symbol = worked.terms.instrument
        self.router(symbol).spent(child.venue, worked.spec.sign, child.ticks, lots)
        self._advance(worked, MarketMoved(self._seen.market(symbol)))

    def _work(self, worked: WorkedOrder, at_ns: int) -> None:
        """Bring what is open to what the planner wants."""
        spec = worked.spec
        step_ns = max(MIN_STEP_NS, spec.patience_ns // STEPS_OF_PATIENCE)
        worked.wake_ns = min(at_ns + step_ns, spec.end_ns if at_ns < spec.end_ns else at_ns + step_ns)
        if worked.is_stopped or at_ns >= spec.end_ns or worked.left <= 0:
            self._cancel(worked.children.values(), at_ns)
            if not worked.children:
                del self._worked[worked.terms.instrument]
                for number in range(1, worked.num_children + 1):
                    self._by_id.pop(f"{worked.terms.order_id}.{number}", None)
            return
        wanted = target(spec, worked.plan, at_ns)
        piece = 1 if at_ns >= spec.finish_ns else max(1, spec.lots // PARTS)
        takes = [one for one in worked.children.values() if one.is_take]
        rests = [one for one in worked.children.values() if not one.is_take]
        taking, resting = sum(one.leaves for one in takes), sum(one.leaves for one in rests)
        to_take = max(0, wanted.take_lots - taking)
        to_take -= to_take % piece if spec.algorithm is not Algorithm.SNIPER else 0
        misplaced = [one for one in rests if one.ticks != wanted.rest_ticks]
        placed = [one for one in rests if one not in misplaced and not one.is_cancelling]
        staying = sum(one.leaves for one in placed)
        allowed = min(worked.left, wanted.take_lots + wanted.rest_lots)
        free = allowed - taking - resting
        for one in reversed(placed):  # the newest, which stand last in their queues, first
            if staying <= wanted.rest_lots or (free >= to_take and at_ns < spec.finish_ns):
                break
            misplaced.append(one)
            free += one.leaves
            staying -= one.leaves
        self._cancel(misplaced, at_ns)
        free = allowed - taking - resting
        taken = self._send_takes(worked, takes, min(to_take, free), wanted.take_ticks, at_ns)
        to_rest = min(wanted.rest_lots - staying, free - taken)
        if to_rest >= piece or (to_rest > 0 and wanted.rest_lots >= worked.left):
            self._send_rests(worked, placed, to_rest, wanted.rest_ticks, at_ns)

    def _send_takes(
        self, worked: WorkedOrder, takes: Sequence[ChildOrder], lots: int, limit_ticks: int, at_ns: int
    ) -> int:
        if lots <= 0 or at_ns < worked.retry_ns:
            return 0
        routes = route_take(
            self.router(worked.terms.instrument),
            worked.spec.sign,
            lots,
            limit_ticks,
            at_ns,
            asked=leaves_by_venue(takes),
            max_levels=SWEPT_LEVELS if at_ns >= worked.spec.finish_ns else 1,
        )
        return self._send(worked, routes, at_ns, is_take=True)

    def _send_rests(
        self, worked: WorkedOrder, placed: Sequence[ChildOrder], lots: int, ticks: int, at_ns: int
    ) -> int:
        if at_ns < worked.retry_ns:
            return 0
        routes = route_rest(
            self.router(worked.terms.instrument),
            worked.spec.sign,
            lots,
            ticks,
            at_ns,
            worked.spec.patience_ns / NS_PER_S,
            resting=leaves_by_venue(placed),
        )
        return self._send(worked, routes, at_ns, is_take=False)

    def _send(self, worked: WorkedOrder, routes: Iterable[VenueRoute], at_ns: int, *, is_take: bool) -> int:
        """Send children by their routes; the lots of those that the gate lets pass."""
        order, terms = worked.terms.order, worked.terms
        intents: list[Intent] = []
        by_id: dict[str, VenueRoute] = {}
        for route in routes:
            worked.num_children += 1
            order_id = f"{terms.order_id}.{worked.num_children}"
            by_id[order_id] = route
            intents.append(
                OrderIntent(
                    at_ns=at_ns,
                    order_id=order_id,
                    instrument=terms.instrument,
                    venue=route.venue,
                    side=terms.side,
                    lots=route.lots,
                    price_ticks=route.ticks,
                    receipt=order.receipt,
                    time_in_force=TimeInForce.IMMEDIATE_OR_CANCEL if is_take else TimeInForce.DAY,
                    algo=order.algo,
                    trader=order.trader,
                    desk=order.desk,
                    client=order.client,
                    account=order.account,
                    parent_id=terms.order_id,
                    parent_lots=terms.lots,
                )
            )
        sent = 0
        for verdict in self._entry.submit(intents):
            assert isinstance(verdict.intent, OrderIntent)
            if verdict.objections:
                worked.num_refused += 1
                self.num_refused += 1
                worked.retry_ns = at_ns + RETRY_NS
                worked.is_stopped |= any(one.check in _LASTING for one in verdict.objections)
                continue
            order_id, route = verdict.intent.order_id, by_id[verdict.intent.order_id]
            worked.children[order_id] = ChildOrder(
                order_id, route.venue, route.lots, route.ticks, is_take, at_ns, route.expected
            )
            self._by_id[order_id] = worked
            sent += route.lots
        return sent

    def _cancel(self, children: Iterable[ChildOrder], at_ns: int) -> None:
        asked = [one for one in children if not one.is_cancelling and at_ns >= one.cancel_from_ns]
        intents: list[Intent] = []
        for one in asked:
            live = self._entry.state.orders[one.order_id]
            if not live.pending:
                intents.append(self._entry.cancel_intent(live, at_ns))
            one.is_cancelling = True
        if intents:
            self._entry.submit(intents)

    def _instrument(self, symbol: str) -> Instrument:
        return self._entry.state.instruments[symbol]

    def _advance(self, worked: WorkedOrder, event: PlanEvent) -> None:
        worked.plan = advance(worked.spec, worked.plan, event)
