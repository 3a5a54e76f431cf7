"""The floor of reading a text: the integer products of the encoder's layers alone, in onnxruntime, on one core.

The same node that the encoder multiplies by (MatMulIntegerToFloat) runs on as many rows as a text has tokens, with
the weights of every layer apart, so that they come from as far as the encoder's do. Attention, norms and what makes
integers of floats are left out.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from htfi import models
from htfi.decoding.checkpoint.folder import CONFIG, Architecture, parse_architecture
from htfi_eval.bench.floors import Floor
from htfi_eval.bench.processes import available_cores, on_one_core

_BATCH_ROWS = 512  # tokens that the encoder takes at once
_NUM_TIMED, _NUM_WARM = 30, 5
_MICROSOFT = "com.microsoft"
_OPSET = 21


@dataclass(frozen=True, slots=True)
class EncoderFloors:
    """Floors of one item: alone, in a batch on one core, and in a batch on all cores."""

    alone_us: Floor
    batch_us: Floor
    batch_items_per_s: Floor
    all_cores_items_per_s: Floor

    @classmethod
    def measure(cls, num_tokens: float) -> "EncoderFloors":
        """For items of so many tokens."""
        of, num_cores = encoder_shape(), len(available_cores())
        with on_one_core():
            alone_us = products_s(of, max(round(num_tokens), 1)) * 1e6
            batch_us = products_s(of, _BATCH_ROWS) * num_tokens / _BATCH_ROWS * 1e6
        what = "the encoder's integer products of the scored text alone, in onnxruntime"
        at_once = f"{what}, {_BATCH_ROWS} tokens at once"
        return cls(
            Floor(alone_us, what),
            Floor(batch_us, at_once),
            Floor(1e6 / batch_us, at_once),
            Floor(num_cores * 1e6 / batch_us, f"{at_once}, times {num_cores} cores"),
        )


def encoder_shape() -> Architecture:
    """Of the encoder that ships. Raises: InvalidInput."""
    return parse_architecture((models.FACTS / CONFIG).read_bytes(), str(models.FACTS / CONFIG))


def products_s(of: Architecture, num_rows: int) -> float:
    """The median seconds of all integer products of a pass over `num_rows` tokens, in one thread."""
    ort: Any = import_module("onnxruntime")  # which ships no types
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(_graph(of), options, providers=["CPUExecutionProvider"])
    noise = np.random.Generator(np.random.PCG64(0))
    inputs = {
        f"rows_{size}": noise.integers(0, 256, (num_rows, size), np.uint8)
        for size in {num_inputs for num_inputs, _ in _layers(of)}
    }
    times: list[float] = []
    for _ in range(_NUM_WARM + _NUM_TIMED):
        began = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - began)
    return median(times[_NUM_WARM:])


def _layers(of: Architecture) -> Iterator[tuple[int, int]]:
    """Inputs and outputs of every layer: queries, keys and values together, attention's output, feed-forward."""
    hidden, inner = of.hidden_size, of.intermediate_size
    for _ in range(of.num_layers):
        yield from ((hidden, 3 * hidden), (hidden, hidden), (hidden, inner), (inner, hidden))


def _graph(of: Architecture) -> bytes:
    """Every product reads the input of its size; each is an output, so that none is left out."""
    noise = np.random.Generator(np.random.PCG64(0))
    nodes: list[Any] = []
    weights = [
        helper.make_tensor("step", TensorProto.FLOAT, (), [1.0]),
        helper.make_tensor("zero", TensorProto.UINT8, (), [128]),
    ]
    inputs: dict[int, Any] = {}
    outputs: list[Any] = []
    for place, (num_inputs, num_outputs) in enumerate(_layers(of)):
        weight = noise.integers(-63, 64, (num_inputs, num_outputs), np.int8)
        scale = np.ones(num_outputs, np.float32)
        weights += [
            helper.make_tensor(f"w{place}", TensorProto.INT8, weight.shape, weight.tobytes(), raw=True),
            helper.make_tensor(f"s{place}", TensorProto.FLOAT, scale.shape, scale.tobytes(), raw=True),
        ]
        rows = f"rows_{num_inputs}"
        inputs[num_inputs] = helper.make_tensor_value_info(rows, TensorProto.UINT8, ["M", num_inputs])
        names = [rows, f"w{place}", "step", f"s{place}", "zero"]
        nodes.append(helper.make_node("MatMulIntegerToFloat", names, [f"o{place}"], domain=_MICROSOFT))
        outputs.append(helper.make_tensor_value_info(f"o{place}", TensorProto.FLOAT, ["M", num_outputs]))
    graph = helper.make_graph(nodes, "products", list(inputs.values()), outputs, weights)
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
