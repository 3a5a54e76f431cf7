"""Blocks of prompts beyond the engine's own memory: what another run, process or machine has read. Sessions ask."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from htfi.decoding.kv import Block
from htfi.decoding.ports import KeptBytes, NetworkShape

_MAKER = b"htfi-kv-1"


class KeptBlocks:
    """Keys and values by content, float32 as they are, in `cache`.

    `reader` names all that their bits depend on besides the tokens and their cut: the network's digest, which tells
    its precision, the engine and the kind of machine. They are kept for `lifetime_ns`.
    """

    def __init__(self, cache: KeptBytes, reader: bytes, shape: NetworkShape, lifetime_ns: int) -> None:
        self._cache = cache
        self._reader = reader
        self._shape = shape
        self._lifetime_ns = lifetime_ns
        self.num_found_tokens = 0
        self.num_kept_tokens = 0

    def is_forgotten(self, about: Sequence[str]) -> bool:
        """Whether what these tell must be read anew."""
        return bool(about) and self._cache.is_forgotten(about)

    def find(self, names: Sequence[bytes], sizes: Sequence[int], about: Sequence[str]) -> list[Block | None]:
        """The block of each name and number of tokens, None where it is not kept. One trip for all."""
        keys = [self._key(name) for name in names]
        num_bytes = min(sizes, default=0) * self._shape.kv_bytes_per_token
        found = self._cache.get_many(keys, [about] * len(keys), num_bytes)
        blocks = [
            None if value is None else self._block(value, size)
            for value, size in zip(found, sizes, strict=True)
        ]
        self.num_found_tokens += sum(block.num_tokens for block in blocks if block is not None)
        return blocks

    def keep(self, name: bytes, block: Block, about: Sequence[str], residency: frozenset[str]) -> None:
        """Offer a block that was read here. What is about to be shared was found finite."""
        value = np.stack((block.keys, block.values)).astype("<f4", copy=False).tobytes()
        self._cache.put(self._key(name), value, self._lifetime_ns, about, residency)
        self.num_kept_tokens += block.num_tokens

    def _key(self, name: bytes) -> bytes:
        return blake2b(self._reader + name, digest_size=20, person=_MAKER).digest()

    def _block(self, value: bytes, num_tokens: int) -> Block | None:
        of = self._shape
        if len(value) != num_tokens * of.kv_bytes_per_token:
            return None
        sizes = (2, of.num_layers, of.num_kv_heads, num_tokens, of.head_dim)
        keys, values = np.frombuffer(value, "<f4").reshape(sizes).astype(np.float32, copy=False)
        return Block(keys, values) if np.isfinite(keys).all() and np.isfinite(values).all() else None
