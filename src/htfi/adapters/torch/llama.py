"""The Llama family on torch as one compact module, named as Hugging Face names it, and decoding's Network port over it.

The trainer owns a `Llama`; tests use `TorchNetwork` as reference, wiring on GPUs.
"""

import hashlib
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from htfi.decoding.checkpoint.folder import Architecture, ModelFolder
from htfi.decoding.checkpoint.rope import Rope, rotary_frequencies
from htfi.decoding.forward_pass import check_forward_inputs
from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape
from htfi.domain.errors import DependencyUnavailable, InvalidInput


def tensor(array: NDArray[Any], device: torch.device | None = None) -> Tensor:
    """The array as a tensor; on a CPU it shares the array's memory, unless that is read-only."""
    # torch warns of arrays that it could write to but must not; its own stub leaves the array untyped
    shared = torch.from_numpy(array if array.flags.writeable else array.copy())  # pyright: ignore[reportUnknownMemberType]
    return shared if device is None else shared.to(device)


def find_device(name: str) -> torch.device:
    """'auto' is the GPU where there is one. Raises: InvalidInput."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        raise InvalidInput(f"device {name!r} is not available here: use cpu, cuda or auto") from error
    return device


class Rotation(NamedTuple):
    """Cosine and sine of each position's angles, [B or 1, 1, T, D], for `rotate`."""

    cos: Tensor
    sin: Tensor


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """RoPE with halves paired, as Hugging Face stores Llama. x [B, heads, T, D]; arXiv 2104.09864."""
    first, second = x.chunk(2, dim=-1)
    return x * rotation.cos + torch.cat((-second, first), dim=-1) * rotation.sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention over whole rows. q [B, heads, T, D], k and v [B, G, T, D]; gives [B, heads, T, D].

    On a CPU plain products beat the fused kernel 3 times in bfloat16, whose backward pass is slow.
    """
    rows, heads, steps, size = q.shape
    groups = k.shape[1]
    if q.is_cuda:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != groups)
    q = (q * size**-0.5).reshape(rows * groups, -1, size)  # [B G, heads / G T, D]
    k, v = k.reshape(rows * groups, steps, size), v.reshape(rows * groups, steps, size)
    hidden = torch.full((steps, steps), -torch.inf, dtype=q.dtype, device=q.device).triu(1)
    with torch.autocast("cpu", enabled=False):  # it would widen the softmax, which sums in float32 anyway
        scores = torch.bmm(q, k.transpose(1, 2)).view(rows * groups, -1, steps, steps)
        shares = functional.softmax(scores.add_(hidden), dim=-1).view(rows * groups, -1, steps)
        return torch.bmm(shares, v).view(rows, heads, steps, size)


class RMSNorm(nn.Module):
    """x over its root mean square, in float32; arXiv 1910.07467."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        exact = x.float()
        exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.eps)
        return (exact * self.weight.float()).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.sizes = sizes
        width, kv_width = sizes.num_heads * sizes.head_dim, sizes.num_kv_heads * sizes.head_dim
        self.q_proj = nn.Linear(sizes.hidden_size, width, bias=sizes.attention_bias)
        self.k_proj = nn.Linear(sizes.hidden_size, kv_width, bias=sizes.attention_bias)
        self.v_proj = nn.Linear(sizes.hidden_size, kv_width, bias=sizes.attention_bias)
        self.o_proj = nn.Linear(width, sizes.hidden_size, bias=sizes.attention_bias)
        if sizes.qk_norm:
            self.q_norm = RMSNorm(sizes.head_dim, sizes.norm_eps)
            self.k_norm = RMSNorm(sizes.head_dim, sizes.norm_eps)

    def forward(
        self, x: Tensor, rotation: Rotation, mask: Tensor | None, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, steps, _ = x.shape
        q = self.q_proj(x).view(rows, steps, -1, self.sizes.head_dim)  # [B, T, heads, D]
        k = self.k_proj(x).view(rows, steps, -1, self.sizes.head_dim)  # [B, T, G, D]
        v = self.v_proj(x).view(rows, steps, -1, self.sizes.head_dim).transpose(1, 2)
        if self.sizes.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q.transpose(1, 2), rotation), rotate(k.transpose(1, 2), rotation)
        q, k = q.to(v.dtype), k.to(v.dtype)  # autocast leaves the rotation in float32
        if past is None:
            mixed = causal_attention(q, k, v)
        else:
            seen_k, seen_v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
            share = self.sizes.num_heads // self.sizes.num_kv_heads
            mixed = functional.scaled_dot_product_attention(
                q,
                seen_k.repeat_interleave(share, dim=1),
                seen_v.repeat_interleave(share, dim=1),
                attn_mask=mask,
            )
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, steps, -1)), k, v


