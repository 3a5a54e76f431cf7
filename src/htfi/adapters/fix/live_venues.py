"""Several live venues, a FIX session each, as one link that waits for all of them together."""

from collections.abc import Mapping, Sequence

from htfi.adapters.fix.session_thread import wait_for_message
from htfi.adapters.fix.venue_links import LiveVenueLink
from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    OrderMessage,
    ReplaceRequest,
)
from htfi.execution.instruments import Instrument
from htfi.execution.ports import VenueRequest
from htfi.execution.turns import RecordedEvents, RunTurn


class LiveVenues:
    """The live venues of a run as one link. Quotes and trades reach the venue that they name, others reach all."""

    def __init__(self, links: Mapping[str, LiveVenueLink], recorded: RecordedEvents, turn: RunTurn) -> None:
        """`links` by the name that the feed gives each; of a single one any name."""
        self._by_feed_name = dict(links)
        self._links = list(links.values())
        self._by_name = {one.name: one for one in self._links}
        self._venue_of_order: dict[str, str] = {}
        self._recorded, self._turn = recorded, turn
        if len(self._links) > 1:
            for link in self._links:
                link.alert_name = link.name

    def list_instrument(self, instrument: Instrument) -> None:
        """Show the gate an instrument's market at each venue."""
        for link in self._links:
            link.list_instrument(instrument)

    def observe(self, item: FeedItem) -> None:
        """Market data of the feed."""
        name = item.venue if isinstance(item, Quote | Trade) else ""
        if name and len(self._links) > 1:
            link = self._by_feed_name.get(name)
            if link is not None:
                link.observe(item)
        elif isinstance(item, Quote | Trade | Bar):
            for link in self._links:
                link.observe(item)

    def send(self, request: VenueRequest) -> None:
        """Send a request to the venue of its order, or refuse it where its session does not come back in time."""
        self._link_of(request).send(request)

    def cancel_together(self, requests: Sequence[CancelRequest]) -> None:
        """Cancel orders, those of each venue by as few messages as reach no other order."""
        by_link: dict[str, list[CancelRequest]] = {}
        for one in requests:
            by_link.setdefault(self._venue_of_order[one.order_id], []).append(one)
        for name, cancels in by_link.items():
            self._by_name[name].cancel_together(cancels)

    def next(self, until_ns: int) -> OrderEvent | None:
        """Market data, then what this turn of the run has recorded, then what has come; waits for open answers."""
        for link in self._links:
            market = link.next_market(until_ns)
            if market is not None:
                return market
        if self._recorded.is_replaying:
            recorded = self._recorded.next_recorded()
            if recorded is None or not self._is_own(recorded):
                return None
            return self._recorder_of(recorded).again(recorded)
        while True:
            for link in self._links:
                event = link.next_in_hand(until_ns)
                if event is not None:
                    return event
            if self._send_singly():
                continue
            wait_s = max(link.answer_wait_s for link in self._links)
            is_over = not wait_s or not wait_for_message([link.session for link in self._links], wait_s)
            if is_over and not self._send_singly():
                return None

    def _send_singly(self) -> bool:
        """Send what follows mass cancels that were in vain; whether there was any."""
        num_sent = sum(link.send_singly() for link in self._links)
        return num_sent > 0

    def cancels(self, at_ns: int) -> list[MassCancelRequest]:
        """What interruptions of sessions have cancelled."""
        return [one for link in self._links for one in link.cancels(at_ns)]

    def _is_own(self, recorded: OrderEvent) -> bool:
        """Whether a recorded event came by a link in this turn."""
        if not recorded.turn or recorded.turn != self._turn.number:
            return False
        is_request = isinstance(recorded, NewOrder | ReplaceRequest | CancelRequest)
        return isinstance(recorded, AlertRaised | OrderMessage) and not is_request

    def _recorder_of(self, recorded: OrderEvent) -> LiveVenueLink:
        """The link that a recorded event came by."""
        assert isinstance(recorded, AlertRaised | OrderMessage)
        if isinstance(recorded, AlertRaised) and recorded.venue:
            return self._by_name[recorded.venue]
        venue = self._venue_of_order.get(recorded.order_id)
        return self._links[0] if venue is None else self._by_name[venue]

    def _link_of(self, request: VenueRequest) -> LiveVenueLink:
        if isinstance(request, NewOrder):
            self._venue_of_order[request.order_id] = request.venue
        return self._by_name[self._venue_of_order[request.order_id]]
