"""What one text gives by itself: its point, the probabilities of the heads, its facts.

A text's bits do not depend on what is read with it, nor on where: it may be read ahead, in another process, or taken
from a cache.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.heads import Heads
from htfi.narrative.ports import TextEmbeddings, TextEncoder

_LINE_END = "\n"  # a headline has none


class TextReading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`point` is float32 [D] of length 1, `shares` by head float64 [labels], both little-endian; `facts` is what the
    `FactExtractor` wrote, empty where none are read.
    """

    point: bytes
    shares: dict[str, bytes]
    facts: bytes = b""

    def labels(self, head: str) -> NDArray[np.float64]:
        """The probabilities of a head's labels, in its order. Raises: KeyError."""
        return np.frombuffer(self.shares[head], "<f8")


class TextReader(Protocol):
    """Reads texts; equal texts give equal readings."""

    @property
    def version(self) -> str:
        """Name and digest of the encoder, for the record of a decision."""
        ...

    @property
    def size(self) -> int:
        """D, the number of components of a point."""
        ...

    def read(self, texts: Sequence[str]) -> list[TextReading]:
        """One per text, in order. Raises: DependencyUnavailable."""
        ...


class FactExtractor(Protocol):
    """Facts of texts, as bytes, from what an encoder gave for them."""

    def extract(self, texts: Sequence[str], embeddings: TextEmbeddings) -> list[bytes]: ...


class EncoderTextReader:
    """Reads with an encoder, its heads and, of texts of one line, the facts: `facts` is None where none are read."""

    def __init__(self, encoder: TextEncoder, heads: Heads | None, facts: FactExtractor | None = None) -> None:
        self._encoder, self._heads, self._facts = encoder, heads, facts
        self.version, self.size = encoder.version, encoder.size

    def read(self, texts: Sequence[str]) -> list[TextReading]:
        """One per text, in order, all in one pass of the encoder. Raises: DependencyUnavailable."""
        if not texts:
            return []
        found: list[TextReading] = []
        for embeddings in self._encoder.read_parts(texts):
            start = len(found)
            found += self._readings(texts[start : start + len(embeddings.states)], embeddings)
        return found

    def _readings(self, texts: Sequence[str], embeddings: TextEmbeddings) -> list[TextReading]:
        points, states = embeddings
        shares = {} if self._heads is None else self._heads.score(points, states, texts)
        facts: dict[int, bytes] = {}
        if self._facts is not None:
            lines = [place for place, text in enumerate(texts) if _LINE_END not in text]
            of_lines = TextEmbeddings(points[lines], [states[place] for place in lines])
            found = self._facts.extract([texts[place] for place in lines], of_lines)
            facts = dict(zip(lines, found, strict=True))
        return [
            TextReading(
                np.asarray(point, "<f4").tobytes(),
                {name: np.asarray(rows[place], "<f8").tobytes() for name, rows in shares.items()},
                facts.get(place, b""),
            )
            for place, point in enumerate(points)
        ]


def points_of(readings: Sequence[TextReading], size: int) -> NDArray[np.float32]:
    """The points [n, size] of readings."""
    joined = b"".join(one.point for one in readings)
    return np.frombuffer(joined, "<f4").astype(np.float32, copy=False).reshape(len(readings), size)
