"""Inputs of one forward pass: attention masks for texts and trees, shape checks, and a whole text in one pass."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from htfi.decoding.draft_tree import ancestor_mask, is_chain, node_depths
from htfi.decoding.kv_cache import MASKED, KVRow
from htfi.decoding.ports import Floats, ForwardOutput, Ids, Network, NetworkShape
from htfi.domain.errors import InvalidInput, ShapeMismatch


def causal_mask(mask: Floats, num_new: int) -> Floats:
    """The mask [B, T, S + T] of T new tokens, from the mask [B, 1, S + 1] of one."""
    num_rows, _, width = mask.shape
    wide = np.empty((num_rows, num_new, width - 1 + num_new), np.float32)
    wide[:, :, : width - 1] = mask[:, :, :-1]
    wide[:, :, width - 1 :] = _future_mask(num_new)
    return wide


@lru_cache(maxsize=64)
def _future_mask(num: int) -> Floats:
    """Hides later tokens from each of `num` tokens; read-only."""
    return np.triu(np.full((num, num), MASKED, np.float32), 1)


def apply_tree_mask(
    rows: Sequence[KVRow],
    places: Sequence[int],
    parents: Sequence[Sequence[int]],
    nums_new: Sequence[int],
    positions: Ids,
    mask: Floats,
) -> None:
    """Let new tokens follow the nodes in `parents`: changes positions [B, T] and mask [B, T, S + T] at `places`."""
    past = mask.shape[2] - mask.shape[1]
    for row, slot, before, num_new in zip(rows, places, parents, nums_new, strict=True):
        if is_chain(before):
            continue
        held = len(before) - num_new
        trunk = row.length - held
        sees = np.where(ancestor_mask(before)[held:], np.float32(0.0), MASKED)
        positions[slot, :num_new] = trunk + node_depths(before)[held:]
        mask[slot, :num_new, trunk : row.length] = sees[:, :held]
        mask[slot, :num_new, past : past + num_new] = sees[:, held:]


def check_forward_inputs(
    of: NetworkShape, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats
) -> tuple[int, int]:
    """Rows and new positions of a pass whose inputs have the port's shapes.

    Raises: ShapeMismatch; InvalidInput for an id or a position out of range.
    """
    if ids.ndim != 2 or ids.size == 0:
        raise ShapeMismatch(
            f"ids have shape {list(ids.shape)}: give [rows, new positions], at least one each"
        )
    num_rows, num_new = ids.shape
    past = keys.shape[3] if keys.ndim == 5 else 0
    kept = (of.num_layers, num_rows, of.num_kv_heads, past, of.head_dim)
    wanted = (
        ("ids", ids, (num_rows, num_new), np.int64),
        ("positions", positions, (num_rows, num_new), np.int64),
        ("mask", mask, (num_rows, num_new, past + num_new), np.float32),
        ("keys", keys, kept, np.float32),
        ("values", values, kept, np.float32),
    )
    for name, array, shape, dtype in wanted:
        if array.shape != shape or array.dtype != dtype:
            raise ShapeMismatch(
                f"{name} are {array.dtype} {list(array.shape)} where {np.dtype(dtype)} {list(shape)} is expected"
            )
    if ids.min() < 0 or ids.max() >= of.vocab_size:
        raise InvalidInput(
            f"token ids must be within 0 to {of.vocab_size - 1}: is it the model's own tokenizer?"
        )
    if positions.min() < 0 or positions.max() >= of.max_positions:
        raise InvalidInput(f"positions must be within 0 to {of.max_positions - 1}: the text is too long")
    return num_rows, num_new


def forward_text(network: Network, ids: Ids) -> ForwardOutput:
    """One causal pass over texts [B, T] from their first token, without a past."""
    of = network.shape
    num_rows, num_new = ids.shape
    empty = np.zeros((of.num_layers, num_rows, of.num_kv_heads, 0, of.head_dim), np.float32)
    causal = np.triu(np.full((num_new, num_new), MASKED, np.float32), 1)
    positions: Ids = np.tile(np.arange(num_new, dtype=np.int64), (num_rows, 1))
    return network.forward(ids, positions, np.tile(causal, (num_rows, 1, 1)), empty, empty)
