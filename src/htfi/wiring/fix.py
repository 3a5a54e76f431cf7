"""Builds FIX sessions of settings and a folder for the journal, for who measures them."""

from pathlib import Path

from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import Application
from htfi.adapters.fix.runner import SessionRunner as SessionRunner
from htfi.adapters.fix.settings import FixEndpoint
from htfi.execution.fix.config import FixSession


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
