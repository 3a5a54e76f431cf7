"""How often a rounded network's first choice is the exact one's. `htfi bench engine` asks for the shipped pair."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from htfi.decoding.checkpoint.folder import CONFIG, ModelFolder
from htfi.decoding.ports import Floats, Ids, Network
from htfi.wiring.models import load_network

HIDDEN = -1e30
NUM_TEXTS, NUM_TOKENS = 16, 128


def top1_agreement(
    folder: Path,
    precision: str,
    seed: int,
    texts: Sequence[Sequence[int]] | None = None,
    cache: Path | None = None,
) -> float:
    """The share of positions where the likeliest next token is the same in `precision` as in float32.

    `texts` are token ids of equal length; where there are none, the network samples them itself at temperature 1,
    so that contexts are those it meets.
    """
    opened = ModelFolder.open(folder)
    exact = load_network(opened, "fp32", cache)
    ids = np.array(texts, np.int64) if texts is not None else _sampled(exact, _opening(folder), seed)
    wanted = _read(exact, ids).argmax(axis=-1)
    found = _read(load_network(opened, precision, cache), ids).argmax(axis=-1)
    return float((wanted == found).mean())


def _opening(folder: Path) -> int:
    config = msgspec.json.decode((folder / CONFIG).read_bytes())
    opening = config.get("bos_token_id")
    return opening if isinstance(opening, int) else 0


def _read(network: Network, ids: Ids) -> Floats:
    """Logits of every position, [B, T, V]."""
    num_rows, num_tokens = ids.shape
    of = network.shape
    empty = np.zeros((of.num_layers, num_rows, of.num_kv_heads, 0, of.head_dim), np.float32)
    mask = np.triu(np.full((num_tokens, num_tokens), HIDDEN, np.float32), 1)
    positions: Ids = np.tile(np.arange(num_tokens, dtype=np.int64), (num_rows, 1))
    return network.forward(ids, positions, np.tile(mask, (num_rows, 1, 1)), empty, empty).logits


def _sampled(network: Network, opening: int, seed: int) -> Ids:
    of = network.shape
    noise = np.random.Generator(np.random.PCG64(seed))
    num_tokens = min(NUM_TOKENS, of.max_positions)
    ids = np.full((NUM_TEXTS, 1), opening, np.int64)
    keys = values = np.zeros((of.num_layers, NUM_TEXTS, of.num_kv_heads, 0, of.head_dim), np.float32)
    for at in range(num_tokens - 1):
        mask = np.zeros((NUM_TEXTS, 1, at + 1), np.float32)
        done = network.forward(ids[:, -1:].copy(), np.full((NUM_TEXTS, 1), at), mask, keys, values)
        keys, values = np.concatenate([keys, done.keys], 3), np.concatenate([values, done.values], 3)
        chosen = (done.logits[:, 0] + noise.gumbel(size=(NUM_TEXTS, of.vocab_size))).argmax(axis=-1)
        ids = np.concatenate([ids, chosen[:, None]], axis=1)
    return ids
