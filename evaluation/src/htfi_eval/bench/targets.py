"""Targets of a chosen cost: the shipped model widened and deepened, and a random network of 56M parameters.

How much speculation gains depends on the cost of a target's pass and on the share of drafts that it accepts. A heavy
target keeps the shipped model's outputs: hidden and feed-forward sizes are filled up with zeros, and layers follow
whose attention and feed-forward add nothing. Every pass computes all of it.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.checkpoint.folder import (
    CONFIG,
    TOKENIZER,
    Architecture,
    ModelFamily,
    ModelFolder,
    config_json,
)
from htfi.decoding.checkpoint.rope import Rope
from htfi.decoding.checkpoint.weights import SINGLE_FILE, Array, write_safetensors
from htfi.domain.errors import InvalidInput

_WIDENING = 4  # its root is a power of two, so that halved norms are exact
_SEED = 0
_STORED = np.float16  # type of matrices, as in the shipped weights


@dataclass(frozen=True, slots=True)
class TargetSize:
    """Depth and width of a real model of the size in `label`; its hidden size is four times that of mini."""

    label: str
    num_layers: int
    intermediate_size: int


COST_60M = TargetSize("60M-cost", 8, 2048)
COST_200M = TargetSize("200M-cost", 16, 3840)


def write_heavy_target(source: Path, folder: Path, cost: TargetSize) -> int:
    """Write `source`, widened and deepened, to `folder`, and return its number of parameters.

    The root mean square over four times as many numbers, three quarters of them zeros, is half as large: norms
    multiply by half of their weights, and eps is a quarter. Raises: InvalidInput for an architecture other than a
    Llama without biases, or one that is already larger.
    """
    of = ModelFolder.open(source)
    narrow = of.architecture
    if narrow.family is not ModelFamily.LLAMA or narrow.attention_bias or narrow.mlp_bias:
        raise InvalidInput(f"{source}: only a Llama without biases can be made larger")
    if narrow.num_layers > cost.num_layers or narrow.intermediate_size > cost.intermediate_size:
        raise InvalidInput(f"{source} is already larger than {cost.label}")
    wide = replace(
        narrow,
        hidden_size=_WIDENING * narrow.hidden_size,
        num_layers=cost.num_layers,
        intermediate_size=cost.intermediate_size,
        norm_eps=narrow.norm_eps / _WIDENING,
    )
    arrays: dict[str, NDArray[Any]] = {}
    for name in of.weights.names():
        arrays[name] = _widened(name, of.weights.array(name, of.weights.shape(name)), wide)
    idle = _identity_layer(wide)
    for layer in range(narrow.num_layers, wide.num_layers):
        arrays |= {f"model.layers.{layer}.{part}": array for part, array in idle.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_bytes(config_json(wide))
    write_safetensors(folder / SINGLE_FILE, arrays)
    shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)
    return sum(array.size for array in arrays.values())


def _widened(name: str, array: Array, wide: Architecture) -> NDArray[Any]:
    """The same numbers where they were, zeros (in norms: ones) beside them."""
    if array.ndim == 1:
        norm = np.ones(wide.hidden_size, np.float32)
        norm[: array.size] = array / _WIDENING**0.5
        return norm
    rows, columns = array.shape
    part = name.split(".")[-2]
    match part:
        case "q_proj" | "k_proj" | "v_proj" | "embed_tokens" | "lm_head":
            shape = (rows, wide.hidden_size)
        case "o_proj":
            shape = (wide.hidden_size, columns)
        case "gate_proj" | "up_proj":
            shape = (wide.intermediate_size, wide.hidden_size)
        case "down_proj":
            shape = (wide.hidden_size, wide.intermediate_size)
        case _:
            raise InvalidInput(f"tensor {name!r} is not a Llama's")
    filled = np.zeros(shape, _STORED)
    filled[:rows, :columns] = array
    return filled


def _identity_layer(of: Architecture) -> Mapping[str, NDArray[Any]]:
    """A layer with full cost that adds zero to its input."""
    noise = np.random.Generator(np.random.PCG64(_SEED))

    def normal(*shape: int) -> NDArray[Any]:
        return (noise.standard_normal(shape, np.float32) * np.float32(0.02)).astype(_STORED)

    hidden, inner = of.hidden_size, of.intermediate_size
    width, kv_width = of.num_heads * of.head_dim, of.num_kv_heads * of.head_dim
    return {
        "self_attn.q_proj.weight": normal(width, hidden),
        "self_attn.k_proj.weight": normal(kv_width, hidden),
        "self_attn.v_proj.weight": normal(kv_width, hidden),
        "self_attn.o_proj.weight": np.zeros((hidden, width), _STORED),
        "mlp.gate_proj.weight": normal(inner, hidden),
        "mlp.up_proj.weight": normal(inner, hidden),
        "mlp.down_proj.weight": np.zeros((hidden, inner), _STORED),
        "input_layernorm.weight": np.ones(hidden, np.float32),
        "post_attention_layernorm.weight": np.ones(hidden, np.float32),
    }


TARGET = Architecture(
    family=ModelFamily.LLAMA,
    hidden_size=768,
    num_layers=8,
    num_heads=12,
    num_kv_heads=4,
    head_dim=64,
    intermediate_size=2048,
    vocab_size=8192,
    max_positions=2048,
    norm_eps=1e-6,
    activation="silu",
    tie_embeddings=True,
    rope=Rope(),
)


@dataclass(frozen=True, slots=True)
class MinimalWork:
    """The minimal work of a pass over B rows of K new positions with `context` past ones."""

    read_bytes: int
    num_operations: int


def write_target(folder: Path, seed: int, of: Architecture) -> None:
    """A model folder with normal weights of deviation 0.02, as transformers starts a Llama."""
    noise = np.random.Generator(np.random.PCG64(seed))
    arrays = {
        name: np.ones(shape, np.float32) if len(shape) == 1 else _normal(noise, shape)
        for name, shape in _shapes(of).items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_bytes(config_json(of))
    write_safetensors(folder / SINGLE_FILE, arrays)


def num_parameters(of: Architecture) -> int:
    return sum(int(np.prod(shape)) for shape in _shapes(of).values())


def minimal_work(
    of: Architecture, num_rows: int, num_new: int, context: int, weight_bytes: int
) -> MinimalWork:
    """Weights are read once, past keys and values once per row; two operations per weight and token, plus attention."""
    num_weights = num_parameters(of)  # tied: the table is the head, and is read whole
    kv_bytes = 2 * 4 * of.num_layers * of.num_kv_heads * of.head_dim * num_rows * context
    attention = 4 * of.num_layers * of.num_heads * of.head_dim * num_rows * num_new * (context + num_new)
    return MinimalWork(
        num_weights * weight_bytes + kv_bytes, 2 * num_weights * num_rows * num_new + attention
    )


def _normal(noise: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return noise.standard_normal(shape, dtype=np.float32) * np.float32(0.02)


def _shapes(of: Architecture) -> dict[str, tuple[int, ...]]:
    hidden, inner = of.hidden_size, of.intermediate_size
    width, kv_width = of.num_heads * of.head_dim, of.num_kv_heads * of.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (of.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(of.num_layers):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.self_attn.q_proj.weight": (width, hidden),
            f"{at}.self_attn.k_proj.weight": (kv_width, hidden),
            f"{at}.self_attn.v_proj.weight": (kv_width, hidden),
            f"{at}.self_attn.o_proj.weight": (hidden, width),
            f"{at}.mlp.gate_proj.weight": (inner, hidden),
            f"{at}.mlp.up_proj.weight": (inner, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, inner),
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.post_attention_layernorm.weight": (hidden,),
        }
    return shapes
