"""Links to a venue behind a FIX session: a live one, and a simulated one that goes by the run's clock.

A live venue answers when it likes: its reports carry the turn of the run that took them, and a run that is made again
takes them there from its record. A request that an earlier process recorded and never sent is refused then, unless it
cancels: nobody knows any more whether it is still wanted. The simulated venue gets the run's prices and instants, so
that what passes between both follows from the inputs: what the journal holds of it is not sent again.
"""

import time
from collections import deque

from msgspec import structs

from htfi.adapters.fix.session_thread import SessionThread
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import (
    AlertRaised,
    CancelRejected,
    CancelRequest,
    MarketSnapshot,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    OrderMessage,
    OrderRejected,
    RejectedBy,
    ReplaceRequest,
)
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.market_messages import read_snapshot
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed, Unreadable
from htfi.execution.fix.price_messages import NO_PRICE, exact_time, price_message
from htfi.execution.fix.venue_orders import NOT_SENT, VenueOrders
from htfi.execution.instruments import Instrument
from htfi.execution.market_view import MarketView
from htfi.execution.ports import VenueRequest
from htfi.execution.turns import RecordedEvents, RunTurn

CLOCK = "T"  # begins the MDReqID (262) that states an instant to the simulated venue, and its newest price after a dot


class LiveVenueLink:
    """A venue with a clock of its own. Market data for the gate is the feed's."""

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
        for message in sent:
            orders.note_number(message.sequence or 0, message.get(11))
        self._view = MarketView(name)
        self._name = name
        self._markets: deque[MarketSnapshot] = deque()
        self._events: deque[OrderEvent] = deque()
        self._refusals: list[OrderEvent] = []
        self._answers_by_s: dict[str, float] = {}  # until when a request's answer is waited for, by ClOrdID
        self._num_handled = 0

    def list_instrument(self, instrument: Instrument) -> None:
        """Show the gate an instrument's market."""
        self._view.list_instrument(instrument)

    def observe(self, item: FeedItem) -> None:
        """Market data of the feed."""
        snapshot = self._view.observe(item)
        if snapshot is not None:
            self._markets.append(snapshot)

    def send(self, request: VenueRequest) -> None:
        """Send a request, or refuse it where the session does not come back in time. Raises: DependencyUnavailable."""
        try:
            composed = self._orders.compose(request)
        except InvalidInput as error:
            self._refuse(request, str(error))
            return
        cl_ord_id = self._orders.cl_ord_id(request)
        if cl_ord_id in self._sent_ids:
            return
        is_cancel = isinstance(request, CancelRequest)
        if self._recorded.is_replaying or (self._recorded.holds_newest and not is_cancel):
            self._refuse(request, "the run ended before it left")
            return
        try:
            number = posted(self._session, composed)
        except InvalidInput as error:
            self._refuse(request, str(error))
            return
        if isinstance(number, NotSent):
            self._refuse(request, f"{self._session.name} is down: {self._session.why_down}")
            return
        self._orders.note_number(number, cl_ord_id)
        self._answers_by_s[cl_ord_id] = time.monotonic() + self._settings.answer_wait_s

    def next(self, until_ns: int) -> OrderEvent | None:
        """Market data, then what this turn of the run has recorded, then what has come; waits for open answers."""
        if self._markets:
            return self._markets.popleft()
        if self._recorded.is_replaying:
            recorded = self._recorded.next_recorded()
            return self._again(recorded) if self._is_own(recorded) and recorded is not None else None
        if self._refusals:
            return self._stamped(self._refusals.pop(0), until_ns)
        event = self._next_event(wait=True)
        return None if event is None else self._stamped(event, until_ns)

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
                at_ns=at_ns, by="", why=f"{self._session.name} was interrupted", venue=self._name
            )
        ]

    def _refuse(self, request: VenueRequest, why: str) -> None:
        self._refusals.append(self._orders.refuse(request, why))

    def _is_own(self, recorded: OrderEvent | None) -> bool:
        """Whether a recorded event came by this link in this turn."""
        if recorded is None or not recorded.turn or recorded.turn != self._turn.number:
            return False
        is_request = isinstance(recorded, NewOrder | ReplaceRequest | CancelRequest)
        return isinstance(recorded, AlertRaised | OrderMessage) and not is_request

    def _again(self, recorded: OrderEvent) -> OrderEvent:
        """The event that an earlier start took here, from the journal."""
        if _is_not_sent(recorded):
            assert isinstance(recorded, OrderRejected | CancelRejected)
            self._refusals = [one for one in self._refusals if not _is_same_request(one, recorded)]
            return recorded
        event = self._next_event(wait=False)
        if event is None:
            raise IntegrityError(
                f"{self._session.endpoint.journal}: the FIX journal lacks what the run has recorded of it: "
                "restore it from a copy, or use a new folder for the run"
            )
        return self._stamped(event, recorded.at_ns)

    def _next_event(self, *, wait: bool) -> OrderEvent | None:
        while not self._events:
            message = self._session.next_message(self._left_s() if wait else 0.0)
            if message is None:
                return None
            self._events.extend(self._orders.read(message))
        return self._events.popleft()

    def _left_s(self) -> float:
        """How long an answer is still waited for: each request's once, whether or not it comes."""
        now_s = time.monotonic()
        self._answers_by_s = {
            one: by_s
            for one, by_s in self._answers_by_s.items()
            if by_s > now_s and self._orders.is_unanswered(one)
        }
        return max(self._answers_by_s.values(), default=now_s) - now_s

    def _stamped(self, event: OrderEvent, at_ns: int) -> OrderEvent:
        turn = self._turn.number
        if isinstance(event, AlertRaised):
            return structs.replace(event, at_ns=at_ns, event_at_ns=at_ns, turn=turn)
        assert isinstance(event, OrderMessage)
        venue_at_ns = 0 if _is_not_sent(event) else event.at_ns
        return structs.replace(event, at_ns=at_ns, venue_at_ns=venue_at_ns, turn=turn)


