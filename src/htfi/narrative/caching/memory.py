"""The first tier of the context cache: values in this process, least recently used first out."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from htfi.narrative.caching.tier import CacheEntry

MAX_VALUE_BYTES = 2**17  # larger values, keys and values of a prompt, lie in the engine's own memory
_ENTRY_BYTES = 600  # of an entry besides key and value: slots of the tables, its tuple
MAX_FORGOTTEN = 65_536


class MemoryTier:
    """Bounded in bytes, also per value. `now_ns` is event time, so that a replay expires what the run expired."""

    name = "memory"

    def __init__(self, max_bytes: int, now_ns: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self._now_ns = now_ns
        self._entries: OrderedDict[bytes, tuple[bytes, int, tuple[str, ...]]] = (
            OrderedDict()
        )  # value, end, about
        self._keys_about: dict[str, set[bytes]] = {}
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        self.num_bytes = 0
        self.num_dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> bytes | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if found[1] <= self._now_ns():
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return found[0]

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        """See `CacheTier`. What is about something forgotten was removed then, and is not accepted since."""
        del about
        return [self.get(key) for key in keys]

    def put_many(self, entries: Sequence[CacheEntry]) -> None:
        for key, value, ttl_ns, about in entries:
            self._remove(key)
            size = _entry_bytes(key, value, about)
            if size > min(self._max_bytes, MAX_VALUE_BYTES) or ttl_ns <= 0 or self.is_forgotten(about):
                continue
            self._entries[key] = (value, self._now_ns() + ttl_ns, about)
            self.num_bytes += size
            for name in about:
                self._keys_about.setdefault(name, set()).add(key)
        while self.num_bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))
            self.num_dropped += 1

    def is_forgotten(self, about: Iterable[str]) -> bool:
        return bool(self._forgotten) and any(name in self._forgotten for name in about)

    def forget(self, about: Sequence[str]) -> bool:
        for name in about:
            self._forgotten[name] = None
            self._forgotten.move_to_end(name)
            for key in self._keys_about.pop(name, ()):
                self._remove(key)
        while len(self._forgotten) > MAX_FORGOTTEN:
            self._forgotten.popitem(last=False)
        return True

    def forgotten(self) -> Sequence[str] | None:
        return ()

    def drain(self, timeout_s: float) -> bool:
        del timeout_s
        return True

    def clear(self) -> None:
        """Remove every value; what was forgotten stays forgotten."""
        self._entries.clear()
        self._keys_about.clear()
        self.num_bytes = 0

    def close(self) -> None:
        self.clear()

    def _remove(self, key: bytes) -> None:
        found = self._entries.pop(key, None)
        if found is None:
            return
        value, _, about = found
        self.num_bytes -= _entry_bytes(key, value, about)
        for name in about:
            keys = self._keys_about.get(name)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._keys_about[name]


def _entry_bytes(key: bytes, value: bytes, about: tuple[str, ...]) -> int:
    return len(key) + len(value) + _ENTRY_BYTES + sum(2 * len(name) + 200 for name in about)
