"""Written graphs on disk, by the content they came from. Networks ask here first; it may fail without harm."""

import hashlib
import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.adapters.onnx.session import WrittenGraph
from htfi.decoding.checkpoint.weights import open_safetensors, write_safetensors
from htfi.domain.errors import HtfiError
from htfi.domain.files import make_private

_GRAPH = "graph"
_WRITER_FILES = (
    "graph.py",
    "linear.py",
    "causal.py",
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
