"""The context cache: memory first, then the tiers outside this process. Readers, the encoder and the engine use it.

Memory drops what was used least recently. A value found outside is copied into memory; a value that is put is in
memory at once and goes outside with `flush`, after the release. What is forgotten is forgotten here at once, and by
every tier as soon as it answers.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from htfi.narrative.caching.tier import CacheEntry, CacheTier, seal, unseal

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


_MAX_FORGET_QUEUE = 65_536


@dataclass(frozen=True, slots=True)
class OuterTier:
    """A tier outside this process, the residency tags of what may lie there, and its largest value; None admits all."""

    tier: CacheTier
    admits: frozenset[str] | None = None
    max_value_bytes: int | None = None

    def fits(self, num_bytes: int) -> bool:
        return self.max_value_bytes is None or num_bytes <= self.max_value_bytes

    def accepts(self, value: bytes, residency: frozenset[str]) -> bool:
        return self.fits(len(value)) and (self.admits is None or residency <= self.admits)


class TieredCache:
    """Implements `ContextCache`. `max_pending_bytes` bounds what waits for `flush`; the oldest is dropped."""

    def __init__(
        self,
        memory: MemoryTier,
        outer: Sequence[OuterTier] = (),
        secret: bytes = b"",
        max_pending_bytes: int = 32 * 2**20,
    ) -> None:
        self._memory = memory
        self.outer = tuple(outer)
        self._secret = secret
        self._max_pending_bytes = max_pending_bytes
        self._pending: OrderedDict[bytes, tuple[CacheEntry, frozenset[str]]] = OrderedDict()
        self._pending_bytes = 0
        self._forget_queues: list[OrderedDict[str, None]] = [OrderedDict() for _ in self.outer]
        self.num_found: dict[str, int] = {memory.name: 0, **{one.tier.name: 0 for one in self.outer}}
        self.num_missed = 0
        self.num_damaged = 0  # values found whose seal did not hold

    def get(self, key: bytes, about: Sequence[str] = ()) -> bytes | None:
        """One value: see `ContextCache.get_many`."""
        self._apply_forgotten()
        found = self._memory.get(key)
        if found is not None:
            self.num_found[self._memory.name] += 1
            return found
        return self._find_outside([key], [about])[0]

    def get_many(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        """See `ContextCache`."""
        self._apply_forgotten()
        found = [self._memory.get(key) for key in keys]
        missing = [place for place, value in enumerate(found) if value is None]
        self.num_found[self._memory.name] += len(keys) - len(missing)
        if missing:
            wanted = [keys[place] for place in missing], [about[place] for place in missing]
            beyond = self._find_outside(*wanted, num_bytes)
            for place, value in zip(missing, beyond, strict=True):
                found[place] = value
        return found

    def put(
        self,
        key: bytes,
        value: bytes,
        ttl_ns: int,
        about: Sequence[str] = (),
        residency: frozenset[str] = frozenset(),
    ) -> None:
        entry = CacheEntry(key, value, ttl_ns, tuple(about))
        if ttl_ns <= 0 or self._memory.is_forgotten(entry.about):
            return
        self._memory.put_many([entry])
        if any(one.accepts(value, residency) for one in self.outer):
            self._cancel_pending(key)
            self._pending[key] = (entry, residency)
            self._pending_bytes += len(value)
            while self._pending_bytes > self._max_pending_bytes:
                self._cancel_pending(next(iter(self._pending)))

    def is_forgotten(self, about: Iterable[str]) -> bool:
        self._apply_forgotten()
        return self._memory.is_forgotten(about)

    def forget(self, about: Sequence[str]) -> None:
        if not about:
            return
        self._forget_here(about)
        for place in range(len(self.outer)):
            self._queue_forget(place, about)
            self._send_forget(place)

    def flush(self) -> None:
        """Write to the outer tiers what was put since the last call, and send them what they have yet to forget."""
        for place in range(len(self.outer)):
            self._send_forget(place)
        if not self._pending:
            return
        pending, self._pending, self._pending_bytes = self._pending, OrderedDict(), 0
        sealed = [
            (entry._replace(value=seal(entry.key, entry.value, entry.ttl_ns, self._secret)), residency)
            for entry, residency in pending.values()
        ]
        for one in self.outer:
            taken = [entry for entry, residency in sealed if one.accepts(entry.value, residency)]
            if taken:
                one.tier.put_many(taken)

    def close(self) -> None:
        self.flush()
        for one in self.outer:
            one.tier.close()
        self._memory.close()

    def _apply_forgotten(self) -> None:
        """Forget here what other processes had forgotten."""
        for place, one in enumerate(self.outer):
            names = one.tier.forgotten()
            if names is None:
                for tier in (self._memory, *(other.tier for other in self.outer if other is not one)):
                    tier.clear()
                continue
            names = [
                name for name in names if not self._memory.is_forgotten((name,))
            ]  # without those that this process sent itself
            if names:
                self._forget_here(names)
                for other in range(len(self.outer)):
                    if other != place:
                        self._queue_forget(other, names)
                        self._send_forget(other)

    def _forget_here(self, about: Sequence[str]) -> None:
        self._memory.forget(about)
        for entry, _ in list(self._pending.values()):
            if self._memory.is_forgotten(entry.about):
                self._cancel_pending(entry.key)

    def _find_outside(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        found: list[bytes | None] = [None] * len(keys)
        missing = [place for place in range(len(keys)) if not self._memory.is_forgotten(about[place])]
        for one in self.outer:
            if not missing:
                break
            if not one.fits(num_bytes):
                continue
            values = one.tier.get_many(
                [keys[place] for place in missing], [about[place] for place in missing]
            )
            left: list[int] = []
            for place, sealed in zip(missing, values, strict=True):
                opened = None if sealed is None else unseal(keys[place], sealed, self._secret)
                if opened is None:
                    self.num_damaged += sealed is not None
                    left.append(place)
                    continue
                found[place], ttl_ns = opened
                self.num_found[one.tier.name] += 1
                self._memory.put_many([CacheEntry(keys[place], opened[0], ttl_ns, tuple(about[place]))])
            missing = left
        self.num_missed += sum(value is None for value in found)
        return found

    def _cancel_pending(self, key: bytes) -> None:
        waiting = self._pending.pop(key, None)
        if waiting is not None:
            self._pending_bytes -= len(waiting[0].value)

    def _queue_forget(self, place: int, about: Sequence[str]) -> None:
        owed = self._forget_queues[place]
        for name in about:
            owed[name] = None
        while len(owed) > _MAX_FORGET_QUEUE:
            owed.popitem(last=False)

    def _send_forget(self, place: int) -> None:
        owed = self._forget_queues[place]
        if owed and self.outer[place].tier.forget(list(owed)):
            owed.clear()
