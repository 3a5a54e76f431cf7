"""What decoding needs from outside: a network's forward pass, a tokenizer, a byte cache. Adapters implement them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The sizes that a caller needs to hold a network's keys and values.

    `sum_block`: the engine sums over blocks of so many positions, and the last bits depend on the block of a position
    (0: they do not).
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
    """One forward pass: logits [B, T, V], keys and values of the new positions [L, B, G, T, D]."""

    logits: Floats
    keys: Floats
    values: Floats


class Network(Protocol):
    """A causal language model without state between calls: the caller owns keys and values (D1).

    B rows, T new positions, S past positions, L layers, G key-value heads, D head size, V vocabulary.
    """

    @property
    def shape(self) -> NetworkShape: ...

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the weights, the architecture and the precision: equal digests give equal logits."""
        ...

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """One pass over T new positions per row.

        Shapes: ids and positions [B, T]; mask [B, T, S + T], added to the attention scores (0 admits, a large negative
        number hides); keys and values of the past [L, B, G, S, D], S may be 0. float32, C-contiguous. Raises:
        ShapeMismatch, DependencyUnavailable.
        """
        ...


@runtime_checkable
class PromptNetwork(Protocol):
    """A network that reads prompts without scoring each of their tokens.

    Where it `reads_together`, a token's keys, values and logits have the same bits whatever rows share its pass,
    however many tokens follow it there, and however its text is cut into passes.
    """

    @property
    def reads_together(self) -> bool: ...

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        """As `forward`, with logits [n, V] of the tokens at `scored` [n], rising places in the rows laid end to end."""
        ...


class TextStates(NamedTuple):
    """What a network computed for a text of T tokens: hidden [T, H], which its head reads, and attention [A, T, T], the
    last layer's shares by head, query and key.
    """

    hidden: Floats
    attention: Floats


class StatesNetwork(Protocol):
    """A network that shows its states, computed in one pass over one text, whatever pass first wrote it."""

    def states(self, ids: Ids) -> TextStates:
        """The states of a text [T]. Raises: InvalidInput, DependencyUnavailable."""
        ...


class ByteCache(Protocol):
    """Computed values by content, shared by runs, processes or machines: a value equals what would be computed again.

    A key covers everything that shapes its value; `about` names what it was computed from. Nothing is raised.
    """

    def get_many(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        """The value of each key, None if it is not stored. Tiers that hold no value of `num_bytes` are not asked."""
        ...

    def put(
        self,
        key: bytes,
        value: bytes,
        ttl_ns: int,
        about: Sequence[str] = (),
        residency: frozenset[str] = frozenset(),
    ) -> None:
        """Store a value for at most `ttl_ns`, only in tiers that admit all its residency tags."""
        ...

    def is_forgotten(self, about: Iterable[str]) -> bool:
        """Whether one of these was forgotten: values about it are neither returned nor stored."""
        ...


class Tokenizer(Protocol):
    """Text to token ids and back for one vocabulary, with its control tokens and price tokens, if any."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the vocabulary: a draft and a target must have the same."""
        ...

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: nothing in it becomes a special token, and nothing is added before or after."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of plain tokens; special ones are skipped."""
        ...

    def special(self, token: str) -> int | None:
        """The id of a special token such as '<news>', or None."""
        ...

    def piece(self, token_id: int) -> str | None:
        """The text of one plain token, parts of characters as U+FFFD; None for a special token."""
        ...
