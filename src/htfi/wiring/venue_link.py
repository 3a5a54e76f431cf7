"""Opens the venue that a run's orders go to: the simulated one inside the process, or one behind a FIX session.

A run notes once, in fix.json, what its ClOrdIDs begin with and where it began in the session's journal, so that it
knows its own messages when it goes on.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from htfi.adapters.stores.order_log import ORDERS
from htfi.domain.errors import InvalidInput
from htfi.domain.orders import MassCancelRequest
from htfi.execution.order_routing.venues import VenueTerms
from htfi.execution.turns import RecordedEvents, RunTurn
from htfi.pipeline.trading import TradedVenue
from htfi.simulation.venue.config import ListedVenueConfig, SimulatedVenueConfig
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi.wiring.run_on_session import read_noted, run_on
from htfi.wiring.settings import Settings

FIX_FILE = "fix.json"  # of a run that trades through FIX


@dataclass(frozen=True, slots=True)
class OpenVenue:
    """A venue that is open, or several: their names and fees, what they want cancelled, whether a run that ends leaves
    nothing open there.
    """

    venue: TradedVenue
    terms: tuple[VenueTerms, ...]
    cancels: Callable[[int], Sequence[MassCancelRequest]] = lambda _: ()
    cancels_at_end: bool = False


@contextmanager
def open_venue(
    settings: Settings, folder: Path, recorded: RecordedEvents, turn: RunTurn, venue_file: Path | None
) -> Generator[OpenVenue]:
    """The venue of a run. Raises: InvalidInput, DependencyUnavailable, IntegrityError."""
    has_traded = (folder / ORDERS).exists() and (folder / ORDERS).stat().st_size > 0
    if venue_file is None:
        if (folder / FIX_FILE).exists():
            raise InvalidInput(f"{folder} trades through FIX: give --venue with the file of its session")
        yield _simulated(settings)
        return
    if settings.trading.algorithm != "direct" or settings.venue.by_name:
        raise InvalidInput(
            f"{venue_file}: algorithms and several venues are simulated: leave --venue out, or them"
        )
    if has_traded and not (folder / FIX_FILE).exists():
        raise InvalidInput(f"{folder} trades on paper: leave --venue out, or use a new folder")
    from htfi.adapters.fix.session_thread import JournalPlace, SessionThread
    from htfi.adapters.fix.settings import read_endpoint
    from htfi.adapters.fix.venue_links import LiveVenueLink, SteppedVenueLink
    from htfi.execution.fix.venue_orders import VenueOrders

    endpoint = read_endpoint(venue_file)
    if not endpoint.session.initiator:
        raise InvalidInput(f"{venue_file}: session.initiator is false: a run connects to its venue")
    if not endpoint.port:
        raise InvalidInput(f"{venue_file}: port is missing: give the venue's")
    if endpoint.orders.is_simulated and endpoint.session.reset_on_logon:
        raise InvalidInput(
            f"{venue_file}: orders.send_prices and shares_clock go without session.reset_on_logon"
        )
    session = SessionThread(endpoint)
    try:
        run = run_on(folder / FIX_FILE, session)
        sent = session.start(JournalPlace(run.num_files, run.next_out, run.next_in))
        orders = VenueOrders(session.dictionary, run.prefix)
        if endpoint.orders.is_simulated:
            yield OpenVenue(SteppedVenueLink(session, orders, sent), (VenueTerms(settings.trading.venue),))
        else:
            link = LiveVenueLink(settings.trading.venue, session, orders, sent, recorded, turn)
            yield OpenVenue(
                link,
                (VenueTerms(settings.trading.venue),),
                link.cancels,
                endpoint.orders.cancel_on_disconnect,
            )
    finally:
        session.close()


def _simulated(settings: Settings) -> OpenVenue:
    """The simulated market, and what the router is told of its venues.

    Of a bar's volume the venues share what one may fill. Raises: InvalidInput where they do not fit the settings.
    """
    config, listed = settings.trading, settings.venue.by_name
    if not listed:
        venue = SimulatedVenue(config.venue, settings.venue)
        return OpenVenue(venue, (_terms(config.venue, settings.venue),))
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
        one.feed or name: SimulatedVenue(name, replace(one, max_bar_share=share * one.max_bar_share))
        for name, one in listed.items()
    }
    several = SimulatedVenues(venues)
    return OpenVenue(several, tuple(_terms(name, one) for name, one in listed.items()))


def _terms(name: str, config: SimulatedVenueConfig) -> VenueTerms:
    is_protected = config.is_protected if isinstance(config, ListedVenueConfig) else True
    return VenueTerms(
        name, config.take_fee_bps, config.make_fee_bps, config.request_ns + config.report_ns, is_protected
    )


def run_prefix(folder: Path) -> str:
    """What the ClOrdIDs of a run's orders begin with; empty of a run on paper. Raises: IntegrityError."""
    path = folder / FIX_FILE
    return read_noted(path).prefix if path.exists() else ""
