"""Causal networks on torch: decoding's Network port on a CPU or a GPU. Tests use it as reference, wiring for GPUs."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from htfi.adapters.torch.device import find_device, tensor
from htfi.adapters.torch.llama import Llama
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Floats, Ids, NetworkShape, Pass
from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TorchNetwork:
    """A Llama or Qwen3 network from a model folder. Keys and values pass through the caller's memory."""

    def __init__(self, folder: ModelFolder, device: str = "auto", dtype: str = "float32") -> None:
        """Raises: InvalidInput, when the folder is no causal network, or device or dtype are not to be had."""
        of = folder.architecture
        if not of.is_causal:
            raise InvalidInput(
                f"{folder.path} holds a {of.family} encoder; name a causal model to write with"
            )
        if dtype not in _DTYPES:
            raise InvalidInput(f"dtype {dtype!r} is not known: use {', '.join(_DTYPES)}")
        self._device = find_device(device)
        self._dtype = _DTYPES[dtype]
        with torch.device("meta"):
            network = Llama(of)
        state = {
            name: tensor(folder.weights.array(name, tuple(parameter.shape)))
            for name, parameter in network.named_parameters()
        }
        network = Llama(of)  # anew: the angles' frequencies are made, not loaded
        network.load_state_dict(state)
        self._network = network.to(self._dtype).requires_grad_(False).eval().to(self._device)
        self._digest = hashlib.sha256(
            f"{folder.digest} torch {dtype} {self._device.type}".encode()
        ).hexdigest()
        self._shape = NetworkShape(
            of.num_layers, of.num_kv_heads, of.head_dim, of.vocab_size, of.max_positions
        )

    @property
    def shape(self) -> NetworkShape:
        return self._shape

    @property
    def digest(self) -> str:
        return self._digest

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> Pass:
        """See the port. Raises: ShapeMismatch; InvalidInput, for an id or a position out of range;
        DependencyUnavailable, when the device fails."""
        self._check(ids, positions, mask, keys, values)
        try:
            with torch.inference_mode():
                logits, new_keys, new_values = self._network(
                    tensor(ids, self._device),
                    tensor(positions, self._device),
                    tensor(mask, self._device).to(self._dtype),
                    tensor(keys, self._device).to(self._dtype),
                    tensor(values, self._device).to(self._dtype),
                )
                return Pass(_give(logits), _give(new_keys), _give(new_values))
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise DependencyUnavailable(f"torch failed on {self._device}: {first}") from error

    def _check(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> None:
        of = self._shape
        if ids.ndim != 2 or ids.size == 0:
            raise ShapeMismatch(
                f"ids have shape {list(ids.shape)}: give [rows, new positions], at least one each"
            )
        rows, steps = ids.shape
        past = keys.shape[3] if keys.ndim == 5 else 0
        kept = (of.num_layers, rows, of.num_kv_heads, past, of.head_dim)
        wanted = (
            ("ids", ids, (rows, steps), np.int64),
            ("positions", positions, (rows, steps), np.int64),
            ("mask", mask, (rows, steps, past + steps), np.float32),
            ("keys", keys, kept, np.float32),
            ("values", values, kept, np.float32),
        )
        for name, array, shape, dtype in wanted:
            if array.shape != shape or array.dtype != dtype:
                raise ShapeMismatch(
                    f"{name} are {array.dtype} {list(array.shape)} where {np.dtype(dtype)} {list(shape)} is due"
                )
        if ids.min() < 0 or ids.max() >= of.vocab_size:
            raise InvalidInput(
                f"token ids must lie in 0 to {of.vocab_size - 1}: is it the model's own tokenizer?"
            )
        if positions.min() < 0 or positions.max() >= of.max_positions:
            raise InvalidInput(f"positions must lie in 0 to {of.max_positions - 1}: the text is too long")


def _give(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.float().cpu().numpy())
