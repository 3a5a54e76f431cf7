"""Paths of one network side by side: every pass gives each row its next tokens.

Rows advance as arrays, not one by one: with a hundred of them a Python step each would cost as much as the network.
"""

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.kv_cache import MASKED, KVRow
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.decoding.sessions import KVSessions

_MAX_GAP_SHARE = (
    1 / 6
)  # of the slots: a gap costs its tokens in a pass or two, moving a row about as much as one token


class PathRows:
    """Rows that began with one prefix, in the order of their paths. `lengths` [N] is the length of each.

    The list of rows belongs to the caller, who closes the remaining ones; a dropped row is closed and removed from it.
    """

    def __init__(self, sessions: KVSessions, rows: list[KVRow]) -> None:
        self.rows = rows
        self.lengths: Ids = np.array([row.length for row in rows], np.int64)
        self.num_passes = 0
        self._sessions = sessions
        self._asked: ForwardOutput | None = None
        self._triangles: dict[int, Floats] = {}

    @property
    def num_slots(self) -> int:
        """Rows that a pass computes, other sequences' and free ones included."""
        return self._sessions.arena.num_slots

    def forward(self, ids: Ids) -> Floats:
        """Logits [N, T, V] after each of the tokens [N, T]; `keep` then says how many of them stay."""
        arena, num_new = self._sessions.arena, ids.shape[1]
        most = int(self.lengths.max()) + num_new
        arena.grow_to(min(most, max(row.limit for row in self.rows)))
        slots = self._slots()
        if slots is None:
            held, batch = self.lengths, ids
        else:
            held = arena.lengths()
            batch = np.zeros((arena.num_slots, num_new), np.int64)
            batch[slots] = ids
        positions, mask = held[:, None], arena.mask
        if num_new > 1:
            # beyond the end of a path lies padding
            positions = np.minimum(
                positions + np.arange(num_new, dtype=np.int64), self._sessions.network.shape.max_positions - 1
            )
            mask = self._wide(mask, num_new)
        out = self._sessions.network.forward(batch, positions, mask, arena.keys, arena.values)
        self._asked = out
        self.num_passes += 1
        return out.logits if slots is None else out.logits[slots]

    def keep(self, counts: Ids) -> None:
        """Keep the first `counts` [N] of the tokens just read in each row."""
        assert self._asked is not None
        out, self._asked = self._asked, None
        arena, slots = self._sessions.arena, self._slots()
        begin, num = int(self.lengths[0]), int(counts[0])
        ends = self.lengths + counts
        if slots is None and (self.lengths == begin).all() and (counts == num).all():
            end = begin + num
            arena.keys[:, :, :, begin:end] = out.keys[:, :, :, :num]
            arena.values[:, :, :, begin:end] = out.values[:, :, :, :num]
            arena.mask[:, 0, begin:end] = 0.0
        else:
            at = np.arange(len(self.rows)) if slots is None else slots
            rows, places = np.nonzero(np.arange(out.keys.shape[3], dtype=np.int64) < counts[:, None])
            to, at = self.lengths[rows] + places, at[rows]
            arena.keys[:, at, :, to] = out.keys[:, at, :, places]
            arena.values[:, at, :, to] = out.values[:, at, :, places]
            arena.mask[at, 0, to] = 0.0
        self._set_lengths(ends)

    def keep_all(self) -> None:
        """Keep all tokens just read."""
        assert self._asked is not None
        self.keep(np.full(len(self.rows), self._asked.keys.shape[3], np.int64))

    def rewind(self, lengths: Ids) -> None:
        """Back to the first `lengths` [N] tokens of each row."""
        if (lengths == self.lengths).all():
            return
        mask = self._sessions.arena.mask
        slots = self._slots()
        own = mask[:, 0, :-1] if slots is None else mask[slots, 0, :-1]
        own[np.arange(own.shape[1]) >= lengths[:, None]] = MASKED
        if slots is not None:
            mask[slots, 0, :-1] = own
        self._set_lengths(lengths)

    def drop_rows(self, stays: NDArray[np.bool_]) -> None:
        """Free the rows where `stays` [N] is false; compact the arena when that pays."""
        for row, is_here in zip(self.rows, stays, strict=True):
            if not is_here:
                self._sessions.close(row)
        self.rows[:] = [row for row, is_here in zip(self.rows, stays, strict=True) if is_here]
        self.lengths = self.lengths[stays]
        arena = self._sessions.arena
        if self.rows and arena.num_slots - arena.num_rows >= _MAX_GAP_SHARE * arena.num_slots:
            arena.compact()

    def zero(self) -> None:
        """Zero the rows, if they may hold values that are not finite."""
        for row in self.rows:
            self._sessions.arena.zero(row)

    def _slots(self) -> Ids | None:
        """The slot of each row; None if the rows are the batch, in order."""
        slots = [row.slot for row in self.rows]
        num = self._sessions.arena.num_slots
        return None if num == len(slots) and slots == list(range(num)) else np.array(slots, np.int64)

    def _set_lengths(self, lengths: Ids) -> None:
        self.lengths = lengths
        for row, length in zip(self.rows, lengths.tolist(), strict=True):
            row.length = length

    def _wide(self, mask: Floats, num_new: int) -> Floats:
        """The mask [B, T, S + T] of T new tokens, from the mask of one [B, 1, S + 1]."""
        if num_new not in self._triangles:
            self._triangles[num_new] = np.triu(np.full((num_new, num_new), MASKED, np.float32), 1)
        past = mask.shape[2] - 1
        wide = np.empty((len(mask), num_new, past + num_new), np.float32)
        wide[:, :, :past] = mask[:, :, :past]
        wide[:, :, past:] = self._triangles[num_new]
        return wide
