"""A graph as it is being written, with onnx.helper. The writers of causal networks and encoders add to one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from htfi.adapters.onnx.session import STORED, WrittenGraph, weight_of
from htfi.decoding.checkpoint.weights import CheckpointWeights
from htfi.domain.errors import InvalidInput

MICROSOFT = "com.microsoft"
OPSET = 23
_ONNX_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
}
_STORED_TYPES = {"F32": TensorProto.FLOAT, "F16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16}
_SMALL_BYTES = 4096  # constants up to this size are in the graph itself

Array = NDArray[Any]


class GraphWriter:
    """Nodes in the order they run. A value is the name of the tensor that holds it."""

    def __init__(self, weights: CheckpointWeights) -> None:
        self.weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._borrowed: dict[str, tuple[int, ...]] = {}
        self._computed: dict[str, Array] = {}

    def add(self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        """One node with one output that is used."""
        return self.add_many(kind, inputs, 1, domain=domain, **attributes)[0]

    def add_many(
        self, kind: str, inputs: Sequence[str], count: int, *, domain: str = "", **attributes: Any
    ) -> list[str]:
        name = f"{kind}_{len(self._nodes)}"
        outputs = [f"{name}_{place}" for place in range(count)]
        self._nodes.append(helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs

    def constant(self, value: Array | np.generic | Sequence[int]) -> str:
        """A small constant, stored once however often it is asked for."""
        array: Array = (
            np.asarray(value, np.int64) if isinstance(value, Sequence) else np.ascontiguousarray(value)
        )
        if array.nbytes > _SMALL_BYTES:
            raise ValueError("a large constant is a weight: give it a name")
        shape = "x".join(map(str, np.shape(value)))
        name = f"constant_{array.dtype}_{shape}_{array.tobytes().hex()}"
        if name not in self._initializers:
            kind = _ONNX_TYPES[array.dtype]
            self._initializers[name] = helper.make_tensor(
                name, kind, np.shape(value), array.tobytes(), raw=True
            )
        return name

    def borrow(self, name: str, shape: tuple[int, ...], *, as_stored: bool = False) -> str:
        """A tensor of the folder, as float32, or in the type it has there. Raises: as Weights.stored does."""
        kind, _ = self.weights.stored(name, shape)
        if kind not in _STORED_TYPES:
            raise InvalidInput(
                f"{self.weights.files[0].parent}: tensor {name!r} is {kind}; save it as floats"
            )
        as_stored = as_stored and kind != "F32"
        name_in_graph = f"{STORED}{name}" if as_stored else name
        onnx_type = _STORED_TYPES[kind] if as_stored else TensorProto.FLOAT
        self._borrowed[name_in_graph] = shape
        self._declare(name_in_graph, onnx_type, shape)
        return name_in_graph

    def compute(self, name: str, array: Array) -> str:
        """A weight that was computed from the folder's."""
        self._computed[name] = np.ascontiguousarray(array)
        self._declare(name, _ONNX_TYPES[array.dtype], array.shape)
        return name

    def rename_last(self, value: str, name: str) -> None:
        """Give the output `value` of the last node its public name."""
        outputs = self._nodes[-1].output
        outputs[list(outputs).index(value)] = name

    def finish(
        self, inputs: Mapping[str, tuple[int, list[str | int]]], outputs: Sequence[str]
    ) -> WrittenGraph:
        """The graph with `inputs` by name, type and shape; letters in a shape are sizes known when it runs."""
        graph = helper.make_graph(
            self._nodes,
            "htfi",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            list(self._initializers.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="htfi")
        return WrittenGraph(model.SerializeToString(deterministic=True), self._borrowed, self._computed)

    def _declare(self, name: str, kind: int, shape: tuple[int, ...]) -> None:
        """A tensor whose data are handed to the runtime beside the graph."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="beside")
        self._initializers[name] = tensor


def whole_model(written: WrittenGraph, weights: CheckpointWeights) -> onnx.ModelProto:
    """The graph with its weights inside, under 2 GB, for other runtimes to read."""
    model = onnx.load_model_from_string(written.content)
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            array = weight_of(written, weights, tensor.name)[1]
            del tensor.external_data[:]
            tensor.data_location = TensorProto.DEFAULT
            tensor.raw_data = array.tobytes()
    return model
