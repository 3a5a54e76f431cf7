"""Graphs of BERT encoders. The encoder's cache writes one when it has none."""

import numpy as np
from onnx import TensorProto

from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.linear import LinearLayer, multiply
from htfi.adapters.onnx.session import Precision, WrittenGraph
from htfi.decoding.checkpoint.architecture import Architecture
from htfi.decoding.checkpoint.weights import CheckpointWeights


def write_encoder(
    architecture: Architecture, weights: CheckpointWeights, precision: Precision, top: int
) -> WrittenGraph:
    """The graph of one pass over whole texts.

    Inputs: ids and types int64 [B, T]; mask int64 [B, T], 1 for tokens and 0 for padding.
    Output: states [B, T, H], after the last layer; those of padding mean nothing.
    Raises: InvalidInput, ShapeMismatch, for weights that do not fit the architecture.
    """
    return EncoderWriter(architecture, weights, precision, top).write()


class EncoderWriter:
    """Writes node by node; sentence_graph writes another beginning and other products."""

    inputs = ("ids", "types", "mask")
    gelu = "none"  # the approximation that the layers may take

    def __init__(
        self, architecture: Architecture, weights: CheckpointWeights, precision: Precision, top: int
    ) -> None:
        self.shape = architecture
        self.graph = GraphWriter(weights)
        self.precision = precision
        self.top = top
        self.outputs = ["states"]
        self.prefix = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""

    def write(self) -> WrittenGraph:
        graph, shape = self.graph, self.shape
        self.mask = self.additive_mask()
        value = self.embed()
        self.split_heads = graph.add(
            "Concat",
            [graph.add("Shape", ["ids"]), graph.constant([3 * shape.num_heads, shape.head_dim])],
            axis=0,
        )
        for layer in range(shape.num_layers):
            at = f"{self.prefix}encoder.layer.{layer}."
            mixed = self._attention(at, value)
            value = self._norm(f"{at}attention.output.LayerNorm", mixed, value)
            value = self._norm(f"{at}output.LayerNorm", self._feed_forward(at, value), value)
        by_row = graph.add(
            "Concat", [graph.add("Shape", ["ids"]), graph.constant([shape.hidden_size])], axis=0
        )
        graph.rename_last(graph.add("Reshape", [value, by_row]), "states")
        sizes: list[str | int] = ["B", "T"]
        return graph.finish(dict.fromkeys(self.inputs, (TensorProto.INT64, sizes)), self.outputs)

    def embed(self) -> str:
        """Words, places and types of every token, normed: [M, H], M = B * T."""
        graph, shape = self.graph, self.shape
        num_new = graph.add("Shape", ["ids"], start=1)
        flat = graph.constant([-1])
        counted = graph.add("Expand", [graph.constant([1]), num_new])
        places = graph.add(
            "Sub", [graph.add("CumSum", [counted, graph.constant(np.int64(0))]), graph.constant([1])]
        )
        places = graph.add("Expand", [places, graph.add("Shape", ["ids"])])
        parts = [
            self._gather(name, size, graph.add("Reshape", [index, flat]))
            for name, size, index in (
                ("word", shape.vocab_size, "ids"),
                ("position", shape.max_positions, places),
                ("token_type", shape.num_token_types, "types"),
            )
        ]
        where = f"{self.prefix}embeddings.LayerNorm"
        return self._norm(where, graph.add("Add", [parts[0], parts[2]]), parts[1])

    def _gather(self, name: str, size: int, index: str) -> str:
        table = f"{self.prefix}embeddings.{name}_embeddings.weight"
        stored = self.graph.borrow(table, (size, self.shape.hidden_size), as_stored=True)
        return self.graph.add("Cast", [self.graph.add("Gather", [stored, index])], to=TensorProto.FLOAT)

    def additive_mask(self) -> str | None:
        """0 for tokens and a large negative number for padding: [B, 1, 1, T]; None where nothing is padding."""
        graph = self.graph
        shown = graph.add("Cast", ["mask"], to=TensorProto.FLOAT)
        hidden = graph.add("Sub", [graph.constant(np.float32(1)), shown])
        hidden = graph.add("Mul", [hidden, graph.constant(np.float32(-1e30))])
        return graph.add("Unsqueeze", [hidden, graph.constant([1, 2])])

    def _attention(self, at: str, value: str) -> str:
        graph, shape = self.graph, self.shape
        names = tuple(f"{at}attention.self.{name}" for name in ("query", "key", "value"))
        width = shape.hidden_size
        joined = self.multiply(value, names, (width, width, width), width)
        heads = graph.add("Transpose", [graph.add("Reshape", [joined, self.split_heads])], perm=[0, 2, 1, 3])
        parts = graph.add_many("Split", [heads, graph.constant([shape.num_heads] * 3)], 3, axis=1)
        query, key, content = parts  # [B, N, T, D]
        score = graph.add("FusedMatMul", [query, key], domain=MICROSOFT, transB=1, alpha=shape.head_dim**-0.5)
        if self.mask is not None:
            score = graph.add("Add", [score, self.mask])
        share = graph.add("Softmax", [score], axis=-1)
        mixed = graph.add("Transpose", [graph.add("MatMul", [share, content])], perm=[0, 2, 1, 3])
        mixed = graph.add("Reshape", [mixed, graph.constant([-1, width])])
        return self.multiply(mixed, (f"{at}attention.output.dense",), (width,), width)

    def _feed_forward(self, at: str, value: str) -> str:
        graph, shape = self.graph, self.shape
        inner = self.multiply(
            value, (f"{at}intermediate.dense",), (shape.intermediate_size,), shape.hidden_size
        )
        if shape.activation == "relu":
            inner = graph.add("Relu", [inner])
        else:
            approximate = "tanh" if shape.activation == "gelu_new" else self.gelu
            inner = graph.add("Gelu", [inner], approximate=approximate)
        return self.multiply(inner, (f"{at}output.dense",), (shape.hidden_size,), shape.intermediate_size)

    def multiply(self, value: str, at: tuple[str, ...], sizes: tuple[int, ...], num_inputs: int) -> str:
        weights = tuple(f"{name}.weight" for name in at)
        biases = tuple(f"{name}.bias" for name in at)
        return multiply(
            self.graph, value, LinearLayer(weights, sizes, num_inputs, biases), self.precision, self.top
        )

    def _norm(self, at: str, value: str, residual: str) -> str:
        """The layer norm of value + residual: the runtime's SkipLayerNormalization takes eight times as long."""
        return self.normed(at, self.graph.add("Add", [value, residual]))

    def normed(self, at: str, value: str) -> str:
        """Older folders call gain and shift gamma and beta."""
        graph, size = self.graph, (self.shape.hidden_size,)
        ends = ("gamma", "beta") if f"{at}.gamma" in graph.weights else ("weight", "bias")
        gain, shift = (graph.borrow(f"{at}.{end}", size) for end in ends)
        return graph.add("LayerNormalization", [value, gain, shift], axis=-1, epsilon=self.shape.norm_eps)
