"""Values as they lie outside of this process: sealed, so that what is damaged or foreign is no value. `Tiers` seals.

Layout: version 1 byte, seal 16 bytes, lifetime in ns 8 bytes little-endian, value. The seal is BLAKE2b over the cache's
key, lifetime and value, keyed where a secret is given: then nobody without it can put words into a reader's mouth.
"""

from hashlib import blake2b

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
