"""The simulated venue behind FIX: messages of its client in, messages to it out. Pure.

The client sends the prices that the venue trades on (35=W), and asks for the market at instants of its own clock
(35=V, MDReqID T and the nanosecond): by then everything that has happened is reported, and the answer comes last. A
client that never asks gets its reports at once. So the messages received give the same messages again, which is how a
venue that was killed goes on.

A venue with prices of its own takes none. Where it shares its client's clock, the instant also names the newest price
that the client has seen (a dot and its number), and the venue trades on the prices up to it. Else it trades on each
price as it publishes it, at its time.
"""

from collections.abc import Callable, Iterator

from msgspec import structs

from htfi.domain.order_scopes import covers
from htfi.domain.order_states import IllegalTransition, OrderState, OrderStatus, advance
from htfi.domain.orders import (
    CancelRejected,
    MarketSnapshot,
    MassCancelRequest,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderReplaced,
    ReplaceRequest,
)
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.execution_reports import Report, business_reject, execution_report
from htfi.execution.fix.market_messages import (
    market_data_reject,
    read_market_data_request,
    snapshot_message,
)
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed, OrderContext, Unreadable
from htfi.execution.fix.order_requests import read_request
from htfi.execution.fix.price_messages import NO_PRICE, Price, exact_time, read_price
from htfi.execution.instruments import Instrument
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.simulated import SimulatedVenue

CLOCK = "T"  # begins the MDReqID (262) that states an instant
INTERRUPTED = "canceled on disconnect"
_SHARED = "orders.send_prices or orders.shares_clock must say the same on both sides"
_UNKNOWN_ORDER = "1"  # CxlRejReason (102)


NumberedPrices = Iterator[tuple[int, Price]]


