"""Reads prompts block by block, those of one moment together: which blocks are missing, in which passes they are read.

A block is the unit in which prompts are kept and found again. Its keys and values have the same bits whether they were
cached or computed: a network that promises bits that depend neither on the cut of a text nor on the other rows reads
the missing blocks of several prompts in one pass, any other reads each block alone.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.forward_pass import causal_mask
from htfi.decoding.kv_cache import KVBlock, PrefixCache, SharedKVBlocks
from htfi.decoding.ports import Floats, Network, PromptNetwork

MAX_PASS_TOKENS = (
    192  # of one pass, padding included: beyond it a token costs more, for its rows leave the cache
)
MAX_PADDING = 16  # tokens by which a row may be shorter than its pass: a pass of its own costs about as much


class PromptToPrefill(NamedTuple):
    """A prompt's ids, the maximal length of its row, and how many ids are likely to be shared with others."""

    ids: Sequence[int]
    limit: int
    shared: int = 0
    about: tuple[str, ...] = ()  # names of the items that the shared tokens are about
    residency: frozenset[str] = frozenset()


class ReadBlock(NamedTuple):
    """A block of a prompt, and whether it was read before: by an earlier prompt, here or elsewhere."""

    name: bytes
    block: KVBlock
    found: bool


class ReadPrompt(NamedTuple):
    """A prompt's blocks in order, and the logits [V] after its last token."""

    blocks: list[ReadBlock]
    logits: Floats
    shared_name: bytes  # of the block that ends the shared part
    fetched: frozenset[bytes]  # names of blocks that others have read
    offered: frozenset[bytes]  # names of blocks that others may find


class _Scored(NamedTuple):
    """A block that was computed, and the logits [V] after its last token, where they were asked for."""

    block: KVBlock
    logits: Floats | None


@dataclass(slots=True, eq=False)
class _Reading:
    """A prompt under way: its blocks as far as they are known."""

    prompt: PromptToPrefill
    cuts: list[tuple[int, int]]
    names: list[bytes]
    is_forgotten: bool
    offered: Mapping[bytes, int]  # names that others may have read, and their numbers of tokens
    known: dict[int, ReadBlock] = field(default_factory=dict[int, ReadBlock])  # by place
    fetched: set[bytes] = field(default_factory=set[bytes])
    logits: Floats | None = None

    @property
    def last(self) -> int:
        return len(self.names) - 1

    def missing(self) -> list[int]:
        return [place for place in range(len(self.names)) if place not in self.known]

    def take(self, place: int, block: KVBlock, found: bool) -> None:
        self.known[place] = ReadBlock(self.names[place], block, found)

    def finished(self) -> ReadPrompt:
        assert self.logits is not None, "the last block of a prompt is computed"
        at = next((k for k, (_, end) in enumerate(self.cuts) if end == self.prompt.shared), -1)
        blocks = [self.known[place] for place in range(len(self.names))]
        shared_name = self.names[at] if at >= 0 else b""
        return ReadPrompt(blocks, self.logits, shared_name, frozenset(self.fetched), frozenset(self.offered))


class _Run(NamedTuple):
    """Consecutive blocks of a prompt that are read in one pass, from `first` up to `end`."""

    reading: _Reading
    first: int
    end: int

    @property
    def begin(self) -> int:
        return self.reading.cuts[self.first][0]

    @property
    def num_tokens(self) -> int:
        return self.reading.cuts[self.end - 1][1] - self.begin


