"""Small causal networks in C, for drafts: int8 weights, activations of 15 bits, one core. Wiring opens them.

A general engine spends most of a small network's step on its own bookkeeping; here a step is one call.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.checkpoint.folder import Architecture, ModelFolder
from htfi.decoding.checkpoint.rope import Rope, rotary_frequencies
from htfi.decoding.checkpoint.weights import CheckpointWeights
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.noise import GUMBEL_BOUNDS, Keys
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape
from htfi.decoding.strategies.chain import DraftedChain, FlatGrammar
from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch

try:
    from htfi.adapters.native import core
except ImportError:  # the package was built without a C compiler
    core = None
else:
    core.use_bounds(*GUMBEL_BOUNDS)

MAX_PARAMETERS = 4_000_000  # beyond the processor's nearest memory another layout of the work would be due
_MAX_LEVEL = 127
_BEST_LEVEL = 2  # of the processor's instructions: 2 AVX-512 with VNNI, 1 AVX2, 0 any


def is_compiled() -> bool:
    """Whether the network in C was compiled."""
    return core is not None


class NativeNetwork:
    """A small Llama or Qwen3 network from a model folder.

    A token's logits are the same, to the last bit, whatever the other rows of a pass are. The cut of a text into
    passes and the kind of processor change the last bits, for they order attention's sums.
    """

    def __init__(self, folder: ModelFolder, *, level: int = _BEST_LEVEL) -> None:
        """`level` holds back the processor's newer instructions, as tests do.

        Raises: DependencyUnavailable, where nothing was compiled; InvalidInput, when the folder is not a causal
        network, is too large, or its weights do not fit.
        """
        if core is None:
            raise DependencyUnavailable(
                "the network in C was not compiled: install htfi again where there is a C compiler"
            )
        of = folder.architecture
        if not of.is_causal or of.activation != "silu":
            raise InvalidInput(
                f"{folder.path} holds a {of.family} with {of.activation}; name a Llama or a Qwen3"
            )
        num_parameters = _num_parameters(of)
        if num_parameters > MAX_PARAMETERS:
            raise InvalidInput(
                f"{folder.path} has {num_parameters:,} parameters, where the network in C takes {MAX_PARAMETERS:,}: "
                "run it on onnxruntime"
            )
        sizes = (
            of.num_layers, of.num_heads, of.num_kv_heads, of.head_dim, of.hidden_size, of.intermediate_size,
            of.vocab_size, of.max_positions,
        )  # fmt: skip
        self._core = core.Network(sizes, of.norm_eps, _arrays(of, folder.weights), level)
        self._digest = hashlib.sha256(f"{folder.digest} native {self._core.level}".encode()).hexdigest()
        self._shape = NetworkShape(
            of.num_layers, of.num_kv_heads, of.head_dim, of.vocab_size, of.max_positions
        )

    @property
    def shape(self) -> NetworkShape:
        return self._shape

    @property
    def digest(self) -> str:
        return self._digest

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """See the port. Raises: ShapeMismatch; InvalidInput, for an id or a position out of range."""
        out = self.read(ids, positions, mask, keys, values, _all_places(ids.size))
        return out._replace(logits=out.logits.reshape(*ids.shape, self._shape.vocab_size))

    @property
    def reads_together(self) -> bool:
        """The cut of a text into passes changes the last bits."""
        return False

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        """See the port. Raises: as `forward`."""
        of = self._shape
        num_rows, num_new = ids.shape if ids.ndim == 2 else (0, 0)
        sizes = (of.num_layers, num_rows, of.num_kv_heads, num_new, of.head_dim)
        done = ForwardOutput(
            np.empty((len(scored), of.vocab_size), np.float32),
            np.empty(sizes, np.float32),
            np.empty(sizes, np.float32),
        )
        if not self._core.forward(ids, positions, mask, keys, values, scored, *done):
            check_forward_inputs(of, ids, positions, mask, keys, values)
            given = [np.ascontiguousarray(array) for array in (ids, positions, mask, keys, values, scored)]
            if not self._core.forward(*given, *done):
                raise ShapeMismatch("scored places must rise and lie within the pass")
        return done

    def chain(
        self,
        keys: Floats,
        values: Floats,
        slot: int,
        length: int,
        unread: Sequence[int],
        form: FlatGrammar,
        state: int,
        num_chosen: int,
        temperature: float,
        noise: Keys,
    ) -> DraftedChain:
        """See `ChainDraftingNetwork`. Scores are worked out for admitted tokens alone; fewer come back where one is no
        number.

        Raises: ShapeMismatch, where the arrays do not fit each other.
        """
        out: Ids = np.empty((2, len(noise)), np.int64)
        ids: Ids = np.array(unread, np.int64)
        try:
            num_drafted, num_read = self._core.chain(
                keys, values, slot, length, ids, *form, noise, out, state, num_chosen, temperature
            )
        except (ValueError, BufferError) as error:
            raise ShapeMismatch(f"a chain of {len(noise)} tokens after {length}: {error}") from error
        tokens, states = out[:, :num_drafted].tolist()
        return DraftedChain(tokens, states, num_read)


@lru_cache(maxsize=256)
def _all_places(num: int) -> Ids:
    """Read-only."""
    return np.arange(num, dtype=np.int64)


def _num_parameters(of: Architecture) -> int:
    heads = 2 * (of.num_heads + of.num_kv_heads) * of.head_dim
    return of.vocab_size * of.hidden_size + of.num_layers * of.hidden_size * (
        heads + 3 * of.intermediate_size
    )


def _arrays(of: Architecture, weights: CheckpointWeights) -> tuple[bytes | None, ...]:
    """All that the network reads, in the order of core.c: the whole model's seven, then sixteen for each layer."""
    prefix = "model." if "model.embed_tokens.weight" in weights else ""

    def read(name: str, shape: tuple[int, ...]) -> Floats:
        array = weights.array(name, shape)
        if not np.isfinite(array).all():  # the arithmetic is compiled for numbers alone
            raise InvalidInput(
                f"tensor {name!r} holds a value that is not a number: train or copy the model again"
            )
        return array

    def gain(name: str, size: int) -> bytes:
        return read(f"{prefix}{name}.weight", (size,)).tobytes()

    def linear(
        names: tuple[str, ...], outputs: tuple[int, ...], inputs: int, has_bias: bool
    ) -> list[bytes | None]:
        rows = [read(f"{name}.weight", (size, inputs)) for name, size in zip(names, outputs, strict=True)]
        biases = [
            read(f"{name}.bias", (size,)) for name, size in zip(names, outputs, strict=True) if has_bias
        ]
        whole, scales = _quantised_rows(np.concatenate(rows))
        return [whole.tobytes(), scales.tobytes(), np.concatenate(biases).tobytes() if has_bias else None]

    table = f"{prefix}embed_tokens"
    head = table if of.tie_embeddings else "lm_head"
    width, kv_width, hidden, inner = (
        of.num_heads * of.head_dim, of.num_kv_heads * of.head_dim, of.hidden_size, of.intermediate_size
    )  # fmt: skip
    embed = read(f"{table}.weight", (of.vocab_size, hidden))
    arrays = [embed.tobytes(), *_angles(of), gain("norm", hidden)]
    arrays += linear((head,), (of.vocab_size,), hidden, False)
    for layer in range(of.num_layers):
        at = f"layers.{layer}."
        arrays += [gain(f"{at}{name}_layernorm", hidden) for name in ("input", "post_attention")]
        arrays += [gain(f"{at}self_attn.{name}_norm", of.head_dim) if of.qk_norm else None for name in "qk"]
        reading = tuple(f"{prefix}{at}self_attn.{name}_proj" for name in "qkv")
        arrays += linear(reading, (width, kv_width, kv_width), hidden, of.attention_bias)
        arrays += linear((f"{prefix}{at}self_attn.o_proj",), (hidden,), width, of.attention_bias)
        gates = tuple(f"{prefix}{at}mlp.{name}_proj" for name in ("gate", "up"))
        arrays += linear(gates, (inner, inner), hidden, of.mlp_bias)
        arrays += linear((f"{prefix}{at}mlp.down_proj",), (hidden,), inner, of.mlp_bias)
    return tuple(arrays)


def _angles(of: Architecture) -> list[bytes]:
    """Cosines and sines of every position [P, D / 2]."""
    frequencies, factor = rotary_frequencies(of.rope or Rope(), of.head_dim)
    angles = np.arange(of.max_positions, dtype=np.float32)[:, None] * frequencies
    return [
        (turned * np.float32(factor)).astype(np.float32).tobytes()
        for turned in (np.cos(angles), np.sin(angles))
    ]


def _quantised_rows(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Whole numbers within ±127 and a scale for each row: [N, K] to [N, K] and [N]."""
    scales = np.abs(weight).max(axis=1) / np.float32(_MAX_LEVEL)
    scales[scales == 0] = 1
    return np.rint(weight / scales[:, None]).astype(np.int8), scales.astype(np.float32)