class FixVenue:
    """One client's venue. `instrument_of` gives the grid of a symbol whose first price comes."""

    def __init__(
        self,
        name: str,
        config: VenueConfig,
        instrument_of: Callable[[str], Instrument],
        dictionary: Dictionary,
        own_prices: Callable[[], NumberedPrices] | None = None,
        *,
        shares_clock: bool = False,
    ) -> None:
        """`own_prices` begins the venue's prices, which are numbered from 1 on."""
        self._config, self._instrument_of, self._dictionary = config, instrument_of, dictionary
        self._own_prices, self._shares_clock = own_prices, shares_clock
        self._prices: NumberedPrices = iter(())
        self._newest_number = 0
        self._begin_prices()
        self._venue = SimulatedVenue(name, config)
        self._newest_price_ns = 0
        self._listed: set[str] = set()
        self._contexts: dict[str, OrderContext] = {}
        self._order_ids: dict[str, str] = {}  # by ClOrdID (11)
        self._venue_ids: dict[str, str] = {}  # OrderID (37)
        self._replaces: set[str] = set()  # ClOrdIDs of requests to replace
        self._markets: dict[str, MarketSnapshot] = {}
        self._now_ns = 0
        self._is_clocked = False
        self._num = 0

    def handle(self, message: FixMessage) -> list[Composed]:
        """What a message of the client is answered with, in order."""
        match message.msg_type:
            case "W":
                return self._observe(message)
            case "V":
                return self._answer(message)
            case "D" | "F" | "G" | "q":
                return self._request(message)
            case "3" | "j":
                return []
            case _:
                return [business_reject(message, 3, "the simulated venue does not trade this")]

    @property
    def has_open_orders(self) -> bool:
        return any(context.state.is_open for context in self._contexts.values())

    def interrupt(self) -> list[Composed]:
        """Cancel what is open of a client whose connection broke: cancel on disconnect. All is reported at once."""
        self._cancel_all(MassCancelRequest(at_ns=self._now_ns), INTERRUPTED)
        return self._reports_on_their_way()

    def publish(self, price: Price) -> list[Composed]:
        """A price of the venue's own that is published now: what follows from it."""
        self._take_price(price)
        return self._reports_on_their_way()

    def begin_again(self) -> None:
        """Another run begins, on books of its own. Ids that were used stay used."""
        self._venue = SimulatedVenue(self._venue.name, self._config, self._venue.num_given)
        self._listed.clear()
        self._markets.clear()
        self._contexts.clear()
        self._now_ns = self._newest_price_ns = 0
        self._begin_prices()

    def _begin_prices(self) -> None:
        self._newest_number = 0
        if self._own_prices is not None and self._shares_clock:
            self._prices = self._own_prices()

    def _observe(self, message: FixMessage) -> list[Composed]:
        if self._own_prices is not None:
            return [business_reject(message, 5, "the venue has prices of its own")]
        price = read_price(message, self._dictionary)
        if isinstance(price, Unreadable):
            return [business_reject(message, 5, price.why)]
        if price.available_at_ns < self._newest_price_ns:
            self.begin_again()
        self._take_price(price)
        return []

    def _take_price(self, price: Price) -> None:
        self._newest_price_ns = price.available_at_ns
        if price.symbol not in self._listed:
            self._listed.add(price.symbol)
            self._venue.list_instrument(self._instrument_of(price.symbol))
        self._venue.observe(price)

    def _trade_up_to(self, number: int) -> None:
        """Take the venue's own prices up to the newest that its client has seen."""
        if number < self._newest_number:
            self.begin_again()
        while self._newest_number < number:
            following = next(self._prices, None)
            if following is None:
                return
            self._newest_number, price = following
            self._take_price(price)

    def _answer(self, message: FixMessage) -> list[Composed]:
        request_id, symbols = read_market_data_request(message, self._dictionary)
        sent: list[Composed] = []
        instant, has_number, number = request_id.removeprefix(CLOCK).partition(".")
        if request_id.startswith(CLOCK) and _is_number(instant):
            has_own_clock = self._own_prices is not None and not self._shares_clock
            if has_own_clock or bool(has_number) != self._shares_clock:
                why = (
                    "shares its client's clock" if self._shares_clock else "does not share its client's clock"
                )
                return [market_data_reject(request_id, f"the venue {why}: {_SHARED}")]
            self._is_clocked = True
            if self._shares_clock and _is_number(number):
                self._trade_up_to(int(number))
            self._now_ns = max(self._now_ns, int(instant))
            sent = self._reports(int(instant))
        market = self._markets.get(symbols[0]) if symbols else None
        if market is None:
            return [*sent, market_data_reject(request_id, NO_PRICE)]
        return [*sent, snapshot_message(market, request_id, self._dictionary)]

    def _request(self, message: FixMessage) -> list[Composed]:
        request = read_request(message, self._dictionary, self._order_ids)
        if isinstance(request, Unreadable):
            if message.msg_type in ("F", "G") and request.tag == 41:
                return [_unknown_order(message)]
            return [business_reject(message, 5, request.why)]
        if self._own_prices is not None and not self._shares_clock:
            request = structs.replace(request, at_ns=self._newest_price_ns)  # its own clock
        self._now_ns = max(self._now_ns, request.at_ns)
        if isinstance(request, MassCancelRequest):
            self._cancel_all(request, "mass cancel")
            return [_mass_cancel_report(message), *self._reports_at_once()]
        cl_ord_id = message.get(11)
        if cl_ord_id in self._order_ids:
            return [] if message.get(97) == "Y" else [business_reject(message, 0, "ClOrdID was used before")]
        if isinstance(request, NewOrder):
            state = OrderState(OrderStatus.PENDING_NEW, request.quantity)
            self._contexts[cl_ord_id] = OrderContext(request, cl_ord_id, state, request.price)
        elif request.order_id not in self._contexts:  # of a run before
            return [_unknown_order(message)]
        elif isinstance(request, ReplaceRequest):
            self._replaces.add(cl_ord_id)
        self._order_ids[cl_ord_id] = request.order_id
        self._venue.send(request)
        return self._reports_at_once()

    def _cancel_all(self, request: MassCancelRequest, why: str) -> None:
        for order_id, context in self._contexts.items():
            if context.state.is_open and covers(request, context.order):
                self._venue.cancel(order_id, self._now_ns, why)

    def _reports_at_once(self) -> list[Composed]:
        """To a client without a clock of its own everything that follows is reported now."""
        return [] if self._is_clocked else self._reports_on_their_way()

    def _reports_on_their_way(self) -> list[Composed]:
        """Everything that follows from what has happened, without waiting for its time."""
        sent: list[Composed] = []
        while (until_ns := self._venue.busy_until_ns()) is not None:
            sent += self._reports(until_ns)
        return sent

    def _reports(self, until_ns: int) -> list[Composed]:
        sent: list[Composed] = []
        while (event := self._venue.next(until_ns)) is not None:
            sent += self._message(event)
        return sent

    def _message(self, event: OrderEvent) -> list[Composed]:
        if isinstance(event, MarketSnapshot):
            self._markets[event.instrument] = event
            return [snapshot_message(event, "", self._dictionary)] if self._is_clocked else []
        assert isinstance(event, Report)
        context = self._contexts.get(event.order_id)
        assert context is not None, "a report on an order that did not come by FIX"
        state = advance(context.state, event)
        after = context if isinstance(state, IllegalTransition) else structs.replace(context, state=state)
        if isinstance(event, OrderFilled):
            after = structs.replace(after, filled_value=after.filled_value + event.quantity * event.price)
        if isinstance(event, OrderReplaced):
            after = structs.replace(after, price=event.price, state=after.state)
        self._num += 1
        exec_id = event.exec_id if isinstance(event, OrderFilled) else f"{self._venue.name}-r{self._num}"
        if event.venue_order_id:
            self._venue_ids[event.order_id] = event.venue_order_id
        stated = structs.replace(
            event,
            cl_ord_id=event.cl_ord_id or context.cl_ord_id,
            venue_order_id=self._venue_ids.get(event.order_id, ""),
        )
        is_replace = isinstance(event, CancelRejected) and event.cl_ord_id in self._replaces
        composed = execution_report(stated, after, exec_id, self._dictionary, is_replace=is_replace)
        if isinstance(event, OrderReplaced):
            after = structs.replace(after, cl_ord_id=event.cl_ord_id)
        self._contexts[event.order_id] = after
        return [exact_time(composed, event.at_ns)]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _unknown_order(message: FixMessage) -> Composed:
    """OrderCancelReject (35=9) of a request on an order that the venue does not know."""
    answers = "2" if message.msg_type == "G" else "1"
    body = [(37, "NONE"), (11, message.get(11)), (41, message.get(41)), (39, "8"), (434, answers)]
    return "9", [*body, (102, _UNKNOWN_ORDER), (60, message.get(60)), (58, "the order is not known")]


def _mass_cancel_report(message: FixMessage) -> Composed:
    """OrderMassCancelReport (35=r): what was asked for is done."""
    body = [(11, message.get(11)), (37, "NONE"), (530, message.get(530)), (531, message.get(530))]
    return "r", body if message.begin_string == "FIX.4.4" else [*body, (1369, message.get(11))]