class SteppedVenueLink:
    """The simulated venue of `htfi venue serve`: it reports up to the instant that it is asked for."""

    def __init__(self, session: SessionThread, orders: VenueOrders, sent: list[FixMessage]) -> None:
        self._session, self._orders = session, orders
        self._settings = session.endpoint.orders
        self._sent = deque(sent)  # by earlier processes
        self._num_posted = 0
        self._symbol = self._newest_id = ""  # of the newest price
        self._asked_ns = 0
        self._is_asked_for = False  # whether something was sent since it was asked
        self._events: deque[OrderEvent] = deque()

    def list_instrument(self, instrument: Instrument) -> None:
        """The venue has the instruments of its own settings."""

    def observe(self, item: FeedItem) -> None:
        """Send a price to the venue, which may have published it. Raises: DependencyUnavailable, IntegrityError."""
        if isinstance(item, Quote | Trade | Bar):
            if self._settings.shares_clock:
                self._symbol, self._is_asked_for = item.symbol, True
                self._newest_id = item.id or self._newest_id
                return
            composed = price_message(item, self._session.dictionary)
            if composed is not None:
                self._post(composed)
                self._symbol = item.symbol

    def send(self, request: VenueRequest) -> None:
        """Send a request. Raises: DependencyUnavailable, IntegrityError."""
        composed = exact_time(self._orders.compose(request), request.at_ns)
        number = self._post(composed)
        self._orders.note_number(number, self._orders.cl_ord_id(request))

    def next(self, until_ns: int) -> OrderEvent | None:
        """What the venue has reported by an instant. Raises: DependencyUnavailable, IntegrityError."""
        if not self._events and self._symbol and (until_ns > self._asked_ns or self._is_asked_for):
            self._ask(until_ns)
        if self._events and self._events[0].at_ns <= until_ns:
            return self._events.popleft()
        return None

    def _ask(self, until_ns: int) -> None:
        request_id = f"{CLOCK}{until_ns}" + (f".{self._newest_id}" if self._newest_id else "")
        body = [
            (262, request_id),
            (263, "0"),
            (264, "1"),
            (267, "1"),
            (269, "0"),
            (146, "1"),
            (55, self._symbol),
        ]
        self._post(("V", body))
        self._asked_ns, self._is_asked_for = until_ns, False
        while True:
            message = self._session.next_message(self._settings.answer_wait_s + self._settings.logon_wait_s)
            if message is None:
                raise DependencyUnavailable(
                    f"{self._session.name}: the venue does not answer"
                    f"{f' ({self._session.why_down})' if self._session.why_down else ''}: "
                    "start it again and run the same command again"
                )
            if message.msg_type in ("W", "Y") and message.get(262) == request_id:
                if message.msg_type == "Y" and message.get(58) != NO_PRICE:
                    raise InvalidInput(f"{self._session.name}: {message.get(58)[:200]}")
                return
            if message.msg_type == "j" and message.get(372) == "W":
                raise InvalidInput(
                    f"{self._session.name}: {message.get(58)[:200]}: orders.send_prices is for a venue without any"
                )
            if message.msg_type == "W":
                snapshot = read_snapshot(message, self._session.dictionary)
                if not isinstance(snapshot, Unreadable):
                    self._events.append(snapshot)
            else:
                self._events.extend(self._orders.read(message))

    def _post(self, composed: Composed) -> int:
        """Send the next message, unless an earlier process has sent it."""
        self._is_asked_for = True
        if self._sent:
            message = self._sent.popleft()
            if (message.msg_type, _body(message, self._session)) != (composed[0], list(composed[1])):
                raise IntegrityError(
                    f"{self._session.endpoint.journal}: the FIX journal holds another message than follows from the "
                    "inputs: the inputs, the settings or the code changed since; use a new folder for the run"
                )
            return message.sequence or 0
        number = posted(self._session, composed)
        if isinstance(number, NotSent):
            raise DependencyUnavailable(
                f"{self._session.name} is down ({self._session.why_down}): mend that, or start the venue with "
                "`htfi venue serve`, and run the same command again"
            )
        return number


def posted(session: SessionThread, composed: Composed) -> int | NotSent:
    """The number of a message that was sent, as soon as the session is there, or why it was not in time."""
    deadline_s = time.monotonic() + session.endpoint.orders.logon_wait_s
    number = session.post(composed)
    while isinstance(number, NotSent):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not session.wait_for_logon(left_s):
            break
        number = session.post(composed)
    return number


def _body(message: FixMessage, session: SessionThread) -> list[tuple[int, str]]:
    header = session.dictionary.header_tags
    return [(tag, value) for tag, value in message.fields if tag not in header and tag != 10]


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
