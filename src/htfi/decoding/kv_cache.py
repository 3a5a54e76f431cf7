"""Keys and values in memory: the arena of sequences being written, and cached blocks of prompts read before.

`KVSessions` owns one of each, within fixed budgets in bytes. `SharedKVBlocks` finds and stores blocks beyond this
engine's memory: what another run, process or machine has read.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from htfi.decoding.ports import ByteCache, Floats, Ids, NetworkShape

MASKED = np.float32(-1e9)  # added to a score: exp() of it is exactly 0
_CAPACITY_STEP = (
    32  # tokens; the capacity is a multiple of it: masked positions cost time, and so does moving
)


@dataclass(slots=True, eq=False)
class KVRow:
    """One sequence in the arena: it holds `length` tokens and may grow to `limit`."""

    slot: int
    length: int
    limit: int


class KVArena:
    """Rows side by side as one pass needs them: keys and values [L, B, G, S, D], contiguous at every size.

    The memory is laid out again, in place, when rows join without a free slot, when they outgrow it, and when half of
    them have left. A row's `limit` is reserved in the budget; its capacity grows with its length. `mask` [B, 1, S + 1]
    serves a pass of one new token per row and is kept up to date.
    """

    def __init__(self, shape: NetworkShape, budget_bytes: int) -> None:
        self._shape = shape
        self._num_tokens = budget_bytes // shape.kv_bytes_per_token
        size = self._num_tokens * shape.kv_bytes_per_token // 8
        # Zeros, not empty: a masked position still enters sums as 0 times its value, which must be finite.
        self._key_memory, self._value_memory = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self._slots: list[KVRow | None] = []
        self._lay_out(0, _CAPACITY_STEP)

    @property
    def num_slots(self) -> int:
        return len(self._slots)

    @property
    def num_rows(self) -> int:
        return len(self._slots) - self._slots.count(None)

    @property
    def capacity(self) -> int:
        return self.keys.shape[3]

    def capacity_for(self, length: int) -> int:
        """The capacity once a row has grown to `length` tokens."""
        return max(self.capacity, _rounded(length))

    def fits(self, limits: Sequence[int]) -> bool:
        """Whether rows of these limits fit beside the present ones."""
        rows = [row.limit for row in self._slots if row is not None]
        return _rounded(max([*rows, *limits])) * (len(rows) + len(limits)) <= self._num_tokens

    def fits_alone(self, limits: Sequence[int]) -> bool:
        return _rounded(max(limits)) * len(limits) <= self._num_tokens

    def num_fitting(self, limit: int) -> int:
        """How many rows of this limit fit beside the present ones."""
        rows = [row.limit for row in self._slots if row is not None]
        return max(self._num_tokens // _rounded(max([*rows, limit])) - len(rows), 0)

    def add(self, limits: Sequence[int], length: int) -> list[KVRow]:
        """Empty rows, each with room for `length` tokens at once; call `fits` first."""
        free = [slot for slot, row in enumerate(self._slots) if row is None]
        num_rows = self.num_rows
        # An empty arena is laid out again, so that the shapes of passes, and on some engines the last bits,
        # do not depend on earlier answers.
        if not num_rows or len(free) < len(limits) or length > self.capacity:
            self._lay_out(num_rows + len(limits), self._capacity_needed(length))
            free = list(range(num_rows, num_rows + len(limits)))
        added = [KVRow(slot, 0, limit) for slot, limit in zip(free, limits, strict=False)]
        for row in added:
            self._slots[row.slot] = row
        return added

    def grow_to(self, length: int) -> None:
        """Let every row grow to `length` tokens; compact once half of the slots are free."""
        num_rows = self.num_rows
        if length > self.capacity or 2 * num_rows <= self.num_slots:
            self._lay_out(num_rows, self._capacity_needed(length))

    def compact(self) -> None:
        """Move rows together: a pass costs as much for a free slot as for a row."""
        if self.num_rows < self.num_slots:
            self._lay_out(self.num_rows, self.capacity)

    def zero(self, row: KVRow) -> None:
        """Zero a row's memory: needed if it may hold values that are not finite."""
        self.keys[:, row.slot] = 0.0
        self.values[:, row.slot] = 0.0

    def zero_from(self, row: KVRow, length: int) -> None:
        """Zero what lies beyond `length` tokens."""
        self.keys[:, row.slot, :, length : row.length] = 0.0
        self.values[:, row.slot, :, length : row.length] = 0.0

    def gather(self, row: KVRow, length: int, places: Sequence[int]) -> None:
        """Move the tokens at `places`, rising and counted from `length`, to begin at `length`."""
        if all(place == at for at, place in enumerate(places)):
            return
        begin, index = length, np.asarray(places) + length
        for memory in (self.keys, self.values):
            memory[:, row.slot, :, begin : begin + len(places)] = memory[:, row.slot][:, :, index]

    def remove(self, row: KVRow) -> None:
        """Free a row's slot."""
        self.truncate(row, 0)
        self._slots[row.slot] = None
        row.slot = -1

    def append(self, row: KVRow, keys: Floats, values: Floats) -> None:
        """Append keys and values [L, G, T, D] to a row."""
        end = row.length + keys.shape[2]
        self.keys[:, row.slot, :, row.length : end] = keys
        self.values[:, row.slot, :, row.length : end] = values
        self.mask[row.slot, 0, row.length : end] = 0.0
        row.length = end

    def note_appended(self, row: KVRow, num_tokens: int) -> None:
        """A network wrote `num_tokens` directly behind the row's tokens."""
        self.mask[row.slot, 0, row.length : row.length + num_tokens] = 0.0
        row.length += num_tokens

    def truncate(self, row: KVRow, length: int) -> None:
        """Drop the tokens beyond `length`."""
        self.mask[row.slot, 0, length : row.length] = MASKED
        row.length = length

    def copy(self, source: KVRow, rows: Sequence[KVRow]) -> None:
        """Copy `source` into each of the empty `rows`."""
        n = source.length
        for row in rows:
            self.append(row, self.keys[:, source.slot, :, :n], self.values[:, source.slot, :, :n])

    def lengths(self) -> Ids:
        """Tokens held in each slot [B]; 0 for a free slot."""
        return np.array([0 if row is None else row.length for row in self._slots], np.int64)

    def _capacity_needed(self, length: int) -> int:
        """The capacity for rows of at least `length`; never more than the limits of all rows reserve."""
        return _rounded(max([length, *(row.length for row in self._slots if row is not None)]))

    def _lay_out(self, num_slots: int, capacity: int) -> None:
        rows = [row for row in self._slots if row is not None]
        if rows:
            # Two moves, since each must go one way: first all chunks down, then all chunks up.
            tight = min(capacity, self.capacity)
            places = [row.slot for row in rows]
            self._move(rows, places, (self.num_slots, self.capacity), (len(rows), tight), upwards=False)
            self._move(rows, range(len(rows)), (len(rows), tight), (num_slots, capacity), upwards=True)
        self.keys, self.values = (
            self._view(memory, num_slots, capacity) for memory in (self._key_memory, self._value_memory)
        )
        self.mask: Floats = np.full((num_slots, 1, capacity + 1), MASKED, np.float32)
        self.mask[:, :, -1] = 0.0  # a token always sees itself
        self._slots = [*rows, *([None] * (num_slots - len(rows)))]
        for slot, row in enumerate(rows):
            row.slot = slot
            self.mask[slot, 0, : row.length] = 0.0

    def _move(
        self,
        rows: Sequence[KVRow],
        places: Sequence[int],
        old: tuple[int, int],
        new: tuple[int, int],
        upwards: bool,
    ) -> None:
        if old == new:
            return
        chunks = [(layer, slot) for layer in range(self._shape.num_layers) for slot in range(len(rows))]
        for memory in (self._key_memory, self._value_memory):
            source, target = self._view(memory, *old), self._view(memory, *new)
            for layer, slot in reversed(chunks) if upwards else chunks:
                n = rows[slot].length
                target[layer, slot, :, :n] = source[layer, places[slot], :, :n]

    def _view(self, memory: Floats, num_slots: int, capacity: int) -> Floats:
        layers, heads, size = self._shape.num_layers, self._shape.num_kv_heads, self._shape.head_dim
        num = layers * num_slots * heads * capacity * size
        return memory[:num].reshape(layers, num_slots, heads, capacity, size)


