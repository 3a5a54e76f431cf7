"""What the context cache says to Redis: keys, two scripts that run in one piece, and answers as values.

All keys begin with the prefix in braces, so that a cluster keeps them in one place.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

from htfi.narrative.caching.tier import Entry

MAX_TOLD = 65_536  # names in the stream of what was forgotten
TOMB_MS = 30 * 86_400_000  # longer than any value lives, so that a late writer brings nothing back
NS_PER_MS = 1_000_000
_NAME_BYTES = 16

# KEYS: value, then a tomb and a list for each name. ARGV: value, its life in ms.
_PUT = """
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
_FORGET = """
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


class Commands:
    """Under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = b"{" + prefix.encode() + b"}1"
        self.stream = self._prefix + b"s"

    def get_many(
        self, connection: Any, keys: Sequence[bytes], about: Sequence[Sequence[str]]
    ) -> list[bytes | None]:
        """One round trip. Raises what the client raises; ValueError for an answer that is none."""
        names = list(dict.fromkeys(name for each in about for name in each))
        told = _values(
            connection.mget([*map(self._value, keys), *map(self._tomb, names)]), len(keys) + len(names)
        )
        forgotten = {name for name, tomb in zip(names, told[len(keys) :], strict=True) if tomb is not None}
        return [
            None if forgotten and not forgotten.isdisjoint(each) else value
            for value, each in zip(told, about, strict=False)
        ]

    def put_many(self, connection: Any, entries: Sequence[Entry]) -> None:
        pipe = connection.pipeline(transaction=False)
        for entry in entries:
            keys = [self._value(entry.key), *map(self._tomb, entry.about), *map(self._list, entry.about)]
            life_ms = min(max(entry.ttl_ns // NS_PER_MS, 1), TOMB_MS)
            pipe.eval(_PUT, len(keys), *keys, entry.value, life_ms)
        pipe.execute()

    def forget(self, connection: Any, about: Sequence[str]) -> None:
        keys = [self.stream, *map(self._tomb, about), *map(self._list, about)]
        connection.eval(_FORGET, len(keys), *keys, TOMB_MS, MAX_TOLD, *map(_encoded, about))

    def last_told(self, connection: Any) -> bytes:
        """Where the stream ends."""
        last = connection.xrevrange(self.stream, count=1)
        return last[0][0] if last else b"0-0"

    def told_since(self, connection: Any, last: bytes) -> tuple[list[str] | None, bytes]:
        """The names since a place in the stream, and its end; None where some are not known any more."""
        answer = connection.xread({self.stream: last}, count=MAX_TOLD)
        rows: list[tuple[bytes, dict[bytes, bytes]]] = _rows(answer)
        if not rows:
            return [], last
        if len(rows) >= MAX_TOLD // 2:  # it may have been cut before these
            return None, rows[-1][0]
        return [_decoded(fields.get(b"name", b"")) for _, fields in rows], rows[-1][0]

    def _value(self, key: bytes) -> bytes:
        return self._prefix + b"v" + key

    def _tomb(self, name: str) -> bytes:
        return self._prefix + b"t" + _digest(name)

    def _list(self, name: str) -> bytes:
        return self._prefix + b"l" + _digest(name)


def _rows(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Of the one stream asked for: a list of pairs in the protocol's second version, a table in its third."""
    if not answer:
        return []
    found: Any = (
        next(iter(cast("dict[bytes, Any]", answer).values())) if isinstance(answer, dict) else answer[0][1]
    )
    return found[0] if found and isinstance(found[0], list) else found


def _values(answer: Any, num: int) -> list[bytes | None]:
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
