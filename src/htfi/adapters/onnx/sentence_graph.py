"""Graphs of sentence encoders: texts of equal length, no padding. The sentence encoder's cache writes one.

In int8 the inputs of three products in four have ranges that were seen before, so that a row needs no step of its own.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from htfi.adapters.onnx.encoder_graph import EncoderWriter
from htfi.adapters.onnx.linear import InputRange, LinearLayer, multiply_bounded_below, multiply_in_range
from htfi.adapters.onnx.session import Precision, WrittenGraph
from htfi.decoding.checkpoint.architecture import Architecture
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
    top: int,
    largest: InputRanges | None,
) -> WrittenGraph:
    """The graph of one pass. Input: ids int64 [B, T]. Output: states [B, T, H], after the last layer.

    int8 needs `largest`. Raises: InvalidInput, ShapeMismatch, for weights that do not fit the architecture.
    """
    return _SentenceWriter(architecture, weights, precision, top, largest).write()


def write_range_recorder(
    architecture: Architecture, weights: CheckpointWeights
) -> tuple[WrittenGraph, tuple[str, ...]]:
    """The graph in fp32 that also tells how large each layer's input is, column by column; and its outputs."""
    writer = _SentenceWriter(architecture, weights, Precision.FP32, 127, None, is_watching=True)
    return writer.write(), tuple(name for name in writer.outputs if name.startswith(RANGE_PREFIX))


class _SentenceWriter(EncoderWriter):
    inputs = ("ids",)

    def __init__(
        self,
        architecture: Architecture,
        weights: CheckpointWeights,
        precision: Precision,
        top: int,
        largest: InputRanges | None,
        *,
        is_watching: bool = False,
    ) -> None:
        super().__init__(architecture, weights, precision, top)
        self.input_ranges = largest
        self.records_ranges = is_watching
        self.gelu = "none" if precision is Precision.FP32 else "tanh"  # differs by less than the bytes do

    def embed(self) -> str:
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
        word = f"{self.prefix}embeddings.word_embeddings.weight"
        stored = graph.borrow(word, (shape.vocab_size, shape.hidden_size), as_stored=True)
        words = graph.add("Cast", [graph.add("Gather", [stored, "ids"])], to=TensorProto.FLOAT)  # [B, T, H]
        by_row = graph.constant([-1, shape.hidden_size])
        value = graph.add("Reshape", [graph.add("Add", [words, of_place]), by_row])
        return self.normed(f"{self.prefix}embeddings.LayerNorm", value)

    def additive_mask(self) -> None:
        return None

    def multiply(self, value: str, at: tuple[str, ...], sizes: tuple[int, ...], num_inputs: int) -> str:
        if self.records_ranges:
            size = self.graph.add("Abs", [value])
            seen = self.graph.add("ReduceMax", [size, self.graph.constant([0])], keepdims=0)
            self.graph.rename_last(seen, RANGE_PREFIX + at[0])
            self.outputs.append(RANGE_PREFIX + at[0])
        if self.input_ranges is None:
            return super().multiply(value, at, sizes, num_inputs)
        layer = LinearLayer(
            tuple(f"{name}.weight" for name in at), sizes, num_inputs, tuple(f"{name}.bias" for name in at)
        )
        if num_inputs == self.shape.intermediate_size and sizes == (self.shape.hidden_size,):
            return multiply_bounded_below(self.graph, value, layer, _MIN_GELU, self.top)
        joined = np.concatenate(
            [
                self.graph.weights.array(name, (size, num_inputs))
                for name, size in zip(layer.names, sizes, strict=True)
            ]
        )
        is_mixed = at[0].endswith("attention.output.dense")
        within = _input_range(self.input_ranges[at[0]], None if is_mixed else joined)
        return multiply_in_range(self.graph, value, layer, within, self.top)


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
