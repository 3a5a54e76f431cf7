"""Linear layers in each precision. The writers of causal networks and encoders multiply through here alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.session import MAX_LEVEL, Precision

_ZERO_POINT = np.uint8(128)  # what zero is as an unsigned byte


@dataclass(frozen=True, slots=True)
class LinearLayer:
    """One or more linear layers that read the same input: tensor names, and outputs of each."""

    names: tuple[str, ...]
    num_outputs: tuple[int, ...]
    num_inputs: int
    biases: tuple[str, ...] = ()


def multiply(writer: GraphWriter, value: str, layer: LinearLayer, precision: Precision) -> str:
    """`value` [M, inputs] times the layer's weights: [M, all outputs], in the order of its names."""
    if precision is Precision.FP32:
        product = _multiply_floats(writer, value, layer)
    else:
        product = _multiply_bytes(writer, value, layer, wide=precision is Precision.INT8_WIDE)
    if layer.biases:
        biases = [
            writer.weights.array(name, (size,))
            for name, size in zip(layer.biases, layer.num_outputs, strict=True)
        ]
        bias = writer.compute(f"{layer.names[0]}:bias", np.concatenate(biases))
        product = writer.add("Add", [product, bias])
    return product


@dataclass(frozen=True, slots=True)
class InputRange:
    """What the input of a layer was seen to hold: `divisors` [inputs] make its columns alike, then `largest` bounds it.

    The weights take the divisors back. Source: SmoothQuant, arXiv 2211.10438.
    """

    bound: np.float32
    divisors: NDArray[np.float32] | None = None


def multiply_in_range(writer: GraphWriter, value: str, layer: LinearLayer, within: InputRange) -> str:
    """As `multiply` in int8, one step for all rows: what lies beyond the range is cut to it."""
    weight, scale, bias = _joined_bytes(writer, layer, within.divisors)
    if within.divisors is not None:
        inverse = writer.compute(f"{layer.names[0]}:inverse", 1 / within.divisors)
        value = writer.add("Mul", [value, inverse])
    step, zero = writer.constant(np.float32(within.bound / 127)), writer.constant(_ZERO_POINT)
    whole = writer.add("QuantizeLinear", [value, step, zero])
    return writer.add("MatMulIntegerToFloat", [whole, weight, step, scale, zero, "", bias], domain=MICROSOFT)


def multiply_bounded_below(writer: GraphWriter, value: str, layer: LinearLayer, lowest: float) -> str:
    """As `multiply` in int8, of a value that is never below `lowest`, which is negative and small: a step per row."""
    weight, scale, bias = _joined_bytes(writer, layer, None)
    below = 16  # of the 256 levels lie below zero
    above = 255 - below
    least = writer.constant(np.float32(-lowest / below * above))
    largest = writer.add("Max", [writer.add("ReduceMax", [value, _last(writer)], keepdims=1), least])
    step, zero = writer.constant(np.float32(1 / above)), writer.constant(np.uint8(below))
    whole = writer.add("QuantizeLinear", [writer.add("Div", [value, largest]), step, zero])
    product = _integer_product(writer, whole, weight, scale, step, zero)
    return writer.add("Add", [writer.add("Mul", [product, largest]), bias])


def _joined_bytes(
    writer: GraphWriter, layer: LinearLayer, factors: NDArray[np.float32] | None
) -> tuple[str, str, str]:
    """Weights times `factors` [inputs] as bytes [inputs, outputs], their scales [outputs] and biases [outputs]."""
    name = layer.names[0]
    parts = [
        writer.weights.array(part, (size, layer.num_inputs))
        for part, size in zip(layer.names, layer.num_outputs, strict=True)
    ]
    joined = np.concatenate(parts)
    whole, scales = quantize_rows(joined if factors is None else joined * factors)
    biases = [
        writer.weights.array(part, (size,))
        for part, size in zip(layer.biases, layer.num_outputs, strict=True)
    ]
    return (
        writer.compute(f"{name}:int8", whole.T),
        writer.compute(f"{name}:scale", scales),
        writer.compute(f"{name}:bias", np.concatenate(biases)),
    )


def quantize_rows(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers within ±127 and a scale for each row. Shapes: [N, K] to [N, K] and [N]."""
    scales = np.abs(weight).max(axis=1) / np.float32(MAX_LEVEL)
    scales[scales == 0] = 1
    return np.rint(weight / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def _multiply_floats(writer: GraphWriter, value: str, layer: LinearLayer) -> str:
    """Straight from the folder's memory map, one product a layer: nothing is copied to be joined."""
    products = [
        writer.add(
            "FusedMatMul",
            [value, writer.borrow(name, (size, layer.num_inputs))],
            domain=MICROSOFT,
            transB=1,
        )
        for name, size in zip(layer.names, layer.num_outputs, strict=True)
    ]
    return products[0] if len(products) == 1 else writer.add("Concat", products, axis=-1)


def _multiply_bytes(writer: GraphWriter, value: str, layer: LinearLayer, *, wide: bool) -> str:
    name = layer.names[0] + (":joined" if len(layer.names) > 1 else "")
    rows: list[NDArray[np.int8]] = []
    scales: list[NDArray[np.float32]] = []
    for part, size in zip(layer.names, layer.num_outputs, strict=True):
        whole, scale = quantize_rows(writer.weights.array(part, (size, layer.num_inputs)))
        rows.append(whole)
        scales.append(scale)
    weight = writer.compute(f"{name}:int8", np.concatenate(rows).T)  # [inputs, outputs]
    scale = writer.compute(f"{name}:scale", np.concatenate(scales))
    step, zero = writer.constant(np.float32(1 / 127)), writer.constant(_ZERO_POINT)
    # A row of zeros gives 0/0 here, any byte after it, and zero again when multiplied by its largest.
    largest = writer.add("ReduceMax", [writer.add("Abs", [value]), _last(writer)], keepdims=1)  # [M, 1]
    unit = writer.add("Div", [value, largest])
    whole = writer.add("QuantizeLinear", [unit, step, zero])
    if not wide:
        product = _integer_product(writer, whole, weight, scale, step, zero)
        return writer.add("Mul", [product, largest])
    rest = writer.add("Sub", [unit, writer.add("DequantizeLinear", [whole, step, zero])])
    fine = writer.constant(np.float32(1 / 127 / 254))
    low = writer.add("QuantizeLinear", [rest, fine, zero])
    both = writer.add("Concat", [whole, low], axis=0)  # [2M, inputs]: the weights are read once for both
    product = _integer_product(writer, both, weight, scale, step, zero)
    high_part, low_part = writer.add_many("Split", [product], 2, axis=0, num_outputs=2)
    low_part = writer.add("Mul", [low_part, writer.constant(np.float32(1 / 254))])
    return writer.add("Mul", [writer.add("Add", [high_part, low_part]), largest])


def _integer_product(writer: GraphWriter, whole: str, weight: str, scale: str, step: str, zero: str) -> str:
    return writer.add("MatMulIntegerToFloat", [whole, weight, step, scale, zero], domain=MICROSOFT)


def _last(writer: GraphWriter) -> str:
    return writer.constant([-1])
