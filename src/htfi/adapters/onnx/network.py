"""Causal networks on onnxruntime: the embedded engine's side of decoding's Network port."""

import hashlib
from pathlib import Path

from htfi.adapters.onnx.cache import cached_graph, default_cache_folder
from htfi.adapters.onnx.saturation import max_weight_level
from htfi.adapters.onnx.session import OnnxSession, Precision, WrittenGraph
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape
from htfi.domain.errors import InvalidInput


class OnnxNetwork:
    """A Llama or Qwen3 network from a model folder.

    On one thread a token's logits depend on its own context alone, to the last bit: not on the other rows of a pass,
    nor on the cut of a text into passes, at any length; nor on hidden positions between, while none of what is read
    lies in another block of the sums than without them. A block is of 1024, 512, 256 and 128 positions for heads of
    up to 16, 32, 64 and 128. Else, or with more threads, the last bits may differ. Heads are of 8 and more.
    """

    def __init__(
        self,
        folder: ModelFolder,
        precision: Precision = Precision.INT8,
        *,
        threads: int = 1,
        cache_folder: Path | None = None,
    ) -> None:
        """Opens at once where the graph is cached, else writes it first, in seconds.

        Raises: InvalidInput, when the folder is no causal network or its weights do not fit; DependencyUnavailable.
        """
        if not folder.architecture.is_causal:
            family = folder.architecture.family
            raise InvalidInput(f"{folder.path} holds a {family} encoder; name a causal model to write with")
        cache_folder = default_cache_folder() if cache_folder is None else cache_folder
        top = 127 if precision is Precision.FP32 else max_weight_level(cache_folder)
        self._digest = hashlib.sha256(f"{folder.digest} {precision} {top}".encode()).hexdigest()
        written = cached_graph(self._digest, cache_folder, lambda: _write(folder, precision, top))
        self._session = OnnxSession(written, folder.weights, threads)
        of = folder.architecture
        self._shape = NetworkShape(
            of.num_layers,
            of.num_kv_heads,
            of.head_dim,
            of.vocab_size,
            of.max_positions,
            _gemm_block(of.head_dim),
        )

    @property
    def shape(self) -> NetworkShape:
        return self._shape

    @property
    def digest(self) -> str:
        return self._digest

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """See the port. Raises: ShapeMismatch; InvalidInput, for an id or a position out of range."""
        of = self._shape
        num_rows, num_new = check_forward_inputs(of, ids, positions, mask, keys, values)
        inputs = {"ids": ids, "pos": positions, "mask": mask}
        for layer in range(of.num_layers):
            inputs[f"k.{layer}"] = keys[layer]
            inputs[f"v.{layer}"] = values[layer]
        logits, new_keys, new_values = self._session.run(("logits", "k_new", "v_new"), inputs)
        stacked = (of.num_layers, num_rows, of.num_kv_heads, num_new, of.head_dim)
        return ForwardOutput(
            logits.reshape(num_rows, num_new, of.vocab_size),
            new_keys.reshape(stacked),
            new_values.reshape(stacked),
        )


def _gemm_block(head_dim: int) -> int:
    """How far onnxruntime's matrix product sums at once: the fewer columns, the farther (MlasSgemm's strides)."""
    return next((block for most, block in ((16, 1024), (32, 512), (64, 256)) if head_dim <= most), 128)


def _write(folder: ModelFolder, precision: Precision, top: int) -> WrittenGraph:
    from htfi.adapters.onnx.causal import write_causal  # onnx is needed to write a graph, not to run one

    return write_causal(folder.architecture, folder.weights, precision, top)
