"""Opens what acts on the decisions of a run by orders: trader, order entry, the simulated venue, the order log.

Limits are those of the policy bundle in force, else of the settings. A stop, or a breaker that is not closed, disables
its scope and cancels what is open there; so do requests that people leave in the run's folder (`htfi orders`). A run
that is made again takes them where it took them before, as the order log says.
"""

import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from htfi.adapters.stores.order_log import ORDERS, OrderLog, read_events_from, read_order_log
from htfi.adapters.stores.order_requests import OrderRequest, OrderRequests, write_order_request
from htfi.domain.counts import counted
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.governance import MAX_CAUSE_CHARS, ScopeLevel, SystemName, parse_scope
from htfi.domain.order_limits import OrderLimits
from htfi.domain.order_scopes import cancel_of_order, mass_cancel_of
from htfi.domain.orders import (
    LimitsInForce,
    MassCancelRequest,
    OrderEvent,
    Reconciled,
    TradingDisabled,
    TradingEnabled,
)
from htfi.execution.accounting import Accounts
from htfi.execution.order_entry import OrderEntry
from htfi.execution.parent_orders import ParentWorker
from htfi.execution.trade_costs import CostSurvey
from htfi.execution.turns import RunTurn
from htfi.governance.bundles.tables import BundleTables
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.ports import EventFeed
from htfi.pipeline.trading import ControlEvent, RestingModels, TradedFeed, Trader
from htfi.wiring.ledger import is_running
from htfi.wiring.notices import warn
from htfi.wiring.order_record import RecordedOrders
from htfi.wiring.request_token import RequestToken
from htfi.wiring.settings import Settings
from htfi.wiring.venue_link import open_venue

_BY_SETTINGS, _BY_BUNDLE = SystemName.SETTINGS.value, SystemName.POLICY_BUNDLE.value
_BY_GOVERNANCE = SystemName.GOVERNANCE_LOG.value


class NoOrders(InvalidInput):
    """A run's folder holds no orders: it does not trade."""


def no_orders() -> Mapping[str, Collection[str]]:
    """No order is open or waits."""
    return {}


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """The orders of a run that is open."""

    trader: Trader
    record: RecordedOrders

    def accounts(self) -> Accounts:
        """Orders and positions so far."""
        return self.record.accounts

    def follow(self, feed: EventFeed) -> EventFeed:
        """The feed, each item of which the trader sees after the loop."""
        return TradedFeed(feed, self.trader)


