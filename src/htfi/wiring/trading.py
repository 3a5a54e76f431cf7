"""Opens what acts on the decisions of a run by orders: trader, order entry, the simulated venue, the order log.

Limits are those of the policy bundle in force, else of the settings. A stop, or a breaker that is not closed, disables
its scope and cancels what is open there; so do requests that people leave in the run's folder (`htfi orders`). A run
that is made again takes them where it took them before, as the order log says.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_config
from pathlib import Path

from msgspec.structs import replace

from htfi.adapters.stores.order_log import ORDERS, OrderLog, read_order_log
from htfi.adapters.stores.order_requests import OrderRequest, OrderRequests, write_order_request
from htfi.domain.errors import InvalidInput
from htfi.domain.governance import ScopeLevel, parse_scope
from htfi.domain.order_limits import OrderLimits
from htfi.domain.order_scopes import mass_cancel_of
from htfi.domain.orders import (
    LimitsInForce,
    MassCancelRequest,
    OrderEvent,
    TradingDisabled,
    TradingEnabled,
)
from htfi.execution.accounting import Accounts
from htfi.execution.order_entry import OrderEntry
from htfi.execution.order_routing.venues import VenueTerms
from htfi.execution.parent_orders import ParentWorker
from htfi.execution.ports import VenueLink
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.ports import EventFeed
from htfi.pipeline.trading import ControlEvent, TradedFeed, Trader
from htfi.simulation.venue.config import ListedVenueConfig, SimulatedVenueConfig
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi.wiring.ledger import is_running
from htfi.wiring.order_record import RecordedOrders
from htfi.wiring.settings import Settings

_BY_SETTINGS, _BY_BUNDLE, _BY_GOVERNANCE = "settings", "policy bundle", "governance log"


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
        self, log: OrderLog, settings: OrderLimits, governance: RunGovernance, requests: OrderRequests
    ) -> None:
        self._log, self._settings, self._governance = log, settings, governance
        self._requests = requests
        self._limits: OrderLimits | None = None  # as they were asked for last
        self._in_force: dict[str, LimitsInForce] = {}  # as recorded, by scope, of no instant
        self._disabled: dict[str, str] = {}  # by stops and breakers
        self._banned: set[str] = set()  # by people: only they enable these scopes again
        self._uncancelled: dict[str, str] = {}  # disabled, while what is open there was not cancelled yet

    def limits(self, at_ns: int) -> Sequence[OrderEvent]:
        """Limits that have changed since they were asked for; a scope that has none any more gets empty ones."""
        if self._log.is_replaying:
            recorded = self._log.next_recorded()
            if not isinstance(recorded, LimitsInForce) or recorded.at_ns != at_ns:
                return ()
            self._in_force[recorded.scope] = replace(recorded, at_ns=0)
            return [recorded]
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
        return changed

    def changes(self, at_ns: int) -> Sequence[ControlEvent]:
        """Stops and their ends, with what they cancel."""
        if self._log.is_replaying:
            recorded = self._log.next_recorded()
            is_control = isinstance(recorded, TradingDisabled | TradingEnabled | MassCancelRequest)
            if not is_control or recorded.at_ns != at_ns:
                return ()
            self._note(recorded)
            return [recorded]
        wanted = self._wanted()
        events: list[ControlEvent] = [
            mass_cancel_of(scope, at_ns, _BY_GOVERNANCE, cause) for scope, cause in self._uncancelled.items()
        ]
        for scope, cause in wanted.items():
            if scope not in self._disabled:
                events.append(TradingDisabled(at_ns=at_ns, scope=scope, cause=cause))
                events.append(mass_cancel_of(scope, at_ns, _BY_GOVERNANCE, cause))
        for scope in [one for one in self._disabled if one not in wanted]:
            if scope in self._banned:
                del self._disabled[scope]
                continue
            why = "no stop or breaker holds it"
            events.append(TradingEnabled(at_ns=at_ns, scope=scope, by=_BY_GOVERNANCE, why=why))
        events += [replace(one, at_ns=at_ns) for one in self._requests.take()]
        for event in events:
            self._note(event)
        return events

    def _note(self, event: ControlEvent) -> None:
        """Keep who disables what. A scope that a person enables while a stop holds it is disabled again at once."""
        match event:
            case TradingDisabled(by=""):
                self._disabled[event.scope] = self._uncancelled[event.scope] = event.cause
            case TradingDisabled():
                self._banned.add(event.scope)
            case TradingEnabled():
                self._disabled.pop(event.scope, None)
                self._banned.discard(event.scope)
            case MassCancelRequest():
                for scope, cause in list(self._uncancelled.items()):
                    if event == mass_cancel_of(scope, event.at_ns, _BY_GOVERNANCE, cause):
                        del self._uncancelled[scope]

    def _wanted(self) -> dict[str, str]:
        state = self._governance.state_now
        found = {_order_scope(scope): f"stop: {cause}" for scope, cause in state.stops.items()}
        for (breaker, scope), cause in state.breakers.items():
            found.setdefault(_order_scope(scope), f"breaker {breaker}: {cause}")
        found.pop("", None)
        return found


def _order_scope(text: str) -> str:
    """The scope of orders that a scope of governance reaches; empty for a model, whose decisions are withheld."""
    scope = parse_scope(text)
    match scope.level:
        case ScopeLevel.FIRM:
            return "firm"
        case ScopeLevel.DESK:
            return f"desk:{scope.name}"
        case ScopeLevel.SERIES:
            return f"instrument:{scope.name.partition('/')[0]}"
        case ScopeLevel.MODEL:
            return ""


@contextmanager
def open_orders(settings: Settings, folder: Path, governance: RunGovernance) -> Generator[OpenOrders]:
    """Orders of a run in its folder, on the simulated venue.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    record = RecordedOrders(folder)
    log = record.log
    try:
        config, forecasts = settings.trading, settings.forecasting
        venue, links, terms = _simulated(settings)
        entry = OrderEntry(record, links)
        worker = None if config.algorithm == "direct" else ParentWorker(entry, terms, settings.algorithms)
        controls = TradingControls(log, settings.order_limits, governance, OrderRequests(folder))
        trader = Trader(
            entry,
            venue,
            config,
            forecasts.horizons,
            forecasts.levels,
            controls.limits,
            controls.changes,
            worker,
        )
        yield OpenOrders(trader, record)
    except BaseException:
        record.close(is_failing=True)
        raise
    record.close()


