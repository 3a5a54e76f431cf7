"""Graphs of BERT sentence encoders: texts of equal length, no padding. The sentence encoder's cache writes one.

In int8 the inputs of three products in four have ranges that were measured before, so that a row needs no scale of its
own; the graph then holds all its weights.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.linear import (
    InputRange,
    LinearLayer,
    multiply,
    multiply_bounded_below,
    multiply_in_range,
    quantize_rows,
)
from htfi.adapters.onnx.session import Precision, WrittenGraph
from htfi.decoding.checkpoint.folder import Architecture
from htfi.decoding.checkpoint.weights import CheckpointWeights

RANGE_PREFIX = "largest:"  # before the name of a layer: an output of the graph that watches
_MIN_GELU = -0.17
_WEIGHT_SHARE = 0.7  # of an input's spread that its weights take over; measured, see docs
_MANTISSA_BITS = 8

InputRanges = Mapping[str, NDArray[np.float32]]  # size of each column of an input, by the name of its layer


def write_sentence_encoder(
    architecture: Architecture,
    weights: CheckpointWeights,
    precision: Precision,
    largest: InputRanges | None,
) -> WrittenGraph:
    """The graph of one pass. Input: ids int64 [B, T]. Output: states [B, T, H], after the last layer.

    int8 needs `largest`. Raises: InvalidInput, ShapeMismatch, for weights that do not fit the architecture.
    """
    return _SentenceWriter(architecture, weights, precision, largest).write()


def write_range_recorder(
    architecture: Architecture, weights: CheckpointWeights
) -> tuple[WrittenGraph, tuple[str, ...]]:
    """The graph in fp32 that also gives the range of each layer's input, column by column; and these outputs."""
    writer = _SentenceWriter(architecture, weights, Precision.FP32, None, is_watching=True)
    return writer.write(), tuple(name for name in writer.outputs if name.startswith(RANGE_PREFIX))


