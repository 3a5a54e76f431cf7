"""Graphs of Llama and Qwen3: one forward pass over a cache of keys and values. `OnnxNetwork`'s cache writes one."""

import numpy as np
from onnx import TensorProto

from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.linear import LinearLayer, multiply
from htfi.adapters.onnx.session import Precision, WrittenGraph
from htfi.decoding.checkpoint.folder import Architecture
from htfi.decoding.checkpoint.rope import Rope, rotary_frequencies
from htfi.decoding.checkpoint.weights import CheckpointWeights


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
