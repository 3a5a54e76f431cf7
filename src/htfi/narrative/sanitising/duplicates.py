"""Finds items that repeat a story, and the first item of it, by MinHash signatures of words and pairs of words.

The share of equal places of two signatures estimates the Jaccard index (Broder 1997); eight bits of each minimum are
stored (Li and König, "b-bit minwise hashing", arXiv 0910.3349). Hashes are fixed: the same text has the same signature
on every machine.

Similar is not the same: an item with another figure, a reversed statement ("raises", "cuts", "denies") or a correction
is a new story, however few its words differ by. The first item that could be believed stands for the story.
"""

import struct
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import astuple

from htfi.narrative.sanitising import compiled
from htfi.narrative.sanitising.config import MAX_ITEMS, NEAR_ALIKE, WINDOW_NS, SanitiserConfig
from htfi.narrative.sanitising.text_features import CORRECTS, DENIES, TextFeatures, direction_of

NUM_HASHES = 64
NUM_BANDS = 16  # of four places: a similarity of 0.5 is found with 64%, of 0.7 with 99%
MAX_WORDS = 160

_BAND_STRUCT = struct.Struct(f"<{NUM_BANDS}I")
_SEED = 0x48544649
_MIX, _JOIN = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)
_CHANCE_AGREEMENT = 1.0 / 256.0
_NO_SIGNATURE = bytes(NUM_HASHES)


def _draw() -> tuple[np.ndarray, np.ndarray]:
    words = [zlib.crc32(f"{_SEED}/{place}".encode()) for place in range(2 * NUM_HASHES)]
    table = np.array(words, dtype=np.uint32).reshape(2, NUM_HASHES, 1)
    return table[0] | np.uint32(1), table[1]


_TIMES, _PLUS = _draw()
if compiled.similarity is not None:
    compiled.similarity.set_hashes(_TIMES.ravel().tolist(), _PLUS.ravel().tolist())


class _WordHashes(dict[str, int]):
    """Cached hashes of words."""

    def __missing__(self, word: str) -> int:
        if len(self) > _MAX_KNOWN_WORDS:
            self.clear()
        known = self[word] = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        return known


_MAX_KNOWN_WORDS = 1 << 16
_known = _WordHashes()


def minhash_signature(words: list[str]) -> bytes:
    """The text's signature of 64 bytes; empty for a text without words."""
    if not words:
        return b""
    if compiled.similarity is not None:
        return compiled.similarity.signature(words)
    words = words[:MAX_WORDS]
    hashes = np.fromiter(map(_known.__getitem__, words), np.uint32, len(words))
    shingles = np.concatenate((hashes, hashes[:-1] * _MIX + hashes[1:] * _JOIN))
    least = (_TIMES * shingles + _PLUS).min(axis=1)
    return (least * _JOIN >> np.uint32(24)).astype(np.uint8).tobytes()


def jaccard_estimate(one: bytes, other: bytes) -> float:
    """The estimated share of words and pairs of words that two texts have in common, 0–1."""
    if compiled.similarity is not None:
        return compiled.similarity.likenesses(one, [other])[0]
    if not one or not other:
        return 0.0
    return _likeness(int(np.count_nonzero(np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8))))


def jaccard_estimates(one: bytes, others: Sequence[bytes]) -> list[float]:
    """`jaccard_estimate` of one text with each of several."""
    if compiled.similarity is not None:
        return compiled.similarity.likenesses(one, list(others))
    if not one or not others:
        return [0.0] * len(others)
    signed = np.frombuffer(b"".join([other or _NO_SIGNATURE for other in others]), np.uint8)
    same = np.count_nonzero(signed.reshape(-1, NUM_HASHES) == np.frombuffer(one, np.uint8), axis=1)
    return [_likeness(num) if other else 0.0 for num, other in zip(same.tolist(), others, strict=True)]


def _likeness(num_same: int) -> float:
    return 1.0 if num_same == NUM_HASHES else max(num_same / NUM_HASHES - _CHANCE_AGREEMENT, 0.0)


def lsh_bands(signed: bytes) -> tuple[int, ...]:
    """The places of a signature by fours, as keys: texts that share one are worth comparing."""
    if not signed:
        return ()
    if compiled.similarity is not None:
        return compiled.similarity.bands(signed)
    return tuple([value << 4 | place for place, value in enumerate(_BAND_STRUCT.unpack(signed))])


_MIN_LONG_TEXT_WORDS = 20  # words: in a shorter text another name makes another story
_MAX_ORIGINALS = 64  # items of a voice among which the one that it corrects is sought
_MIN_ORIGINAL = 0.3  # likeness of a correction to what it corrects
_MAX_VOICES = 16  # voices stored per story


class StoryItem(msgspec.Struct):
    """One item as the index stores it."""

    id: str
    source: str
    at_ns: int
    cluster: str
    signature: bytes
    figures: tuple[str, ...]
    names: tuple[str, ...]
    symbols: tuple[str, ...]
    way: int
    trust: float
    credit: float  # how far its source was believed
    feed: str = ""  # it came through
    bands: tuple[int, ...] = ()


class SimilarItems(NamedTuple):
    """`same` is an item of the same story, `near` the most similar of all, with its similarity (0–1)."""

    signature: bytes
    bands: tuple[int, ...]
    same: StoryItem | None
    near: StoryItem | None
    similarity: float


