"""Buses, `nats://HOST:PORT/STREAM` and `kafka://HOST:PORT/TOPIC`: sources whose rows lie in the inbox, and where
decisions are published.
"""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from htfi.adapters.feeds.bus import BusReceiver
from htfi.adapters.feeds.live import Inbox, LiveReader
from htfi.domain.errors import InvalidInput, require_extra
from htfi.pipeline.intake.messages import MessageSource
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.publishing import DecisionBus

NATS_SCHEMES, KAFKA_SCHEMES = ("nats", "nats+tls"), ("kafka", "kafka+tls")
SCHEMES = (*NATS_SCHEMES, *KAFKA_SCHEMES)


def is_bus(text: str) -> bool:
    """Whether a source is a stream or a topic of a bus."""
    return _scheme(text) in SCHEMES


def stream_name(url: str) -> str:
    """Of the stream or topic, which is what its source is called: a record of its rows then equals a file's."""
    return urlsplit(url).path.strip("/") or url


def bus_source(spec: SourceSpec) -> SourceSpec:
    """The source with what its address states. Raises: InvalidInput, MissingExtra."""
    words, source = _message_source(spec, "check")
    source.close()
    stamp = words.get("stamp", spec.stamp)
    if spec.stamp not in ("", stamp):
        raise InvalidInput(f"source '{spec.name}': stamp is {spec.stamp} and {stamp}: state it once")
    return replace(spec, stamp=stamp)


def open_bus_source(spec: SourceSpec, inbox: Inbox, notify: Callable[[str], None]) -> LiveReader:
    """The reader of such a source. Raises: InvalidInput, MissingExtra."""
    _, source = _message_source(spec, _consumer_of(inbox.path))
    return LiveReader(spec, inbox, BusReceiver(inbox, source, spec.name, notify))


def open_decision_bus(url: str) -> DecisionBus:
    """The bus of an address, not connected yet. Raises: InvalidInput, MissingExtra."""
    if _scheme(url) in NATS_SCHEMES:
        require_extra("htfi publish", "bus", "nats")
        from htfi.adapters.nats import address as nats
        from htfi.adapters.nats.connection import NatsConnection
        from htfi.adapters.nats.decision_bus import KEYS, NatsDecisionBus

        stream = nats.read_address(url, KEYS)
        return NatsDecisionBus(NatsConnection(stream, nats.connect_options(stream, os.environ)))
    if _scheme(url) not in KAFKA_SCHEMES:
        raise InvalidInput(f"'{url}' is no bus: write nats://HOST:PORT/STREAM or kafka://HOST:PORT/TOPIC")
    require_extra("htfi publish", "bus", "aiokafka")
    from htfi.adapters.kafka import address as kafka
    from htfi.adapters.kafka import decision_bus
    from htfi.adapters.kafka.connection import KafkaConnection

    topic = kafka.read_address(url, decision_bus.KEYS)
    options = kafka.connect_options(topic, os.environ)
    return decision_bus.KafkaDecisionBus(KafkaConnection(topic, options))


def _scheme(text: str) -> str:
    return text.partition("://")[0]


def _message_source(spec: SourceSpec, consumer: str) -> tuple[Mapping[str, str], MessageSource]:
    """What its address states after '?', and the source."""
    if _scheme(spec.url) in KAFKA_SCHEMES:
        require_extra(f"source '{spec.name}' (kafka://)", "bus", "aiokafka")
        from htfi.adapters.kafka import address as kafka
        from htfi.adapters.kafka import message_source
        from htfi.adapters.kafka.connection import KafkaConnection

        topic = kafka.read_address(spec.url, message_source.KEYS)
        options = kafka.connect_options(topic, os.environ)
        return topic.words, message_source.KafkaMessageSource(KafkaConnection(topic, options))
    require_extra(f"source '{spec.name}' (nats://)", "bus", "nats")
    from htfi.adapters.nats import address as nats
    from htfi.adapters.nats.connection import NatsConnection
    from htfi.adapters.nats.message_source import KEYS, NatsMessageSource

    stream = nats.read_address(spec.url, KEYS)
    connection = NatsConnection(stream, nats.connect_options(stream, os.environ))
    return stream.words, NatsMessageSource(connection, consumer)


def _consumer_of(inbox: Path) -> str:
    """A name of the inbox's own, the same after a restart: two runs of one stream each get all of it."""
    return f"htfi-{sha256(f'{socket.gethostname()}:{inbox.resolve()}'.encode()).hexdigest()[:20]}"
