"""An encoder with its heads that computes each text once, and the scorer around them that states whose text it is.

What is cached depends on the text alone, never on what was read before, as novelty does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.news import NewsScores, ScreenedItem
from htfi.narrative.caching.tier import EventClock, cache_key, text_digest, text_name
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.scorer import scored_text
from htfi.narrative.ports import ContextCache, ItemScorer, TextEmbeddings, TextEncoder
from htfi.narrative.question import item_name

Floats = NDArray[np.float32]
HeadShares = dict[str, NDArray[np.float64]]  # by head


class _StoredText(msgspec.Struct, frozen=True, array_like=True):
    """One text: its point as float32, and by head the probabilities of its labels as float64, little-endian."""

    point: bytes
    shares: dict[str, bytes]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_StoredText)


class _ScoredText:
    """One text: its point [D], and by head the probabilities [labels]."""

    __slots__ = ("point", "shares")

    def __init__(self, point: Floats, shares: HeadShares) -> None:
        self.point, self.shares = point, shares


class CachedEncoder:
    """Gives the points and, by `heads`, the probabilities that its encoder and its heads would give, bit for bit.

    `identity` names encoder, heads, code and machine. The states of tokens are used and not cached: what is read here
    has none. Texts that `expect_items` did not announce are not cached, because their residency is unknown.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        heads: Heads | None,
        cache: ContextCache,
        identity: bytes,
        lifetime_ns: int,
    ) -> None:
        self._encoder, self._heads = encoder, heads
        self._cache = cache
        self._identity = identity
        self._lifetime_ns = lifetime_ns
        self._expected: dict[str, tuple[set[str], frozenset[str]]] = {}
        self._last_read: list[_ScoredText] = []
        self.version, self.size = encoder.version, encoder.size

    @property
    def heads(self) -> Heads | None:
        """The heads, for the scorer that reads with this encoder."""
        judges = self._heads
        return (
            None
            if judges is None
            else _CachedHeads(judges.heads, judges.encoder, judges.card, judges.digest, self)
        )

    def expect_items(self, items: Sequence[ScreenedItem]) -> None:
        """The items whose texts come next; earlier ones are forgotten."""
        self._expected = {}
        for one in items:
            names, residency = self._expected.get(scored_text(one), (set[str](), frozenset[str]()))
            names.add(item_name(one.item.id))
            self._expected[scored_text(one)] = (names, residency | frozenset(one.item.residency))

    def encode(self, texts: Sequence[str]) -> Floats:
        """Points [n, D] of length 1. Raises: DependencyUnavailable."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """As `encode`; its states are empty. Raises: DependencyUnavailable."""
        known = [text for text in dict.fromkeys(texts) if text in self._expected]
        digests = [text_digest(text) for text in known]
        keys = [cache_key("text", self._identity, digest.encode()) for digest in digests]
        about = [
            (*sorted(self._expected[text][0]), text_name(digest))
            for text, digest in zip(known, digests, strict=True)
        ]
        found = [self._decoded(value) for value in self._cache.get_many(keys, about)] if known else []
        judged = {text: one for text, one in zip(known, found, strict=True) if one is not None}
        unread = [text for text in dict.fromkeys(texts) if text not in judged]
        if unread:
            judged.update(zip(unread, self._score(unread), strict=True))
            for text, key, names, before in zip(known, keys, about, found, strict=True):
                if before is None:
                    self._cache.put(
                        key, _encoded_value(judged[text]), self._lifetime_ns, names, self._expected[text][1]
                    )
        self._last_read = [judged[text] for text in texts]
        points = np.array([one.point for one in self._last_read], np.float32).reshape(len(texts), self.size)
        return TextEmbeddings(points, [np.empty((0, self.size), np.float32)] * len(texts))

    def last_shares(self) -> HeadShares:
        """Probabilities [n, labels] by head of the texts read last."""
        names = [] if self._heads is None else list(self._heads.heads)
        return {name: np.array([one.shares[name] for one in self._last_read]) for name in names}

    def _score(self, texts: Sequence[str]) -> list[_ScoredText]:
        points, states = self._encoder.read(texts)
        shares: HeadShares = {} if self._heads is None else self._heads.score(points, states, texts)
        return [
            _ScoredText(point, {name: rows[place] for name, rows in shares.items()})
            for place, point in enumerate(points)
        ]

    def _decoded(self, value: bytes | None) -> _ScoredText | None:
        """None where the value does not fit this encoder and these heads."""
        if value is None:
            return None
        try:
            kept = _DECODER.decode(value)
        except msgspec.MsgspecError:
            return None
        wanted: Mapping[str, Head] = {} if self._heads is None else self._heads.heads
        if len(kept.point) != 4 * self.size or kept.shares.keys() != wanted.keys():
            return None
        if any(len(kept.shares[name]) != 8 * len(head.labels) for name, head in wanted.items()):
            return None
        point = np.frombuffer(kept.point, "<f4").astype(np.float32, copy=False)
        shares = {
            name: np.frombuffer(rows, "<f8").astype(np.float64, copy=False)
            for name, rows in kept.shares.items()
        }
        is_sound = np.isfinite(point).all() and all(np.isfinite(rows).all() for rows in shares.values())
        return _ScoredText(point, shares) if is_sound else None


@dataclass(frozen=True, slots=True)
class _CachedHeads(Heads):
    """Heads that repeat the probabilities of the texts which `cached_encoder` read last; for it alone."""

    cached_encoder: CachedEncoder | None = None

    def score(self, points: Floats, states: Sequence[Floats], texts: Sequence[str]) -> HeadShares:
        """Probabilities [n, labels] by head of the texts read last."""
        return (
            Heads.score(self, points, states, texts)
            if self.cached_encoder is None
            else self.cached_encoder.last_shares()
        )


class CachedScorer:
    """The scorer, announcing to its encoder whose texts come."""

    def __init__(self, scorer: ItemScorer, encoder: CachedEncoder, time: EventClock) -> None:
        self._scorer, self._encoder, self._time = scorer, encoder, time
        self.version = scorer.version

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        """One for each item, in order; each then counts as read. Raises: DependencyUnavailable."""
        self._time.advance_to(max((one.item.available_at_ns for one in items), default=0))
        self._encoder.expect_items(items)
        return self._scorer.score(items)

    def state(self) -> dict[str, Any]:
        return self._scorer.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._scorer.restore(state)


def cache_names(screened: ScreenedItem) -> tuple[str, ...]:
    """What a cache must forget when an item is corrected or retracted: its id, and the text as it was scored."""
    return item_name(screened.item.id), text_name(text_digest(scored_text(screened)))


def _encoded_value(judged: _ScoredText) -> bytes:
    shares = {name: np.asarray(rows, "<f8").tobytes() for name, rows in judged.shares.items()}
    return _ENCODER.encode(_StoredText(np.asarray(judged.point, "<f4").tobytes(), shares))