class StoryCluster(msgspec.Struct):
    """A story: how many items repeat it, from which voices, and how many of them are stored."""

    num_alike: int
    voices: list[str]
    num_kept: int
    believed: list[str] = []  # independent voices that are believed, and the feeds of unproven ones
    is_official: bool = False


class DuplicateIndex:
    """Items of the last days, in bounded number, found by their signatures."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._items: OrderedDict[int, StoryItem] = OrderedDict()
        self._clusters: dict[str, StoryCluster] = {}
        self._by_band: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._next = 0

    def find(self, features: TextFeatures, symbols: tuple[str, ...], now_ns: int) -> SimilarItems:
        """Earlier items that are similar to this one."""
        self._expire(now_ns)
        signed = minhash_signature(features.words)
        near, most = None, 0.0
        same, most_same = None, 0.0
        keys = lsh_bands(signed)
        places = {place for place in map(self._by_band.get, keys) if place is not None}
        others = [self._items[place] for place in sorted(places, reverse=True)]
        for other, alike in zip(
            others, jaccard_estimates(signed, [one.signature for one in others]), strict=True
        ):
            if alike < NEAR_ALIKE:
                continue
            if alike > most:
                near, most = other, alike
            if alike > most_same and is_same_story(other, features, symbols):
                same, most_same = other, alike
        return SimilarItems(signed, keys, same, near, most)

    def add(self, item: StoryItem, believed: str = "", is_official: bool = False) -> StoryCluster:
        """Store an item; returns its story, with this item counted. `believed` names the source that confirms it, '' if
        none; `is_official` if an official source does.
        """
        place, self._next = self._next, self._next + 1
        self._items[place] = item
        self._by_id[item.id] = place
        for band in item.bands:
            self._by_band[band] = place
        cluster = self._clusters.get(item.cluster)
        if cluster is None:
            cluster = self._clusters[item.cluster] = StoryCluster(0, [], 0)
        cluster.num_alike += 1
        cluster.num_kept += 1
        if item.source not in cluster.voices and len(cluster.voices) < _MAX_VOICES:
            cluster.voices.append(item.source)
        if believed and believed not in cluster.believed and len(cluster.believed) < _MAX_VOICES:
            cluster.believed.append(believed)
        cluster.is_official = cluster.is_official or is_official
        if len(self._items) > MAX_ITEMS:
            self._drop()
        return cluster

    def cluster(self, name: str) -> StoryCluster | None:
        return self._clusters.get(name)

    def item(self, name: str) -> StoryItem | None:
        """The item of that id, if stored."""
        place = self._by_id.get(name)
        return None if place is None else self._items[place]

    def own_original(self, signature: bytes, voice: str, feed: str, symbols: tuple[str, ...]) -> str:
        """What an item that is marked as a correction corrects: the likest of its voice's newest items through the same
        feed, on the same symbols; '' where none is like it.
        """
        own = (
            one
            for one in reversed(self._items.values())
            if one.source == voice and one.feed == feed and set(one.symbols) == set(symbols)
        )
        alike = [(jaccard_estimate(signature, one.signature), one.id) for one in islice(own, _MAX_ORIGINALS)]
        best = max(alike, key=lambda one: one[0], default=(0.0, ""))
        return best[1] if best[0] >= _MIN_ORIGINAL else ""

    def _expire(self, now_ns: int) -> None:
        oldest_ns = now_ns - WINDOW_NS
        while self._items and next(iter(self._items.values())).at_ns < oldest_ns:
            self._drop()

    def _drop(self) -> None:
        place, item = self._items.popitem(last=False)
        for band in item.bands:
            if self._by_band.get(band) == place:
                del self._by_band[band]
        if self._by_id.get(item.id) == place:
            del self._by_id[item.id]
        cluster = self._clusters[item.cluster]
        cluster.num_kept -= 1
        if not cluster.num_kept:
            del self._clusters[item.cluster]

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "tellings": [[place, *astuple(one)[:-1]] for place, one in self._items.items()],
            "clusters": [
                [
                    name,
                    one.num_alike,
                    list(one.voices),
                    one.num_kept,
                    list(one.believed),
                    one.is_official,
                ]
                for name, one in self._clusters.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._next = state["next"]
        self._items.clear()
        self._by_band.clear()
        self._by_id.clear()
        self._clusters = {name: StoryCluster(*rest) for name, *rest in state["clusters"]}
        for place, *row in state["tellings"]:
            item = self._items[place] = _story_item(row)
            self._by_id[item.id] = place
            for band in item.bands:
                self._by_band[band] = place


def _story_item(row: list[Any]) -> StoryItem:
    name, source, at_ns, cluster, signed, figures, names, symbols, way, trust, credit, feed = row
    return StoryItem(
        name, source, at_ns, cluster, signed, tuple(figures), tuple(names), tuple(symbols), way, trust, credit,
        feed, lsh_bands(signed),
    )  # fmt: skip


def is_same_story(earlier: StoryItem, features: TextFeatures, symbols: tuple[str, ...]) -> bool:
    """Whether a similar text brings nothing that the earlier one did not state."""
    if features.figures.difference(earlier.figures):
        return False
    if (features.way ^ earlier.way) & (DENIES | CORRECTS) or features.direction * direction_of(
        earlier.way
    ) < 0:
        return False
    if symbols and earlier.symbols and not set(symbols) & set(earlier.symbols):
        return False
    if len(features.words) >= _MIN_LONG_TEXT_WORDS:
        return True
    return not (features.names.difference(earlier.names) and set(earlier.names).difference(features.words))
