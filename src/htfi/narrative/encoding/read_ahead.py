"""Reads a text together with those that are known to follow, and holds what was read last.

A text's bits do not depend on its batch: what is read ahead changes how soon an answer comes, never the answer.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.ports import TextEmbeddings, TextEncoder

MAX_AHEAD = 512  # texts read with one that is asked for
MAX_HELD_TOKENS = 8_192  # 13 MB of states


class _HeldText(NamedTuple):
    """What an encoder gave for one text: its point [D] and the states of its tokens [T, D]."""

    point: NDArray[np.float32]
    states: NDArray[np.float32]


class ReadAheadEncoder:
    """An encoder that several ask for the same texts: each is read once, together with others."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self.version, self.size = encoder.version, encoder.size
        self._held: OrderedDict[str, _HeldText] = OrderedDict()  # the longest held first
        self._num_tokens = 0  # of the texts held
        self._max_tokens = MAX_HELD_TOKENS
        self._expected: dict[str, None] = {}  # in the order in which they will be asked for

    def expect(self, texts: Sequence[str]) -> None:
        """The texts that will be asked for next; those that were expected before are forgotten."""
        self._expected = dict.fromkeys(texts)

    def forget(self, headline: str) -> None:
        """Forget what was read of an item that was withdrawn: its headline, alone or with its body."""
        for text in [text for text in self._held if text.startswith(headline)]:
            self._num_tokens -= len(self._held.pop(text).states)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Points of length 1, [n, D]. Raises: DependencyUnavailable."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """As `encode`, with the states of the tokens. Raises: DependencyUnavailable."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._held]
        if missing:
            self._read(missing)
        found = [self._held[text] for text in texts]
        points = np.array([one.point for one in found], np.float32).reshape(len(texts), self.size)
        self._release()
        return TextEmbeddings(points, [one.states for one in found])

    def _read(self, missing: Sequence[str]) -> None:
        for text in missing:
            self._expected.pop(text, None)
        ahead = list(islice(self._expected, MAX_AHEAD))
        for text in ahead:
            del self._expected[text]
        wanted = [*missing, *(text for text in ahead if text not in self._held)]
        points, states = self._encoder.read(wanted)
        for text, point, of_text in zip(wanted, points, states, strict=True):
            self._held[text] = _HeldText(point, of_text)
            self._num_tokens += len(of_text)
        self._max_tokens = max(MAX_HELD_TOKENS, sum(map(len, states)))

    def _release(self) -> None:
        """Release the texts held longest; what was read together stays until something else is read."""
        while self._num_tokens > self._max_tokens:
            _, gone = self._held.popitem(last=False)
            self._num_tokens -= len(gone.states)
