"""How alike two texts are: MinHash signatures of their words and pairs of words. Duplicates compare by them.

The share of equal places estimates the Jaccard index (Broder 1997); eight bits of each minimum are kept
(Li and König, "b-bit minwise hashing", arXiv 0910.3349). Hashes are fixed: the same text has the same signature
on every machine.
"""

import struct
import zlib

import numpy as np

NUM_HASHES = 64
NUM_BANDS = 16  # of four places: alike by half is found with 64%, by 0.7 with 99%
MAX_WORDS = 160

_BANDS = struct.Struct(f"<{NUM_BANDS}I")
_SEED = 0x48544649
_MIX, _JOIN = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)
_BY_CHANCE = 1.0 / 256.0


def _draw() -> tuple[np.ndarray, np.ndarray]:
    words = [zlib.crc32(f"{_SEED}/{place}".encode()) for place in range(2 * NUM_HASHES)]
    table = np.array(words, dtype=np.uint32).reshape(2, NUM_HASHES, 1)
    return table[0] | np.uint32(1), table[1]


_TIMES, _PLUS = _draw()


class _Hashes(dict[str, int]):
    """Hashes of words that were met: a memory of a pure function."""

    def __missing__(self, word: str) -> int:
        if len(self) > _MOST_KNOWN:
            self.clear()
        known = self[word] = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        return known


_MOST_KNOWN = 1 << 16
_known = _Hashes()


def signature(words: list[str]) -> bytes:
    """64 bytes that tell how alike this text is to others; empty where there are no words."""
    if not words:
        return b""
    words = words[:MAX_WORDS]
    hashes = np.fromiter(map(_known.__getitem__, words), np.uint32, len(words))
    shingles = np.concatenate((hashes, hashes[:-1] * _MIX + hashes[1:] * _JOIN))
    least = (_TIMES * shingles + _PLUS).min(axis=1)
    return (least * _JOIN >> np.uint32(24)).astype(np.uint8).tobytes()


def likeness(one: bytes, other: bytes) -> float:
    """The estimated share of words and pairs of words that two texts have in common, 0–1."""
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    same = int(np.count_nonzero(np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)))
    return max(same / NUM_HASHES - _BY_CHANCE, 0.0)


def bands(signed: bytes) -> tuple[int, ...]:
    """The places of a signature by fours, as keys: texts that share one are worth comparing."""
    if not signed:
        return ()
    return tuple([value << 4 | place for place, value in enumerate(_BANDS.unpack(signed))])
