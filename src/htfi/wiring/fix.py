"""Builds FIX sessions of settings and a folder for the journal, for who measures them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from htfi.adapters.fix.connections import Acceptor as Acceptor
from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.live_venues import LiveVenues as LiveVenues
from htfi.adapters.fix.runner import Application
from htfi.adapters.fix.runner import SessionRunner as SessionRunner
from htfi.adapters.fix.session_thread import JournalPlace, SessionThread
from htfi.adapters.fix.settings import FixEndpoint as FixEndpoint
from htfi.adapters.fix.venue_links import LiveVenueLink
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.venue_orders import VenueOrders
from htfi.execution.turns import RecordedEvents, RunTurn


def open_fix_session(
    settings: FixSession, journal: Path, application: Application, *, sync: bool = True
) -> SessionRunner:
    """A session without a connection yet, which goes on where its journal ends.

    Raises: DependencyUnavailable where another process owns the journal or the disk refuses; IntegrityError.
    """
    return SessionRunner(settings, MessageJournal(journal, sync=sync), application)


def fix_initiator(
    settings: FixSession, runner: SessionRunner, host: str, port: int, reconnect_s: float = 1.0
) -> Initiator:
    """Connects a session without TLS."""
    endpoint = FixEndpoint(settings, host, port, reconnect_s=reconnect_s, max_reconnect_s=30 * reconnect_s)
    return Initiator(endpoint, runner)


@contextmanager
def open_live_venue(
    name: str, endpoint: FixEndpoint, prefix: str, recorded: RecordedEvents
) -> Generator[LiveVenues]:
    """A live venue of a new run, whose ClOrdIDs begin with a prefix.

    Raises: DependencyUnavailable, IntegrityError, InvalidInput.
    """
    session, turn = SessionThread(endpoint), RunTurn(1)
    try:
        sent = session.start(JournalPlace(0, 1, 1))
        orders = VenueOrders(session.dictionary, prefix)
        yield LiveVenues({name: LiveVenueLink(name, session, orders, sent, recorded, turn)}, recorded, turn)
    finally:
        session.close()
