"""Keys of cached values, by content: equal keys mean equal values, on any machine; and the clock of the cache."""

from collections.abc import Iterable
from hashlib import blake2b
from math import log2

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
