"""An encoder that works a text out once, and the scoring around it that says whose text it is. Wiring puts both around
the scorer: what is kept are points by text, never what depends on what was read before, as novelty does.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from htfi.domain.news import Scores, Screened
from htfi.narrative.caching.event_time import EventTime
from htfi.narrative.caching.keys import cache_key, text_digest, text_name
from htfi.narrative.encoding.scorer import shown_text
from htfi.narrative.ports import ContextCache, TextEncoder
from htfi.narrative.question import item_name

Floats = NDArray[np.float32]


class Scoring(Protocol):
    """What scores screened items: `encoding.scorer.Scorer`."""

    version: str

    def score(self, items: Sequence[Screened]) -> list[Scores]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class CachedEncoder:
    """Gives the points that its encoder would give, bit for bit. `identity` names the encoder, code and machine.

    Texts that nobody has told of with `tell` are worked out and not kept: where they may lie is not known.
    """

    def __init__(self, encoder: TextEncoder, cache: ContextCache, identity: bytes, lifetime_ns: int) -> None:
        self._encoder = encoder
        self._cache = cache
        self._identity = identity
        self._lifetime_ns = lifetime_ns
        self._told: dict[str, tuple[set[str], frozenset[str]]] = {}
        self.version, self.size = encoder.version, encoder.size

    def tell(self, items: Sequence[Screened]) -> None:
        """The items whose texts come next; those of before are no longer known."""
        self._told = {}
        for one in items:
            names, residency = self._told.get(shown_text(one), (set[str](), frozenset[str]()))
            names.add(item_name(one.item.id))
            self._told[shown_text(one)] = (names, residency | frozenset(one.item.residency))

    def encode(self, texts: Sequence[str]) -> Floats:
        """Points [n, D] of length 1. Raises: DependencyUnavailable."""
        known = [text for text in dict.fromkeys(texts) if text in self._told]
        digests = [text_digest(text) for text in known]
        keys = [cache_key("point", self._identity, digest.encode()) for digest in digests]
        about = [
            (*sorted(self._told[text][0]), text_name(digest))
            for text, digest in zip(known, digests, strict=True)
        ]
        found = [_point(value, self.size) for value in self._cache.get_many(keys, about)] if known else []
        points = {text: point for text, point in zip(known, found, strict=True) if point is not None}
        unread = [text for text in dict.fromkeys(texts) if text not in points]
        if unread:
            points.update(zip(unread, self._encoder.encode(unread), strict=True))
            for text, key, names, before in zip(known, keys, about, found, strict=True):
                if before is None:
                    value = np.asarray(points[text], "<f4").tobytes()
                    self._cache.put(key, value, self._lifetime_ns, names, self._told[text][1])
        return np.array([points[text] for text in texts], np.float32).reshape(len(texts), self.size)


class CachedScoring:
    """The scorer, telling its encoder whose texts come."""

    def __init__(self, scorer: Scoring, encoder: CachedEncoder, time: EventTime) -> None:
        self._scorer, self._encoder, self._time = scorer, encoder, time
        self.version = scorer.version

    def score(self, items: Sequence[Screened]) -> list[Scores]:
        """One for each item, in order; each then counts as read. Raises: DependencyUnavailable."""
        self._time.reach(max((one.item.available_at_ns for one in items), default=0))
        self._encoder.tell(items)
        return self._scorer.score(items)

    def state(self) -> dict[str, Any]:
        return self._scorer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._scorer.restore(state)


def derived_from(screened: Screened) -> tuple[str, ...]:
    """What a cache must forget when an item is corrected or taken back: its id, and the text as it was scored."""
    return item_name(screened.item.id), text_name(text_digest(shown_text(screened)))


def _point(value: bytes | None, size: int) -> Floats | None:
    """None where it is no point of this space."""
    if value is None or len(value) != 4 * size:
        return None
    point = np.frombuffer(value, "<f4").astype(np.float32, copy=False)
    return point if np.isfinite(point).all() else None
