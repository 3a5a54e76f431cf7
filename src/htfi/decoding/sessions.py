"""Sequences read and written by one network: open, extend, rewind, fork, close.

A prompt's keys and values have the same bits whether they were cached or computed, whatever else the engine does
(`prefill`). Tokens after it are computed in a batch with other rows; on some engines their last bits depend on those.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_tree import is_chain
from htfi.decoding.forward_pass import apply_tree_mask, causal_mask
from htfi.decoding.kv_cache import KVArena, KVRow, PrefixCache, SharedKVBlocks
from htfi.decoding.ports import Floats, Network
from htfi.decoding.prefill import PromptReader, PromptToPrefill, ReadPrompt
from htfi.domain.errors import InvalidInput, ShapeMismatch
from htfi.domain.generation import RequestRefused


class PrefilledRow(NamedTuple):
    """A row that holds a prompt: the logits after its last token [V], and how many tokens came from a cache."""

    row: KVRow
    logits: Floats
    num_reused_tokens: int


class ForkedRows(NamedTuple):
    """Rows that hold the same prompt, and the logits after its last token [V]."""

    rows: list[KVRow]
    logits: Floats


class KVSessions:
    """Owns the keys and values of one network's sequences. For one thread.

    `kept` holds blocks read elsewhere or before; without it, only blocks read here are found again.
    """

    def __init__(self, network: Network, config: DecodingConfig, kept: SharedKVBlocks | None = None) -> None:
        self.network = network
        self.config = config
        self.arena = KVArena(network.shape, config.batch_bytes)
        budget_bytes = min(config.cache_bytes, config.cache_tokens * network.shape.kv_bytes_per_token)
        self.cache = PrefixCache(network.shape, config.block_tokens, budget_bytes)
        self._shared_blocks = kept
        self._prompts = PromptReader(network, config, self.cache, kept)
        self._row_buffers = np.empty((2, 0), np.float32)  # smaller than the arena

    def refusal(self, num_tokens: int, num_rows: int = 1) -> RequestRefused | None:
        """Why rows of this many tokens can never be held, or None if they can."""
        most = self.network.shape.max_positions
        if num_tokens > most:
            return RequestRefused(f"{num_tokens} tokens with the answer; the model reads at most {most}")
        if not self.arena.fits_alone([num_tokens] * num_rows):
            return RequestRefused(
                f"{num_rows} × {num_tokens} tokens need more memory than decoding.batch_bytes = "
                f"{self.config.batch_bytes} allows"
            )
        return None

    def has_space(self, *limits: int) -> bool:
        """Whether rows that may grow to these lengths can join now, all of them."""
        return self.arena.fits(limits)

    def num_rows_free(self, num_tokens: int) -> int:
        """How many rows of this length can join now."""
        return self.arena.num_fitting(num_tokens)

    def open(self, ids: Sequence[int], limit: int, shared: int = 0) -> PrefilledRow:
        """Read a prompt; its row may grow to `limit` tokens. Call `has_space` first.

        A block ends after `shared` tokens, so that prompts with another continuation find those tokens cached.
        """
        return self.open_all([PromptToPrefill(ids, limit, shared)])[0]

    def open_all(self, prompts: Sequence[PromptToPrefill]) -> list[PrefilledRow]:
        """Read several prompts together; what they begin with alike is read once. Raises: DependencyUnavailable."""
        for ids, limit, *_ in prompts:
            if not 0 < len(ids) <= limit:
                raise InvalidInput(f"a prompt of {len(ids)} tokens in a row of {limit}")
        rows = self.arena.add(
            [prompt.limit for prompt in prompts], max(len(prompt.ids) for prompt in prompts)
        )
        try:
            found = self._prompts.read(prompts)
            for row, read in zip(rows, found, strict=True):  # a cached block is a view, so it is copied first
                for part in read.blocks:
                    self.arena.append(row, part.block.keys, part.block.values)
        except BaseException:
            for row in rows:
                self.close(row, wipe=True)
            raise
        return [
            self._keep_blocks(row, prompt, read)
            for row, prompt, read in zip(rows, prompts, found, strict=True)
        ]

    def _keep_blocks(self, row: KVRow, prompt: PromptToPrefill, read: ReadPrompt) -> PrefilledRow:
        """Keep a prompt's blocks for others that begin with them."""
        self.cache.touch([part.name for part in read.blocks])
        if np.isfinite(read.logits).all():  # values that are not finite would spoil every later request
            for name, block, found in read.blocks:
                whole = block.num_tokens == self.config.block_tokens or name == read.shared_name
                if whole and (not found or name in read.fetched):
                    self.cache.put(name, block)
                if whole and not found and self._shared_blocks is not None and name in read.offered:
                    self._shared_blocks.store(name, block, prompt.about, prompt.residency)
        num_reused = sum(part.block.num_tokens for part in read.blocks if part.found)
        return PrefilledRow(row, read.logits, num_reused)

    def num_draft_tokens_fitting(self, row: KVRow, num_unread: int, num_wanted: int) -> int:
        """How many of the wanted draft tokens may be read after the accepted ones: those that fit the row, and that
        have the same bits as if read one by one.

        New tokens are read beyond the arena's capacity and moved next to each other afterwards. Both positions must lie
        in the same block of the network's sums.
        """
        num = min(num_wanted, row.limit - row.length - num_unread)
        block = self.network.shape.sum_block
        if not block or num <= 0:
            return max(num, 0)
        end = (row.length // block + 1) * block
        while num and self.arena.capacity_for(row.length + num_unread + num) + num_unread + num > end:
            num -= 1
        return num

    def extend(
        self,
        rows: Sequence[KVRow],
        ids: Sequence[Sequence[int]],
        parents: Sequence[Sequence[int]] | None = None,
    ) -> list[Floats]:
        """Append tokens, T_i to each row, in one pass; the logits [T_i, V] after each of them.

        Each token follows the one before it, or the token in `parents` (−1: the row's last): a tree whose branches do
        not see each other. `keep_branch` then keeps one branch. A tree may be read level by level: `parents` then begin
        with those of the nodes that the row already ends with.
        """
        arena = self.arena
        longest = max(map(len, ids))
        for row, tokens in zip(rows, ids, strict=True):
            if not 0 < len(tokens) <= row.limit - row.length:
                raise ShapeMismatch(f"{len(tokens)} tokens do not fit a row of {row.length} of {row.limit}")
        arena.grow_to(max(row.length + len(tokens) for row, tokens in zip(rows, ids, strict=True)))
        slots = [row.slot for row in rows]
        keys, values, past = arena.keys, arena.values, arena.mask
        lengths, num_rows, places = arena.lengths(), arena.num_slots, slots
        if 4 * len(rows) <= 3 * num_rows:  # copying a row takes a fifth of its share of a pass
            keys, values = self._gather_rows(slots)
            past, lengths, num_rows, places = past[slots], lengths[slots], len(rows), list(range(len(rows)))
        batch = np.zeros((num_rows, longest), np.int64)
        for place, tokens in zip(places, ids, strict=True):
            batch[place, : len(tokens)] = tokens
        positions, mask = lengths[:, None], past  # [B, 1]
        if longest > 1:
            last = self.network.shape.max_positions - 1
            positions = np.minimum(positions + np.arange(longest), last)  # padding
            mask = causal_mask(mask, longest)
        if parents is not None and not all(map(is_chain, parents)):
            mask = mask.copy() if mask is arena.mask else mask
            apply_tree_mask(rows, places, parents, list(map(len, ids)), positions, mask)
        out = self.network.forward(batch, positions, mask, keys, values)
        logits: list[Floats] = []
        for row, place, tokens in zip(rows, places, ids, strict=True):
            num = len(tokens)
            arena.append(row, out.keys[:, place, :, :num], out.values[:, place, :, :num])
            logits.append(out.logits[place, :num])
        return logits

    def _gather_rows(self, slots: Sequence[int]) -> tuple[Floats, Floats]:
        """Keys and values of a few slots [L, B, G, S, D], copied side by side into reused memory."""
        keys, values = self.arena.keys, self.arena.values
        sizes = (keys.shape[0], len(slots), *keys.shape[2:])
        num = int(np.prod(sizes))
        if self._row_buffers.shape[1] < num:
            self._row_buffers = np.empty((2, num), np.float32)
        copies = [memory[:num].reshape(sizes) for memory in self._row_buffers]
        for copy, source in zip(copies, (keys, values), strict=True):
            np.take(source, slots, axis=1, out=copy, mode="clip")  # 'raise' would copy through a buffer
        return copies[0], copies[1]

    def keep_branch(self, row: KVRow, length: int, branch: Sequence[int], wipe: bool = False) -> None:
        """After the first `length` tokens keep those at the places of `branch`, rising, and drop the rest.

        `wipe` zeroes the dropped ones, if they may not be finite.
        """
        if not (0 <= length <= row.length and all(0 <= place < row.length - length for place in branch)):
            raise InvalidInput(
                f"cannot keep places {list(branch)} after {length} of a row of {row.length} tokens"
            )
        self.arena.gather(row, length, branch)
        if wipe:
            self.arena.zero_from(row, length + len(branch))
        self.arena.truncate(row, length + len(branch))

    def rewind(self, row: KVRow, length: int) -> None:
        """Back to the first `length` tokens."""
        if not 0 <= length <= row.length:
            raise InvalidInput(f"cannot rewind a row of {row.length} tokens to {length}")
        self.arena.truncate(row, length)

    def fork(self, row: KVRow, num_rows: int) -> list[KVRow]:
        """Copies of a row. Call `has_space` first."""
        forks = self.arena.add([row.limit] * num_rows, row.length)
        self.arena.copy(row, forks)
        return forks

    def close(self, row: KVRow, wipe: bool = False) -> None:
        """Free a row. `wipe` if it may hold values that are not finite."""
        if wipe:
            self.arena.zero(row)
        self.arena.remove(row)

    @contextmanager
    def forked(self, ids: Sequence[int], limit: int, num_rows: int, shared: int = 0) -> Generator[ForkedRows]:
        """Rows that all begin with one prompt, closed at the end. Call `num_rows_free` first."""
        opened = self.open(ids, limit, shared)
        rows = [opened.row]
        try:
            if num_rows > 1:
                rows += self.fork(opened.row, num_rows - 1)
            yield ForkedRows(rows, opened.logits)
        finally:
            for row in rows:
                self.close(row)