class PromptReader:
    """Reads prompts with a network, through the blocks that are cached here and those that others have read."""

    def __init__(
        self, network: Network, config: DecodingConfig, cache: PrefixCache, shared: SharedKVBlocks | None
    ) -> None:
        self._network = network
        self._scoring = network if isinstance(network, PromptNetwork) else None
        self._reads_together = self._scoring is not None and self._scoring.reads_together
        self._block_tokens = config.block_tokens
        self._cache = cache
        self._shared = shared

    def read(self, prompts: Sequence[PromptToPrefill]) -> list[ReadPrompt]:
        """The prompts in order; what several of them begin with is read once. Raises: DependencyUnavailable."""
        readings = [self._begin(prompt) for prompt in prompts]
        computed: dict[bytes, _Scored] = {}
        fetched: dict[bytes, KVBlock] = {}
        waiting = readings
        while waiting:
            runs: list[_Run] = []
            claimed: set[bytes] = set()
            for reading in waiting:
                run = self._next_run(reading, computed, fetched, claimed)
                if run is not None:
                    claimed.add(reading.names[run.first])
                    runs.append(run)
            for rows in self._passes(runs):
                self._read_pass(rows, computed)
            waiting = [reading for reading in waiting if reading.missing()]
        return [reading.finished() for reading in readings]

    def _begin(self, prompt: PromptToPrefill) -> _Reading:
        cuts = block_bounds(len(prompt.ids), prompt.shared, self._block_tokens)
        names = _chained_block_names(prompt.ids, cuts)
        is_forgotten = self._shared is not None and self._shared.is_forgotten(prompt.about)
        offered = {
            name: end - begin
            for name, (begin, end) in zip(names[:-1], cuts, strict=False)
            if end <= prompt.shared and not is_forgotten
        }
        return _Reading(prompt, cuts, names, is_forgotten, offered)

    def _next_run(
        self,
        reading: _Reading,
        computed: Mapping[bytes, _Scored],
        fetched: dict[bytes, KVBlock],
        claimed: set[bytes],
    ) -> _Run | None:
        """The blocks to read next; None where all are known, or another prompt is about to read the first of them."""
        self._find(reading, computed, fetched)
        missing = reading.missing()
        if not missing or reading.names[missing[0]] in claimed:
            return None
        if self._fetch([reading.names[place] for place in missing], reading, fetched):
            self._find(reading, computed, fetched)
            missing = reading.missing()
            if reading.names[missing[0]] in claimed:
                return None
        first = missing[0]
        end = first + 1
        while self._reads_together and end <= reading.last and end not in reading.known:
            if reading.cuts[end][1] - reading.cuts[first][0] > MAX_PASS_TOKENS:
                break
            end += 1
        return _Run(reading, first, end)

    def _find(
        self, reading: _Reading, computed: Mapping[bytes, _Scored], fetched: Mapping[bytes, KVBlock]
    ) -> None:
        """Take what is known by now. The last block is not cached, for the logits after it are needed."""
        for place in reading.missing():
            name = reading.names[place]
            scored = computed.get(name)
            if place == reading.last:
                if scored is not None and scored.logits is not None:
                    reading.take(place, scored.block, found=False)
                    reading.logits = scored.logits
            elif scored is not None:
                reading.take(place, scored.block, found=True)
            elif not reading.is_forgotten:
                block = self._cache.find(name) or fetched.get(name)
                if block is not None:
                    reading.take(place, block, found=True)
                    if name in fetched:
                        reading.fetched.add(name)

    def _fetch(self, missing: Iterable[bytes], reading: _Reading, fetched: dict[bytes, KVBlock]) -> bool:
        """Ask for blocks that others have read; whether there were any."""
        names = [name for name in missing if name in reading.offered]
        if self._shared is None or not names:
            return False
        found = self._shared.find(names, [reading.offered[name] for name in names], reading.prompt.about)
        known = {name: block for name, block in zip(names, found, strict=True) if block is not None}
        fetched.update(known)
        return bool(known)

    def _passes(self, runs: Sequence[_Run]) -> list[list[_Run]]:
        """Runs that are read in one pass: after equally many tokens, and of about the same length."""
        if not self._reads_together:
            return [[run] for run in runs]
        passes: list[list[_Run]] = []
        for run in sorted(runs, key=lambda run: (run.begin, -run.num_tokens)):
            rows = passes[-1] if passes else []
            if (
                rows
                and rows[0].begin == run.begin
                and rows[0].num_tokens - run.num_tokens <= MAX_PADDING
                and (len(rows) + 1) * rows[0].num_tokens <= MAX_PASS_TOKENS
            ):
                rows.append(run)
            else:
                passes.append([run])
        return passes

    def _read_pass(self, rows: Sequence[_Run], computed: dict[bytes, _Scored]) -> None:
        """Read runs after equally many tokens, `S`; shorter ones are padded at their end to `T` tokens."""
        shape, begin, num_new = self._network.shape, rows[0].begin, max(run.num_tokens for run in rows)
        sizes = (shape.num_layers, len(rows), shape.num_kv_heads, begin, shape.head_dim)
        keys, values = np.empty(sizes, np.float32), np.empty(sizes, np.float32)
        ids = np.zeros((len(rows), num_new), np.int64)
        for row, run in enumerate(rows):
            ids[row, : run.num_tokens] = run.reading.prompt.ids[begin : begin + run.num_tokens]
            past = [run.reading.known[place].block for place in range(run.first)]
            if past:
                np.concatenate([block.keys for block in past], axis=2, out=keys[:, row])
                np.concatenate([block.values for block in past], axis=2, out=values[:, row])
        mask = causal_mask(np.zeros((len(rows), 1, begin + 1), np.float32), num_new)
        places = np.minimum(np.arange(begin, begin + num_new), shape.max_positions - 1)
        positions = np.tile(places, (len(rows), 1))
        if self._scoring is None:
            out = self._network.forward(ids, positions, mask, keys, values)
            logits = out.logits[:, -1]
        else:
            ends = np.array([row * num_new + run.num_tokens - 1 for row, run in enumerate(rows)], np.int64)
            out = self._scoring.read(ids, positions, mask, keys, values, ends)
            logits = out.logits
        for row, run in enumerate(rows):
            _split(run, out.keys[:, row], out.values[:, row], logits[row], computed)


def _split(run: _Run, keys: Floats, values: Floats, logits: Floats, computed: dict[bytes, _Scored]) -> None:
    """Cut a run [L, G, T, D] into its blocks. Others find them unless the logits show values that are not finite."""
    reading, is_finite = run.reading, bool(np.isfinite(logits).all())
    for place in range(run.first, run.end):
        begin, end = (bound - run.begin for bound in reading.cuts[place])
        block = KVBlock(keys[:, :, begin:end], values[:, :, begin:end])
        reading.take(place, block, found=False)
        if is_finite:
            computed[reading.names[place]] = _Scored(block, logits if place == run.end - 1 else None)
    if run.end > reading.last:
        reading.logits = logits


def block_bounds(num_tokens: int, shared: int, block_tokens: int) -> list[tuple[int, int]]:
    """Where a prompt is cut: every `block_tokens`, counted again after the first `shared` tokens."""
    shared = min(max(shared, 0), num_tokens)
    starts = [*range(0, shared, block_tokens), *range(shared, num_tokens, block_tokens)]
    return list(zip(starts, [*starts[1:], num_tokens], strict=True))


def _chained_block_names(ids: Sequence[int], cuts: Sequence[tuple[int, int]]) -> list[bytes]:
    """A name for each block, which depends on all tokens up to its end and on the cuts."""
    names: list[bytes] = []
    name = b""
    for begin, end in cuts:
        name = hashlib.blake2b(name + np.array(ids[begin:end], "<i8").tobytes(), digest_size=16).digest()
        names.append(name)
    return names
