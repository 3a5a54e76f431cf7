"""Causal networks on onnxruntime: the graphs of Llama and Qwen3, and decoding's Network port over a session of one."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.linear import LinearLayer, multiply
from htfi.adapters.onnx.saturation import exact_graph
from htfi.adapters.onnx.session import (
    MAX_LEVEL,
    OnnxSession,
    Precision,
    WrittenGraph,
    cached_graph,
    default_cache_folder,
)
from htfi.decoding.checkpoint.folder import Architecture, ModelFolder
from htfi.decoding.checkpoint.rope import Rope, rotary_frequencies
from htfi.decoding.checkpoint.weights import CheckpointWeights
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.kv_cache import MASKED
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape, TextStates
from htfi.domain.errors import InvalidInput


def write_causal(
    architecture: Architecture, weights: CheckpointWeights, precision: Precision, *, with_states: bool = False
) -> WrittenGraph:
    """The graph of one forward pass.

    Inputs: ids and pos int64 [B, T]; mask float32 [B, T, S + T], added to the scores; scored int64 [M], places among
    the B * T tokens; for each layer l, keys k.l and values v.l of the past, float32 [B, G, S, D].
    Outputs: logits [M, V]; k_new and v_new [L * B, G, T, D]; `with_states` also hidden [B * T, H], what the head
    reads, and attention [B, G, N/G * T, S + T], the last layer's shares before they are divided by their sum.
    Guarantees: a token's logits do not depend, bit for bit, on the other rows of a pass, on how a text is cut into
    passes, nor on hidden positions between. See `_attend` for how.
    Raises: InvalidInput, ShapeMismatch, for weights that do not fit the architecture.
    """
    return _CausalWriter(architecture, weights, precision).write(with_states)


class _CausalWriter:
    def __init__(self, architecture: Architecture, weights: CheckpointWeights, precision: Precision) -> None:
        self.shape = architecture
        self.graph = GraphWriter(weights)
        self.precision = precision
        self.prefix = "model." if "model.embed_tokens.weight" in weights else ""

    def write(self, with_states: bool) -> WrittenGraph:
        graph, shape = self.graph, self.shape
        table = graph.borrow(
            f"{self.prefix}embed_tokens.weight", (shape.vocab_size, shape.hidden_size), as_stored=True
        )
        stored = graph.add("Gather", [table, graph.add("Reshape", ["ids", graph.constant([-1])])])
        residual = graph.add("Cast", [stored], to=TensorProto.FLOAT)  # [M, H], M = B * T
        self._prepare()
        value = self._first_norm(residual)
        keys: list[str] = []
        values: list[str] = []
        for layer in range(shape.num_layers):
            mixed, key, new_value = self._attention(layer, value)
            keys.append(key)
            values.append(new_value)
            value, residual = self._norm(mixed, residual, f"layers.{layer}.post_attention_layernorm.weight")
            after = (
                f"layers.{layer + 1}.input_layernorm.weight"
                if layer + 1 < shape.num_layers
                else "norm.weight"
            )
            value, residual = self._norm(self._feed_forward(layer, value), residual, after)
        head = f"{self.prefix}embed_tokens.weight" if shape.tie_embeddings else "lm_head.weight"
        asked = graph.add("Gather", [value, "scored"])  # [M, H]
        logits = self._multiply(asked, LinearLayer((head,), (shape.vocab_size,), shape.hidden_size))
        graph.rename_last(logits, "logits")
        states = ("hidden", "attention") if with_states else ()
        for name, found in zip(states, (value, self.share), strict=False):
            graph.rename_last(graph.add("Identity", [found]), name)
        graph.rename_last(graph.add("Concat", keys, axis=0), "k_new")
        graph.rename_last(graph.add("Concat", values, axis=0), "v_new")
        inputs: dict[str, tuple[int, list[str | int]]] = {
            "ids": (TensorProto.INT64, ["B", "T"]),
            "pos": (TensorProto.INT64, ["B", "T"]),
            "mask": (TensorProto.FLOAT, ["B", "T", "C"]),
            "scored": (TensorProto.INT64, ["M"]),
        }
        for layer in range(shape.num_layers):
            for kind in "kv":
                inputs[f"{kind}.{layer}"] = (
                    TensorProto.FLOAT,
                    ["B", shape.num_kv_heads, "S", shape.head_dim],
                )
        return graph.finish(inputs, ["logits", "k_new", "v_new", *states])

    def _prepare(self) -> None:
        """What all layers share: angles, the mask for each head that shares a key, shapes, the adder."""
        graph, shape = self.graph, self.shape
        rope = shape.rope or Rope()
        frequencies, factor = rotary_frequencies(rope, shape.head_dim)
        turns = graph.add(
            "Unsqueeze", [graph.add("Cast", ["pos"], to=TensorProto.FLOAT), graph.constant([-1])]
        )
        angles = graph.add("Mul", [turns, graph.constant(frequencies)])  # [B, T, D / 2]
        self.cos, self.sin = (graph.add(kind, [angles]) for kind in ("Cos", "Sin"))
        if factor != 1.0:
            scale = graph.constant(np.float32(factor))
            self.cos, self.sin = (graph.add("Mul", [part, scale]) for part in (self.cos, self.sin))
        num_shared = shape.num_heads // shape.num_kv_heads
        mask = graph.add("Unsqueeze", ["mask", graph.constant([1])])
        self.mask = graph.add("Concat", [mask] * num_shared, axis=2) if num_shared > 1 else self._paired(mask)
        num_heads = shape.num_heads + 2 * shape.num_kv_heads
        self.split_heads = graph.add(
            "Concat", [graph.add("Shape", ["ids"]), graph.constant([num_heads, shape.head_dim])], axis=0
        )
        context = graph.add("Shape", ["mask"], start=2)
        width = graph.constant([shape.head_dim])
        self.ones = graph.add(
            "Expand",
            [graph.constant(np.ones((1, 1), np.float32)), graph.add("Concat", [context, width], axis=0)],
        )

    def _attention(self, layer: int, value: str) -> tuple[str, str, str]:
        """Mixed tokens [M, H]; keys and values of the new tokens [B, G, T, D]."""
        graph, shape = self.graph, self.shape
        at = f"{self.prefix}layers.{layer}.self_attn."
        width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        read = self._linear(
            at, ("q_proj", "k_proj", "v_proj"), (width, kv_width, kv_width), shape.hidden_size
        )
        heads = graph.add("Reshape", [self._multiply(value, read), self.split_heads])  # [B, T, N + 2G, D]
        num_turned = shape.num_heads + shape.num_kv_heads
        if shape.qk_norm:
            turned, rest = self._split(heads, (num_turned, shape.num_kv_heads), axis=2)
            heads = graph.add("Concat", [self._head_norm(at, turned), rest], axis=2)
        heads = graph.add("Transpose", [heads], perm=[0, 2, 1, 3])
        turned, new_value = self._split(heads, (num_turned, shape.num_kv_heads), axis=1)
        turned = graph.add("RotaryEmbedding", [turned, self.cos, self.sin])
        query, key = self._split(turned, (shape.num_heads, shape.num_kv_heads), axis=1)
        mixed = self._attend(layer, query, key, new_value)
        mixed = graph.add("Transpose", [mixed], perm=[0, 2, 1, 3])
        mixed = graph.add("Reshape", [mixed, graph.constant([-1, width])])
        write = self._linear(at, ("o_proj",), (shape.hidden_size,), width)
        return self._multiply(mixed, write), key, new_value

    def _attend(self, layer: int, query: str, key: str, value: str) -> str:
        """Attention of queries [B, N, T, D] over past and new positions: [B, N, T, D].

        A fused kernel or a softmax adds up a row's terms in an order that depends on how many there are, and so a
        token's result would depend on the cut into passes; rounding to bytes then makes 1e-2 of 1e-7. Here every
        sum over positions is a matrix product, which adds them one after the other: a hidden position adds zero.
        """
        graph, shape = self.graph, self.shape
        is_grouped = shape.num_heads > shape.num_kv_heads
        if is_grouped:
            query = graph.add("Reshape", [query, graph.constant([0, shape.num_kv_heads, -1, shape.head_dim])])
        else:
            query = graph.add("Tile", [query, self.repeats])
        scores = [
            graph.add("FusedMatMul", [query, keys], domain=MICROSOFT, transB=1, alpha=shape.head_dim**-0.5)
            for keys in (f"k.{layer}", key)
        ]
        score = graph.add("Add", [graph.add("Concat", scores, axis=-1), self.mask])  # [B, G, N/G * T, S + T]
        highest = graph.add("ReduceMax", [score, graph.constant([-1])], keepdims=1)
        share = self.share = graph.add("Exp", [graph.add("Sub", [score, highest])])
        mixed = graph.add("MatMul", [share, graph.add("Concat", [f"v.{layer}", value], axis=2)])
        mixed = graph.add("Div", [mixed, graph.add("MatMul", [share, self.ones])])
        if is_grouped:
            return graph.add("Reshape", [mixed, graph.constant([0, shape.num_heads, -1, shape.head_dim])])
        return graph.add("Slice", [mixed, graph.constant([0]), self.num_new, graph.constant([2])])

    def _paired(self, mask: str) -> str:
        """A lone query per key head is asked twice: a product of one row is added up in another order."""
        graph = self.graph
        self.num_new = graph.add("Shape", ["ids"], start=1)
        one = graph.constant([1])
        is_alone = graph.add("Cast", [graph.add("Equal", [self.num_new, one])], to=TensorProto.INT64)
        self.repeats = graph.add("Concat", [one, one, graph.add("Add", [is_alone, one]), one], axis=0)
        return graph.add("Tile", [mask, self.repeats])

    def _head_norm(self, at: str, turned: str) -> str:
        """The RMS norm of every query and key head, [B, T, N + G, D], with two sets of weights."""
        graph, shape = self.graph, self.shape
        ones = graph.constant(np.ones(shape.head_dim, np.float32))
        normed = graph.add("SimplifiedLayerNormalization", [turned, ones], axis=-1, epsilon=shape.norm_eps)
        gains = [
            np.tile(graph.weights.array(f"{at}{name}.weight", (shape.head_dim,)), (num, 1))
            for name, num in (("q_norm", shape.num_heads), ("k_norm", shape.num_kv_heads))
        ]
        return graph.add("Mul", [normed, graph.compute(f"{at}qk_norm", np.concatenate(gains))])

    def _feed_forward(self, layer: int, value: str) -> str:
        graph, shape = self.graph, self.shape
        at, inner = f"{self.prefix}layers.{layer}.mlp.", shape.intermediate_size
        both = self._multiply(
            value, self._linear(at, ("gate_proj", "up_proj"), (inner, inner), shape.hidden_size)
        )
        gate, up = self._split(both, (inner, inner), axis=1)
        gate = graph.add("QuickGelu", [gate], domain=MICROSOFT, alpha=1.0)  # x * sigmoid(x): SiLU
        return self._multiply(
            graph.add("Mul", [gate, up]), self._linear(at, ("down_proj",), (shape.hidden_size,), inner)
        )

    def _linear(
        self, at: str, names: tuple[str, ...], sizes: tuple[int, ...], num_inputs: int
    ) -> LinearLayer:
        has_bias = self.shape.mlp_bias if at.endswith("mlp.") else self.shape.attention_bias
        weights = tuple(f"{at}{name}.weight" for name in names)
        biases = tuple(f"{at}{name}.bias" for name in names) if has_bias else ()
        return LinearLayer(weights, sizes, num_inputs, biases)

    def _multiply(self, value: str, layer: LinearLayer) -> str:
        return multiply(self.graph, value, layer, self.precision)

    def _first_norm(self, value: str) -> str:
        gain = self.graph.borrow(f"{self.prefix}layers.0.input_layernorm.weight", (self.shape.hidden_size,))
        return self.graph.add(
            "SimplifiedLayerNormalization", [value, gain], axis=-1, epsilon=self.shape.norm_eps
        )

    def _norm(self, value: str, residual: str, name: str) -> tuple[str, str]:
        """The norm of value + residual, and that sum."""
        gain = self.graph.borrow(f"{self.prefix}{name}", (self.shape.hidden_size,))
        outputs = self.graph.add_many(
            "SkipSimplifiedLayerNormalization",
            [value, residual, gain],
            4,
            domain=MICROSOFT,
            epsilon=self.shape.norm_eps,
        )
        return outputs[0], outputs[3]

    def _split(self, value: str, sizes: tuple[int, int], axis: int) -> list[str]:
        return self.graph.add_many("Split", [value, self.graph.constant(list(sizes))], 2, axis=axis)


class OnnxNetwork:
    """A Llama or Qwen3 network from a model folder.

    On one thread a token's logits depend on its own context alone, to the last bit: not on the other rows of a pass,
    nor on the cut of a text into passes, at any length; nor on hidden positions between, while none of what is read
    is in another block of the sums than without them. A block is of 1024, 512, 256 and 128 positions for heads of
    up to 16, 32, 64 and 128. Else, or with more threads, the last bits may differ. Heads are of 8 and more.
    """

    def __init__(
        self,
        folder: ModelFolder,
        precision: Precision = Precision.INT8,
        *,
        threads: int = 1,
        cache_folder: Path | None = None,
        with_states: bool = False,
    ) -> None:
        """Opens at once where the graph is cached, else writes it first, in seconds.

        Raises: InvalidInput, when the folder is not a causal network or its weights do not fit; DependencyUnavailable.
        """
        if not folder.architecture.is_causal:
            family = folder.architecture.family
            raise InvalidInput(f"{folder.path} holds a {family} encoder; name a causal model to write with")
        cache_folder = default_cache_folder() if cache_folder is None else cache_folder
        self._digest = hashlib.sha256(f"{folder.digest} {precision} {MAX_LEVEL}".encode()).hexdigest()
        stored_as = (
            hashlib.sha256(f"{self._digest} with states".encode()).hexdigest()
            if with_states
            else self._digest
        )
        cached = cached_graph if precision is Precision.FP32 else exact_graph
        written = cached(stored_as, cache_folder, lambda: _write(folder, precision, with_states))
        self._session = OnnxSession(written, folder.weights, threads, keeps_memory=True)
        of = folder.architecture
        self._shape = NetworkShape(
            of.num_layers,
            of.num_kv_heads,
            of.head_dim,
            of.vocab_size,
            of.max_positions,
            _gemm_block(of.head_dim),
        )
        self._sums_integers = precision is not Precision.FP32
        self._reads_together = self._sums_integers and threads == 1 and of.head_dim % 8 == 0

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
        """Not in fp32, where a product of one row is added up in another order, nor with heads of other sizes (D1)."""
        return self._reads_together

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        """See the port. Raises: as `forward`."""
        of = self._shape
        num_rows, num_new = check_forward_inputs(of, ids, positions, mask, keys, values)
        is_lone = not self._sums_integers and len(scored) == 1 < ids.size
        if is_lone:  # it is scored as one of several, as all its layers are
            scored = scored.repeat(2)
        inputs = {"ids": ids, "pos": positions, "mask": mask, "scored": scored}
        for layer in range(of.num_layers):
            inputs[f"k.{layer}"] = keys[layer]
            inputs[f"v.{layer}"] = values[layer]
        logits, new_keys, new_values = self._session.run(("logits", "k_new", "v_new"), inputs)
        stacked = (of.num_layers, num_rows, of.num_kv_heads, num_new, of.head_dim)
        return ForwardOutput(
            logits[:1] if is_lone else logits,
            new_keys.reshape(stacked),
            new_values.reshape(stacked),
        )

    def states(self, ids: Ids) -> TextStates:
        """See the port. Raises: as `forward`."""
        of, num = self._shape, len(ids)
        empty = np.zeros((1, of.num_kv_heads, 0, of.head_dim), np.float32)
        mask = np.triu(np.full((1, num, num), MASKED, np.float32), 1)
        inputs: dict[str, Any] = {"ids": ids[None], "pos": np.arange(num, dtype=np.int64)[None], "mask": mask}
        inputs["scored"] = _all_places(num)
        inputs |= {f"{kind}.{layer}": empty for layer in range(of.num_layers) for kind in "kv"}
        hidden, shares = self._session.run(("hidden", "attention"), inputs)
        num_heads = shares.shape[1] * shares.shape[2] // num
        shares = shares.reshape(num_heads, num, num)  # [A, T, T]
        return TextStates(hidden, shares / shares.sum(axis=2, keepdims=True))


@lru_cache(maxsize=256)
def _all_places(num: int) -> Ids:
    """Read-only."""
    return np.arange(num, dtype=np.int64)


def _gemm_block(head_dim: int) -> int:
    """How far onnxruntime's matrix product sums at once: the fewer columns, the farther (MlasSgemm's strides)."""
    return next((block for most, block in ((16, 1024), (32, 512), (64, 256)) if head_dim <= most), 128)


def _write(folder: ModelFolder, precision: Precision, with_states: bool) -> WrittenGraph:
    from htfi.adapters.onnx.network import write_causal  # onnx is needed to write a graph, not to run one

    return write_causal(folder.architecture, folder.weights, precision, with_states=with_states)
