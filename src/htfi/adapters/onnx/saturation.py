"""Exact products of bytes on every processor: a graph in int8 gives the same sums with and without VNNI.

Some processors add two products of a signed byte in 16 bits and cut what does not fit. There the weights are given as
unsigned bytes with zero at 128, which onnxruntime multiplies in 16 bits and adds in 32.
Source: the note on saturation in onnxruntime's quantization guide (AVX2, and AVX-512 without VNNI).
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from htfi.adapters.onnx.session import NO_WEIGHTS, OnnxSession, WrittenGraph, cached_graph

_DEPTH = 64
_ZERO = "weight_zero"


def exact_graph(key: str, cache_folder: Path, write: Callable[[], WrittenGraph]) -> WrittenGraph:
    """The graph kept under `key` (`cached_graph`), in the form whose sums this processor adds exactly."""
    if adds_signed_exactly(cache_folder):
        return cached_graph(key, cache_folder, write)
    return cached_graph(f"{key}.unsigned", cache_folder, lambda: with_unsigned_weights(write()))


@cache
def adds_signed_exactly(cache_folder: Path) -> bool:
    """Whether this processor adds products of unsigned with signed bytes exactly."""
    session = OnnxSession(cached_graph("saturation", cache_folder, _write), NO_WEIGHTS, threads=1)
    whole = np.full((1, _DEPTH), 255, np.uint8)
    (found,) = session.run(("sum",), {"whole": whole})
    return float(found[0, 0]) == _DEPTH * (255 - 128) * 127


def with_unsigned_weights(written: WrittenGraph) -> WrittenGraph:
    """The same products, with weights as unsigned bytes whose zero is 128."""
    import onnx

    model = onnx.load_model_from_string(written.content)
    arrays, products = dict(written.computed), set[str]()
    for node in model.graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            products.add(node.input[1])
            node.input.extend([""] * (6 - len(node.input)))
            node.input[5] = _ZERO
    for tensor in model.graph.initializer:
        if tensor.name in products:
            tensor.data_type = onnx.TensorProto.UINT8
            arrays[tensor.name] = arrays[tensor.name].view(np.uint8) ^ np.uint8(128)
    if products:
        zero = onnx.helper.make_tensor(_ZERO, onnx.TensorProto.UINT8, [], b"\x80", raw=True)
        model.graph.initializer.append(zero)
    return WrittenGraph(model.SerializeToString(deterministic=True), written.borrowed, arrays)


def _write() -> WrittenGraph:
    """The largest sum that the linear layers can meet, by the node that they use."""
    from onnx import TensorProto

    from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter

    graph = GraphWriter(NO_WEIGHTS)
    weight = graph.compute("weight", np.full((_DEPTH, 16), 127, np.int8))
    one, zero = graph.constant(np.float32(1)), graph.constant(np.uint8(128))
    scale = graph.compute("scale", np.ones(16, np.float32))
    found = graph.add("MatMulIntegerToFloat", ["whole", weight, one, scale, zero], domain=MICROSOFT)
    graph.rename_last(found, "sum")
    return graph.finish({"whole": (TensorProto.UINT8, ["M", _DEPTH])}, ["sum"])
