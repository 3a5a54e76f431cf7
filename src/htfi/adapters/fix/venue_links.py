"""The link to a venue behind a FIX session that has a clock of its own.

A live venue answers when it likes: its reports carry the turn of the run that took them, and a run that is made again
takes them there from its record. A request that an earlier process recorded and never sent is refused then, unless it
cancels: nobody knows any more whether it is still wanted.
"""

import time
from collections import deque
from collections.abc import Sequence

from msgspec import structs

from htfi.adapters.fix.session_thread import SessionThread
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import FeedItem
from htfi.domain.orders import (
    AlertRaised,
    CancelRejected,
    CancelRequest,
    MarketSnapshot,
    MassCancelRequest,
    OrderEvent,
    OrderMessage,
    OrderRejected,
    RejectedBy,
)
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.mass_cancels import MassCancel, mass_name
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.venue_orders import NOT_SENT, VenueOrders
from htfi.execution.instruments import Instrument
from htfi.execution.market_view import MarketView
from htfi.execution.ports import VenueRequest
from htfi.execution.turns import RecordedEvents, RunTurn


class LiveVenueLink:
    """A venue with a clock of its own, one of those of `LiveVenues`. Market data for the gate is the feed's."""

    def __init__(
        self,
        name: str,
        session: SessionThread,
        orders: VenueOrders,
        sent: list[FixMessage],
        recorded: RecordedEvents,
        turn: RunTurn,
    ) -> None:
        """`sent` are the messages of ours since the run began."""
        self._session, self._orders, self._recorded, self._turn = session, orders, recorded, turn
        self._settings = session.endpoint.orders
        self._sent_ids = {message.get(11) for message in sent}
        self._sent_masses = {one.get(11): one.get(55) for one in sent if one.msg_type == "q"}  # → instrument
        for message in sent:
            orders.note_number(message.sequence or 0, message.get(11))
        self._view = MarketView(name)
        self.name = name
        self._markets: deque[MarketSnapshot] = deque()
        self._events: deque[OrderEvent] = deque()
        self._refusals: list[OrderEvent] = []
        self._answers_by_s = 0.0
        self._num_handled = 0
        self.alert_name = ""  # what alerts name the venue by, where there are several
        self._is_given_up = False  # the session did not come back in time, and has not since

    def list_instrument(self, instrument: Instrument) -> None:
        """Show the gate an instrument's market."""
        self._view.list_instrument(instrument)

    def observe(self, item: FeedItem) -> None:
        """Market data of the feed."""
        snapshot = self._view.observe(item)
        if snapshot is not None:
            self._markets.append(snapshot)

    def send(self, *requests: VenueRequest) -> None:
        """Send requests, together, or refuse them where the session does not come back in time.

        Raises: DependencyUnavailable.
        """
        composed: dict[str, Composed] = {}
        wanted: dict[str, VenueRequest] = {}
        for request in requests:
            cl_ord_id = self._orders.cl_ord_id(request)
            try:
                message = self._orders.compose(request)
            except InvalidInput as error:
                self._refuse(request, str(error))
                continue
            if cl_ord_id in self._sent_ids:
                continue
            is_cancel = isinstance(request, CancelRequest)
            if self._recorded.is_replaying or (self._recorded.holds_newest and not is_cancel):
                self._refuse(request, "the run ended before it left")
                continue
            composed[cl_ord_id], wanted[cl_ord_id] = message, request
        if not composed:
            return
        try:
            numbers = self._post(*composed.values())
        except InvalidInput as error:
            for request in wanted.values():
                self._refuse(request, str(error))
            return
        if isinstance(numbers, NotSent):
            for request in wanted.values():
                self._refuse(request, f"{self._session.name} is down: {self._session.why_down}")
            return
        for number, cl_ord_id in zip(numbers, composed, strict=True):
            self._orders.note_number(number, cl_ord_id)
        self._answers_by_s = time.monotonic() + self._settings.answer_wait_s

    def _post(self, *composed: Composed) -> list[int] | NotSent:
        numbers = posted(self._session, composed, 0.0 if self._is_given_up else self._settings.logon_wait_s)
        self._is_given_up = isinstance(numbers, NotSent)
        return numbers

    def cancel_together(self, requests: Sequence[CancelRequest]) -> None:
        """Cancel by as few messages as reach no other order. Raises: DependencyUnavailable."""
        masses, single = self._masses_of(requests)
        for mass in masses:
            self._send_mass(mass)
        self.send(*single)

    def _masses_of(
        self, requests: Sequence[CancelRequest]
    ) -> tuple[list[MassCancel], Sequence[CancelRequest]]:
        """Mass cancels and single ones: as they were sent when the run did this before, else as few as can be."""
        if not self._settings.mass_cancel:
            return [], requests
        if not self._recorded.holds_newest:
            return self._orders.plan_mass_cancels(requests)
        masses: list[MassCancel] = []
        left = {one.cl_ord_id: one for one in requests}
        for first in requests:
            name = mass_name(first)
            symbol = self._sent_masses.get(self._orders.full_id(name))
            if symbol is not None:
                instrument_of = self._orders.instrument_of
                reached = [one for one in left.values() if symbol in ("", instrument_of(one.order_id))]
                masses.append(MassCancel(name, symbol, tuple(reached)))
                for one in reached:
                    del left[one.cl_ord_id]
        return masses, list(left.values())

    def _send_mass(self, mass: MassCancel) -> None:
        composed = self._orders.compose_mass_cancel(mass)
        self._answers_by_s = time.monotonic() + self._settings.answer_wait_s
        if self._orders.full_id(mass.name) in self._sent_ids:
            return
        numbers = self._post(composed)
        if isinstance(numbers, NotSent):
            for one in mass.cancels:
                self._refuse(one, f"{self._session.name} is down: {self._session.why_down}")
            return
        self._orders.note_mass_number(numbers[0], mass)

    def send_singly(self) -> bool:
        """Send the cancels of mass cancels that were refused, or that nobody answered in time; whether any was."""
        if self._orders.has_mass_open and not self.answer_wait_s:
            self._orders.fall_back()
        singles, self._orders.single_cancels = self._orders.single_cancels, []
        self.send(*singles)
        return bool(singles)

    def next_market(self, until_ns: int) -> MarketSnapshot | None:
        """Market data of the feed by an instant."""
        if self._markets and self._markets[0].at_ns <= until_ns:
            return self._markets.popleft()
        return None

    def next_in_hand(self, until_ns: int) -> OrderEvent | None:
        """What has come, without waiting."""
        if self._refusals:
            return self._stamped(self._refusals.pop(0), until_ns)
        event = self._next_event()
        return None if event is None else self._stamped(event, until_ns)

    @property
    def answer_wait_s(self) -> float:
        """How long an answer is still waited for; 0: none is open, or the time is up."""
        return max(0.0, self._answers_by_s - time.monotonic()) if self._orders.is_answer_open else 0.0

    @property
    def session(self) -> SessionThread:
        return self._session

    def cancels(self, at_ns: int) -> list[MassCancelRequest]:
        """After an interruption of the session: what was open is cancelled, once messages can be sent again."""
        num = self._session.num_interruptions
        if num == self._num_handled or not self._settings.cancel_on_disconnect or self._session.why_down:
            return []
        self._num_handled = num
        if not self._orders.has_open:
            return []
        return [
            MassCancelRequest(
                at_ns=at_ns, by="", why=f"{self._session.name} was interrupted", venue=self.name
            )
        ]

    def _refuse(self, request: VenueRequest, why: str) -> None:
        self._refusals.append(self._orders.refuse(request, why))

    def again(self, recorded: OrderEvent) -> OrderEvent:
        """The event that an earlier start took here, from the journal."""
        if _is_not_sent(recorded):
            assert isinstance(recorded, OrderRejected | CancelRejected)
            self._refusals = [one for one in self._refusals if not _is_same_request(one, recorded)]
            return recorded
        event = self._next_event()
        if event is None:
            raise IntegrityError(
                f"{self._session.endpoint.journal}: the FIX journal lacks what the run has recorded of it: "
                "restore it from a copy, or use a new folder for the run"
            )
        return self._stamped(event, recorded.at_ns)

    def _next_event(self) -> OrderEvent | None:
        while not self._events:
            message = self._session.next_message()
            if message is None:
                return None
            self._events.extend(self._orders.read(message))
        return self._events.popleft()

    def _stamped(self, event: OrderEvent, at_ns: int) -> OrderEvent:
        turn = self._turn.number
        if isinstance(event, AlertRaised):
            return structs.replace(event, at_ns=at_ns, event_at_ns=at_ns, turn=turn, venue=self.alert_name)
        assert isinstance(event, OrderMessage)
        venue_at_ns = 0 if _is_not_sent(event) else event.at_ns
        return structs.replace(event, at_ns=at_ns, venue_at_ns=venue_at_ns, turn=turn)


def posted(session: SessionThread, messages: Sequence[Composed], wait_s: float) -> list[int] | NotSent:
    """The numbers of messages that were sent, as soon as the session is there, or why they were not in time."""
    deadline_s = time.monotonic() + wait_s
    numbers = session.post(messages)
    while isinstance(numbers, NotSent):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not session.wait_for_logon(left_s):
            break
        numbers = session.post(messages)
    return numbers


def _is_not_sent(event: OrderEvent) -> bool:
    """Whether the link has refused a request."""
    if isinstance(event, OrderRejected):
        return event.by is RejectedBy.LINK
    return isinstance(event, CancelRejected) and event.reason.startswith(NOT_SENT)


def _is_same_request(one: OrderEvent, other: OrderRejected | CancelRejected) -> bool:
    return isinstance(one, OrderRejected | CancelRejected) and (one.order_id, one.cl_ord_id) == (
        other.order_id,
        other.cl_ord_id,
    )
