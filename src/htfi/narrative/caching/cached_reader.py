"""A reader that asks its model only for views that are not cached. Wiring puts it around the readers of the rungs."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from htfi.domain.generation import RequestRefused, SpeculationStats
from htfi.domain.news_view import NewsView
from htfi.narrative.caching.tier import EventClock, cache_key
from htfi.narrative.ports import Closable, ContextCache, LateNewsReader, NewsReader
from htfi.narrative.question import Question, item_names, question_id, residency_tags, shown_items

_MAX_PENDING = 4_096
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(NewsView)


@dataclass(frozen=True, slots=True)
class ViewCachePolicy:
    """Where views are cached, and by what they are found.

    `identity` names everything that shapes a view besides the question: model, draft, calibration, settings, code and
    machine. The rounds of a target depend on the questions beside it and are recorded; so a view is found among the
    same questions only, unless `is_isolated` says that it is read as if alone. `is_deep` marks a reader that is shown
    all items. Provisional views and refusals are not cached.
    """

    cache: ContextCache
    identity: bytes
    lifetime_ns: int
    clock: EventClock
    is_isolated: bool = False
    is_deep: bool = False


class CachedReader:
    """Gives the views that its reader would give, bit for bit: cached ones, or its own."""

    def __init__(self, reader: NewsReader, keeping: ViewCachePolicy) -> None:
        self._reader, self._policy = reader, keeping

    @property
    def version(self) -> str:
        return self._reader.version

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._reader.speculation_stats

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """One view per question, in order. Raises: DependencyUnavailable."""
        if not questions:
            return []
        self._policy.clock.advance_to(max(question.as_of_ns for question in questions))
        asked = [self._with_all_items(question) for question in questions]
        keys = self._keys(asked)
        views = self._find(keys, asked)
        unread = [place for place, view in enumerate(views) if view is None]
        if unread and not self._policy.is_isolated:
            unread = list(range(len(questions)))
        read = self._reader.read([questions[place] for place in unread], deadline_ms) if unread else []
        for place, view in zip(unread, read, strict=True):
            views[place] = view
            self._store(keys[place], asked[place], view)
            if view.provisional:
                self._remember(question_id(questions[place]), keys[place], asked[place])
        return [view for view in views if view is not None]

    def close(self) -> None:
        """Close the reader, if it can be closed."""
        if isinstance(self._reader, Closable):
            self._reader.close()

    def _with_all_items(self, question: Question) -> Question:
        """With every item that the reader may be shown."""
        if not self._policy.is_deep:
            return question
        return replace(question, most_items=max(len(question.items), question.most_items))

    def _keys(self, asked: Sequence[Question]) -> list[bytes]:
        names = [f"{question_id(question)}/{question.most_items}".encode() for question in asked]
        company = b"" if self._policy.is_isolated else blake2b(b"".join(names), digest_size=16).digest()
        return [
            cache_key(
                "view", self._policy.identity, name, company, place.to_bytes(4, "little") if company else b""
            )
            for place, name in enumerate(names)
        ]

    def _find(self, keys: Sequence[bytes], asked: Sequence[Question]) -> list[NewsView | None]:
        return [
            _decoded_view(value)
            for value in self._policy.cache.get_many(keys, [item_names(one) for one in asked])
        ]

    def _store(self, key: bytes, question: Question, view: NewsView) -> None:
        if view.provisional or view.reader != self.version:  # a refusal is the template's view
            return
        items = shown_items(question)
        newest_ns = max((item.available_at_ns for item in items), default=question.as_of_ns)
        left_ns = self._policy.lifetime_ns - max(question.as_of_ns - newest_ns, 0)
        self._policy.cache.put(
            key, _ENCODER.encode(view), left_ns, item_names(question), residency_tags(question)
        )

    def _remember(self, name: str, key: bytes, question: Question) -> None:
        """A provisional view was given; late views are received by `LateCachedReader` alone."""


class LateCachedReader(CachedReader):
    """The same around a reader whose views may arrive late."""

    def __init__(self, reader: LateNewsReader, keeping: ViewCachePolicy) -> None:
        super().__init__(reader, keeping)
        self._late = reader
        self._pending: OrderedDict[str, tuple[bytes, Question]] = OrderedDict()
        self._ready: list[tuple[str, NewsView | RequestRefused]] = []

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Views that arrived since the last call, by the id of their question; see `LateNewsReader`."""
        finished, self._ready = self._ready, []
        for name, view in self._late.take_late_views():
            key, question = self._pending.pop(name, (b"", None))
            if question is not None and isinstance(view, NewsView):
                self._store(key, question, view)
            finished.append((name, view))
        return finished

    def request_views(self, questions: Sequence[Question]) -> None:
        """Request views that no decision waits for; cached ones are handed out by the next `take_late_views`."""
        asked = [self._with_all_items(question) for question in questions]
        keys = [key for question in asked for key in self._keys([question])]
        rest: list[Question] = []
        for question, shaped, key, view in zip(questions, asked, keys, self._find(keys, asked), strict=True):
            if view is not None:
                self._ready.append((question_id(question), view))
            else:
                self._remember(question_id(question), key, shaped)
                rest.append(question)
        self._late.request_views(rest)

    def _remember(self, name: str, key: bytes, question: Question) -> None:
        self._pending[name] = (key, question)
        while len(self._pending) > _MAX_PENDING:
            self._pending.popitem(last=False)


def with_cache(reader: NewsReader, keeping: ViewCachePolicy) -> CachedReader:
    """The reader behind the cache; late where the reader is."""
    return (
        LateCachedReader(reader, keeping)
        if isinstance(reader, LateNewsReader)
        else CachedReader(reader, keeping)
    )


def _decoded_view(value: bytes | None) -> NewsView | None:
    """None where the value is not a view: cached by another version of this program."""
    if value is None:
        return None
    try:
        return _DECODER.decode(value)
    except msgspec.MsgspecError:
        return None
