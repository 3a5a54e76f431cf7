"""`kafka://HOST:PORT/TOPIC?…`: what it names, and the credentials beside it, which no address holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from htfi.domain.client_tls import client_tls
from htfi.domain.errors import InvalidInput

SCHEMES = ("kafka", "kafka+tls")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PORT = 9092
_IN_TOPIC_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
_MAX_TOPIC_CHARS = 249  # Kafka's own


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A topic of a cluster, and the words after '?'."""

    servers: tuple[str, ...]  # HOST:PORT of brokers to ask first
    is_local: bool
    uses_tls: bool
    topic: str
    words: Mapping[str, str]

    def __str__(self) -> str:
        return f"kafka{'+tls' if self.uses_tls else ''}://{','.join(self.servers)}/{self.topic}"


def read_address(text: str, keys: tuple[str, ...]) -> KafkaAddress:
    """`keys` are the words that may stand after '?'. Raises: InvalidInput, without a password that it may hold."""
    try:
        parts = urlsplit(text)
        if "@" in parts.netloc:
            raise InvalidInput(
                "an address of Kafka holds no user or password: set KAFKA_USER and KAFKA_PASSWORD"
            )
        hosts = [_host_and_port(one) for one in parts.netloc.split(",")]
    except ValueError as error:
        raise InvalidInput("an address of Kafka cannot be read: write kafka://HOST:PORT/TOPIC") from error
    topic = parts.path.strip("/")
    if (
        parts.scheme not in SCHEMES
        or not all(host for host, _ in hosts)
        or set(topic) - set(_IN_TOPIC_NAMES)
        or topic in ("", ".", "..")
        or len(topic) > _MAX_TOPIC_CHARS
    ):
        raise InvalidInput(
            f"'{text}' names no topic: write kafka://HOST:PORT/TOPIC, TOPIC of letters, digits, '.', '-' and '_'"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = next((key for key in words if key not in keys), None)
    if unknown is not None:
        raise InvalidInput(f"'{text}': {unknown} is not known: write one of {', '.join(keys)}")
    servers = tuple(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)
    is_local = all(host in ("localhost", "::1") or host.startswith("127.") for host, _ in hosts)
    return KafkaAddress(servers, is_local, parts.scheme == "kafka+tls", topic, words)


def connect_options(address: KafkaAddress, environment: Mapping[str, str]) -> dict[str, Any]:
    """How to connect, as the library takes it. Raises: InvalidInput."""
    named = {name: environment.get(f"KAFKA_{name}", "") for name in _VARIABLES}
    for name in ("CA", "CERT", "KEY"):
        if named[name] and not Path(named[name]).is_file():
            raise InvalidInput(f"KAFKA_{name} names no file: {named[name]}")
    has_password = bool(named["USER"] or named["PASSWORD"])
    if has_password and not (address.uses_tls or address.is_local):
        raise InvalidInput(
            f"{address}: credentials go over TLS only: write kafka+tls://, or reach the broker on this machine"
        )
    layer = "SSL" if address.uses_tls else "PLAINTEXT"
    options: dict[str, Any] = {
        "bootstrap_servers": list(address.servers),
        "security_protocol": f"SASL_{layer}" if has_password else layer,
    }
    if has_password:
        mechanism = named["MECHANISM"] or MECHANISMS[0]
        if mechanism not in MECHANISMS:
            raise InvalidInput(f"KAFKA_MECHANISM is '{mechanism}': write one of {', '.join(MECHANISMS)}")
        options["sasl_mechanism"] = mechanism
        options["sasl_plain_username"] = named["USER"]
        options["sasl_plain_password"] = named["PASSWORD"]
    if address.uses_tls:
        options["ssl_context"] = client_tls(named, "KAFKA_")
    return options


_VARIABLES = ("USER", "PASSWORD", "MECHANISM", "CA", "CERT", "KEY")


def _host_and_port(text: str) -> tuple[str, int]:
    """Raises: ValueError."""
    parts = urlsplit(f"//{text}")
    return parts.hostname or "", parts.port or _PORT
