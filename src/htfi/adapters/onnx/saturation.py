"""Whether this processor adds products of bytes exactly. Networks ask before they quantise weights."""

from functools import cache
from pathlib import Path

import numpy as np

from htfi.adapters.onnx.session import NO_WEIGHTS, OnnxSession, WrittenGraph, cached_graph

_DEPTH = 64


@cache
def max_weight_level(cache_folder: Path) -> int:
    """127 where sums of byte products are exact, else 63: some processors saturate them at 16 bits in between.

    With 63, two products of the largest values still fit: 2 * 255 * 63 < 2^15.
    Source: the note on saturation in onnxruntime's quantization guide (AVX2, and AVX-512 without VNNI).
    """
    session = OnnxSession(cached_graph("saturation", cache_folder, _write), NO_WEIGHTS, threads=1)
    whole = np.full((1, _DEPTH), 255, np.uint8)
    (found,) = session.run(("sum",), {"whole": whole})
    return 127 if float(found[0, 0]) == _DEPTH * (255 - 128) * 127 else 63


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
