"""Which tokens a pass lets see which: a text in order, or the branches of a tree. Sessions ask."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from htfi.decoding.draft import ancestry, depths, is_chain
from htfi.decoding.kv import HIDDEN, Row
from htfi.decoding.ports import Floats, Ids


def causal(mask: Floats, num_new: int) -> Floats:
    """The mask [B, T, S + T] of T new tokens, from that of one [B, 1, S + 1]."""
    num_rows, _, width = mask.shape
    wide = np.empty((num_rows, num_new, width - 1 + num_new), np.float32)
    wide[:, :, : width - 1] = mask[:, :, :-1]
    wide[:, :, width - 1 :] = _later(num_new)
    return wide


@lru_cache(maxsize=64)
def _later(num: int) -> Floats:
    """What hides those after each of so many tokens; not to be changed."""
    return np.triu(np.full((num, num), HIDDEN, np.float32), 1)


def branch(
    rows: Sequence[Row],
    places: Sequence[int],
    parents: Sequence[Sequence[int]],
    nums_new: Sequence[int],
    positions: Ids,
    mask: Floats,
) -> None:
    """Let new tokens follow those that `parents` name: changes positions [B, T] and mask [B, T, S + T] at `places`."""
    past = mask.shape[2] - mask.shape[1]
    for row, slot, before, num_new in zip(rows, places, parents, nums_new, strict=True):
        if is_chain(before):
            continue
        held = len(before) - num_new
        trunk = row.length - held
        sees = np.where(ancestry(before)[held:], np.float32(0.0), HIDDEN)
        positions[slot, :num_new] = trunk + depths(before)[held:]
        mask[slot, :num_new, trunk : row.length] = sees[:, :held]
        mask[slot, :num_new, past : past + num_new] = sees[:, held:]
