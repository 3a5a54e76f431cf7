"""A random network of 56M parameters, and what a pass must read and compute. The engine's bench uses it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.checkpoint.architecture import Architecture, ModelFamily, config_json
from htfi.decoding.checkpoint.folder import CONFIG
from htfi.decoding.checkpoint.rope import Rope
from htfi.decoding.checkpoint.weights import SINGLE_FILE, write_safetensors

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
    """The least that a pass over B rows of K new positions with `context` past ones can do, weights of one byte."""

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
    """Weights once, keys and values of the past once a row; two operations a weight and token, and attention's."""
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
