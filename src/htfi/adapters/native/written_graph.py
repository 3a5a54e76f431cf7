"""Reads the small numbers of a written graph that its nodes name: steps of bytes and bounds. The encoder in C uses it.

A graph is a protobuf message; its few fields that matter are read here, so that neither onnx nor onnxruntime is needed.
Source: onnx.proto (ModelProto, GraphProto, NodeProto, TensorProto).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from htfi.domain.errors import InvalidInput

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OP_TYPE = 1, 4
_TENSOR_NAME, _TENSOR_RAW_DATA = 8, 9
_VARINT, _EIGHT_BYTES, _COUNTED, _FOUR_BYTES = 0, 1, 2, 5  # wire types


class GraphNode(NamedTuple):
    """The kind of a node and the names of what it reads."""

    kind: str
    inputs: tuple[str, ...]


class WrittenNumbers(NamedTuple):
    """Nodes in their order, and the bytes of the constants that the graph holds, by name."""

    nodes: tuple[GraphNode, ...]
    constants: dict[str, bytes]

    def number(self, name: str) -> np.float32:
        """The one float32 of a constant. Raises: InvalidInput."""
        raw = self.constants.get(name, b"")
        if len(raw) != 4:
            raise InvalidInput(f"the graph's constant {name!r} is no single float32: pack the encoder again")
        return np.frombuffer(raw, "<f4")[0]


def read_numbers(content: bytes) -> WrittenNumbers:
    """Raises: InvalidInput, for bytes that are no graph."""
    try:
        graph = next(value for field, value in _fields(content) if field == _MODEL_GRAPH)
        nodes: list[GraphNode] = []
        constants: dict[str, bytes] = {}
        for field, value in _fields(graph):
            if field == _GRAPH_NODE:
                parts = list(_fields(value))
                inputs = tuple(part.decode() for name, part in parts if name == _NODE_INPUT)
                kind = next(part.decode() for name, part in parts if name == _NODE_OP_TYPE)
                nodes.append(GraphNode(kind, inputs))
            elif field == _GRAPH_INITIALIZER:
                of_tensor = dict(_fields(value))
                constants[of_tensor[_TENSOR_NAME].decode()] = of_tensor.get(_TENSOR_RAW_DATA, b"")
    except (IndexError, KeyError, StopIteration, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"the graph cannot be read ({error}): pack the encoder again") from error
    return WrittenNumbers(tuple(nodes), constants)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field that counts its bytes; the others are passed over. Raises: ValueError."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
            continue
        size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind)
        if size is None:
            if kind != _COUNTED:
                raise ValueError(f"a field of wire type {kind}")
            size, at = _varint(message, at)
        if at + size > len(message):
            raise ValueError("a field is cut short")
        if kind == _COUNTED:
            yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends. Raises: IndexError."""
    number = shift = 0
    while True:
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
