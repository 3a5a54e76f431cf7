"""The tier of the context cache that several machines share: a Redis server.

A server that is down, slow or full is a miss: a look-up waits for it a bounded time, then it is left alone until it
has answered again. Values live in it for durations, so no clock need agree with another. All keys begin with the
prefix in braces, so that a cluster keeps them in one place; two scripts run in one piece each.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from htfi.adapters.redis.connection_thread import ConnectionThread
from htfi.domain.errors import InvalidInput
from htfi.narrative.caching.tier import CacheEntry

MAX_FORGET_EVENTS = 65_536  # names in the stream of what was forgotten
TOMBSTONE_MS = 30 * 86_400_000  # longer than any value lives, so that a late writer brings nothing back
NS_PER_MS = 1_000_000
_NAME_BYTES = 16

# KEYS: value, then a tomb and a list for each name. ARGV: value, its life in ms.
_PUT_SCRIPT = """
local n = (#KEYS - 1) / 2
for i = 1, n do if redis.call('EXISTS', KEYS[1 + i]) == 1 then return 0 end end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for i = 1, n do
  local list = KEYS[1 + n + i]
  redis.call('SADD', list, KEYS[1])
  if redis.call('PTTL', list) < tonumber(ARGV[2]) then redis.call('PEXPIRE', list, ARGV[2]) end
end
return 1
"""

# KEYS: the stream, then a tomb and a list for each name. ARGV: life of a tomb in ms, bound of the stream, the names.
_FORGET_SCRIPT = """
local n = (#KEYS - 1) / 2
for i = 1, n do
  redis.call('SET', KEYS[1 + i], '', 'PX', ARGV[1])
  local list = KEYS[1 + n + i]
  for _, key in ipairs(redis.call('SMEMBERS', list)) do redis.call('UNLINK', key) end
  redis.call('DEL', list)
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'name', ARGV[2 + i])
end
return n
"""


class RedisCommands:
    """Under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = b"{" + prefix.encode() + b"}1"
        self.stream = self._prefix + b"s"

    def get_many(
        self, connection: Any, keys: Sequence[bytes], about: Sequence[Sequence[str]]
    ) -> list[bytes | None]:
        """One round trip. Raises what the client raises; ValueError for an answer that is none."""
        names = list(dict.fromkeys(name for each in about for name in each))
        answers = _checked_values(
            connection.mget([*map(self._value_key, keys), *map(self._tombstone_key, names)]),
            len(keys) + len(names),
        )
        forgotten = {name for name, tomb in zip(names, answers[len(keys) :], strict=True) if tomb is not None}
        return [
            None if forgotten and not forgotten.isdisjoint(each) else value
            for value, each in zip(answers, about, strict=False)
        ]

    def put_many(self, connection: Any, entries: Sequence[CacheEntry]) -> None:
        pipe = connection.pipeline(transaction=False)
        for entry in entries:
            keys = [
                self._value_key(entry.key),
                *map(self._tombstone_key, entry.about),
                *map(self._names_key, entry.about),
            ]
            life_ms = min(max(entry.ttl_ns // NS_PER_MS, 1), TOMBSTONE_MS)
            pipe.eval(_PUT_SCRIPT, len(keys), *keys, entry.value, life_ms)
        pipe.execute()

    def forget(self, connection: Any, about: Sequence[str]) -> None:
        keys = [self.stream, *map(self._tombstone_key, about), *map(self._names_key, about)]
        connection.eval(
            _FORGET_SCRIPT, len(keys), *keys, TOMBSTONE_MS, MAX_FORGET_EVENTS, *map(_encoded, about)
        )

    def last_forget_id(self, connection: Any) -> bytes:
        """Where the stream ends."""
        last = connection.xrevrange(self.stream, count=1)
        return last[0][0] if last else b"0-0"

    def forgotten_since(self, connection: Any, last: bytes) -> tuple[list[str] | None, bytes]:
        """The names since a place in the stream, and its end; None where some are not known any more."""
        answer = connection.xread({self.stream: last}, count=MAX_FORGET_EVENTS)
        rows: list[tuple[bytes, dict[bytes, bytes]]] = _stream_rows(answer)
        if not rows:
            return [], last
        if len(rows) >= MAX_FORGET_EVENTS // 2:  # it may have been cut before these
            return None, rows[-1][0]
        return [_decoded(fields.get(b"name", b"")) for _, fields in rows], rows[-1][0]

    def _value_key(self, key: bytes) -> bytes:
        return self._prefix + b"v" + key

    def _tombstone_key(self, name: str) -> bytes:
        return self._prefix + b"t" + _digest(name)

    def _names_key(self, name: str) -> bytes:
        return self._prefix + b"l" + _digest(name)


def _stream_rows(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Of the one stream asked for: a list of pairs in the protocol's second version, a table in its third."""
    if not answer:
        return []
    found: Any = (
        next(iter(cast("dict[bytes, Any]", answer).values())) if isinstance(answer, dict) else answer[0][1]
    )
    return found[0] if found and isinstance(found[0], list) else found


def _checked_values(answer: Any, num: int) -> list[bytes | None]:
    found = cast("list[Any]", answer) if isinstance(answer, list) else []
    if len(found) != num or not all(value is None or isinstance(value, bytes) for value in found):
        raise ValueError("it does not answer as a Redis server does")
    return found


def _digest(name: str) -> bytes:
    return blake2b(_encoded(name), digest_size=_NAME_BYTES).digest()


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")


_REDIS: Any = redis
_POLL_S = 0.05  # between looks at what others had forgotten
_WRITE_S = 2.0  # that a writing call may take
_WAITING_BYTES = 64 * 2**20
_BATCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where a server is: a URL with user and password where it wants them, how long a look-up may take.

    `authority` is the file of the certificate authority that a server behind TLS is checked against.
    """

    url: str
    timeout_ms: float = 20.0
    prefix: str = "htfi"
    authority: str = ""


class RedisTier:
    """`notify` gets each trouble once. `wait_s` is what the first answer may take."""

    name = "redis"

    def __init__(self, place: RedisAddress, notify: Callable[[str], None], wait_s: float = 1.0) -> None:
        """Raises: InvalidInput, for a URL that is none."""
        self._place = place
        self._notify = notify
        self._commands = RedisCommands(place.prefix)
        self._forgotten_names: deque[str] = deque()
        self._is_cut = False  # more was forgotten than is known
        self._last: bytes | None = None  # place in the stream
        self._failures = threading.Lock()
        self._has_reported = False
        self._shown = _shown(place.url)
        self._connection(1.0).close()
        self._reads = ConnectionThread(
            "context-cache-ask",
            lambda: self._connection(2.0 * place.timeout_ms / 1e3),
            self._report_trouble,
            max_waiting_bytes=0,
            idle=_ping,
        )
        self._writes = ConnectionThread(
            "context-cache-write",
            self._connected_writer,
            self._report_trouble,
            max_waiting_bytes=_WAITING_BYTES,
            idle=self._poll_forgotten,
            idle_s=_POLL_S,
        )
        self._writes.wait_healthy(wait_s)
        self._reads.wait_healthy(wait_s)

    @property
    def num_lost(self) -> int:
        """Values that did not reach the server."""
        return self._writes.num_lost

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        well, found = self._reads.call(
            lambda connection: self._commands.get_many(connection, keys, about), self._place.timeout_ms / 1e3
        )
        if not well:
            return [None] * len(keys)
        self._has_reported = False
        return found

    def put_many(self, entries: Sequence[CacheEntry]) -> None:
        batch: list[CacheEntry] = []
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
        """Waits for the answer a bounded time, so that no other process is served what is forgotten here."""
        names = list(about)
        well, _ = self._reads.call(
            lambda connection: self._commands.forget(connection, names), self._place.timeout_ms / 1e3
        )
        return well

    def forgotten(self) -> Sequence[str] | None:
        if not self._forgotten_names and not self._is_cut:
            return ()
        if self._is_cut:
            self._is_cut = False
            self._forgotten_names.clear()
            return None
        return [self._forgotten_names.popleft() for _ in range(len(self._forgotten_names))]

    def clear(self) -> None:
        """Nothing to do: what was forgotten stands in the server itself, whichever process forgot it."""

    def drain(self, timeout_s: float) -> bool:
        """Wait until what was put is written."""
        return self._writes.drain(timeout_s)

    def close(self) -> None:
        self._writes.drain(_WRITE_S)
        self._reads.close()
        self._writes.close()

    def _send(self, batch: list[CacheEntry], num_bytes: int) -> None:
        self._writes.post(lambda connection: self._commands.put_many(connection, batch), num_bytes)

    def _connected_writer(self) -> Any:
        connection = self._connection(_WRITE_S)
        if self._last is None:
            self._last = self._commands.last_forget_id(connection)
        self._poll_forgotten(connection)
        return connection

    def _poll_forgotten(self, connection: Any) -> None:
        names, self._last = self._commands.forgotten_since(connection, self._last or b"0-0")
        if names is None:
            self._is_cut = True
        else:
            self._forgotten_names.extend(names)

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

    def _report_trouble(self, error: Exception) -> None:
        with self._failures:
            if self._has_reported:
                return
            self._has_reported = True
        answers = str(error).strip().splitlines() or [type(error).__name__]
        self._notify(
            f"context cache at {self._shown} cannot be used ({answers[0]}): continues without it until it answers"
        )


def _ping(connection: Any) -> None:
    connection.ping()


def _shown(url: str) -> str:
    """Without user and password."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if found else "redis"
