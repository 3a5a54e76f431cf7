"""The simulated venue as a link: requests arrive after a latency, reports come back after another, in order of time.

Time comes with the market data and with `next`; the same data and requests give the same reports.
"""

import heapq
from collections.abc import Collection, Iterable
from decimal import Decimal

from msgspec import structs

from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    Liquidity,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderExpired,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderType,
    ReplaceRequest,
    SessionPhase,
    TimeInForce,
)
from htfi.execution.instruments import Instrument
from htfi.execution.market_view import BestQuotes, lots_of
from htfi.execution.ports import VenueRequest
from htfi.simulation.venue.book import Match, RestingOrder, SimulatedBook
from htfi.simulation.venue.config import SimulatedVenueConfig
from htfi.simulation.venue.phases import InstrumentPhase

_BPS = Decimal(10_000)
_NEVER = 1 << 62
_ADDED, _REMOVED = Liquidity.ADDED, Liquidity.REMOVED  # to find a member by its enum each time takes longer
_OF_THE_DAY = frozenset({TimeInForce.DAY, TimeInForce.AT_THE_OPENING, TimeInForce.AT_THE_CLOSE})


class SimulatedVenue:
    """One venue over all instruments. `name` is its ISO 10383 code."""

    def __init__(self, name: str, config: SimulatedVenueConfig, num_given: int = 0) -> None:
        """`num_given` numbers of requests and executions were given before, and are not given again."""
        self.name = name
        self._config = config
        self._instruments: dict[str, Instrument] = {}
        self._books: dict[str, SimulatedBook] = {}
        self._phases: dict[str, InstrumentPhase] = {}
        self._quotes: dict[str, BestQuotes] = {}
        self._new: dict[str, NewOrder] = {}  # orders that were taken in, by id
        self._requests: list[tuple[int, int, VenueRequest]] = []
        self._reports: list[tuple[int, int, OrderEvent]] = []
        self._num = num_given  # of all requests, reports, orders and executions
        self._newest_ns = 0
        self._change_ns = _NEVER  # when time alone changes a phase; 0: to be looked up

    @property
    def num_given(self) -> int:
        return self._num

    def list_instrument(self, instrument: Instrument) -> None:
        """Open a book for an instrument."""
        self._instruments[instrument.symbol] = instrument
        if instrument.symbol not in self._books:
            self._books[instrument.symbol] = SimulatedBook()
            self._phases[instrument.symbol] = self._config.instrument_phase()
            self._quotes[instrument.symbol] = BestQuotes()
            self._change_ns = 0
        self._quotes[instrument.symbol].forget_ticks()

    def send(self, request: VenueRequest) -> None:
        """Take a request on its way."""
        heapq.heappush(self._requests, (request.at_ns + self._config.request_ns, self._next_num(), request))

    def next(self, until_ns: int) -> OrderEvent | None:
        """The next report or market data that has arrived by an instant; None where none has."""
        if self._requests or until_ns >= self._change_ns:
            self._take_requests(until_ns)
        reports = self._reports
        if not reports or reports[0][0] > until_ns:
            return None
        at_ns, _, event = heapq.heappop(reports)
        self._newest_ns = at_ns
        return event

    @property
    def next_ns(self) -> int | None:
        """When the next request or report arrives, or time changes a phase; None where nothing is known to come."""
        first = [queue[0][0] for queue in (self._requests, self._reports) if queue]
        if 0 < self._change_ns < _NEVER:
            first.append(self._change_ns)
        return min(first) if first else None

    def busy_until_ns(self) -> int | None:
        """When the newest of the requests and reports that are on their way arrives; None where none is."""
        arrivals = [one[0] for one in (*self._requests, *self._reports)]
        return max(arrivals, default=None)

    def cancel(self, order_id: str, at_ns: int, reason: str) -> None:
        """Take an order off without a request, whether it has arrived or is on its way."""
        self._take_requests(at_ns)
        new = self._new.get(order_id)
        on_its_way = [one for one in self._requests if one[2].order_id == order_id]
        if new is not None and self._books[new.instrument].remove(order_id) is None:
            return  # it is done
        if on_its_way:
            self._requests = [one for one in self._requests if one[2].order_id != order_id]
            heapq.heapify(self._requests)
        if new is not None or on_its_way:
            self._report(OrderCanceled(at_ns=at_ns, order_id=order_id, reason=reason))

    def observe(self, item: FeedItem) -> None:
        """Market data of an instrument that is listed: it meets what arrived before it."""
        if not (isinstance(item, Quote) or isinstance(item, Trade) or isinstance(item, Bar)):  # noqa: SIM101 - faster
            return
        symbol = item.symbol
        book = self._books.get(symbol)
        if book is None:
            return
        if self._requests or item.available_at_ns >= self._change_ns:
            self._take_requests(item.available_at_ns)
        if isinstance(item, Quote):
            self._quote(item, self._instruments[symbol], book, self._phases[symbol])
        elif isinstance(item, Trade):
            self._trade(item, self._instruments[symbol], book, self._phases[symbol])
        else:
            self._bar(item, self._instruments[symbol], book)

    def _bar(self, bar: Bar, instrument: Instrument, book: SimulatedBook) -> None:
        if book.has_quotes:
            return  # its quotes have shown what the bar sums up
        half = max(1, round(instrument.nearest_ticks(bar.close) * self._config.half_spread_bps / 1e4))
        prices = (
            instrument.nearest_ticks(bar.open),
            instrument.nearest_ticks(bar.high),
            instrument.nearest_ticks(bar.low),
            instrument.nearest_ticks(bar.close),
        )
        volume = lots_of(bar.volume, instrument)
        max_lots = int(volume * self._config.max_bar_share) if volume else 1 << 60
        self._report_matches(book.bar(prices, max_lots, half, bar.start_ns, bar.end_ns))
        self._snapshot(bar.symbol, bar.available_at_ns, last=prices[3], last_lots=volume)

    def _quote(
        self, quote: Quote, instrument: Instrument, book: SimulatedBook, phase: InstrumentPhase
    ) -> None:
        quotes = self._quotes[quote.symbol]
        bid, bid_lots, ask, ask_lots = quotes.take(quote, instrument)
        now_ns = quote.available_at_ns
        if phase.band_share and bid and ask and phase.see(now_ns, (bid + ask) // 2):
            self._change_ns = 0
        if phase.is_matching and book.orders:
            met = _ADDED if quotes.num_exchanges == 1 else _REMOVED
            self._report_matches(book.quote(bid, bid_lots, ask, ask_lots, now_ns, met))
        elif phase.is_matching:
            book.show(bid, bid_lots, ask, ask_lots)
        else:
            book.show(bid, bid_lots, ask, ask_lots)
            if phase.phase is SessionPhase.CONTINUOUS:
                phase.end_call()
                self._report_matches(book.take_all(now_ns))
                self._expire(quote.symbol, now_ns, {TimeInForce.AT_THE_OPENING})
        self._snapshot(quote.symbol, now_ns)

    def _trade(
        self, trade: Trade, instrument: Instrument, book: SimulatedBook, phase: InstrumentPhase
    ) -> None:
        price, lots = instrument.nearest_ticks(trade.price), lots_of(trade.size, instrument)
        now_ns = trade.available_at_ns
        if phase.band_share and phase.see(now_ns, price):
            self._change_ns = 0
        if phase.is_matching and book.orders:
            self._report_matches(book.trade(price, lots, now_ns))
        elif phase.is_matching:
            book.note(price, lots)
        else:
            book.note(price, lots)
            if phase.phase is SessionPhase.CONTINUOUS:
                phase.end_call()
                share = int(lots * self._config.max_bar_share)
                self._report_matches(book.auction(price, share, now_ns, closing=False))
                self._expire(trade.symbol, now_ns, {TimeInForce.AT_THE_OPENING})
        self._snapshot(trade.symbol, now_ns, last=price, last_lots=lots)

    def _snapshot(self, symbol: str, at_ns: int, last: int | None = None, last_lots: int = 0) -> None:
        book = self._books[symbol]
        phase = self._phases[symbol].phase if book.has_ticks else SessionPhase.CONTINUOUS
        snapshot = book.snapshot(self._instruments[symbol], self.name, at_ns, phase, last, last_lots)
        self._num += 1
        heapq.heappush(self._reports, (at_ns, self._num, snapshot))

    def _phase(self, symbol: str) -> SessionPhase:
        """Of an instrument that has bars alone the venue takes orders always."""
        return self._phases[symbol].phase if self._books[symbol].has_ticks else SessionPhase.CONTINUOUS

    def _pass_time(self, until_ns: int) -> None:
        """Change the phases of instruments whose time has come."""
        self._change_ns = _NEVER
        for symbol, phase in self._phases.items():
            phase.begin(until_ns)
            while (at_ns := phase.next_change_ns()) is not None and at_ns <= until_ns:
                before = phase.phase
                phase.pass_to(at_ns)
                if phase.phase is SessionPhase.CLOSED:
                    self._close(symbol, at_ns, is_called=before is SessionPhase.CLOSING_AUCTION)
                if self._books[symbol].has_ticks:
                    self._snapshot(symbol, at_ns)
            if at_ns is not None:
                self._change_ns = min(self._change_ns, at_ns)

    def _close(self, symbol: str, at_ns: int, *, is_called: bool) -> None:
        """The closing auction trades at the last price; then orders of the day end."""
        book = self._books[symbol]
        if is_called and book.last:
            share = int(book.last_lots * self._config.max_bar_share)
            self._report_matches(book.auction(book.last, share, at_ns, closing=True))
        self._expire(symbol, at_ns, _OF_THE_DAY)

    def _expire(self, symbol: str, at_ns: int, kinds: Collection[TimeInForce]) -> None:
        book = self._books[symbol]
        waiting = [*book.orders.values(), *book.for_close.values()]
        for order in [one for one in waiting if one.time_in_force in kinds]:
            book.remove(order.order_id)
            self._report(OrderExpired(at_ns=at_ns, order_id=order.order_id))

    def _take_requests(self, until_ns: int) -> None:
        while self._requests and self._requests[0][0] <= until_ns:
            arrived_ns, _, request = heapq.heappop(self._requests)
            if arrived_ns >= self._change_ns:
                self._pass_time(arrived_ns)
            match request:
                case NewOrder():
                    self._enter(request, arrived_ns)
                case CancelRequest():
                    self._take_cancel(request, arrived_ns)
                case ReplaceRequest():
                    self._replace(request, arrived_ns)
        if until_ns >= self._change_ns:
            self._pass_time(until_ns)

    def _enter(self, new: NewOrder, at_ns: int) -> None:
        why = self._why_rejected(new)
        if why:
            self._report(OrderRejected(at_ns=at_ns, order_id=new.order_id, reason=why))
            return
        self._new[new.order_id] = new
        instrument, book = self._instruments[new.instrument], self._books[new.instrument]
        assert new.price is not None, "orders at market are rejected"
        display = new.display_quantity or 0
        order = RestingOrder(
            new.order_id,
            new.side.sign,
            instrument.ticks(new.price),
            new.quantity,
            at_ns,
            new.time_in_force,
            display=display if display < new.quantity else 0,
        )
        self._report(
            OrderAcknowledged(
                at_ns=at_ns, order_id=new.order_id, venue_order_id=f"{self.name}-{self._next_num()}"
            )
        )
        if new.time_in_force is TimeInForce.FILL_OR_KILL and not _fills_whole(book, order):
            self._report(
                OrderCanceled(at_ns=at_ns, order_id=new.order_id, reason="it could not be filled whole")
            )
            return
        if not self._is_matching(new.instrument) or new.time_in_force is TimeInForce.AT_THE_CLOSE:
            book.rest(order)
            return
        self._report_matches(book.add(order))
        if new.time_in_force is TimeInForce.IMMEDIATE_OR_CANCEL and book.remove(new.order_id) is not None:
            self._report(
                OrderCanceled(
                    at_ns=at_ns, order_id=new.order_id, reason="the rest could not be filled at once"
                )
            )

    def _why_rejected(self, new: NewOrder) -> str:
        if new.instrument not in self._instruments:
            return f"{new.instrument} is not listed"
        if new.order_id in self._new:
            return "the order's id was used before"
        if new.order_type is not OrderType.LIMIT or new.price is None:
            return f"orders of type {new.order_type.value} are not taken"
        if new.quantity <= 0 or new.price <= 0:
            return "its price and its quantity must be above 0"
        if new.price % self._instruments[new.instrument].tick:
            return "its price lies between two ticks"
        return self._why_not_now(new)

    def _why_not_now(self, new: NewOrder) -> str:
        phase = self._phase(new.instrument)
        if phase is SessionPhase.CLOSED:
            return "the venue is closed"
        match new.time_in_force:
            case TimeInForce.IMMEDIATE_OR_CANCEL | TimeInForce.FILL_OR_KILL:
                if not self._is_matching(new.instrument):
                    return f"nothing trades at once in the phase {phase.value}"
            case TimeInForce.AT_THE_OPENING:
                if self._is_matching(new.instrument) or phase is SessionPhase.CLOSING_AUCTION:
                    return "the opening has passed"
            case TimeInForce.AT_THE_CLOSE:
                if not (self._config.hours and self._config.closing_call_s):
                    return "there is no closing auction"
            case _:
                pass
        return ""

    def _is_matching(self, symbol: str) -> bool:
        return self._phases[symbol].is_matching or not self._books[symbol].has_ticks

    def _take_cancel(self, request: CancelRequest, at_ns: int) -> None:
        new = self._new.get(request.order_id)
        if new is None or self._books[new.instrument].remove(request.order_id) is None:
            self._report(
                CancelRejected(
                    at_ns=at_ns,
                    order_id=request.order_id,
                    cl_ord_id=request.cl_ord_id,
                    reason="the order is not on the book",
                )
            )
            return
        self._report(OrderCanceled(at_ns=at_ns, order_id=request.order_id, cl_ord_id=request.cl_ord_id))

    def _replace(self, request: ReplaceRequest, at_ns: int) -> None:
        new = self._new.get(request.order_id)
        book = None if new is None else self._books[new.instrument]
        order = None if book is None else book.find(request.order_id)
        if new is None or book is None or order is None:
            why = "the order is not on the book"
        else:
            filled = new.quantity - order.leaves
            instrument = self._instruments[new.instrument]
            price = order.price if request.price is None else instrument.nearest_ticks(float(request.price))
            if request.quantity <= filled:
                why = f"{filled} lots are filled"
            elif request.price is not None and request.price % instrument.tick:
                why = "its price lies between two ticks"
            else:
                self._report(
                    OrderReplaced(
                        at_ns=at_ns,
                        order_id=request.order_id,
                        cl_ord_id=request.cl_ord_id,
                        quantity=request.quantity,
                        price=instrument.price(price),
                    )
                )
                self._new[new.order_id] = structs.replace(new, quantity=request.quantity)
                is_matching = self._is_matching(new.instrument)
                self._report_matches(
                    book.change(request.order_id, request.quantity - filled, price, is_matching=is_matching)
                )
                return
        self._report(
            CancelRejected(at_ns=at_ns, order_id=request.order_id, cl_ord_id=request.cl_ord_id, reason=why)
        )

    def _report_matches(self, matches: Iterable[Match]) -> None:
        for match in matches:
            new = self._new[match.order_id]
            price = self._instruments[new.instrument].price(match.price)
            bps = self._config.take_fee_bps if match.liquidity is _REMOVED else self._config.make_fee_bps
            value = abs(self._instruments[new.instrument].value(match.price, match.lots))
            num = self._next_num()
            self._report(
                OrderFilled(
                    at_ns=match.at_ns,
                    order_id=match.order_id,
                    exec_id=f"{self.name}-e{num}",
                    quantity=match.lots,
                    price=price,
                    liquidity=match.liquidity,
                    fee=round(Decimal(value) / 10**9 * Decimal(repr(bps)) / _BPS, 6),
                )
            )

    def _report(self, event: OrderEvent) -> None:
        """A report on what happened at `event.at_ns`: it arrives after the latency, not before what came already."""
        arrives_ns = max(event.at_ns + self._config.report_ns, self._newest_ns)
        heapq.heappush(
            self._reports, (arrives_ns, self._next_num(), structs.replace(event, at_ns=arrives_ns))
        )

    def _next_num(self) -> int:
        self._num += 1
        return self._num


def _fills_whole(book: SimulatedBook, order: RestingOrder) -> bool:
    opposite, lots = (book.ask, book.ask_lots) if order.sign > 0 else (book.bid, book.bid_lots)
    return bool(opposite) and order.sign * (order.price - opposite) >= 0 and lots >= order.leaves
