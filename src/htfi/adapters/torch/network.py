"""Causal networks on torch: decoding's Network port on a CPU or a GPU. Tests use it as reference, wiring for GPUs."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from htfi.adapters.torch.llama import find_device, load_llama, tensor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape
from htfi.domain.errors import DependencyUnavailable, InvalidInput

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
        network = load_llama(folder)
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

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """See the port. Raises: ShapeMismatch; InvalidInput, for an id or a position out of range;
        DependencyUnavailable, when the device fails."""
        check_forward_inputs(self._shape, ids, positions, mask, keys, values)
        try:
            with torch.inference_mode():
                logits, new_keys, new_values = self._network(
                    tensor(ids, self._device),
                    tensor(positions, self._device),
                    tensor(mask, self._device).to(self._dtype),
                    tensor(keys, self._device).to(self._dtype),
                    tensor(values, self._device).to(self._dtype),
                )
                return ForwardOutput(_to_numpy(logits), _to_numpy(new_keys), _to_numpy(new_values))
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise DependencyUnavailable(f"torch failed on {self._device}: {first}") from error


def _to_numpy(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.float().cpu().numpy())
