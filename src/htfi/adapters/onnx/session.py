"""Written graphs (bytes without weights, and where each weight lies), their cache on disk, and sessions that run them.

A session has one thread, no spinning, and translated errors. The cache goes by the content that graphs came from, and
may fail without harm.
"""

import hashlib
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.decoding.checkpoint.weights import CheckpointWeights, open_safetensors, write_safetensors
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.files import make_private

Array = NDArray[Any]

NO_WEIGHTS = CheckpointWeights({}, (), {})  # of a graph that holds all its own
STORED = "stored:"  # before a tensor's name: in the type that it has in the folder

WeightArray = NDArray[Any]


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
    computed: Mapping[str, WeightArray]


def weight_of(written: WrittenGraph, weights: CheckpointWeights, name: str) -> tuple[str, WeightArray]:
    """The weight `name` of the graph, with the checkpoint's name of its type; BF16 comes as uint16."""
    if name in written.computed:
        return "", written.computed[name]
    shape = written.borrowed[name]
    if name.startswith(STORED):
        return weights.stored(name.removeprefix(STORED), shape)
    return "F32", weights.array(name, shape)


def all_weights(written: WrittenGraph, weights: CheckpointWeights) -> Iterator[tuple[str, str, WeightArray]]:
    """Every weight of the graph: its name, the checkpoint's name of its type, its data."""
    for name in (*written.borrowed, *written.computed):
        yield name, *weight_of(written, weights, name)


class _Runtime(NamedTuple):
    """onnxruntime, which ships no types, and what it raises."""

    ort: Any
    errors: tuple[type[Exception], ...]


@cache
def _runtime() -> _Runtime:
    """Imported when the first session opens: a run that reads no news opens none."""
    import onnxruntime
    from onnxruntime import capi

    ort: Any = onnxruntime
    ort.disable_telemetry_events()  # the package's variable has done so, unless onnxruntime was imported before it
    raised = cast("Any", capi).onnxruntime_pybind11_state
    return _Runtime(ort, (*(getattr(raised, name) for name in _ERROR_NAMES), MemoryError))


_ERROR_NAMES = (
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NotImplemented",
    "RuntimeException",
)
MAX_LEVEL = 127  # of a weight in int8
_BFLOAT16 = 16  # TensorProto.BFLOAT16


class OnnxSession:
    """A graph that is ready to run. Weights come from the folder's memory map; onnxruntime may copy them."""

    def __init__(
        self, written: WrittenGraph, weights: CheckpointWeights, threads: int, *, keeps_memory: bool = False
    ) -> None:
        """`keeps_memory`: passes of many sizes follow each other, and what the largest took is kept for the next; else
        it is given back after each, which costs a pass of some MB more time than it computes on some systems.

        Raises: DependencyUnavailable, when onnxruntime cannot run the graph.
        """
        ort, errors = _runtime()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # Above it are layouts of convolutions, of which our graphs have none: looking for them takes 5 to 18 ms.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.enable_mem_pattern = False  # a pattern fits one shape, and ours change with every pass
        options.enable_cpu_mem_arena = keeps_memory
        # A waiting thread that spins takes the core from other threads.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._arrays: list[Any] = []
        names: list[str] = []
        arrays: list[Array] = []
        for name, kind, array in all_weights(written, weights):
            names.append(name)
            arrays.append(array)
            self._arrays.append(_as_ort_value(array, kind))
        options.add_external_initializers(names, self._arrays)
        try:
            self._session = ort.InferenceSession(written.content, options, providers=["CPUExecutionProvider"])
        except errors as error:
            raise DependencyUnavailable(f"onnxruntime cannot open the graph: {_first_line(error)}") from error
        for array in arrays:
            _release_pages(array)

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Array]) -> list[NDArray[np.float32]]:
        """Raises: DependencyUnavailable."""
        try:
            return cast("list[NDArray[np.float32]]", self._session.run(outputs, dict(inputs)))
        except _runtime().errors as error:
            raise DependencyUnavailable(f"onnxruntime cannot run the graph: {_first_line(error)}") from error


def _as_ort_value(array: Array, kind: str) -> Any:
    ort = _runtime().ort
    if kind == "BF16":
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def _release_pages(array: Array) -> None:
    """Hand the pages of a file in memory back to the system: what is read again is mapped again."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = cast("Any", base).base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_GRAPH = "graph"
_WRITER_FILES = (
    "graph.py",
    "linear.py",
    "causal_graph.py",
    "sentence_graph.py",
    "saturation.py",
)


def default_cache_folder() -> Path:
    """$XDG_CACHE_HOME/htfi, or ~/.cache/htfi. Source: XDG Base Directory Specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "htfi"


def cached_graph(key: str, folder: Path, write: Callable[[], WrittenGraph]) -> WrittenGraph:
    """The graph kept under `key`, or else what `write` gives, kept for the next time where the disk allows.

    A file that is damaged is written anew. The key is a digest of all that `write` reads.
    """
    file = folder / f"{key}.{_writers_digest()[:16]}.graph"
    found = load_graph(file)
    if found is not None:
        return found
    written = write()
    try:
        make_private(folder)
        save_graph(file, written)
    except (OSError, HtfiError):  # read-only or full: the graph in memory serves as well
        return written
    return load_graph(file) or written  # from the file's memory map, so that the copy in memory can go


def save_graph(file: Path, written: WrittenGraph) -> None:
    """Write a graph and its computed weights as one file. Raises: OSError, HtfiError."""
    arrays = {_GRAPH: np.frombuffer(written.content, np.uint8), **written.computed}
    borrowed = msgspec.json.encode(written.borrowed).decode()
    write_safetensors(file, arrays, {"borrowed": borrowed, "digest": _digest(arrays, borrowed)})


def load_graph(file: Path) -> WrittenGraph | None:
    """The graph of a file, its weights mapped from it; None where there is none or it is damaged."""
    if not file.is_file():
        return None
    try:
        kept = open_safetensors(file)
        arrays = {name: kept.stored(name, kept.shape(name))[1] for name in kept.names()}
        borrowed = kept.metadata["borrowed"]
        if kept.metadata["digest"] != _digest(arrays, borrowed):
            return None
        shapes = msgspec.json.decode(borrowed, type=dict[str, tuple[int, ...]])
        return WrittenGraph(arrays.pop(_GRAPH).tobytes(), shapes, arrays)
    except (HtfiError, KeyError, msgspec.MsgspecError):
        return None


def _digest(arrays: Mapping[str, NDArray[Any]], borrowed: str) -> str:
    whole = hashlib.sha256(borrowed.encode())
    for name in sorted(arrays):
        whole.update(name.encode())
        whole.update(np.ascontiguousarray(arrays[name]).data)
    return whole.hexdigest()


def _writers_digest() -> str:
    """Of the code that writes graphs: a change there makes every kept graph one of the past."""
    package = resources.files("htfi.adapters.onnx")
    whole = hashlib.sha256()
    for name in _WRITER_FILES:
        whole.update((package / name).read_bytes())
    return whole.hexdigest()
