"""A pair of mini models with random weights, written as the trainer writes them: target and draft share a tokenizer."""

import shutil
from pathlib import Path

import numpy as np

from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import Architecture, ModelFamily, config_json
from htfi.decoding.checkpoint.rope import Rope
from htfi.decoding.checkpoint.weights import write_safetensors
from htfi.narrative.fact_marks import FACT_MARKS
from htfi_train.corpus import write_tokenizer
from htfi_train.tokenizer import extend_tokenizer

NUM_STORIES = 60  # that the tokenizer learns from


def write_random_pair(
    out: Path, target_hidden: int = 32, draft_hidden: int = 16, layers: int = 2, *, with_facts: bool = False
) -> tuple[Path, Path]:
    """Folders of a target and a draft; their vocabulary has the marks of facts if `with_facts`."""
    target, draft = out / "target", out / "draft"
    target.mkdir(parents=True)
    draft.mkdir()
    tokenizer = target / "tokenizer.json"
    write_tokenizer(tokenizer, NUM_STORIES)
    if with_facts:
        extend_tokenizer(tokenizer, tokenizer, [f"<{mark}>" for mark in FACT_MARKS])
    shutil.copy(target / "tokenizer.json", draft / "tokenizer.json")
    vocab_size = HuggingFaceTokenizer(target / "tokenizer.json").vocab_size
    _write_model(target, target_hidden, layers, vocab_size, seed=1)
    _write_model(draft, draft_hidden, 1, vocab_size, seed=2)
    return target, draft


def _write_model(folder: Path, hidden: int, layers: int, vocab_size: int, seed: int) -> None:
    head_dim = hidden // 2
    architecture = Architecture(
        family=ModelFamily.LLAMA,
        hidden_size=hidden,
        num_layers=layers,
        num_heads=2,
        num_kv_heads=1,
        head_dim=head_dim,
        intermediate_size=2 * hidden,
        vocab_size=vocab_size,
        max_positions=1024,
        norm_eps=1e-5,
        activation="silu",
        tie_embeddings=True,
        rope=Rope(),
    )
    rng = np.random.Generator(np.random.PCG64(seed))

    def weights(*sizes: int) -> np.ndarray:
        return (rng.standard_normal(sizes) / np.sqrt(sizes[-1])).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": weights(vocab_size, hidden),
        "model.norm.weight": np.ones(hidden, np.float32),
    }
    for layer in range(layers):
        own = f"model.layers.{layer}."
        tensors |= {
            f"{own}input_layernorm.weight": np.ones(hidden, np.float32),
            f"{own}post_attention_layernorm.weight": np.ones(hidden, np.float32),
            f"{own}self_attn.q_proj.weight": weights(2 * head_dim, hidden),
            f"{own}self_attn.k_proj.weight": weights(head_dim, hidden),
            f"{own}self_attn.v_proj.weight": weights(head_dim, hidden),
            f"{own}self_attn.o_proj.weight": weights(hidden, 2 * head_dim),
            f"{own}mlp.gate_proj.weight": weights(2 * hidden, hidden),
            f"{own}mlp.up_proj.weight": weights(2 * hidden, hidden),
            f"{own}mlp.down_proj.weight": weights(hidden, 2 * hidden),
        }
    (folder / "config.json").write_bytes(config_json(architecture))
    write_safetensors(folder / "model.safetensors", tensors)
