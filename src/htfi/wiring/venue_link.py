"""Opens the venues that a run's orders go to: simulated ones inside the process, or one behind each FIX session.

A FIX session outlives runs. A run notes once, in fix.json, what its ClOrdIDs begin with and where it began in the
journal of each session, so that it knows its own messages when it goes on.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from threading import Condition
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from htfi.adapters.stores.order_log import ORDERS
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import write_atomically
from htfi.domain.orders import MassCancelRequest
from htfi.execution.order_routing.venues import VenueTerms
from htfi.execution.turns import RecordedEvents, RunTurn
from htfi.pipeline.trading import TradedVenue
from htfi.simulation.venue.config import ListedVenueConfig, SimulatedVenueConfig
from htfi.simulation.venue.several import SimulatedVenues
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi.wiring.settings import Settings

if TYPE_CHECKING:  # a run on paper loads no sockets
    from htfi.adapters.fix.session_thread import SessionThread
    from htfi.adapters.fix.settings import FixEndpoint

V = TypeVar("V")
FIX_FILE = "fix.json"  # of a run that trades through FIX
_PREFIX_BYTES = 3


@dataclass(frozen=True, slots=True)
class OpenVenue:
    """A venue that is open, or several: their names and fees, what they want cancelled, whether a run that ends leaves
    nothing open there, whether they have clocks of their own, whether what is sent was sent by an earlier process.
    """

    venue: TradedVenue
    terms: tuple[VenueTerms, ...]
    cancels: Callable[[int], Sequence[MassCancelRequest]] = lambda _: ()
    cancels_at_end: bool = False
    is_live: bool = False
    is_repeating: Callable[[], bool] = lambda: False


class RunOnSession(msgspec.Struct, frozen=True):
    """What fix.json holds: the session, the run's prefix, and where the run began in the journal."""

    session: str
    journal: str
    prefix: str
    num_files: int
    next_out: int
    next_in: int


_NOTED: "msgspec.json.Decoder[RunOnSession | list[RunOnSession]]" = msgspec.json.Decoder(
    cast("type[RunOnSession | list[RunOnSession]]", RunOnSession | list[RunOnSession])
)


