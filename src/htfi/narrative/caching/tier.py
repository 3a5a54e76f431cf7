"""A tier of the context cache (memory, a file of this machine, a server of several) and the seal of values outside.

Layout of a sealed value: version 1 byte, seal 16 bytes, lifetime in ns 8 bytes little-endian, value. The seal is
BLAKE2b over the cache's key, lifetime and value, keyed where a secret is given: without the secret nobody can forge a
value.
"""

from collections.abc import Sequence
from hashlib import blake2b
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