class TradingControls:
    """What limits and stops orders, as events: while a run is made again those that the log holds next."""

    def __init__(
        self,
        log: OrderLog,
        settings: OrderLimits,
        governance: RunGovernance,
        requests: OrderRequests,
        turn: RunTurn,
        traded_series: Callable[[str], str] = lambda _: "",
        link_cancels: Callable[[int], Sequence[MassCancelRequest]] = lambda _: (),
        is_repeating: Callable[[], bool] = lambda: False,
    ) -> None:
        """`turn` is the run's; `traded_series` gives the series that an instrument is traded by; `link_cancels` what
        the link to the venue wants cancelled; `is_repeating` whether an earlier start of the run has sent what comes
        next: nobody asked for anything then that the log does not hold.
        """
        self._log, self._settings, self._governance = log, settings, governance
        self._requests, self._turn = requests, turn
        self._traded_series, self._link_cancels = traded_series, link_cancels
        self._is_repeating = is_repeating
        self._limits: OrderLimits | None = None  # as they were asked for last
        self._in_force: dict[str, LimitsInForce] = {}  # as recorded, by scope, of no instant
        self._disabled: dict[str, int] = {}  # by stops and breakers, since when
        self._banned: set[str] = set()  # by people: only they enable these scopes again
        self._uncancelled: dict[str, str] = {}  # disabled, while what is open there was not cancelled yet
        self._cancelled: dict[str, int] = {}  # instruments whose orders were cancelled for a model, when last

    def limits(self, at_ns: int) -> Sequence[OrderEvent]:
        """Limits that have changed since they were asked for; a scope that has none any more gets empty ones."""
        if self._log.is_replaying:
            recorded = self._log.next_recorded()
            if not isinstance(recorded, LimitsInForce) or not self._is_due(recorded, at_ns):
                return ()
            self._in_force[recorded.scope] = replace(recorded, at_ns=0, turn=0)
            return [recorded]
        if self._is_repeating():
            return ()
        tables = self._governance.state_now.tables
        limits = self._settings if tables is None else tables.order_limits
        if limits is self._limits:
            return ()
        self._limits = limits
        stated = list(limits.in_force(at_ns, _BY_SETTINGS if tables is None else _BY_BUNDLE))
        ended = set(self._in_force) - {one.scope for one in stated}
        stated += [LimitsInForce(at_ns=at_ns, scope=scope, by=stated[0].by) for scope in sorted(ended)]
        changed = [one for one in stated if self._in_force.get(one.scope) != replace(one, at_ns=0)]
        self._in_force = {one.scope: replace(one, at_ns=0) for one in stated}
        if self._turn.number > 1:  # the first ones hold from the beginning, whenever that is
            changed = [replace(one, turn=self._turn.number) for one in changed]
        return changed

    def changes(self, at_ns: int, resting: RestingModels = no_orders) -> Sequence[ControlEvent]:
        """Stops and their ends, with what they cancel: of a model the orders that go back to it."""
        if self._log.is_replaying:
            recorded = self._log.next_recorded()
            if isinstance(recorded, Reconciled) and not recorded.turn:
                return [recorded]  # it was recorded between two starts of the run
            is_control = isinstance(recorded, ControlEvent)
            if not is_control or not self._is_due(recorded, at_ns):
                return ()
            self._note(recorded)
            return [recorded]
        if self._is_repeating():
            return ()
        wanted = self._wanted()
        events: list[ControlEvent] = [
            mass_cancel_of(scope, at_ns, _BY_GOVERNANCE, cause) for scope, cause in self._uncancelled.items()
        ]
        for scope, cause in wanted.items():
            if scope not in self._disabled:
                events.append(TradingDisabled(at_ns=at_ns, scope=scope, cause=cause))
                events.append(mass_cancel_of(scope, at_ns, _BY_GOVERNANCE, cause))
        for scope, since_ns in [one for one in self._disabled.items() if one[0] not in wanted]:
            if since_ns == at_ns:
                continue  # made again, the run may not have come to what its order log has at this instant
            if scope in self._banned:
                del self._disabled[scope]
                continue
            why = "no stop or breaker holds it"
            events.append(TradingEnabled(at_ns=at_ns, scope=scope, by=_BY_GOVERNANCE, why=why))
        events += self._model_cancels(at_ns, resting)
        events += [replace(one, at_ns=at_ns) for one in self._requests.take()]
        for line in self._requests.new_warnings():
            warn(line)
        events += self._link_cancels(at_ns)
        events = [replace(one, turn=self._turn.number) for one in events]
        for event in events:
            self._note(event)
        return events

    def _model_cancels(self, at_ns: int, resting: RestingModels) -> list[ControlEvent]:
        """Of each instrument whose orders go back to a model that is held. Once cancelled they rest no more."""
        state = self._governance.state_now
        if state.is_clear:
            return []
        held = {scope: f"stop: {cause}" for scope, cause in state.stops.items()}
        for (breaker, scope), cause in state.breakers.items():
            held.setdefault(scope, f"breaker {breaker}: {cause}")
        tables = state.tables or BundleTables()
        events: list[ControlEvent] = []
        for instrument, names in resting().items():
            if self._cancelled.get(instrument) == at_ns:
                continue  # what cannot be cancelled is asked for once an instant
            for name in sorted(names):
                scope = f"{ScopeLevel.MODEL.value}:{name}"
                refusal = "the policy bundle does not permit it" if tables.models.refuses(name) else ""
                if cause := held.get(scope, refusal):
                    why = f"{scope}: {cause}"[:MAX_CAUSE_CHARS]
                    events.append(mass_cancel_of(f"instrument:{instrument}", at_ns, _BY_GOVERNANCE, why))
                    break
        return events

    def _is_due(self, recorded: OrderEvent, at_ns: int) -> bool:
        """Whether the run took a recorded event here; earlier versions recorded the instant alone."""
        return recorded.turn == self._turn.number if recorded.turn else recorded.at_ns == at_ns

    def _note(self, event: ControlEvent) -> None:
        """Keep who disables what. A scope that a person enables while a stop holds it is disabled again at once."""
        match event:
            case TradingDisabled(by=""):
                self._disabled[event.scope], self._uncancelled[event.scope] = event.at_ns, event.cause
            case TradingDisabled():
                self._banned.add(event.scope)
            case TradingEnabled():
                self._disabled.pop(event.scope, None)
                self._banned.discard(event.scope)
            case Reconciled():
                pass
            case MassCancelRequest():
                if event.by == _BY_GOVERNANCE and event.instrument:
                    self._cancelled[event.instrument] = event.at_ns
                for scope, cause in list(self._uncancelled.items()):
                    if replace(event, turn=0) == mass_cancel_of(scope, event.at_ns, _BY_GOVERNANCE, cause):
                        del self._uncancelled[scope]

    def _wanted(self) -> dict[str, str]:
        state = self._governance.state_now
        found = {self._order_scope(scope): f"stop: {cause}" for scope, cause in state.stops.items()}
        for (breaker, scope), cause in state.breakers.items():
            found.setdefault(self._order_scope(scope), f"breaker {breaker}: {cause}")
        found.pop("", None)
        return found

    def _order_scope(self, text: str) -> str:
        """The scope of orders that a scope of governance disables; empty where it disables none.

        That is so of a model, whose orders alone are cancelled, and of a series that its instrument is not traded by.
        """
        scope = parse_scope(text)
        match scope.level:
            case ScopeLevel.FIRM:
                return "firm"
            case ScopeLevel.DESK:
                return f"desk:{scope.name}"
            case ScopeLevel.SERIES:
                symbol = scope.name.rpartition("/")[0]
                return f"instrument:{symbol}" if self._traded_series(symbol) == scope.name else ""
            case ScopeLevel.MODEL:
                return ""


