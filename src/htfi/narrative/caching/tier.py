"""A tier of the context cache (memory, a file of this machine, a server of several), the keys of its values, and the
seal of values outside.

Keys are made from content: equal keys mean equal values, on any machine.

Layout of a sealed value: version 1 byte, seal 16 bytes, lifetime in ns 8 bytes little-endian, value. The seal is
BLAKE2b over the cache's key, lifetime and value, keyed where a secret is given: without the secret no one can forge a
value.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import log2
from typing import NamedTuple, Protocol


class CacheEntry(NamedTuple):
    """A value on its way into a tier, to be cached for at most `ttl_ns`."""

    key: bytes
    value: bytes
    ttl_ns: int
    about: tuple[str, ...]


class CacheTier(Protocol):
    """Bounded in bytes and in time to answer. It raises nothing: a failing tier holds nothing, and reports
    that once.
    """

    @property
    def name(self) -> str: ...

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        """The value of each key; None where there is none, or where something that it is about was forgotten."""
        ...

    def put_many(self, entries: Sequence[CacheEntry]) -> None:
        """Cache these, except what is about something that was forgotten."""
        ...

    def forget(self, about: Sequence[str]) -> bool:
        """Remove everything that is about one of these, and refuse what comes later. False where it must be asked
        again.
        """
        ...

    def forgotten(self) -> Sequence[str] | None:
        """What other processes had forgotten since the last call; None: more than is known, so trust nothing cached
        before.

        Asked before every look-up, so it must cost next to nothing.
        """
        ...

    def clear(self) -> None:
        """Trust nothing that was cached here without knowing what others had forgotten."""
        ...

    def drain(self, timeout_s: float) -> bool:
        """Wait until what was put is written; false where that took longer."""
        ...

    def close(self) -> None: ...


VERSION = b"\x01"
_SEAL = 16
_HEAD = 1 + _SEAL + 8
MAX_SECRET_BYTES = 64  # BLAKE2b's own limit


def seal(key: bytes, value: bytes, ttl_ns: int, secret: bytes = b"") -> bytes:
    life = ttl_ns.to_bytes(8, "little")
    return b"".join((VERSION, _tag(key, life, value, secret), life, value))


def unseal(key: bytes, sealed: bytes, secret: bytes = b"") -> tuple[bytes, int] | None:
    """The value with its lifetime in ns; None where the seal does not hold for this key."""
    if len(sealed) < _HEAD or sealed[:1] != VERSION:
        return None
    life, value = sealed[1 + _SEAL : _HEAD], sealed[_HEAD:]
    if sealed[1 : 1 + _SEAL] != _tag(key, life, value, secret):
        return None
    return value, int.from_bytes(life, "little")


def _tag(key: bytes, life: bytes, value: bytes, secret: bytes) -> bytes:
    whole = blake2b(len(key).to_bytes(4, "little"), digest_size=_SEAL, key=secret)
    for part in (key, life, value):
        whole.update(part)
    return whole.digest()


KEY_BYTES = 20
_FORMAT_NAME = b"htfi-context-1"  # the format of keys and values; another number starts an empty cache


def cache_key(kind: str, *parts: bytes) -> bytes:
    """The key of a value of this kind, shaped by these parts and nothing else."""
    whole = b"".join(len(part).to_bytes(4, "little") + part for part in (kind.encode(), *parts))
    return blake2b(whole, digest_size=KEY_BYTES, person=_FORMAT_NAME).digest()


def identity(parts: Iterable[str | bytes]) -> bytes:
    """One short name for everything that shapes a value: versions, digests, settings."""
    return cache_key("identity", *(part.encode() if isinstance(part, str) else part for part in parts))


def text_name(digest: str) -> str:
    """A cleaned text's name among what a cached value is about."""
    return f"text:{digest}"


def text_digest(text: str) -> str:
    """The content of a text, as a name (hex)."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def lifetime_ns(half_life_ns: int, min_weight: float) -> int:
    """How long information is of use: until its weight, which halves every half-life, is `min_weight`."""
    return max(int(-log2(min_weight) * half_life_ns), 1)


class EventClock:
    """The latest event time that a reader asked about. It never goes back."""

    def __init__(self) -> None:
        self._now_ns = 0

    def __call__(self) -> int:
        return self._now_ns

    def advance_to(self, now_ns: int) -> None:
        if now_ns > self._now_ns:
            self._now_ns = now_ns
