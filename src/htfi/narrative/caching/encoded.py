"""An encoder and its heads that work a text out once, and the scoring around them that says whose text it is. Wiring
puts them into the scorer: what is kept depends on the text alone, never on what was read before, as novelty does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.news import Scores, Screened
from htfi.narrative.caching.event_time import EventTime
from htfi.narrative.caching.keys import cache_key, text_digest, text_name
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.scorer import shown_text
from htfi.narrative.ports import ContextCache, Encoded, TextEncoder
from htfi.narrative.question import item_name

Floats = NDArray[np.float32]
Shares = dict[str, NDArray[np.float64]]  # by head


class Scoring(Protocol):
    """What scores screened items: `encoding.scorer.Scorer`."""

    version: str

    def score(self, items: Sequence[Screened]) -> list[Scores]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """Of one text: its point as float32, and by head the probabilities of its labels as float64, little-endian."""

    point: bytes
    shares: dict[str, bytes]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Kept)


class _Judged:
    """What is known of one text: its point [D], and by head [labels]."""

    __slots__ = ("point", "shares")

    def __init__(self, point: Floats, shares: Shares) -> None:
        self.point, self.shares = point, shares


class CachedEncoder:
    """Gives the points and, by `heads`, the probabilities that its encoder and its heads would give, bit for bit.

    `identity` names encoder, heads, code and machine. The states of tokens are worked out and used, and not kept: what
    is read here has none. Texts that nobody has told of with `tell` are not kept: where they may lie is not known.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        heads: Heads | None,
        cache: ContextCache,
        identity: bytes,
        lifetime_ns: int,
    ) -> None:
        self._encoder, self._judges = encoder, heads
        self._cache = cache
        self._identity = identity
        self._lifetime_ns = lifetime_ns
        self._told: dict[str, tuple[set[str], frozenset[str]]] = {}
        self._read: list[_Judged] = []
        self.version, self.size = encoder.version, encoder.size

    @property
    def heads(self) -> Heads | None:
        """The heads, for whoever reads with this encoder."""
        judges = self._judges
        return (
            None
            if judges is None
            else _KeptHeads(judges.heads, judges.encoder, judges.card, judges.digest, self)
        )

    def tell(self, items: Sequence[Screened]) -> None:
        """The items whose texts come next; those of before are no longer known."""
        self._told = {}
        for one in items:
            names, residency = self._told.get(shown_text(one), (set[str](), frozenset[str]()))
            names.add(item_name(one.item.id))
            self._told[shown_text(one)] = (names, residency | frozenset(one.item.residency))

    def encode(self, texts: Sequence[str]) -> Floats:
        """Points [n, D] of length 1. Raises: DependencyUnavailable."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> Encoded:
        """As `encode`; its states are empty. Raises: DependencyUnavailable."""
        known = [text for text in dict.fromkeys(texts) if text in self._told]
        digests = [text_digest(text) for text in known]
        keys = [cache_key("text", self._identity, digest.encode()) for digest in digests]
        about = [
            (*sorted(self._told[text][0]), text_name(digest))
            for text, digest in zip(known, digests, strict=True)
        ]
        found = [self._judged(value) for value in self._cache.get_many(keys, about)] if known else []
        judged = {text: one for text, one in zip(known, found, strict=True) if one is not None}
        unread = [text for text in dict.fromkeys(texts) if text not in judged]
        if unread:
            judged.update(zip(unread, self._judge(unread), strict=True))
            for text, key, names, before in zip(known, keys, about, found, strict=True):
                if before is None:
                    self._cache.put(key, _value(judged[text]), self._lifetime_ns, names, self._told[text][1])
        self._read = [judged[text] for text in texts]
        points = np.array([one.point for one in self._read], np.float32).reshape(len(texts), self.size)
        return Encoded(points, [np.empty((0, self.size), np.float32)] * len(texts))

    def last_shares(self) -> Shares:
        """Probabilities [n, labels] by head of what was read last."""
        names = [] if self._judges is None else list(self._judges.heads)
        return {name: np.array([one.shares[name] for one in self._read]) for name in names}

    def _judge(self, texts: Sequence[str]) -> list[_Judged]:
        points, states = self._encoder.read(texts)
        shares: Shares = {} if self._judges is None else self._judges.score(points, states, texts)
        return [
            _Judged(point, {name: rows[place] for name, rows in shares.items()})
            for place, point in enumerate(points)
        ]

    def _judged(self, value: bytes | None) -> _Judged | None:
        """None where it is nothing that this encoder and these heads say."""
        if value is None:
            return None
        try:
            kept = _DECODER.decode(value)
        except msgspec.MsgspecError:
            return None
        wanted: Mapping[str, Head] = {} if self._judges is None else self._judges.heads
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
        return _Judged(point, shares) if is_sound else None


@dataclass(frozen=True, slots=True)
class _KeptHeads(Heads):
    """Heads that say what was said of the texts that `reads` has read last; for it alone."""

    reads: CachedEncoder | None = None

    def score(self, points: Floats, states: Sequence[Floats], texts: Sequence[str]) -> Shares:
        """Probabilities [n, labels] by head of the texts read last."""
        return Heads.score(self, points, states, texts) if self.reads is None else self.reads.last_shares()


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


def _value(judged: _Judged) -> bytes:
    shares = {name: np.asarray(rows, "<f8").tobytes() for name, rows in judged.shares.items()}
    return _ENCODER.encode(_Kept(np.asarray(judged.point, "<f4").tobytes(), shares))