@contextmanager
def open_venue(
    settings: Settings, folder: Path, recorded: RecordedEvents, turn: RunTurn, venue_files: Sequence[Path]
) -> Generator[OpenVenue]:
    """The venues of a run; `venue_files` state a FIX session each, none: they are simulated inside the process.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    has_traded = (folder / ORDERS).exists() and (folder / ORDERS).stat().st_size > 0
    if not venue_files:
        if (folder / FIX_FILE).exists():
            raise InvalidInput(f"{folder} trades through FIX: give --venue with the file of its session")
        yield _simulated(settings)
        return
    if has_traded and not (folder / FIX_FILE).exists():
        raise InvalidInput(f"{folder} trades on paper: leave --venue out, or use a new folder")
    from htfi.adapters.fix.live_venues import LiveVenues
    from htfi.adapters.fix.session_thread import JournalPlace, SessionThread
    from htfi.adapters.fix.stepped_link import SteppedVenueLink
    from htfi.adapters.fix.venue_links import LiveVenueLink
    from htfi.execution.fix.venue_orders import VenueOrders

    _check_listed(settings)
    endpoints = _endpoints(venue_files, settings)
    orders = next(iter(endpoints.values())).orders
    changed = Condition()
    stepped: dict[str, SteppedVenueLink] = {}
    live: dict[str, LiveVenueLink] = {}
    with ExitStack() as closing:
        sessions: dict[str, SessionThread] = {}
        for name, endpoint in endpoints.items():
            sessions[name] = SessionThread(endpoint, changed)
            closing.callback(sessions[name].close)
        runs = _run_on(folder, list(sessions.values()))
        for (name, session), run in zip(sessions.items(), runs, strict=True):
            sent = session.start(JournalPlace(run.num_files, run.next_out, run.next_in))
            venue_orders = VenueOrders(session.dictionary, run.prefix)
            if orders.send_prices:
                by_due = settings.trading.algorithm != "direct"
                stepped[name] = SteppedVenueLink(name, session, venue_orders, sent, by_due=by_due)
            else:
                live[name] = LiveVenueLink(name, session, venue_orders, sent, recorded, turn)
        terms = _listed_terms(settings)
        if live:
            venues = LiveVenues(_by_feed_name(live, settings), recorded, turn)
            yield OpenVenue(venues, terms, venues.cancels, orders.cancel_on_disconnect, is_live=True)
        else:
            alone = next(iter(stepped.values()))
            venue = alone if len(stepped) == 1 else SimulatedVenues(_by_feed_name(stepped, settings))

            def is_repeating() -> bool:
                return any(one.is_repeating for one in stepped.values())

            yield OpenVenue(venue, terms, is_repeating=is_repeating)


def _endpoints(files: Sequence[Path], settings: Settings) -> "dict[str, FixEndpoint]":
    """The sessions of files by their venues, in the order of the settings. Raises: InvalidInput."""
    from htfi.adapters.fix.settings import read_endpoint

    found: dict[str, FixEndpoint] = {}
    names = list(settings.venue.by_name) or [settings.trading.venue]
    for file in files:
        endpoint = read_endpoint(file)
        name = endpoint.orders.venue or names[0]
        if not endpoint.session.initiator:
            raise InvalidInput(f"{file}: session.initiator is false: a run connects to its venue")
        if not endpoint.port:
            raise InvalidInput(f"{file}: port is missing: give the venue's")
        if endpoint.orders.send_prices and endpoint.session.reset_on_logon:
            raise InvalidInput(f"{file}: orders.send_prices goes without session.reset_on_logon")
        if not endpoint.orders.venue and len(names) > 1:
            raise InvalidInput(f"{file}: say in orders.venue which it is of {', '.join(names)}")
        if name not in names:
            raise InvalidInput(f"{file}: orders.venue is '{name}': the run trades at {', '.join(names)}")
        if name in found:
            raise InvalidInput(f"{file}: another file is of the venue {name} too")
        found[name] = endpoint
    missing = next((name for name in names if name not in found), "")
    if missing:
        raise InvalidInput(f"{missing} has no session: give its file with --venue")
    if len({one.orders.send_prices for one in found.values()}) > 1:
        raise InvalidInput("--venue: orders.send_prices must be the same of all venues: simulated, or live")
    return {name: found[name] for name in names}


def _check_listed(settings: Settings) -> None:
    """Raises: InvalidInput where several venues do not fit the settings."""
    listed = settings.venue.by_name
    if listed and settings.trading.algorithm == "direct":
        raise InvalidInput(
            "venue.by_name lists several venues: choose an algorithm that routes, such as trading.algorithm = 'vwap'"
        )
    feeds = [one.feed or name for name, one in listed.items()]
    twice = next((one for one in feeds if feeds.count(one) > 1), "")
    if twice:
        raise InvalidInput(f"venue.by_name: two venues have the feed's name '{twice}'")


def _by_feed_name(links: Mapping[str, V], settings: Settings) -> dict[str, V]:
    """Links by the name that the feed gives their venues."""
    listed = settings.venue.by_name
    return {(listed[name].feed if name in listed else "") or name: link for name, link in links.items()}


def served_venue(settings: Settings, name: str = "") -> tuple[str, SimulatedVenueConfig]:
    """Name and settings of a simulated venue, of several where one is named; those share what a bar's volume lets fill.

    Raises: InvalidInput where no such venue is listed.
    """
    listed = settings.venue.by_name
    if not name or (not listed and name == settings.trading.venue):
        return settings.trading.venue, settings.venue
    if name not in listed:
        known = ", ".join(listed) or settings.trading.venue
        raise InvalidInput(f"orders.venue is '{name}', the settings have {known}: give them with --venues")
    return name, replace(listed[name], max_bar_share=listed[name].max_bar_share / len(listed))


def _simulated(settings: Settings) -> OpenVenue:
    """The simulated market, and what the router is told of its venues. Raises: InvalidInput."""
    _check_listed(settings)
    names = list(settings.venue.by_name) or [""]
    venues = [SimulatedVenue(*served_venue(settings, name)) for name in names]
    if len(venues) == 1 and not settings.venue.by_name:
        return OpenVenue(venues[0], _listed_terms(settings))
    several = SimulatedVenues(_by_feed_name({one.name: one for one in venues}, settings))
    return OpenVenue(several, _listed_terms(settings))


def _listed_terms(settings: Settings) -> tuple[VenueTerms, ...]:
    listed = settings.venue.by_name
    if not listed:
        return (_terms(settings.trading.venue, settings.venue),)
    return tuple(_terms(name, one) for name, one in listed.items())


def _terms(name: str, config: SimulatedVenueConfig) -> VenueTerms:
    is_protected = config.is_protected if isinstance(config, ListedVenueConfig) else True
    return VenueTerms(
        name, config.take_fee_bps, config.make_fee_bps, config.request_ns + config.report_ns, is_protected
    )


def run_prefix(folder: Path) -> str:
    """What the ClOrdIDs of a run's orders begin with; empty of a run on paper. Raises: IntegrityError."""
    path = folder / FIX_FILE
    return _noted(path)[0].prefix if path.exists() else ""


def _noted(path: Path) -> list[RunOnSession]:
    try:
        noted = _NOTED.decode(path.read_bytes())
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{path} was altered: {error}: restore it from a copy") from error
    return [noted] if isinstance(noted, RunOnSession) else noted


def _run_on(folder: Path, sessions: "Sequence[SessionThread]") -> list[RunOnSession]:
    """What the run has noted of its sessions, or notes now.

    Raises: DependencyUnavailable, IntegrityError, InvalidInput.
    """
    path = folder / FIX_FILE
    names = [f"{one.endpoint.session.sender}-{one.endpoint.session.target}" for one in sessions]
    journals = [str(Path(one.endpoint.journal).absolute()) for one in sessions]
    if path.exists():
        noted = _noted(path)
        if [(one.session, one.journal) for one in noted] != list(zip(names, journals, strict=True)):
            raise InvalidInput(f"{folder} trades by {_words(noted)}: give their files, or use a new folder")
        return noted
    prefix = f"{token_hex(_PREFIX_BYTES)}-"
    noted = [
        RunOnSession(name, journal, prefix, *session.place())
        for name, journal, session in zip(names, journals, sessions, strict=True)
    ]
    try:
        write_atomically(path, msgspec.json.encode(noted if len(noted) > 1 else noted[0]))
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    return noted


def _words(noted: Iterable[RunOnSession]) -> str:
    return ", and ".join(f"the FIX session {one.session} with the journal {one.journal}" for one in noted)
