"""BERT encoders on onnxruntime: texts to states. For readers of news that need no causal network."""

import hashlib
from pathlib import Path

import numpy as np

from htfi.adapters.onnx.cache import cached_graph, default_cache_folder
from htfi.adapters.onnx.saturation import max_weight_level
from htfi.adapters.onnx.session import OnnxSession, Precision, WrittenGraph
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import InvalidInput, ShapeMismatch


class OnnxEncoder:
    """A BERT encoder from a model folder."""

    def __init__(
        self,
        folder: ModelFolder,
        precision: Precision = Precision.INT8,
        *,
        threads: int = 1,
        cache_folder: Path | None = None,
    ) -> None:
        """Raises: InvalidInput, when the folder is no encoder or its weights do not fit; DependencyUnavailable."""
        self._of = folder.architecture
        if self._of.is_causal:
            raise InvalidInput(f"{folder.path} holds a causal network; name a BERT encoder to read with")
        cache_folder = default_cache_folder() if cache_folder is None else cache_folder
        top = 127 if precision is Precision.FP32 else max_weight_level(cache_folder)
        self._digest = hashlib.sha256(f"{folder.digest} {precision} {top}".encode()).hexdigest()
        written = cached_graph(self._digest, cache_folder, lambda: _write(folder, precision, top))
        self._session = OnnxSession(written, folder.weights, threads)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the weights, the architecture and the precision."""
        return self._digest

    def encode(self, ids: Ids, mask: Ids, types: Ids | None = None) -> Floats:
        """States after the last layer, [B, T, H].

        Shapes: ids and mask [B, T], 1 in the mask for tokens and 0 for padding; types [B, T], 0 where not given.
        Raises: ShapeMismatch; InvalidInput, for an id or a type out of range, or a text that is too long.
        """
        types = np.zeros_like(ids) if types is None else types
        if ids.ndim != 2 or ids.size == 0 or not ids.shape == mask.shape == types.shape:
            shapes = " ".join(str(list(part.shape)) for part in (ids, mask, types))
            raise ShapeMismatch(
                f"ids, mask and types have shapes {shapes}: give [rows, tokens] for all three"
            )
        if not ids.dtype == mask.dtype == types.dtype == np.int64:
            raise ShapeMismatch(f"ids, mask and types are {ids.dtype} {mask.dtype} {types.dtype}: give int64")
        if ids.shape[1] > self._of.max_positions:
            raise InvalidInput(
                f"a text of {ids.shape[1]} tokens is too long: cut it to {self._of.max_positions}"
            )
        for name, part, size in (
            ("token ids", ids, self._of.vocab_size),
            ("types", types, self._of.num_token_types),
        ):
            if part.min() < 0 or part.max() >= size:
                raise InvalidInput(f"{name} must lie in 0 to {size - 1}: is it the model's own tokenizer?")
        return self._session.run(("states",), {"ids": ids, "mask": mask, "types": types})[0]


def _write(folder: ModelFolder, precision: Precision, top: int) -> WrittenGraph:
    from htfi.adapters.onnx.encoder_graph import (
        write_encoder,
    )  # onnx is needed to write a graph, not to run one

    return write_encoder(folder.architecture, folder.weights, precision, top)
