"""Tensors of a model folder: safetensors, read by memory map and written for training."""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch
from htfi.domain.files import atomic_writer

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
COPY_AGAIN_HINT = "copy the model folder again"

_ITEM_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
_READABLE = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_WRITABLE = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16", np.dtype("i1"): "I8", np.dtype("u1"): "U8"}
_STORED = _READABLE | {kind: dtype for dtype, kind in _WRITABLE.items()}
_MAX_HEADER_BYTES = 100_000_000  # the format's own limit

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _TensorEntry:
    """Where one tensor is stored."""

    file: Path
    kind: str
    shape: tuple[int, ...]
    offset: int  # bytes from the file's start


class CheckpointWeights:
    """The tensors of one folder, by name. A tensor is read when it is requested."""

    def __init__(
        self, entries: Mapping[str, _TensorEntry], files: tuple[Path, ...], metadata: Mapping[str, str]
    ) -> None:
        self._entries = entries
        self.files = files
        self.metadata = metadata  # of the last file
        self._maps: dict[Path, NDArray[np.uint8]] = {}  # each file once: a map holds a descriptor

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        return sorted(self._entries)

    def array(self, name: str, shape: tuple[int, ...]) -> Array:
        """The tensor `name` as float32; a read-only view of the file if it is stored as float32.

        Raises: InvalidInput if it is missing or of an unsupported type; ShapeMismatch.
        """
        kind, plain = self.stored(name, shape)
        if kind not in _READABLE:
            known = ", ".join(_READABLE)
            file = self._entries[name].file
            raise InvalidInput(f"{file}: tensor {name!r} is {kind}; save the model as {known}")
        if kind == "BF16":
            return (plain.astype("<u4") << 16).view("<f4")
        return plain.astype(np.float32, copy=False)

    def stored(self, name: str, shape: tuple[int, ...]) -> tuple[str, NDArray[Any]]:
        """The tensor `name` as stored, a read-only view, with the format's name of its type.

        BF16 comes as uint16. Raises: as `array` does.
        """
        entry = self._entries.get(name)
        if entry is None:
            where = ", ".join(file.name for file in self.files)
            raise InvalidInput(f"{self.files[0].parent}: {where} lacks tensor {name!r}: {COPY_AGAIN_HINT}")
        if entry.shape != shape:
            raise ShapeMismatch(
                f"{entry.file}: tensor {name!r} has shape {list(entry.shape)} where config.json asks for "
                f"{list(shape)}: the two belong to different models, {COPY_AGAIN_HINT}"
            )
        dtype = _STORED.get(entry.kind)
        if dtype is None:
            known = ", ".join(_READABLE)
            raise InvalidInput(f"{entry.file}: tensor {name!r} is {entry.kind}; save the model as {known}")
        if 0 in shape:
            return entry.kind, np.zeros(shape, dtype)
        end = entry.offset + math.prod(shape) * dtype.itemsize
        try:
            return entry.kind, self._mapped(entry.file)[entry.offset : end].view(dtype).reshape(shape)
        except (OSError, ValueError) as error:
            raise DependencyUnavailable(
                f"{entry.file} cannot be read ({error}): {COPY_AGAIN_HINT}"
            ) from error

    def _mapped(self, file: Path) -> NDArray[np.uint8]:
        found = self._maps.get(file)
        if found is None:
            found = self._maps[file] = np.asarray(np.memmap(file, np.uint8, "r"))
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape


def open_safetensors(file: Path) -> CheckpointWeights:
    """One file of tensors. Raises: InvalidInput if it is truncated or damaged; DependencyUnavailable."""
    metadata: dict[str, str] = {}
    return CheckpointWeights(_read_header(file, metadata), (file,), metadata)


def open_weights(folder: Path) -> CheckpointWeights:
    """The weights of `folder`, in one file or in shards by its index. Every header is checked; no tensor is read.

    Raises: InvalidInput if files are missing, truncated, overlap or contradict the index.
    """
    index = folder / INDEX_FILE
    if (folder / SINGLE_FILE).exists() or not index.exists():
        file = folder / SINGLE_FILE
        if not file.exists():
            raise InvalidInput(
                f"{folder} holds no {SINGLE_FILE}: name a model folder with safetensors weights"
            )
        return open_safetensors(file)
    shard_of = _read_index(index)
    files = tuple(folder / name for name in sorted(set(shard_of.values())))
    headers: dict[str, dict[str, _TensorEntry]] = {}
    metadata: dict[str, str] = {}
    for file in files:
        if not file.exists():
            raise InvalidInput(f"{folder} lacks {file.name}, which {INDEX_FILE} names: {COPY_AGAIN_HINT}")
        headers[file.name] = _read_header(file, metadata)
    entries: dict[str, _TensorEntry] = {}
    for name, shard in shard_of.items():
        if name not in headers[shard]:
            raise InvalidInput(
                f"{folder / shard} lacks tensor {name!r}, which {INDEX_FILE} puts there: {COPY_AGAIN_HINT}"
            )
        entries[name] = headers[shard][name]
    return CheckpointWeights(entries, files, metadata)


