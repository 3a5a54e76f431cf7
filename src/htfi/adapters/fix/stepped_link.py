"""The link to a simulated venue behind a FIX session, which goes by the run's clock.

It gets the run's prices and instants, so that what passes between both follows from the inputs: what the journal holds
of it is not sent again.
"""

from collections import deque
from collections.abc import Sequence

from htfi.adapters.fix.session_thread import SessionThread
from htfi.adapters.fix.venue_links import posted
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import CancelRequest, OrderEvent
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.market_messages import read_snapshot, read_until_ns
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed, Unreadable
from htfi.execution.fix.price_messages import NO_PRICE, exact_time, price_message
from htfi.execution.fix.venue_orders import VenueOrders
from htfi.execution.instruments import Instrument
from htfi.execution.ports import VenueRequest

CLOCK = "T"  # begins the MDReqID (262) that states an instant, and the venue's newest price after a dot
NEVER = 1 << 62


class SteppedVenueLink:
    """The simulated venue of `htfi venue serve`: it reports up to the instant that it is asked for."""

    def __init__(
        self, name: str, session: SessionThread, orders: VenueOrders, sent: list[FixMessage], *, by_due: bool
    ) -> None:
        """`by_due`: go from each instant to the next at which something may happen there, as algorithms need it."""
        self.name = name
        self._session, self._orders = session, orders
        self._is_by_due, self._due_ns = by_due, NEVER
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
                self._due_ns = min(self._due_ns, item.available_at_ns)
                return
            composed = price_message(item, self._session.dictionary)
            if composed is not None:
                self._post(composed)
                self._symbol = item.symbol
                self._due_ns = min(self._due_ns, item.available_at_ns)

    def send(self, request: VenueRequest) -> None:
        """Send a request. Raises: DependencyUnavailable, IntegrityError."""
        composed = exact_time(self._orders.compose(request), request.at_ns)
        number = self._post(composed)
        self._orders.note_number(number, self._orders.cl_ord_id(request))
        self._due_ns = min(self._due_ns, request.at_ns)

    def cancel_together(self, requests: Sequence[CancelRequest]) -> None:
        """Cancel by as few messages as reach no other order. Raises: as `send`."""
        masses, single = (
            self._orders.plan_mass_cancels(requests) if self._settings.mass_cancel else ([], requests)
        )
        for mass in masses:
            at_ns = mass.cancels[0].at_ns
            number = self._post(exact_time(self._orders.compose_mass_cancel(mass), at_ns))
            self._orders.note_mass_number(number, mass)
            self._due_ns = min(self._due_ns, at_ns)
        for one in single:
            self.send(one)

    @property
    def is_repeating(self) -> bool:
        """Whether an earlier process has sent what comes next."""
        return bool(self._sent)

    @property
    def next_ns(self) -> int | None:
        """When something may arrive next; None where nothing is known to come."""
        if self._events:
            return self._events[0].at_ns
        return self._due_ns if self._symbol and self._due_ns < NEVER else None

    def next(self, until_ns: int) -> OrderEvent | None:
        """What the venue has reported by an instant. Raises: DependencyUnavailable, IntegrityError."""
        if self._is_by_due:
            while not self._events and self._symbol and self._due_ns <= until_ns:
                self._ask(self._due_ns)
        elif not self._events and self._symbol and (until_ns > self._asked_ns or self._is_asked_for):
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
                self._due_ns = read_until_ns(message) or NEVER
                break
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
        singles, self._orders.single_cancels = self._orders.single_cancels, []
        for one in singles:
            self.send(one)

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
        numbers = posted(self._session, [composed], self._settings.logon_wait_s)
        if isinstance(numbers, NotSent):
            raise DependencyUnavailable(
                f"{self._session.name} is down ({self._session.why_down}): correct that, or start the venue with "
                "`htfi venue serve`, and run the same command again"
            )
        return numbers[0]


def _body(message: FixMessage, session: SessionThread) -> list[tuple[int, str]]:
    header = session.dictionary.header_tags
    return [(tag, value) for tag, value in message.fields if tag not in header and tag != 10]
