"""FIX sessions over sockets, for whoever opens one: the endpoint of a TOML file, its journal, what runs it."""

from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint, read_endpoint

__all__ = ["FixEndpoint", "Initiator", "MessageJournal", "SessionRunner", "read_endpoint"]