def _simulated(
    settings: Settings,
) -> tuple[SimulatedVenue | SimulatedVenues, Mapping[str, VenueLink], Sequence[VenueTerms]]:
    """The simulated market, a link for each venue's name, and what the router is told of each.

    Of a bar's volume the venues share what one may fill. Raises: InvalidInput where they do not fit the settings.
    """
    config, listed = settings.trading, settings.venue.by_name
    if not listed:
        venue = SimulatedVenue(config.venue, settings.venue)
        return venue, {config.venue: venue}, [_terms(config.venue, settings.venue)]
    if config.algorithm == "direct":
        raise InvalidInput(
            "venue.by_name lists several venues: choose an algorithm that routes, such as trading.algorithm = 'vwap'"
        )
    feeds = [one.feed or name for name, one in listed.items()]
    twice = next((one for one in feeds if feeds.count(one) > 1), "")
    if twice:
        raise InvalidInput(f"venue.by_name: two venues have the feed's name '{twice}'")
    share = 1 / len(listed)
    venues = {
        one.feed or name: SimulatedVenue(name, replace_config(one, max_bar_share=share * one.max_bar_share))
        for name, one in listed.items()
    }
    several = SimulatedVenues(venues)
    return several, dict.fromkeys(listed, several), [_terms(name, one) for name, one in listed.items()]


def _terms(name: str, config: SimulatedVenueConfig) -> VenueTerms:
    is_protected = config.is_protected if isinstance(config, ListedVenueConfig) else True
    return VenueTerms(
        name, config.take_fee_bps, config.make_fee_bps, config.request_ns + config.report_ns, is_protected
    )


def read_accounts(folder: Path) -> Accounts:
    """Orders and positions of a run, as its order log left them. Raises: InvalidInput, IntegrityError."""
    if not (folder / ORDERS).exists():
        raise InvalidInput(
            f"{folder} has no {ORDERS}: name the folder of a run that `htfi trade --out` has filled"
        )
    return Accounts().take_all(read_order_log(folder))


def request_of_orders(folder: Path, request: OrderRequest) -> bool:
    """Ask something of a run's orders; whether the run goes on. Raises: InvalidInput, DependencyUnavailable."""
    if not (folder / ORDERS).exists():
        raise InvalidInput(
            f"{folder} has no {ORDERS}: name the folder of a run that `htfi trade --out` has filled"
        )
    write_order_request(folder, request)
    return is_running(folder)
