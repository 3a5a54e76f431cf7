"""A finished graph: bytes without weights, and where each weight lies. The cache keeps it, sessions run it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from htfi.decoding.checkpoint.weights import Weights

STORED = "stored:"  # before a tensor's name: in the type that it has in the folder

Array = NDArray[Any]


class Precision(StrEnum):
    """How weights are kept and sums are made.

    FP32: as trained. INT8: weights as 8 bits with a scale per output, activations as 8 bits with a scale per token.
    INT8_WIDE: the same weights; activations as 16 bits, in two bytes, so that only the weights are rounded.
    Sums of integers are exact, so a token's result does not depend on what else is in the pass.
    """

    FP32 = "fp32"
    INT8 = "int8"
    INT8_WIDE = "int8-wide"


@dataclass(frozen=True, slots=True)
class WrittenGraph:
    """A model file without its weights. `borrowed` are read from the model folder by name, `computed` are ours."""

    content: bytes
    borrowed: Mapping[str, tuple[int, ...]]
    computed: Mapping[str, Array]


def weight_of(written: WrittenGraph, weights: Weights, name: str) -> tuple[str, Array]:
    """The weight `name` of the graph, with the checkpoint's name of its type; BF16 comes as uint16."""
    if name in written.computed:
        return "", written.computed[name]
    shape = written.borrowed[name]
    if name.startswith(STORED):
        return weights.stored(name.removeprefix(STORED), shape)
    return "F32", weights.array(name, shape)


def all_weights(written: WrittenGraph, weights: Weights) -> Iterator[tuple[str, str, Array]]:
    """Every weight of the graph: its name, the checkpoint's name of its type, its data."""
    for name in (*written.borrowed, *written.computed):
        yield name, *weight_of(written, weights, name)