@contextmanager
def open_orders(
    settings: Settings,
    folder: Path,
    governance: RunGovernance,
    num_decisions: int,
    venue_files: Sequence[Path] = (),
) -> Generator[OpenOrders]:
    """Orders of a run in its folder, at simulated venues, or at those of TOML files through FIX.

    `num_decisions` stand in the ledger already. Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    if num_decisions and not (folder / ORDERS).exists():
        raise IntegrityError(
            f"{folder} holds {counted(num_decisions, 'decision')} and no {ORDERS}, so that orders would be sent again: "
            "restore it from a copy, or use a new folder"
        )
    record, turn = RecordedOrders(folder), RunTurn()
    log = record.log
    try:
        config, forecasts = settings.trading, settings.forecasting
        with open_venue(settings, folder, log, turn, venue_files) as venue:
            entry = OrderEntry(record, dict.fromkeys((one.name for one in venue.terms), venue.venue))
            worker = (
                None
                if config.algorithm == "direct"
                else ParentWorker(entry, venue.terms, settings.algorithms, turn if venue.is_live else None)
            )

            def traded_series(symbol: str) -> str:
                return trader.traded_series(symbol)

            controls = TradingControls(
                log,
                settings.order_limits,
                governance,
                OrderRequests(folder),
                turn,
                traded_series,
                venue.cancels,
                venue.is_repeating,
            )
            trader = Trader(
                entry,
                venue.venue,
                config,
                forecasts.horizons,
                forecasts.levels,
                controls.limits,
                controls.changes,
                turn,
                worker,
                log if venue.is_live else None,
            )
            yield OpenOrders(trader, record)
            if venue.cancels_at_end:
                trader.cancel_rest()
    except BaseException:
        record.close(is_failing=True)
        raise
    record.close()


def read_accounts(folder: Path) -> Accounts:
    """Orders and positions of a run, as its order log left them. Raises: InvalidInput, IntegrityError."""
    _check_traded(folder)
    return Accounts().take_all(read_order_log(folder))


def read_costs(folder: Path) -> CostSurvey:
    """What the orders of a run cost. Raises: InvalidInput, IntegrityError."""
    _check_traded(folder)
    return CostSurvey().take_all(read_order_log(folder))


def request_of_orders(folder: Path, request: OrderRequest, name: str = "") -> bool:
    """Ask something of a run's orders, in a file of this `name`; whether the run goes on.

    Raises: InvalidInput, DependencyUnavailable.
    """
    _check_traded(folder)
    write_order_request(folder, request, name)
    return is_running(folder)


def cancel_orders(folder: Path, scope: str, order_id: str, by: str, why: str, token: RequestToken) -> bool:
    """Ask to cancel one order, or with no `order_id` all of a scope; whether the run goes on. Done once for a token.

    Raises: InvalidInput where the run has no such order, IntegrityError, DependencyUnavailable.
    """
    _check_traded(folder)
    name = f"{token.at_ns}-{token.text}"
    if order_id:
        request = cancel_of_order(order_id, token.at_ns, by, why, name)
    else:
        request = mass_cancel_of(scope, token.at_ns, by, why, name)
    if token.is_again and any(
        isinstance(one, MassCancelRequest) and one.request == name for one in read_order_log(folder)
    ):
        return is_running(folder)
    return request_of_orders(folder, request, name)


class OrderBookReader:
    """Orders and costs of a run's order log, read on from where it was read to; for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._survey = CostSurvey()
        self._num_bytes = 0
        self._lock = threading.Lock()

    @contextmanager
    def reading(self) -> Generator[CostSurvey]:
        """Of all that is recorded now, to read while no other thread does.

        Raises: InvalidInput where the run does not trade, IntegrityError, DependencyUnavailable.
        """
        _check_traded(self._folder)
        with self._lock:
            yield self._read_on()

    def _read_on(self) -> CostSurvey:
        if (size := (self._folder / ORDERS).stat().st_size) < self._num_bytes:
            self._survey, self._num_bytes = CostSurvey(), 0
        if size > self._num_bytes:
            events, self._num_bytes = read_events_from(self._folder, self._num_bytes)
            self._survey.take_all(events)
        return self._survey


def _check_traded(folder: Path) -> None:
    if not (folder / ORDERS).exists():
        raise NoOrders(
            f"{folder} has no {ORDERS}: name the folder of a run that `htfi trade --out` has filled"
        )
