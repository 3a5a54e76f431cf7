"""The floor of reading a text: the integer products of the encoder's layers alone, by its own engine, on one core.

The kernel that the encoder multiplies by runs on as many rows as a text has tokens, with the weights of every layer:
that of the encoder in C, or where onnxruntime reads the node MatMulIntegerToFloat. Attention, norms and what makes
integers of floats are left out.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from htfi import models
from htfi.decoding.checkpoint.folder import CONFIG, Architecture, parse_architecture
from htfi.narrative.config import EncodingConfig
from htfi.wiring.encoder import shipped_encoder
from htfi_eval.bench.floors import Floor
from htfi_eval.bench.processes import available_cores, on_one_core

_BATCH_ROWS = 512  # tokens that the encoder takes at once
_NUM_TIMED, _NUM_WARM = 30, 5
_MICROSOFT = "com.microsoft"
_OPSET = 21


@dataclass(frozen=True, slots=True)
class EncoderFloors:
    """Floors of one item: alone on one core and on all, in a batch on one core and on all."""

    alone_us: Floor
    alone_all_cores_ms: Floor
    batch_us: Floor
    batch_items_per_s: Floor
    all_cores_items_per_s: Floor

    @classmethod
    def measure(cls, num_tokens: float) -> "EncoderFloors":
        """For items of so many tokens."""
        num_cores, multiply = len(available_cores()), product_kernel()
        engine = "onnxruntime" if multiply is None else "C"
        with on_one_core():
            alone_us = products_s(max(round(num_tokens), 1), multiply) * 1e6
            batch_us = products_s(_BATCH_ROWS, multiply) * num_tokens / _BATCH_ROWS * 1e6
        what = f"the encoder's integer products of the scored text alone, in {engine}"
        at_once = f"{what}, {_BATCH_ROWS} tokens at once"
        return cls(
            Floor(alone_us, what),
            Floor(alone_us / num_cores / 1e3, f"{what}, over {num_cores} cores"),
            Floor(batch_us, at_once),
            Floor(1e6 / batch_us, at_once),
            Floor(num_cores * 1e6 / batch_us, f"{at_once}, times {num_cores} cores"),
        )


def encoder_shape() -> Architecture:
    """Of the encoder that ships. Raises: InvalidInput."""
    return parse_architecture((models.FACTS / CONFIG).read_bytes(), str(models.FACTS / CONFIG))


def product_kernel() -> Callable[[int], None] | None:
    """The products of the encoder in C over so many tokens; None where onnxruntime reads."""
    return shipped_encoder(EncodingConfig()).product_kernel()


def products_s(num_rows: int, multiply: Callable[[int], None] | None) -> float:
    """The median seconds of all integer products of a pass over `num_rows` tokens, in one thread: by `multiply`, or in
    onnxruntime where there is none.
    """
    if multiply is not None:
        return _median_s(lambda: multiply(num_rows))
    return _onnx_products_s(encoder_shape(), num_rows)


def _onnx_products_s(of: Architecture, num_rows: int) -> float:
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
    return _median_s(lambda: session.run(None, inputs))


def _median_s(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(_NUM_WARM + _NUM_TIMED):
        began = time.perf_counter()
        work()
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
