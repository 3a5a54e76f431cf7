"""From released decisions to orders: what `htfi trade` does after each item of the feed.

Decisions that were released during an item are sized together, as one book; orders go through order entry, with the
receipt of the decision that they act on. Open orders of an instrument are cancelled before a new target is pursued, and
the new order waits until the venue has answered. Time is that of the decisions and of the venue's reports, so that a
replay sends the same orders.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from htfi.domain.decision import Receipt, decision_id
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import (
    CancelRejected,
    DecisionNoted,
    MassCancelRequest,
    OrderEvent,
    OrderSide,
    Reconciled,
    TradingDisabled,
    TradingEnabled,
)
from htfi.domain.time import parse_duration
from htfi.execution.algorithms.planning import Algorithm
from htfi.execution.config import TradingConfig
from htfi.execution.instruments import Instrument
from htfi.execution.intents import Intent, OrderIntent
from htfi.execution.order_entry import EntryVerdict, OrderEntry
from htfi.execution.parent_orders import ParentWorker
from htfi.execution.ports import VenueLink
from htfi.execution.turns import RecordedEvents, RunTurn
from htfi.execution.worked_orders import ParentTerms, WorkedOrder
from htfi.forecasting.joint.history import NormalScores
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.governance_facts import subject_of
from htfi.pipeline.intake.outer_feed import OuterFeed
from htfi.pipeline.ports import EventFeed
from htfi.pipeline.traded_book import TradedBook

SESSION_S = 6.5 * 3600  # of a trading day
DAYS_A_YEAR = 252
MAX_REPORTS = 1_024  # that are taken in, and recorded, together
RUN_ENDS = "the run ends"  # why what is open then is cancelled
KEPT_SHARE = 0.1  # of an order: by how much a newer target may differ before it is worked anew

ControlEvent = TradingDisabled | TradingEnabled | MassCancelRequest | Reconciled
RestingModels = Callable[[], Mapping[str, Collection[str]]]
"""By instrument the models, as scopes name them, that its open and waiting orders go back to."""


class Controls(Protocol):
    """What people and governance want of trading by an instant."""

    def __call__(self, at_ns: int, resting: RestingModels) -> Sequence[ControlEvent]: ...


def no_controls(at_ns: int, resting: RestingModels) -> Sequence[ControlEvent]:
    """Null controls: nobody wants anything."""
    del at_ns, resting
    return ()


class TradedVenue(VenueLink, Protocol):
    """A venue that follows the feed's market data, as a simulated one does."""

    def observe(self, item: FeedItem) -> None: ...

    def list_instrument(self, instrument: Instrument) -> None: ...


@dataclass(frozen=True, slots=True)
class _Target:
    """What is wanted of an instrument, and on whose strength."""

    lots: int
    receipt: Receipt
    decided: DecidedSeries
    price: float
    at_ns: int

    @property
    def why(self) -> str:
        """What an algorithm's urgency goes back to."""
        return "news" if self.decided.is_between_bars else "forecast"


