"""The one way from an intent to a venue: judged by the gate, recorded, and only then sent.

What comes back is recorded before anything acts on it. The gate's state follows the recorded events alone, so that the
record gives it again: market data is recorded where an order is judged by it, and now and then for the collar's window.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from htfi.domain.order_scopes import covers
from htfi.domain.order_states import IllegalTransition, advance
from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    FillBusted,
    MarketSnapshot,
    MassCancelRequest,
    OrderEvent,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    RejectedBy,
)
from htfi.execution.gate.audit import reasons
from htfi.execution.gate.judging import judge
from htfi.execution.gate.objections import Objection
from htfi.execution.gate.records import LiveOrder
from htfi.execution.gate.state import REFERENCE_STEPS, GateState
from htfi.execution.intents import CancelIntent, Intent, OrderIntent
from htfi.execution.ports import MassCancelLink, OrderRecord, VenueLink, VenueRequest


class EntryVerdict(NamedTuple):
    """An intent and what the gate objects to it; sent where it objects to nothing."""

    intent: Intent
    objections: tuple[Objection, ...]


class OrderEntry:
    """Intents in, requests to venues out; reports in, events out. Owns the gate's state."""

    def __init__(self, record: OrderRecord, venues: Mapping[str, VenueLink]) -> None:
        self.state = GateState()
        self._record = record
        self._venues = venues
        self._links = tuple(dict.fromkeys(venues.values()))  # one may serve several venues
        self._markets: dict[tuple[str, str], MarketSnapshot] = {}  # the newest, where it is not recorded yet
        self._recorded_ns: dict[tuple[str, str], int] = {}
        self._num_cancels = 0

    def put_in_force(self, events: Iterable[OrderEvent]) -> None:
        """Record and apply limits, terms, decisions, stops: what is no message of an order."""
        self._take(list(events))

    def observe(self, snapshot: MarketSnapshot) -> None:
        """Note market data; it is recorded when an order is judged by it, and in steps of the collar's window."""
        key = (snapshot.instrument, snapshot.venue)
        before = self._markets.get(key)
        self._markets[key] = snapshot if before is None else _merged(before, snapshot)
        window = self.state.reference_window_ns
        if window and snapshot.at_ns - self._recorded_ns.get(key, -window) >= window // REFERENCE_STEPS:
            self._take(self._unrecorded(key))

    def submit(self, intents: Sequence[Intent], *, is_mass: bool = False) -> list[EntryVerdict]:
        """Judge intents one after the other, record all of them, then send those that may be sent.

        An order that is refused is recorded with why. `is_mass`: they are the cancels of a mass cancel. Raises:
        DependencyUnavailable where nothing could be recorded: then nothing was sent.
        """
        verdicts: list[EntryVerdict] = []
        requests: list[VenueRequest] = []
        events: list[OrderEvent] = []
        for intent in intents:
            key = self._market_key(intent)
            for snapshot in self._unrecorded(key):
                self.state.apply(snapshot)
                events.append(snapshot)
            objections = judge(self.state, intent)
            verdicts.append(EntryVerdict(intent, objections))
            if objections and not isinstance(intent, OrderIntent):
                continue
            request = intent.message(self.state.instruments.get(key[0]))
            if isinstance(intent, OrderIntent) and intent.order_id in self.state.orders:
                continue  # the id is another order's: nothing of this one can be recorded under it
            self.state.apply(request)
            events.append(request)
            if objections:
                refused = OrderRejected(
                    at_ns=intent.at_ns,
                    order_id=intent.order_id,
                    by=RejectedBy.GATE,
                    reason=reasons(objections),
                )
                self.state.apply(refused)
                events.append(refused)
            else:
                requests.append(request)
        if events:
            self._record.append(events)
        if is_mass:
            self._send_together(requests)
        else:
            for request in requests:
                self._venues[self._venue_of(request)].send(request)
        return verdicts

    def receive(
        self, reports: Sequence[OrderEvent], after: Callable[[OrderEvent], None] | None = None
    ) -> list[OrderEvent]:
        """Record and apply what venues report; what was not known before, with what follows from it. `after` is given
        each report once the state has taken it in; it sends nothing.

        A repeated fill is left out, and a bust has the lots of the fill that it names. A report that no state allows,
        or on an order that nobody sent, is recorded as an alert; a fill that no state allows, late or of too many lots,
        is recorded too and counts: it was traded.
        """
        taken: list[OrderEvent] = []
        num_recorded = 0
        for report in reports:
            if not isinstance(report, MarketSnapshot):
                taken += self._taken(report)
            else:
                if num_recorded < len(taken):  # market data may be recorded at once, in its turn
                    self._record.append(taken[num_recorded:])
                    num_recorded = len(taken)
                self.observe(report)
            if after is not None:
                after(report)
        if num_recorded < len(taken):
            self._record.append(taken[num_recorded:])
        return taken

    def cancel_all(self, request: MassCancelRequest) -> list[EntryVerdict]:
        """Ask to cancel every open order that a request covers."""
        self._take([request])
        return self.submit(
            [
                self.cancel_intent(order, request.at_ns, request.by)
                for order in self.open_orders()
                if covers(request, order.new) and not order.pending
            ],
            is_mass=True,
        )

    def cancel_intent(self, order: LiveOrder, at_ns: int, by: str = "") -> CancelIntent:
        """A wish to cancel an order, with an id that no other request has."""
        self._num_cancels += 1
        cl_ord_id = f"{order.new.order_id}-x{self._num_cancels}"
        return CancelIntent(at_ns=at_ns, order_id=order.new.order_id, cl_ord_id=cl_ord_id, by=by)

    def open_orders(self) -> list[LiveOrder]:
        """Orders that a venue may still fill."""
        return [order for order in self.state.orders.values() if order.state.is_open]

    def next_reports(self, until_ns: int, max_reports: int) -> list[OrderEvent]:
        """So many of them at most, which are recorded together."""
        found: list[OrderEvent] = []
        while len(found) < max_reports and (event := self.next_report(until_ns)) is not None:
            found.append(event)
        return found

    def next_report(self, until_ns: int) -> OrderEvent | None:
        """The next of all venues' events that has arrived by an instant."""
        for link in self._links:
            event = link.next(until_ns)
            if event is not None:
                return event
        return None

    def _send_together(self, requests: Sequence[VenueRequest]) -> None:
        """Hand cancels over, those of a link together where it takes that."""
        by_link: dict[VenueLink, list[CancelRequest]] = {}
        for request in requests:
            assert isinstance(request, CancelRequest)
            by_link.setdefault(self._venues[self._venue_of(request)], []).append(request)
        for link, cancels in by_link.items():
            if isinstance(link, MassCancelLink):
                link.cancel_together(cancels)
            else:
                for cancel in cancels:
                    link.send(cancel)

    def _taken(self, report: OrderEvent) -> list[OrderEvent]:
        """What is recorded of a report; the state has taken it in."""
        if isinstance(report, OrderMessage):
            order = self.state.orders.get(report.order_id)
            if isinstance(report, OrderFilled) and order is not None and report.exec_id in order.fills:
                return []
            if isinstance(report, FillBusted) and order is not None and report.exec_id in order.fills:
                report = structs.replace(report, quantity=order.fills[report.exec_id][0])
            why = self._why_strange(order, report)
            if why:
                is_traded = isinstance(report, OrderFilled) and order is not None and report.quantity > 0
                taken = self._applied(report) if is_traded else []
                if is_traded:
                    why += "; it counts in the position"
                alert = AlertRaised(
                    at_ns=report.at_ns,
                    event_at_ns=report.at_ns,
                    what=why,
                    order_id=report.order_id,
                    turn=report.turn,
                )
                return [*taken, alert]
        return self._applied(report)

    def _applied(self, report: OrderEvent) -> list[OrderEvent]:
        """A report and what follows from it; the state has taken both in."""
        taken: list[OrderEvent] = [report]
        for one in self.state.apply(report):
            taken.append(one)
            self.state.apply(one)
        return taken

    def _why_strange(self, order: LiveOrder | None, report: OrderMessage) -> str:
        kind = type(report).__name__
        if order is None:
            return f"{kind} on an order that was not sent"
        if isinstance(report, FillBusted) and report.exec_id not in order.fills:
            return f"{kind} of execution {report.exec_id}, which is not known"
        state = advance(order.state, report)
        return f"{kind}: {state.why}" if isinstance(state, IllegalTransition) else ""

    def _take(self, events: Sequence[OrderEvent]) -> None:
        if not events:
            return
        for event in events:
            self.state.apply(event)
        self._record.append(events)

    def _unrecorded(self, key: tuple[str, str]) -> list[MarketSnapshot]:
        snapshot = self._markets.pop(key, None)
        if snapshot is None:
            return []
        self._recorded_ns[key] = snapshot.at_ns
        return [snapshot]

    def _market_key(self, intent: Intent) -> tuple[str, str]:
        if isinstance(intent, OrderIntent):
            return intent.instrument, intent.venue
        order = self.state.orders.get(intent.order_id)
        return ("", "") if order is None else (order.new.instrument, order.new.venue)

    def _venue_of(self, request: VenueRequest) -> str:
        return self.state.orders[request.order_id].new.venue


def _merged(before: MarketSnapshot, after: MarketSnapshot) -> MarketSnapshot:
    """Two snapshots that were not recorded, as one: what the newer does not state is that of the older."""
    return MarketSnapshot(
        at_ns=after.at_ns,
        instrument=after.instrument,
        venue=after.venue,
        bid=before.bid if after.bid is None else after.bid,
        bid_quantity=before.bid_quantity if after.bid is None else after.bid_quantity,
        ask=before.ask if after.ask is None else after.ask,
        ask_quantity=before.ask_quantity if after.ask is None else after.ask_quantity,
        last=before.last if after.last is None else after.last,
        last_quantity=after.last_quantity,
        phase=before.phase if after.phase is None else after.phase,
    )
