"""`nats://HOST:PORT/STREAM?…`: what it names, and the credentials beside it, which no address holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from htfi.domain.client_tls import client_tls
from htfi.domain.errors import InvalidInput

SCHEMES = ("nats", "nats+tls")
_PORT = 4222
_IN_STREAM_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """A stream of a server, and the words after '?'."""

    server: str  # nats://HOST:PORT
    uses_tls: bool
    stream: str
    words: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.server}/{self.stream}"


def read_address(text: str, keys: tuple[str, ...]) -> NatsAddress:
    """`keys` are the words that may stand after '?'. Raises: InvalidInput, without a password that it may hold."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError as error:
        raise InvalidInput(
            "an address of NATS cannot be read: write nats://HOST:PORT/STREAM?subject=…"
        ) from error
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"{parts.scheme}://{host}: an address holds no user or password: set NATS_USER and NATS_PASSWORD, "
            "NATS_TOKEN, NATS_CREDS or NATS_NKEY"
        )
    stream = parts.path.strip("/")
    if parts.scheme not in SCHEMES or not host or not stream or set(stream) - set(_IN_STREAM_NAMES):
        raise InvalidInput(
            f"'{text}' names no stream: write nats://HOST:PORT/STREAM, STREAM of letters, digits, - and _"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = next((key for key in words if key not in keys), None)
    if unknown is not None:
        raise InvalidInput(f"'{text}': {unknown} is not known: write one of {', '.join(keys)}")
    name = f"[{host}]" if ":" in host else host
    uses_tls = parts.scheme == "nats+tls"
    return NatsAddress(f"{'tls' if uses_tls else 'nats'}://{name}:{port}", uses_tls, stream, words)


def connect_options(address: NatsAddress, environment: Mapping[str, str]) -> dict[str, Any]:
    """How to connect, by the variables that the command `nats` reads too. Raises: InvalidInput."""
    options: dict[str, Any] = {}
    named = {name: environment.get(f"NATS_{name}", "") for name in _VARIABLES}
    for name in ("CREDS", "NKEY", "CA", "CERT", "KEY"):
        if named[name] and not Path(named[name]).is_file():
            raise InvalidInput(f"NATS_{name} names no file: {named[name]}")
    for name, option in (("USER", "user"), ("PASSWORD", "password"), ("TOKEN", "token")):
        if named[name]:
            options[option] = named[name]
    if named["CREDS"]:
        options["user_credentials"] = named["CREDS"]
    if named["NKEY"]:
        options["nkeys_seed"] = named["NKEY"]
    if address.uses_tls:
        options["tls"] = client_tls(named, "NATS_")
    elif options and not _is_local(address.server):
        raise InvalidInput(
            f"{address}: credentials go over TLS only: write nats+tls://, or reach the server on this machine"
        )
    return options


_VARIABLES = ("USER", "PASSWORD", "TOKEN", "CREDS", "NKEY", "CA", "CERT", "KEY")


def _is_local(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
