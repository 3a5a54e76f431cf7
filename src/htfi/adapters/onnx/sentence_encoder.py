"""Sentence encoders on onnxruntime: ids of texts of equal length to states and points. Wiring opens one.

What a text comes to depends on its own ids alone: sums of bytes are exact, and all else is done row by row or text by
text, in sizes that its own length fixes.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.onnx.saturation import adds_signed_exactly, exact_graph
from htfi.adapters.onnx.session import (
    MAX_LEVEL,
    NO_WEIGHTS,
    OnnxSession,
    Precision,
    WrittenGraph,
    cached_graph,
    default_cache_folder,
    load_graph,
)
from htfi.decoding.checkpoint.folder import Architecture, ModelFolder
from htfi.decoding.checkpoint.weights import CheckpointWeights
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.domain.file_digests import file_digest

_BATCH_TOKENS = 512  # at once: what they come to stays in the nearest memory


class OnnxSentenceEncoder:
    """A BERT encoder as a written graph, for texts without padding."""

    def __init__(
        self,
        written: WrittenGraph,
        architecture: Architecture,
        digest: str,
        *,
        weights: CheckpointWeights = NO_WEIGHTS,
        threads: int = 1,
    ) -> None:
        """Raises: DependencyUnavailable."""
        self._architecture = architecture
        self._digest = digest
        self._session = OnnxSession(written, weights, threads, keeps_memory=True)

    @classmethod
    def of_folder(
        cls,
        folder: ModelFolder,
        precision: Precision,
        usual: Sequence[Sequence[int]],
        *,
        threads: int = 1,
        cache_folder: Path | None = None,
    ) -> "OnnxSentenceEncoder":
        """From a model folder. `usual` are ids of texts of every sort: int8 takes the range of its inputs from them.

        Raises: InvalidInput, when the folder is not an encoder or its weights do not fit; DependencyUnavailable.
        """
        if folder.architecture.is_causal:
            raise InvalidInput(f"{folder.path} holds a causal network; name a BERT encoder to read with")
        if precision is Precision.INT8_WIDE or (precision is Precision.INT8 and not usual):
            raise InvalidInput("a sentence encoder runs in fp32, or in int8 with usual texts")
        cache_folder = default_cache_folder() if cache_folder is None else cache_folder
        seen = repr([list(ids) for ids in usual]) if precision is Precision.INT8 else ""
        key = f"sentences {folder.digest} {precision} {MAX_LEVEL} {seen}"
        digest = hashlib.sha256(key.encode()).hexdigest()
        cached = cached_graph if precision is Precision.FP32 else exact_graph
        written = cached(digest, cache_folder, lambda: write_graph(folder, precision, usual))
        return cls(written, folder.architecture, digest, weights=folder.weights, threads=threads)

    @classmethod
    def of_graph(cls, file: Path, architecture: Architecture, digest: str) -> "OnnxSentenceEncoder":
        """From a graph that was written in int8 and saved, weights included.

        Raises: IntegrityError, DependencyUnavailable.
        """
        return cls.of_written(load_encoder(file), file, architecture, digest)

    @classmethod
    def of_written(
        cls, saved: WrittenGraph, file: Path, architecture: Architecture, digest: str
    ) -> "OnnxSentenceEncoder":
        """From the graph that `load_encoder` read from `file`. Raises: DependencyUnavailable."""
        cache_folder = default_cache_folder()
        if adds_signed_exactly(cache_folder):
            return cls(saved, architecture, digest)
        written = exact_graph(digest or file_digest(file), cache_folder, lambda: saved)
        return cls(written, architecture, digest)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the weights, the architecture, the precision and the usual texts."""
        return self._digest

    def read(
        self, texts: Sequence[Sequence[int]], threads: int = 1
    ) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Points of length 1 [n, H] and states n × [T, H] of texts of ids. Texts of equal length share a batch, so that
        none is padded; batches go to `threads` at once.

        Raises: ShapeMismatch; InvalidInput, for ids out of range; DependencyUnavailable.
        """
        points = np.zeros((len(texts), self._architecture.hidden_size), np.float32)
        states: list[NDArray[np.float32]] = [points[:0]] * len(texts)
        batches = _batches([len(ids) for ids in texts])
        work = [np.array([texts[place] for place in batch], np.int64) for batch in batches]
        for batch, found in zip(batches, self._run(work, threads), strict=True):
            points[batch] = mean_pooled(found)
            for row, place in enumerate(batch):
                states[place] = found[row]
        return points, states

    def _run(self, work: Sequence[Ids], threads: int) -> list[Floats]:
        if threads < 2 or len(work) < 2:
            return [self.encode(ids) for ids in work]
        with ThreadPoolExecutor(min(threads, len(work))) as pool:  # the engine lets other threads run
            return list(pool.map(self.encode, work))

    def encode(self, ids: Ids) -> Floats:
        """States [B, T, H] of the texts `ids` [B, T]. Raises: ShapeMismatch; InvalidInput, for ids out of range."""
        if ids.ndim != 2 or ids.size == 0 or ids.dtype != np.int64:
            raise ShapeMismatch(f"ids are {ids.dtype} {list(ids.shape)}: give int64 [texts, tokens]")
        if ids.shape[1] > self._architecture.max_positions:
            raise InvalidInput(
                f"a text of {ids.shape[1]} tokens is too long: cut it to {self._architecture.max_positions}"
            )
        if ids.min() < 0 or ids.max() >= self._architecture.vocab_size:
            raise InvalidInput(
                f"token ids must be within 0 to {self._architecture.vocab_size - 1}: use the model's own tokenizer"
            )
        return self._session.run(("states",), {"ids": ids})[0]


def load_encoder(file: Path) -> WrittenGraph:
    """The graph of an encoder that was saved, weights included. Raises: IntegrityError."""
    saved = load_graph(file)
    if saved is None:
        raise IntegrityError(f"{file} is damaged: reinstall htfi")
    return saved


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of texts of equal length, together as many as fit, the shortest first."""
    of_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        of_length.setdefault(length, []).append(place)
    batches: list[list[int]] = []
    for length, places in sorted(of_length.items()):
        at_once = max(_BATCH_TOKENS // max(length, 1), 1)
        batches += [places[start : start + at_once] for start in range(0, len(places), at_once)]
    return batches


def mean_pooled(states: Floats) -> Floats:
    """Points of length 1 [B, H]: the mean of states [B, T, H] over the tokens."""
    summed = states.sum(axis=1)
    return summed / np.sqrt((summed * summed).sum(axis=1, keepdims=True))


def write_graph(folder: ModelFolder, precision: Precision, usual: Sequence[Sequence[int]]) -> WrittenGraph:
    """The graph of a folder's encoder. Raises: InvalidInput, ShapeMismatch, DependencyUnavailable."""
    # onnx is needed to write a graph, not to run one
    from htfi.adapters.onnx.sentence_graph import RANGE_PREFIX, write_range_recorder, write_sentence_encoder

    if precision is Precision.FP32:
        return write_sentence_encoder(folder.architecture, folder.weights, precision, None)
    watching, outputs = write_range_recorder(folder.architecture, folder.weights)
    session = OnnxSession(watching, folder.weights, 1)
    runs = [session.run(outputs, {"ids": np.array([ids], np.int64)}) for ids in usual]
    largest = {
        name.removeprefix(RANGE_PREFIX): np.max([run[place] for run in runs], axis=0)
        for place, name in enumerate(outputs)
    }
    return write_sentence_encoder(folder.architecture, folder.weights, precision, largest)
