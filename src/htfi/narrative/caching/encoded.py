"""Texts that are read once: what a text gives is cached, and the scorer around it states whose text it is.

What is cached depends on the text alone, never on what was read before, as novelty does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from htfi.domain.news import NewsScores, ScreenedItem
from htfi.narrative.caching.tier import EventClock, cache_key, text_digest, text_name
from htfi.narrative.encoding.scorer import scored_text
from htfi.narrative.encoding.text_reading import TextReader, TextReading
from htfi.narrative.ports import ContextCache, ItemScorer
from htfi.narrative.question import item_name

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(TextReading)


class CachedTextReader:
    """Gives what its reader would give, bit for bit.

    `identity` names encoder, heads, names of symbols, code and machine; `num_labels` are those of each head. Texts that
    `expect_items` did not announce are not cached, because their residency is unknown.
    """

    def __init__(
        self,
        reader: TextReader,
        num_labels: Mapping[str, int],
        cache: ContextCache,
        identity: bytes,
        lifetime_ns: int,
    ) -> None:
        self._reader, self._num_labels = reader, num_labels
        self._cache = cache
        self._identity = identity
        self._lifetime_ns = lifetime_ns
        self._expected: dict[str, tuple[set[str], frozenset[str]]] = {}
        self.version, self.size = reader.version, reader.size

    def expect_items(self, items: Sequence[ScreenedItem]) -> None:
        """The items whose texts come next; earlier ones are forgotten."""
        self._expected = {}
        for one in items:
            names, residency = self._expected.get(scored_text(one), (set[str](), frozenset[str]()))
            names.add(item_name(one.item.id))
            self._expected[scored_text(one)] = (names, residency | frozenset(one.item.residency))

    def read(self, texts: Sequence[str]) -> list[TextReading]:
        """One per text, in order. Raises: DependencyUnavailable."""
        known = [text for text in dict.fromkeys(texts) if text in self._expected]
        digests = [text_digest(text) for text in known]
        keys = [cache_key("text", self._identity, digest.encode()) for digest in digests]
        about = [
            (*sorted(self._expected[text][0]), text_name(digest))
            for text, digest in zip(known, digests, strict=True)
        ]
        found = [self._decoded(value) for value in self._cache.get_many(keys, about)] if known else []
        readings = {text: one for text, one in zip(known, found, strict=True) if one is not None}
        unread = [text for text in dict.fromkeys(texts) if text not in readings]
        if unread:
            readings.update(zip(unread, self._reader.read(unread), strict=True))
            for text, key, names, before in zip(known, keys, about, found, strict=True):
                if before is None:
                    value, residency = _ENCODER.encode(readings[text]), self._expected[text][1]
                    self._cache.put(key, value, self._lifetime_ns, names, residency)
        return [readings[text] for text in texts]

    def _decoded(self, value: bytes | None) -> TextReading | None:
        """None where the value does not fit this reader."""
        if value is None:
            return None
        try:
            found = _DECODER.decode(value)
        except msgspec.MsgspecError:
            return None
        if len(found.point) != 4 * self.size or found.shares.keys() != self._num_labels.keys():
            return None
        if any(len(found.shares[name]) != 8 * num for name, num in self._num_labels.items()):
            return None
        is_sound = np.isfinite(np.frombuffer(found.point, "<f4")).all() and all(
            np.isfinite(found.labels(name)).all() for name in found.shares
        )
        return found if is_sound else None


class CachedScorer:
    """The scorer, announcing to its reader whose texts come."""

    def __init__(self, scorer: ItemScorer, reader: CachedTextReader, time: EventClock) -> None:
        self._scorer, self._reader, self._time = scorer, reader, time
        self.version = scorer.version

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        """One for each item, in order; each then counts as read. Raises: DependencyUnavailable."""
        self._time.advance_to(max((one.item.available_at_ns for one in items), default=0))
        self._reader.expect_items(items)
        return self._scorer.score(items)

    def state(self) -> dict[str, Any]:
        return self._scorer.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._scorer.restore(state)


def cache_names(screened: ScreenedItem) -> tuple[str, ...]:
    """What a cache must forget when an item is corrected or retracted: its id, and the text as it was scored."""
    return item_name(screened.item.id), text_name(text_digest(scored_text(screened)))
