"""What decoding needs from outside: a network's forward pass and a tokenizer. Adapters implement them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The sizes that a caller needs to hold a network's keys and values.

    `sum_block` tells of an engine that sums over positions block by block, so many at a time: the last bits depend on
    which block a position lies in (0: on nothing).
    """

    num_layers: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_positions: int
    sum_block: int = 0

    @property
    def kv_bytes_per_token(self) -> int:
        return 2 * 4 * self.num_layers * self.num_kv_heads * self.head_dim


class ForwardOutput(NamedTuple):
    """What one forward pass gives: logits [B, T, V], keys and values of the new positions [L, B, G, T, D]."""

    logits: Floats
    keys: Floats
    values: Floats


class Network(Protocol):
    """A causal language model that keeps nothing between calls: the caller owns keys and values (D1).

    B rows, T new positions, S past positions, L layers, G key-value heads, D head size, V vocabulary.
    """

    @property
    def shape(self) -> NetworkShape: ...

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the weights, the architecture and the precision: equal digests give equal logits."""
        ...

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """One pass over T new positions a row.

        Shapes: ids and positions [B, T]; mask [B, T, S + T], added to the attention scores (0 admits, a large
        negative number hides); keys and values of the past [L, B, G, S, D], S may be 0. float32, C-contiguous.
        Raises: ShapeMismatch, DependencyUnavailable.
        """
        ...


class ByteCache(Protocol):
    """What was worked out before, by whomever, kept by content: a value is what would be worked out again.

    A key tells all that shapes its value; `about` names what it was worked out from. Nothing is raised.
    """

    def get_many(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        """The value of each key, None where it is not kept. Nobody is asked who keeps no value of `num_bytes`."""
        ...

    def put(
        self,
        key: bytes,
        value: bytes,
        ttl_ns: int,
        about: Sequence[str] = (),
        residency: frozenset[str] = frozenset(),
    ) -> None:
        """Keep a value for at most so long, only where all its residency tags are admitted."""
        ...

    def is_forgotten(self, about: Iterable[str]) -> bool:
        """Whether one of these was, so that what is about them is neither given nor kept."""
        ...


class Tokenizer(Protocol):
    """Text to token ids and back, for one vocabulary that also holds marks and price tokens where it has them."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the vocabulary: a draft and a target must have the same."""
        ...

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: nothing in it becomes a special token, and nothing is put before or after."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of plain tokens; special ones are left out."""
        ...

    def special(self, token: str) -> int | None:
        """The id of a special token such as '<news>', or None."""
        ...

    def piece(self, token_id: int) -> str | None:
        """The text that one plain token stands for, parts of characters as U+FFFD; None for a special token."""
        ...