def _rounded(num_tokens: int) -> int:
    return -(-num_tokens // _CAPACITY_STEP) * _CAPACITY_STEP


@dataclass(frozen=True, slots=True)
class KVBlock:
    """Keys and values [L, G, T, D] of one block of a prompt; a view that a later `put` may overwrite."""

    keys: Floats
    values: Floats

    @property
    def num_tokens(self) -> int:
        return self.keys.shape[2]


class PrefixCache:
    """Blocks of prompts by their chained hash; the least recently used is overwritten first."""

    def __init__(self, shape: NetworkShape, block_tokens: int, budget_bytes: int) -> None:
        num_blocks = budget_bytes // (block_tokens * shape.kv_bytes_per_token)
        sizes = (num_blocks, shape.num_layers, shape.num_kv_heads, block_tokens, shape.head_dim)
        self._keys, self._values = np.zeros(sizes, np.float32), np.zeros(sizes, np.float32)
        self._free = list(range(num_blocks))
        self._places: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # hash → slot, tokens

    @property
    def num_blocks(self) -> int:
        return len(self._keys)

    def has(self, key: bytes) -> bool:
        return key in self._places

    def find(self, key: bytes) -> KVBlock | None:
        if (place := self._places.get(key)) is None:
            return None
        slot, num_tokens = place
        return KVBlock(self._keys[slot, :, :, :num_tokens], self._values[slot, :, :, :num_tokens])

    def touch(self, chain: Sequence[bytes]) -> None:
        """Mark a prompt's blocks as used; its first block is kept longest, since the others need it."""
        for key in reversed(chain):
            if key in self._places:
                self._places.move_to_end(key)

    def put(self, key: bytes, block: KVBlock) -> None:
        if key in self._places or not self.num_blocks:
            return
        slot = self._free.pop() if self._free else self._places.popitem(last=False)[1][0]
        num_tokens = block.num_tokens
        self._keys[slot, :, :, :num_tokens] = block.keys
        self._values[slot, :, :, :num_tokens] = block.values
        self._places[key] = (slot, num_tokens)


_FORMAT = b"htfi-kv-1"


class SharedKVBlocks:
    """Keys and values by content, as float32, in `cache`.

    `reader` identifies everything that their bits depend on besides tokens and cut: the network's digest with its
    precision, the engine, the kind of machine. Entries live for `lifetime_ns`.
    """

    def __init__(self, cache: ByteCache, reader: bytes, shape: NetworkShape, lifetime_ns: int) -> None:
        self._cache = cache
        self._reader = reader
        self._shape = shape
        self._lifetime_ns = lifetime_ns

    def is_forgotten(self, about: Sequence[str]) -> bool:
        """Whether prompts about these items must be read again."""
        return bool(about) and self._cache.is_forgotten(about)

    def find(
        self, names: Sequence[bytes], sizes: Sequence[int], about: Sequence[str]
    ) -> list[KVBlock | None]:
        """The block of each name and number of tokens, None if it is not stored. One look-up for all."""
        keys = [self._key(name) for name in names]
        num_bytes = min(sizes, default=0) * self._shape.kv_bytes_per_token
        found = self._cache.get_many(keys, [about] * len(keys), num_bytes)
        return [
            None if value is None else self._block(value, size)
            for value, size in zip(found, sizes, strict=True)
        ]

    def store(self, name: bytes, block: KVBlock, about: Sequence[str], residency: frozenset[str]) -> None:
        """Offer a block that was read here; the caller has found it finite."""
        value = np.stack((block.keys, block.values)).astype("<f4", copy=False).tobytes()
        self._cache.put(self._key(name), value, self._lifetime_ns, about, residency)

    def _key(self, name: bytes) -> bytes:
        return blake2b(self._reader + name, digest_size=20, person=_FORMAT).digest()

    def _block(self, value: bytes, num_tokens: int) -> KVBlock | None:
        shape = self._shape
        if len(value) != num_tokens * shape.kv_bytes_per_token:
            return None
        sizes = (2, shape.num_layers, shape.num_kv_heads, num_tokens, shape.head_dim)
        keys, values = np.frombuffer(value, "<f4").reshape(sizes).astype(np.float32, copy=False)
        return KVBlock(keys, values) if np.isfinite(keys).all() and np.isfinite(values).all() else None
