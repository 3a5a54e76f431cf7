"""The context cache's tier that several machines share: a Redis server. Wiring opens one.

A server that is down, slow or full is a miss: a look-up waits for it a bounded time, then it is left alone until it has
answered again. Values live in it for durations, so no clock need agree with another.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from htfi.adapters.redis.commands import Commands
from htfi.adapters.redis.line import Line
from htfi.domain.errors import InvalidInput
from htfi.narrative.caching.tier import Entry

_REDIS: Any = redis
_LISTEN_S = 0.05  # between looks at what others had forgotten
_WRITE_S = 2.0  # that a writing call may take
_WAITING_BYTES = 64 * 2**20
_BATCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class RedisPlace:
    """Where a server is: a URL with user and password where it wants them, how long a look-up may take.

    `authority` is the file of the certificate authority that a server behind TLS is checked against.
    """

    url: str
    timeout_ms: float = 20.0
    prefix: str = "htfi"
    authority: str = ""


class RedisTier:
    """`tell` hears of trouble once a time that it begins. `wait_s` is what the first answer may take."""

    name = "redis"

    def __init__(self, place: RedisPlace, tell: Callable[[str], None], wait_s: float = 1.0) -> None:
        """Raises: InvalidInput, for a URL that is none."""
        self._place = place
        self._tell = tell
        self._commands = Commands(place.prefix)
        self._told: deque[str] = deque()
        self._is_cut = False  # more was forgotten than is known
        self._last: bytes | None = None  # place in the stream
        self._troubled = threading.Lock()
        self._is_troubled = False
        self._shown = _shown(place.url)
        self._connection(1.0).close()
        self._asking = Line(
            "context-cache-ask",
            lambda: self._connection(2.0 * place.timeout_ms / 1e3),
            self._trouble,
            max_waiting_bytes=0,
            idle=_ping,
        )
        self._writing = Line(
            "context-cache-write",
            self._connected_writer,
            self._trouble,
            max_waiting_bytes=_WAITING_BYTES,
            idle=self._listen,
            idle_s=_LISTEN_S,
        )
        self._writing.wait_well(wait_s)
        self._asking.wait_well(wait_s)

    @property
    def num_lost(self) -> int:
        """Values that did not reach the server."""
        return self._writing.num_lost

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        well, found = self._asking.ask(
            lambda connection: self._commands.get_many(connection, keys, about), self._place.timeout_ms / 1e3
        )
        if not well:
            return [None] * len(keys)
        self._is_troubled = False
        return found

    def put_many(self, entries: Sequence[Entry]) -> None:
        batch: list[Entry] = []
        num_bytes = 0
        for entry in entries:
            batch.append(entry)
            num_bytes += len(entry.value)
            if num_bytes >= _BATCH_BYTES:
                self._send(batch, num_bytes)
                batch, num_bytes = [], 0
        if batch:
            self._send(batch, num_bytes)

    def forget(self, about: Sequence[str]) -> bool:
        """Waits for the answer a bounded time, so that nobody else is served what is forgotten here."""
        names = list(about)
        well, _ = self._asking.ask(
            lambda connection: self._commands.forget(connection, names), self._place.timeout_ms / 1e3
        )
        return well

    def forgotten(self) -> Sequence[str] | None:
        if not self._told and not self._is_cut:
            return ()
        if self._is_cut:
            self._is_cut = False
            self._told.clear()
            return None
        return [self._told.popleft() for _ in range(len(self._told))]

    def clear(self) -> None:
        """Nothing to do: what was forgotten stands in the server itself, whoever had it forgotten."""

    def drain(self, timeout_s: float) -> bool:
        """Wait until what was put is written."""
        return self._writing.drain(timeout_s)

    def close(self) -> None:
        self._writing.drain(_WRITE_S)
        self._asking.close()
        self._writing.close()

    def _send(self, batch: list[Entry], num_bytes: int) -> None:
        self._writing.send(lambda connection: self._commands.put_many(connection, batch), num_bytes)

    def _connected_writer(self) -> Any:
        connection = self._connection(_WRITE_S)
        if self._last is None:
            self._last = self._commands.last_told(connection)
        self._listen(connection)
        return connection

    def _listen(self, connection: Any) -> None:
        names, self._last = self._commands.told_since(connection, self._last or b"0-0")
        if names is None:
            self._is_cut = True
        else:
            self._told.extend(names)

    def _connection(self, timeout_s: float) -> Any:
        more: dict[str, Any] = {}
        if self._place.authority:
            more["ssl_ca_certs"] = self._place.authority
        try:
            return _REDIS.Redis.from_url(
                self._place.url,
                socket_timeout=timeout_s,
                socket_connect_timeout=max(timeout_s, 0.5),
                retry=Retry(NoBackoff(), 0),
                single_connection_client=False,
                decode_responses=False,
                max_connections=1,
                **more,
            )
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"cache.redis {self._shown}: {error}") from error

    def _trouble(self, error: Exception) -> None:
        with self._troubled:
            if self._is_troubled:
                return
            self._is_troubled = True
        told = str(error).strip().splitlines() or [type(error).__name__]
        self._tell(
            f"context cache at {self._shown} cannot be used ({told[0]}): goes on without until it answers"
        )


def _ping(connection: Any) -> None:
    connection.ping()


def _shown(url: str) -> str:
    """Without user and password."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if found else "redis"
