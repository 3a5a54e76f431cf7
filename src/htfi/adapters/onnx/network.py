"""Causal networks on onnxruntime: decoding's Network port over a session of a Llama or a Qwen3 graph."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from htfi.adapters.onnx.saturation import exact_graph
from htfi.adapters.onnx.session import (
    MAX_LEVEL,
    OnnxSession,
    Precision,
    WrittenGraph,
    cached_graph,
    default_cache_folder,
)
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.kv_cache import MASKED
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape, TextStates
from htfi.domain.errors import InvalidInput


class OnnxNetwork:
    """A Llama or Qwen3 network from a model folder.

    On one thread a token's logits depend on its own context alone, to the last bit: not on the other rows of a pass,
    nor on the cut of a text into passes, at any length; nor on hidden positions between, while none of what is read
    is in another block of the sums than without them. A block is of 1024, 512, 256 and 128 positions for heads of
    up to 16, 32, 64 and 128. Else, or with more threads, the last bits may differ. Heads are of 8 and more.
    """

    def __init__(
        self,
        folder: ModelFolder,
        precision: Precision = Precision.INT8,
        *,
        threads: int = 1,
        cache_folder: Path | None = None,
        with_states: bool = False,
    ) -> None:
        """Opens at once where the graph is cached, else writes it first, in seconds.

        Raises: InvalidInput, when the folder is not a causal network or its weights do not fit; DependencyUnavailable.
        """
        if not folder.architecture.is_causal:
            family = folder.architecture.family
            raise InvalidInput(f"{folder.path} holds a {family} encoder; name a causal model to write with")
        cache_folder = default_cache_folder() if cache_folder is None else cache_folder
        self._digest = hashlib.sha256(f"{folder.digest} {precision} {MAX_LEVEL}".encode()).hexdigest()
        stored_as = (
            hashlib.sha256(f"{self._digest} with states".encode()).hexdigest()
            if with_states
            else self._digest
        )
        cached = cached_graph if precision is Precision.FP32 else exact_graph
        written = cached(stored_as, cache_folder, lambda: _write(folder, precision, with_states))
        self._session = OnnxSession(written, folder.weights, threads, keeps_memory=True)
        of = folder.architecture
        self._shape = NetworkShape(
            of.num_layers,
            of.num_kv_heads,
            of.head_dim,
            of.vocab_size,
            of.max_positions,
            _gemm_block(of.head_dim),
        )
        self._sums_integers = precision is not Precision.FP32
        self._reads_together = self._sums_integers and threads == 1 and of.head_dim % 8 == 0

    @property
    def shape(self) -> NetworkShape:
        return self._shape

    @property
    def digest(self) -> str:
        return self._digest

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """See the port. Raises: ShapeMismatch; InvalidInput, for an id or a position out of range."""
        out = self.read(ids, positions, mask, keys, values, _all_places(ids.size))
        return out._replace(logits=out.logits.reshape(*ids.shape, self._shape.vocab_size))

    @property
    def reads_together(self) -> bool:
        """Not in fp32, where a product of one row is added up in another order, nor with heads of other sizes (D1)."""
        return self._reads_together

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        """See the port. Raises: as `forward`."""
        of = self._shape
        num_rows, num_new = check_forward_inputs(of, ids, positions, mask, keys, values)
        is_lone = not self._sums_integers and len(scored) == 1 < ids.size
        if is_lone:  # it is scored as one of several, as all its layers are
            scored = scored.repeat(2)
        inputs = {"ids": ids, "pos": positions, "mask": mask, "scored": scored}
        for layer in range(of.num_layers):
            inputs[f"k.{layer}"] = keys[layer]
            inputs[f"v.{layer}"] = values[layer]
        logits, new_keys, new_values = self._session.run(("logits", "k_new", "v_new"), inputs)
        stacked = (of.num_layers, num_rows, of.num_kv_heads, num_new, of.head_dim)
        return ForwardOutput(
            logits[:1] if is_lone else logits,
            new_keys.reshape(stacked),
            new_values.reshape(stacked),
        )

    def states(self, ids: Ids) -> TextStates:
        """See the port. Raises: as `forward`."""
        of, num = self._shape, len(ids)
        empty = np.zeros((1, of.num_kv_heads, 0, of.head_dim), np.float32)
        mask = np.triu(np.full((1, num, num), MASKED, np.float32), 1)
        inputs: dict[str, Any] = {"ids": ids[None], "pos": np.arange(num, dtype=np.int64)[None], "mask": mask}
        inputs["scored"] = _all_places(num)
        inputs |= {f"{kind}.{layer}": empty for layer in range(of.num_layers) for kind in "kv"}
        hidden, shares = self._session.run(("hidden", "attention"), inputs)
        num_heads = shares.shape[1] * shares.shape[2] // num
        shares = shares.reshape(num_heads, num, num)  # [A, T, T]
        return TextStates(hidden, shares / shares.sum(axis=2, keepdims=True))


@lru_cache(maxsize=256)
def _all_places(num: int) -> Ids:
    """Read-only."""
    return np.arange(num, dtype=np.int64)


def _gemm_block(head_dim: int) -> int:
    """How far onnxruntime's matrix product sums at once: the fewer columns, the farther (MlasSgemm's strides)."""
    return next((block for most, block in ((16, 1024), (32, 512), (64, 256)) if head_dim <= most), 128)


def _write(folder: ModelFolder, precision: Precision, with_states: bool) -> WrittenGraph:
    from htfi.adapters.onnx.causal_graph import (
        write_causal,
    )  # onnx is needed to write a graph, not to run one

    return write_causal(folder.architecture, folder.weights, precision, with_states=with_states)
