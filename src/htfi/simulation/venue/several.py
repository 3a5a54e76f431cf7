"""Several simulated venues at once, each with its own latencies and fees; what they report comes in order of time.

Market data reaches the venue that it names, by its name here or in the feed; data that names none reach all.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Protocol

from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import CancelRequest, NewOrder, OrderEvent
from htfi.execution.instruments import Instrument
from htfi.execution.ports import MassCancelLink, VenueLink, VenueRequest

MAX_ORDERS = 1_000_000  # whose venue is remembered


class TimedVenue(VenueLink, Protocol):
    """A simulated venue, inside the process or served: it says when something may arrive next."""

    @property
    def name(self) -> str: ...

    @property
    def next_ns(self) -> int | None: ...

    def list_instrument(self, instrument: Instrument) -> None: ...

    def observe(self, item: FeedItem) -> None: ...


class SimulatedVenues:
    """One link to several venues: requests go to the venue of their order."""

    def __init__(self, venues: Mapping[str, TimedVenue]) -> None:
        """`venues` by the name that the feed gives them."""
        self._by_feed_name = dict(venues)
        self._venues = list(dict.fromkeys(venues.values()))
        self._by_name = {one.name: index for index, one in enumerate(self._venues)}
        self._index_of = {feed: self._by_name[one.name] for feed, one in venues.items()}
        self._venue_of_order: dict[str, int] = {}
        self._due: list[tuple[int, int]] = []  # when a venue may have something, and which

    def list_instrument(self, instrument: Instrument) -> None:
        """Open a book for an instrument at each venue."""
        for venue in self._venues:
            venue.list_instrument(instrument)

    def send(self, request: VenueRequest) -> None:
        """Take a request on its way to the venue of its order."""
        if isinstance(request, NewOrder):
            index = self._by_name[request.venue]
            self._venue_of_order[request.order_id] = index
            if len(self._venue_of_order) > MAX_ORDERS:
                del self._venue_of_order[next(iter(self._venue_of_order))]
        else:
            index = self._venue_of_order[request.order_id]
        self._venues[index].send(request)
        self._note(index)

    def cancel_together(self, requests: Sequence[CancelRequest]) -> None:
        """Take cancels that are wanted together, those of each venue by one message where it takes that."""
        by_venue: dict[int, list[CancelRequest]] = {}
        for request in requests:
            by_venue.setdefault(self._venue_of_order[request.order_id], []).append(request)
        for index, cancels in by_venue.items():
            venue = self._venues[index]
            if isinstance(venue, MassCancelLink):
                venue.cancel_together(cancels)
            else:
                for one in cancels:
                    venue.send(one)
            self._note(index)

    def next(self, until_ns: int) -> OrderEvent | None:
        """The next report or market data of all venues that has arrived by an instant; None where none has."""
        while self._due and self._due[0][0] <= until_ns:
            at_ns, index = heapq.heappop(self._due)
            venue = self._venues[index]
            due_ns = venue.next_ns
            if due_ns is None or due_ns > at_ns:
                continue  # it was noted again since
            event = venue.next(at_ns)
            self._note(index)
            if event is not None:
                return event
        return None

    def observe(self, item: FeedItem) -> None:
        """Market data of an instrument that is listed."""
        if not isinstance(item, Bar | Quote | Trade):
            return
        name = "" if isinstance(item, Bar) else item.venue
        if name:
            index = self._index_of.get(name)
            if index is not None:
                self._venues[index].observe(item)
                self._note(index)
            return
        for index, venue in enumerate(self._venues):
            venue.observe(item)
            self._note(index)

    def _note(self, index: int) -> None:
        due_ns = self._venues[index].next_ns
        if due_ns is not None:
            heapq.heappush(self._due, (due_ns, index))
