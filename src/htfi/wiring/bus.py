"""Buses as sources of a run: `nats://HOST:PORT/STREAM?subject=…`. Their rows lie in the inbox."""

import os
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from htfi.adapters.feeds.bus import BusReceiver
from htfi.adapters.feeds.live import Inbox, LiveReader
from htfi.domain.errors import require_extra
from htfi.pipeline.intake.messages import MessageSource
from htfi.pipeline.intake.spec import SourceSpec

SCHEMES = ("nats", "nats+tls")


def is_bus(text: str) -> bool:
    """Whether a source is a stream of a bus."""
    return text.partition("://")[0] in SCHEMES


def check_bus_source(spec: SourceSpec) -> None:
    """Raises: InvalidInput, MissingExtra."""
    _message_source(spec, "check").close()


def open_bus_source(spec: SourceSpec, inbox: Inbox, notify: Callable[[str], None]) -> LiveReader:
    """The reader of such a source. Raises: InvalidInput, MissingExtra."""
    source = _message_source(spec, _consumer_of(inbox.path))
    return LiveReader(spec, inbox, BusReceiver(inbox, source, spec.name, notify))


def _message_source(spec: SourceSpec, consumer: str) -> MessageSource:
    require_extra(f"source '{spec.name}' (nats://)", "bus", "nats")
    from htfi.adapters.nats.address import connect_options, read_address
    from htfi.adapters.nats.connection import NatsConnection
    from htfi.adapters.nats.message_source import KEYS, NatsMessageSource

    address = read_address(spec.url, KEYS)
    return NatsMessageSource(NatsConnection(address, connect_options(address, os.environ)), consumer)


def _consumer_of(inbox: Path) -> str:
    """A name of the inbox's own, the same after a restart: two runs of one stream each get all of it."""
    return f"htfi-{sha256(f'{socket.gethostname()}:{inbox.resolve()}'.encode()).hexdigest()[:20]}"