class FeedForward(nn.Module):
    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=sizes.mlp_bias)
        self.up_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=sizes.mlp_bias)
        self.down_proj = nn.Linear(sizes.intermediate_size, sizes.hidden_size, bias=sizes.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(sizes.hidden_size, sizes.norm_eps)
        self.self_attn = Attention(sizes)
        self.post_attention_layernorm = RMSNorm(sizes.hidden_size, sizes.norm_eps)
        self.mlp = FeedForward(sizes)

    def forward(
        self, x: Tensor, rotation: Rotation, mask: Tensor | None, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        mixed, k, v = self.self_attn(self.input_layernorm(x), rotation, mask, past)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), k, v


class LlamaTrunk(nn.Module):
    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.layers = nn.ModuleList(LlamaLayer(sizes) for _ in range(sizes.num_layers))
        self.norm = RMSNorm(sizes.hidden_size, sizes.norm_eps)


class Llama(nn.Module):
    """A causal language model whose state dict is a Hugging Face folder's."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.sizes = sizes
        self.model = LlamaTrunk(sizes)
        if not sizes.tie_embeddings:
            self.lm_head = nn.Linear(sizes.hidden_size, sizes.vocab_size, bias=False)
        frequencies, self.gain = rotary_frequencies(sizes.rope or Rope(), sizes.head_dim)
        self.register_buffer("frequencies", tensor(frequencies), persistent=False)

    @property
    def head(self) -> Tensor:
        """The matrix [V, hidden] that turns hidden states into logits."""
        return self.model.embed_tokens.weight if self.sizes.tie_embeddings else self.lm_head.weight

    def rotation(self, positions: Tensor) -> Rotation:
        """positions [B or 1, T] int64."""
        angles = positions[:, None, :, None].float() * cast(Tensor, self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        return Rotation(angles.cos() * self.gain, angles.sin() * self.gain)

    def hidden(self, ids: Tensor) -> Tensor:
        """Final hidden states [B, T, hidden] of whole rows ids [B, T], each position seeing those before it."""
        rotation = self.rotation(torch.arange(ids.shape[1], device=ids.device)[None])
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x, _, _ = layer(x, rotation, None, None)
        return self.model.norm(x)

    def forward(
        self, ids: Tensor, positions: Tensor, mask: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [B, T, V] and new keys and values [L, B, G, T, D]; shapes as in decoding's `Network`."""
        rotation = self.rotation(positions)
        x = self.model.embed_tokens(ids)
        rotation = Rotation(rotation.cos.to(x.dtype), rotation.sin.to(x.dtype))
        admitted = mask[:, None].to(x.dtype)  # [B, 1, T, S + T]
        new_keys: list[Tensor] = []
        new_values: list[Tensor] = []
        for index, layer in enumerate(self.model.layers):
            x, k, v = layer(x, rotation, admitted, (keys[index], values[index]))
            new_keys.append(k)
            new_values.append(v)
        logits = functional.linear(self.model.norm(x), self.head)
        return logits, torch.stack(new_keys), torch.stack(new_values)


def load_llama(folder: ModelFolder) -> Llama:
    """The folder's network in float32 on the CPU. Raises: InvalidInput, when a weight is missing or misshapen."""
    network = Llama(folder.architecture)
    state = {
        name: tensor(folder.weights.array(name, tuple(parameter.shape)))
        for name, parameter in network.named_parameters()
    }
    network.load_state_dict(state)
    return network


_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TorchNetwork:
    """A Llama or Qwen3 network from a model folder. Keys and values pass through the caller's memory."""

    def __init__(self, folder: ModelFolder, device: str = "auto", dtype: str = "float32") -> None:
        """Raises: InvalidInput, when the folder is not a causal network, or device or dtype are not to be had."""
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