def write_safetensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write float32, float16, int8 and uint8 arrays to `path`, atomically: equal bytes for equal arrays.

    Raises: InvalidInput for another type; DependencyUnavailable if the disk refuses.
    """
    header: dict[str, Any] = {"__metadata__": dict(sorted((metadata or {"format": "pt"}).items()))}
    offset = 0
    for name in sorted(arrays):
        array = arrays[name]
        kind = _WRITABLE.get(array.dtype)
        if kind is None:
            raise InvalidInput(
                f"{path}: tensor {name!r} is {array.dtype}; write float32, float16, int8 or uint8"
            )
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format's alignment
    try:
        with atomic_writer(path, private=False) as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in sorted(arrays):
                file.write(np.ascontiguousarray(arrays[name]).data)
    except OSError as error:
        raise DependencyUnavailable(f"{path} cannot be written: {error}") from error


def _read_index(index: Path) -> dict[str, str]:
    try:
        raw: Any = msgspec.json.decode(index.read_bytes())
        shard_of = msgspec.convert(raw["weight_map"], dict[str, str])
    except OSError as error:
        raise DependencyUnavailable(f"{index} cannot be read: {error}") from error
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise InvalidInput(f"{index} holds no weight_map of names to files: {COPY_AGAIN_HINT}") from error
    for shard in shard_of.values():
        if Path(shard).name != shard:
            raise InvalidInput(
                f"{index} names {shard!r}, which is not a file in its folder: {COPY_AGAIN_HINT}"
            )
    if not shard_of:
        raise InvalidInput(f"{index} names no tensor: {COPY_AGAIN_HINT}")
    return shard_of


def _read_header(path: Path, metadata: dict[str, str]) -> dict[str, _TensorEntry]:
    try:
        with path.open("rb") as file:
            return _parse_header(path, file, path.stat().st_size, metadata)
    except OSError as error:
        raise DependencyUnavailable(f"{path} cannot be read: {error}") from error


def _parse_header(
    path: Path, file: BinaryIO, num_bytes: int, metadata: dict[str, str]
) -> dict[str, _TensorEntry]:
    """Source: the safetensors format: u64 header size, JSON header, then the tensors without holes."""
    start = file.read(8)
    num_header_bytes = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= num_header_bytes <= min(_MAX_HEADER_BYTES, num_bytes - 8):
        raise InvalidInput(
            f"{path} is truncated or not a safetensors file ({num_bytes} bytes): {COPY_AGAIN_HINT}"
        )
    try:
        raw: Any = msgspec.json.decode(file.read(num_header_bytes))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: its header is damaged ({error}): {COPY_AGAIN_HINT}") from error
    if not isinstance(raw, dict):
        raise InvalidInput(f"{path}: its header is damaged (no JSON object): {COPY_AGAIN_HINT}")
    noted = cast("dict[str, Any]", raw).get("__metadata__")
    if isinstance(noted, dict):
        metadata |= {key: str(value) for key, value in cast("dict[str, Any]", noted).items()}
    described = {k: v for k, v in cast("dict[str, Any]", raw).items() if k != "__metadata__"}
    base = 8 + num_header_bytes
    spans: list[tuple[int, int, str]] = []
    entries: dict[str, _TensorEntry] = {}
    for name, about in described.items():
        tensor = _parse_tensor(path, name, about)
        begin, end = tensor.data_offsets
        if end - begin != math.prod(tensor.shape) * _ITEM_BYTES[tensor.dtype]:
            raise InvalidInput(
                f"{path}: tensor {name!r} does not fill the bytes it is given: {COPY_AGAIN_HINT}"
            )
        spans.append((begin, end, name))
        entries[name] = _TensorEntry(path, tensor.dtype, tensor.shape, base + begin)
    reached = 0
    for begin, end, name in sorted(spans):
        if begin != reached:
            fault = "overlaps the one before" if begin < reached else "leaves a gap before it"
            raise InvalidInput(f"{path}: tensor {name!r} {fault}: {COPY_AGAIN_HINT}")
        if base + end > num_bytes:
            raise InvalidInput(
                f"{path} is truncated: tensor {name!r} ends {base + end - num_bytes} bytes later: {COPY_AGAIN_HINT}"
            )
        reached = end
    if base + reached != num_bytes:
        raise InvalidInput(
            f"{path} has {num_bytes - base - reached} bytes after its last tensor: {COPY_AGAIN_HINT}"
        )
    return entries


class _TensorHeader(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def _parse_tensor(path: Path, name: str, about: object) -> _TensorHeader:
    try:
        tensor = msgspec.convert(about, _TensorHeader)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"{path}: the header's entry of {name!r} is damaged ({error}): {COPY_AGAIN_HINT}"
        ) from error
    begin, end = tensor.data_offsets
    if tensor.dtype not in _ITEM_BYTES or min(tensor.shape, default=0) < 0 or not 0 <= begin <= end:
        raise InvalidInput(f"{path}: the header's entry of {name!r} is damaged: {COPY_AGAIN_HINT}")
    return tensor