class Trader:
    """Decisions in, orders out. `subscribe` takes each released decision, `step` acts on them after an item."""

    def __init__(
        self,
        entry: OrderEntry,
        venue: TradedVenue,
        config: TradingConfig,
        horizons: Sequence[int],
        levels: Sequence[float],
        in_force: Callable[[int], Sequence[OrderEvent]],
        controls: Controls = no_controls,
        turn: RunTurn | None = None,
        worker: ParentWorker | None = None,
        recorded: RecordedEvents | None = None,
    ) -> None:
        """`in_force` gives the limits that hold at an instant, those that changed since it was asked; `controls` what
        people and governance want of trading by then. `turn` counts how often both and the venue were asked; `worker`
        works orders where an algorithm does; `recorded` is what earlier starts of the run did. Raises: InvalidInput for
        a horizon that is not forecast.
        """
        if config.horizon_bars not in horizons:
            raise InvalidInput(
                f"trading.horizon_bars is {config.horizon_bars}: forecasts are for {', '.join(map(str, horizons))} bars"
            )
        self.entry = entry
        self._venue, self._config = venue, config
        self._book = TradedBook(config, entry.state, list(horizons).index(config.horizon_bars), levels)
        self._in_force, self._controls = in_force, controls
        self._turn = RunTurn() if turn is None else turn
        self._now_ns = 0
        self._decided: list[tuple[Receipt, DecidedSeries]] = []
        self._waiting: dict[str, _Target] = {}
        self._models: dict[str, frozenset[str]] = {}  # of the decision behind each order
        self._indices: dict[str, int] = {}  # of decisions that an amendment may name
        self.num_refused = 0
        self._worker, self._recorded = worker, recorded
        self._ticking: set[str] = set()  # instruments of which quotes or trades were seen
        self._traded: set[str] = set()  # of which trades were

    def follow_dependence(self, surprises: Callable[[Sequence[str]], NormalScores]) -> None:
        """Measure the book by how its series moved together: `surprises` of series of one interval, over the past."""
        self._book.surprises = surprises

    def subscribe(self, receipt: Receipt, decided: DecidedSeries) -> None:
        """Take a released decision; nothing is done yet."""
        self._decided.append((receipt, decided))

    def step(self, item: FeedItem) -> None:
        """Act on what was released before an item, then let the venue see it."""
        self._end_again()
        now_ns = item.available_at_ns
        decided, self._decided = self._decided, []
        for group in _by_instant(decided):
            at_ns = group[0][1].as_of_ns
            self._take_in(at_ns)
            self._act(group, at_ns)
        if isinstance(item, Bar | Quote | Trade) and self._config.trades(item.symbol):
            self._list(item.symbol, now_ns)
            self._turn.number += 1
            self._deliver(now_ns)  # what was sent before meets the market as it was
            self._venue.observe(item)
            if self._worker is not None:
                self._note_volume(item, self._worker)
        self._take_in(now_ns)

    def _note_volume(self, item: Bar | Quote | Trade, worker: ParentWorker) -> None:
        """What traded, for algorithms: by trades, of instruments that have none by bars."""
        if isinstance(item, Quote | Trade):
            self._ticking.add(item.symbol)
        if isinstance(item, Trade):
            self._traded.add(item.symbol)
        volume = item.volume if isinstance(item, Bar) else item.size if isinstance(item, Trade) else 0.0
        if volume and (isinstance(item, Trade) or item.symbol not in self._traded):
            lot = self.entry.state.instruments[item.symbol].lot_size
            worker.traded(item.symbol, int(volume // lot), item.available_at_ns)

    def cancel_rest(self) -> None:
        """Cancel what is open, and take in what the venue answers: the run ends."""
        if self._worker is not None:
            if self.entry.open_orders() or self._worker.parents():
                turn = self._turn.number + 1
                self._end(MassCancelRequest(at_ns=self._now_ns, why=RUN_ENDS, turn=turn), self._worker)
            return
        self._take_in(self._now_ns)
        if self.entry.open_orders():
            self._waiting.clear()
            self.entry.cancel_all(MassCancelRequest(at_ns=self._now_ns, why=RUN_ENDS, turn=self._turn.number))
            self._deliver(self._now_ns)

    def _end(self, request: MassCancelRequest, worker: ParentWorker) -> None:
        """End what algorithms work, before anything else is done in this turn."""
        self._turn.number += 1
        self._waiting.clear()
        worker.stop_all(request, request.at_ns)
        self.entry.cancel_all(request)
        self._deliver(request.at_ns)

    def _end_again(self) -> None:
        """Where an earlier start of the run ended here, and more came since."""
        if self._worker is None or self._recorded is None:
            return
        ending = self._recorded.next_recorded()
        if isinstance(ending, MassCancelRequest) and (ending.by, ending.why, ending.turn) == (
            "",
            RUN_ENDS,
            self._turn.number + 1,
        ):
            self._end(ending, self._worker)

    def resting_models(self) -> dict[str, set[str]]:
        """By instrument the models that its open and waiting orders go back to; those being cancelled left out."""
        found = {symbol: set(_models_of(target)) for symbol, target in self._waiting.items()}
        for order in self.entry.open_orders():
            if not order.pending:
                names = self._models.get(order.new.parent_id or order.new.order_id, ())
                found.setdefault(order.new.instrument, set()).update(names)
        for order_id, symbol in self._worker.parents() if self._worker is not None else ():
            found.setdefault(symbol, set()).update(self._models.get(order_id, ()))
        return found

    def traded_series(self, symbol: str) -> str:
        """The series that an instrument is traded by; empty where none of it was forecast yet."""
        known = self._book.known.get(symbol)
        return "" if known is None else f"{symbol}/{known.interval}"

    def _take_in(self, at_ns: int) -> None:
        """Reports, then what people and governance want, by an instant: one turn."""
        self._turn.number += 1
        self._now_ns = max(self._now_ns, at_ns)
        self._deliver(at_ns)
        if self._heed(at_ns):
            self._deliver(at_ns)

    def _heed(self, at_ns: int) -> bool:
        """Do what people and governance want, and take in limits that have changed; whether all was cancelled."""
        has_cancelled = False
        while events := self._controls(at_ns, self.resting_models):
            for event in events:
                if isinstance(event, MassCancelRequest):
                    has_cancelled = True
                    if (
                        self._worker is None or not event.venue
                    ):  # an algorithm goes on where a session is back
                        if not event.order:
                            self._waiting.clear()
                        if self._worker is not None:
                            self._worker.stop_all(event, at_ns)
                    self.entry.cancel_all(event)
                else:
                    self.entry.put_in_force([event])
        while changed := self._in_force(at_ns):
            self.entry.put_in_force(changed)
        return has_cancelled

    def _act(self, group: Sequence[tuple[Receipt, DecidedSeries]], at_ns: int) -> None:
        due: dict[str, tuple[Receipt, DecidedSeries]] = {}
        notes: list[OrderEvent] = []
        for receipt, decided in group:
            symbol, interval = decided.series.rsplit("/", 1)
            if not self._config.trades(symbol) or not self._book.follows(symbol, interval):
                continue
            self._book.note(symbol, interval, decided)
            if not self._book.is_due(symbol, decided):
                continue
            due[symbol] = receipt, decided
            own_id = decided.decision.id if decided.is_between_bars else decision_id(decided.series, at_ns)
            amends = self._indices.get(decided.amends)
            if not decided.amends:
                self._indices[own_id] = receipt.index
            notes.append(
                DecisionNoted(
                    at_ns=at_ns,
                    receipt=receipt,
                    instrument=symbol,
                    is_released=True,
                    as_of_ns=decided.as_of_ns,
                    amends=amends,
                )
            )
        if not due:
            return
        self.entry.put_in_force(notes)
        for symbol, lots in self._book.targets(due).items():
            self._waiting[symbol] = _Target(lots, *due[symbol], self._book.known[symbol].price, at_ns)
        self._pursue(at_ns)

    def _list(self, symbol: str, at_ns: int) -> None:
        if symbol in self.entry.state.instruments:
            return
        self.entry.put_in_force([self._config.terms(symbol, at_ns)])
        self._venue.list_instrument(self.entry.state.instruments[symbol])

    def _pursue(self, at_ns: int) -> None:
        """Send what is wanted of instruments without open orders; cancel what is open of the others."""
        intents: list[Intent] = []
        for symbol in list(self._waiting):
            if self._worker is not None and (worked := self._worker.worked(symbol)) is not None:
                self._redirect(symbol, worked, self._worker, at_ns)
                continue
            is_open = [one for one in self.entry.open_orders() if one.new.instrument == symbol]
            if is_open:
                intents += [self.entry.cancel_intent(one, at_ns) for one in is_open if not one.pending]
                continue
            target = self._waiting.pop(symbol)
            lots = target.lots - self._book.position(symbol)
            if not lots:
                continue
            order = self._order(symbol, target, lots, at_ns)
            if self._worker is not None and self._is_worked(symbol):
                self._begin(order, target, self._worker, at_ns)
            else:
                intents.append(order)
        verdicts = self.entry.submit(intents)
        self.num_refused += sum(_is_refused_order(one) for one in verdicts)

    def _is_worked(self, symbol: str) -> bool:
        """Whether an algorithm sees enough of an instrument: quotes, trades, or bars short for its duration."""
        if symbol in self._ticking:
            return True
        assert self._worker is not None
        try:
            return 2 * parse_duration(self._book.known[symbol].interval) <= self._worker.config.duration_ns
        except InvalidInput:
            return False

    def _redirect(self, symbol: str, worked: WorkedOrder, worker: ParentWorker, at_ns: int) -> None:
        """What a newer decision means for an order that is being worked: more or less urgency, or its end."""
        target = self._waiting[symbol]
        left = worked.spec.sign * worked.left
        wanted = target.lots - self._book.position(symbol)
        is_same = left * wanted > 0 and abs(wanted - left) <= KEPT_SHARE * worked.spec.lots
        if is_same and not target.decided.amends and not worked.is_stopped:
            del self._waiting[symbol]
            urgency = worked.spec.base_urgency + self._urgency(symbol, worked.spec.sign, worker)
            worker.change_urgency(worked, urgency, at_ns, target.why)
        elif not worked.is_stopped:
            worker.stop(symbol, at_ns)

    def _begin(self, order: OrderIntent, target: _Target, worker: ParentWorker, at_ns: int) -> None:
        limit_ticks = order.price_ticks
        assert limit_ticks is not None, "orders have a limit"
        order = structs.replace(order, algo=self._config.working_algo)
        terms = ParentTerms(order.order_id, order.instrument, order.side, order.lots, limit_ticks, order)
        urgency = self._urgency(order.instrument, order.side.sign, worker)
        worker.begin(terms, Algorithm(self._config.algorithm), at_ns, urgency, target.why)

    def _urgency(self, symbol: str, sign: int, worker: ParentWorker) -> float:
        """What a forecast adds: more where the price is expected to move away from the order."""
        return self._book.mean_in_sigmas(symbol, worker.config.urgency_per_sigma * sign)

    def _order(self, symbol: str, target: _Target, lots: int, at_ns: int) -> OrderIntent:
        config, instrument = self._config, self.entry.state.instruments[symbol]
        self._models[f"d{target.receipt.index}"] = _models_of(target)
        side = OrderSide.BUY if lots > 0 else OrderSide.SELL
        limit = target.price * (1 + side.sign * config.limit_bps / 1e4)
        return OrderIntent(
            at_ns=at_ns,
            order_id=f"d{target.receipt.index}",
            instrument=symbol,
            venue=config.venue,
            side=side,
            lots=abs(lots),
            price_ticks=max(1, instrument.passive_ticks(limit, side)),
            receipt=target.receipt,
            algo=config.algo,
            trader=config.trader,
            desk=config.desk,
            client=config.client,
            account=config.account,
        )

    @property
    def _max_reports(self) -> int:
        """How many reports are taken together: one where something waits for it, or where it is taken again."""
        is_replaying = self._recorded is not None and self._recorded.is_replaying
        return 1 if self._waiting or is_replaying else MAX_REPORTS

    def _deliver(self, until_ns: int) -> None:
        """Take in what the venue has reported by an instant; targets that waited for it go on."""
        if self._worker is not None:
            self._worker.run_until(
                until_ns,
                lambda at_ns: self._pursue(at_ns) if self._waiting else None,
                lambda: 1 if self._recorded is None else self._max_reports,
            )
            return
        while reports := self.entry.next_reports(until_ns, self._max_reports):
            self.entry.receive(reports)
            if self._waiting and not isinstance(
                reports[-1], CancelRejected
            ):  # it would be refused again, without end
                self._pursue(reports[-1].at_ns)


class TradedFeed(OuterFeed):
    """A feed whose items a trader sees once the loop has taken them."""

    def __init__(self, feed: EventFeed, trader: Trader) -> None:
        super().__init__(feed)
        self._trader = trader

    def __iter__(self) -> Iterator[FeedItem]:
        for item in self._feed:
            yield item
            self._trader.step(item)


def _by_instant(
    decided: Sequence[tuple[Receipt, DecidedSeries]],
) -> list[list[tuple[Receipt, DecidedSeries]]]:
    groups: list[list[tuple[Receipt, DecidedSeries]]] = []
    for one in decided:
        if groups and groups[-1][0][1].as_of_ns == one[1].as_of_ns:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _models_of(target: _Target) -> frozenset[str]:
    """The experts of a decision, and the readers of its view where that was weighed."""
    subject = subject_of(target.decided.decision)
    return frozenset({*subject.models, *(subject.readers if subject.is_view_weighed else ())})


def _is_refused_order(verdict: EntryVerdict) -> bool:
    return bool(verdict.objections) and isinstance(verdict.intent, OrderIntent)
