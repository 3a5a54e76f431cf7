"""The outcome caches of all slots in memory that two processes share: the draft writes words, the author reads them.

Each slot has two tables, for rounds of odd and of even epoch: the round that ends can be read while the next is
written. The memory has no name: when both processes are gone, so is it.
"""

import mmap
import os
import tempfile
from collections.abc import Sequence

import numpy as np

from htfi.decoding.strategies.outcome_words import NUM_WORDS

NUM_SLOTS = 16
_HEADER = 8  # words
_AT_ONCE = 64
_NUM_BYTES = 8 * (_HEADER + 2 * NUM_SLOTS * NUM_WORDS)


def new_memory() -> int:
    """A file descriptor of unnamed memory, of a board's size."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("htfi-draft")
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    os.ftruncate(number, _NUM_BYTES)
    return number


class Board:
    """A view of that memory. Words are 64 bits wide and aligned, so that none is ever seen half written."""

    def __init__(self, number: int) -> None:
        self._words = np.frombuffer(mmap.mmap(number, _NUM_BYTES), np.uint64)

    @property
    def beats(self) -> int:
        """Rises as long as the draft's process goes round its loop."""
        return int(self._words[0])

    def beat(self) -> None:
        self._words[0] += np.uint64(1)

    def clear(self, slot: int, epoch: int) -> None:
        begin = _begin(slot, epoch)
        self._words[begin : begin + NUM_WORDS] = 0

    def write(self, slot: int, epoch: int, first: int, words: Sequence[int]) -> None:
        """Words from place `first` on; what has no room is left out."""
        begin = _begin(slot, epoch)
        words = words[: max(NUM_WORDS - first, 0)]
        self._words[begin + first : begin + first + len(words)] = np.array(words, np.uint64)

    def read(self, slot: int, epoch: int) -> list[int]:
        """The words of that round, as many as are there."""
        begin = _begin(slot, epoch)
        words: list[int] = []
        while len(words) < NUM_WORDS:
            at = begin + len(words)
            words += self._words[at : at + _AT_ONCE].tolist()
            if words[-1] >> 48 != epoch:
                break
        return words

    def has(self, slot: int, epoch: int, place: int) -> bool:
        """Whether that many words of the round, and one more, are there."""
        return place < NUM_WORDS and int(self._words[_begin(slot, epoch) + place]) >> 48 == epoch


def _begin(slot: int, epoch: int) -> int:
    return _HEADER + (2 * slot + epoch % 2) * NUM_WORDS