class _SentenceWriter:
    """Writes the graph node by node. In int8 the table of words is int8 too, and the graph holds all its weights."""

    def __init__(
        self,
        architecture: Architecture,
        weights: CheckpointWeights,
        precision: Precision,
        largest: InputRanges | None,
        *,
        is_watching: bool = False,
    ) -> None:
        self.shape = architecture
        self.graph = GraphWriter(weights)
        self.precision = precision
        self.outputs = ["states"]
        self.prefix = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""
        self.input_ranges = largest
        self.records_ranges = is_watching
        self.gelu = "none" if precision is Precision.FP32 else "tanh"  # differs by less than the bytes do

    def write(self) -> WrittenGraph:
        graph, shape = self.graph, self.shape
        value = self._embed()
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
        return graph.finish({"ids": (TensorProto.INT64, sizes)}, self.outputs)

    def _embed(self) -> str:
        """Words and places, all of the first type, normed: [M, H]."""
        graph, shape = self.graph, self.shape
        places, types = (
            graph.weights.array(
                f"{self.prefix}embeddings.{name}_embeddings.weight", (size, shape.hidden_size)
            )
            for name, size in (("position", shape.max_positions), ("token_type", shape.num_token_types))
        )
        first = graph.constant([0])
        num_new = graph.add("Shape", ["ids"], start=1)
        of_place = graph.add("Slice", [graph.compute("places", places + types[0]), first, num_new, first])
        by_row = graph.constant([-1, shape.hidden_size])
        value = graph.add("Reshape", [graph.add("Add", [self._words(), of_place]), by_row])
        return self._layer_norm(f"{self.prefix}embeddings.LayerNorm", value)

    def _words(self) -> str:
        """The vectors of the words [B, T, H], in int8 from rows of bytes with a scale each."""
        graph, shape = self.graph, self.shape
        name = f"{self.prefix}embeddings.word_embeddings.weight"
        size = (shape.vocab_size, shape.hidden_size)
        if self.precision is Precision.FP32:
            table = graph.borrow(name, size, as_stored=True)
            return graph.add("Cast", [graph.add("Gather", [table, "ids"])], to=TensorProto.FLOAT)
        table, scales = quantize_rows(graph.weights.array(name, size))
        words = graph.add("Gather", [graph.compute(f"{name}:words", table), "ids"])
        scale = graph.add("Gather", [graph.compute(f"{name}:scales", scales[:, None]), "ids"])
        return graph.add("Mul", [graph.add("Cast", [words], to=TensorProto.FLOAT), scale])

    def _attention(self, at: str, value: str) -> str:
        graph, shape = self.graph, self.shape
        names = tuple(f"{at}attention.self.{name}" for name in ("query", "key", "value"))
        width = shape.hidden_size
        joined = self._multiply(value, names, (width, width, width), width)
        heads = graph.add("Transpose", [graph.add("Reshape", [joined, self.split_heads])], perm=[0, 2, 1, 3])
        parts = graph.add_many("Split", [heads, graph.constant([shape.num_heads] * 3)], 3, axis=1)
        query, key, content = parts  # [B, N, T, D]
        score = graph.add("FusedMatMul", [query, key], domain=MICROSOFT, transB=1, alpha=shape.head_dim**-0.5)
        share = graph.add("Softmax", [score], axis=-1)
        mixed = graph.add("Transpose", [graph.add("MatMul", [share, content])], perm=[0, 2, 1, 3])
        mixed = graph.add("Reshape", [mixed, graph.constant([-1, width])])
        return self._multiply(mixed, (f"{at}attention.output.dense",), (width,), width)

    def _feed_forward(self, at: str, value: str) -> str:
        graph, shape = self.graph, self.shape
        inner = self._multiply(
            value, (f"{at}intermediate.dense",), (shape.intermediate_size,), shape.hidden_size
        )
        if shape.activation == "relu":
            inner = graph.add("Relu", [inner])
        else:
            approximate = "tanh" if shape.activation == "gelu_new" else self.gelu
            inner = graph.add("Gelu", [inner], approximate=approximate)
        return self._multiply(inner, (f"{at}output.dense",), (shape.hidden_size,), shape.intermediate_size)

    def _norm(self, at: str, value: str, residual: str) -> str:
        """The layer norm of value + residual: the runtime's SkipLayerNormalization takes eight times as long."""
        return self._layer_norm(at, self.graph.add("Add", [value, residual]))

    def _multiply(self, value: str, at: tuple[str, ...], sizes: tuple[int, ...], num_inputs: int) -> str:
        if self.records_ranges:
            size = self.graph.add("Abs", [value])
            seen = self.graph.add("ReduceMax", [size, self.graph.constant([0])], keepdims=0)
            self.graph.rename_last(seen, RANGE_PREFIX + at[0])
            self.outputs.append(RANGE_PREFIX + at[0])
        layer = LinearLayer(
            tuple(f"{name}.weight" for name in at), sizes, num_inputs, tuple(f"{name}.bias" for name in at)
        )
        if self.input_ranges is None:
            return multiply(self.graph, value, layer, self.precision)
        if num_inputs == self.shape.intermediate_size and sizes == (self.shape.hidden_size,):
            return multiply_bounded_below(self.graph, value, layer, _MIN_GELU)
        joined = np.concatenate(
            [
                self.graph.weights.array(name, (size, num_inputs))
                for name, size in zip(layer.names, sizes, strict=True)
            ]
        )
        is_mixed = at[0].endswith("attention.output.dense")
        within = _input_range(self.input_ranges[at[0]], None if is_mixed else joined)
        return multiply_in_range(self.graph, value, layer, within)

    def _layer_norm(self, at: str, value: str) -> str:
        """Older folders call gain and shift gamma and beta."""
        graph, size = self.graph, (self.shape.hidden_size,)
        ends = ("gamma", "beta") if f"{at}.gamma" in graph.weights else ("weight", "bias")
        gain, shift = (self._small_weight(f"{at}.{end}", size) for end in ends)
        return graph.add("LayerNormalization", [value, gain, shift], axis=-1, epsilon=self.shape.norm_eps)

    def _small_weight(self, name: str, size: tuple[int, ...]) -> str:
        if self.precision is Precision.FP32:
            return self.graph.borrow(name, size)
        return self.graph.compute(f"{name}:copy", self.graph.weights.array(name, size))


def _input_range(largest: NDArray[np.float32], weight: NDArray[np.float32] | None) -> InputRange:
    """Where the weights [outputs, inputs] are given, columns are divided so that neither they nor the weights stand
    out; the numbers are rounded, so that machines whose sums differ in the last bits come to the same."""
    if weight is None:
        return InputRange(_rounded_up(largest.max(keepdims=True))[0])
    sizes = np.maximum(largest, np.float32(1e-4))
    strongest = np.maximum(np.abs(weight).max(axis=0), np.float32(1e-5))
    divisors = _rounded_up(sizes**_WEIGHT_SHARE / strongest ** (1 - _WEIGHT_SHARE))
    return InputRange(_rounded_up((sizes / divisors).max(keepdims=True))[0], divisors)


def _rounded_up(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Up, to a few bits of mantissa."""
    mantissa, exponent = np.frexp(values)
    steps = np.float32(2**_MANTISSA_BITS)
    return np.ldexp(np.ceil(mantissa * steps) / steps, exponent).astype(np.float32)
