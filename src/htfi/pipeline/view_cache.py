"""Reads the news of a decision point, once for as long as it stays the same. The step `read_news` calls it.

A series whose news did not change keeps its view, which fades with its half-life. So a model reads a headline once, not
at every bar, and a shock that leaves no time to read still has what was read before. Views are part of the run's state:
what was read before a crash is not read again.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.generation import RequestRefused, SpeculationStats
from htfi.domain.news import ReadingBudget
from htfi.domain.news_view import NewsView
from htfi.narrative.ports import LateNewsReader, NewsReader
from htfi.narrative.question import Question
from htfi.narrative.recent_news import NO_NEWS, NewsSelection
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import ReadingTimes
from htfi.scheduling.turns.fair_share import PendingReading, reading_order

# How views are cached, amended and recorded. Version 1 did not amend decisions that kept a provisional view; in
# amendments of 1 and 2 the trust in other readings stayed as it was cut beside the first view.
READINGS_VERSION = "readings/3"
# A view made at a rung serves those beneath it. What is suspected of manipulation is read by SECURE alone.
_RUNG_RANK = {
    Rung.TEMPLATE: 0,
    Rung.EDGE: 1,
    Rung.SPECULATIVE: 2,
    Rung.DEEP: 3,
    Rung.SECURE: 4,
}


APART_DEADLINE_MS = 60_000.0  # of a reading that is none of a decision's


class ReadRequest(NamedTuple):
    """What is to be read for a series, at which rung; all news on it; and what was read already, where it was.

    `known` is a view that was prepared, or that the ledger holds after a crash.
    """

    series: str
    question: Question
    plan: FidelityPlan
    news: NewsSelection = NO_NEWS
    budget: ReadingBudget | None = None  # where there is news
    known: NewsView | None = None


class ReadingTelemetry:
    """Is told of readings and does nothing."""

    def reading(self) -> None:
        """A batch of readings begins."""

    def has_read(self, rung: Rung, num: int) -> None:
        """It has ended: the news of so many series was read at a rung."""


_NO_TELEMETRY = ReadingTelemetry()


class _CachedView(msgspec.Struct, frozen=True):
    items: tuple[str, ...]
    rung: Rung
    view: NewsView
    read_ns: int  # when a model last read for the series


class ViewCache:
    """The latest view per series, in bounded number, by what was read and by whom."""

    def __init__(
        self,
        readers: Mapping[Rung, NewsReader],
        max_series: int,
        times: ReadingTimes | None = None,
        telemetry: ReadingTelemetry = _NO_TELEMETRY,
    ) -> None:
        self.times = times or ReadingTimes(FidelityConfig())
        self._readers = readers
        self._telemetry = telemetry
        self._max_series = max_series
        self._views: OrderedDict[str, _CachedView] = OrderedDict()
        self._late_readers = {
            rung: reader for rung, reader in readers.items() if isinstance(reader, LateNewsReader)
        }

    @property
    def rungs(self) -> frozenset[Rung]:
        """The rungs of the ladder that have a reader."""
        return frozenset(self._readers)

    @property
    def models(self) -> dict[str, str]:
        """The readers by rung, for the record of a decision."""
        return {f"reader.{rung.value}": reader.version for rung, reader in self._readers.items()}

    def version(self, rung: Rung) -> str:
        """The version of a rung's reader: the narrator of what is read there."""
        return self._readers[rung].version

    def version_of(self, rung: Rung) -> str | None:
        """The same; None where the rung has no reader."""
        return self._readers[rung].version if rung in self._readers else None

    @property
    def speculation_stats(self) -> dict[Rung, SpeculationStats]:
        """What the models' speculation has come to so far, by rung."""
        found = {rung: reader.speculation_stats for rung, reader in self._readers.items()}
        return {rung: stats for rung, stats in found.items() if stats is not None and stats.num_answers}

    def has(self, series: str, question: Question, rung: Rung, left_out: Collection[Rung] = ()) -> bool:
        """Whether this news was read for this series, at this rung or one above it that is not `left_out`."""
        kept = self._views.get(series)
        return (
            kept is not None
            and _RUNG_RANK[kept.rung] >= _RUNG_RANK[rung]
            and kept.rung not in left_out
            and kept.items == _item_ids(question)
        )

    def reading_order(
        self,
        questions: Sequence[tuple[str, Question]],
        suspicion: Mapping[int, float] = MappingProxyType({}),
        left_out: Mapping[int, Collection[Rung]] = MappingProxyType({}),
    ) -> list[int]:
        """The places that a model could still read for: unread ones first, then those longest without a reading.

        `suspicion`, 0–1 by place, state how far the sources of the news are suspected: that news is read after the
        rest. At 1 manipulation is suspected, and only a reading in secure mode counts. `left_out`, by place, are rungs
        whose readings do not count, because governance holds their reader back.
        """
        usual = (rung for rung in self._readers if rung not in (Rung.DEEP, Rung.SECURE))
        best = max(usual, key=_RUNG_RANK.__getitem__)
        waiting = [
            PendingReading(
                place,
                self.has(series, question, Rung.EDGE, left_out.get(place, ())),
                self._read_ns(series),
                suspicion.get(place, 0.0),
            )
            for place, (series, question) in enumerate(questions)
            if question.items
            and not self.has(
                series,
                question,
                Rung.SECURE if suspicion.get(place, 0.0) >= 1.0 else best,
                left_out.get(place, ()),
            )
        ]
        return reading_order(waiting, questions[0][1].as_of_ns) if waiting else []

    def _read_ns(self, series: str) -> int:
        kept = self._views.get(series)
        return kept.read_ns if kept is not None else 0

    def read(self, requests: Sequence[ReadRequest]) -> list[NewsView | None]:
        """The view for each series; None where there is no news. Readers get one batch for each rung.

        What is known already is not read again, unless the plan leaves its reader out. Raises: DependencyUnavailable.
        """
        views: list[NewsView | None] = [None] * len(requests)
        unread: dict[Rung, list[int]] = {}
        for place, request in enumerate(requests):
            if not request.question.items:
                continue
            if self.has(request.series, request.question, request.plan.rung, request.plan.left_out):
                self._views.move_to_end(request.series)
                views[place] = self._views[request.series].view
            else:
                views[place] = request.known
                unread.setdefault(request.plan.rung, []).append(place)
        for rung, places in unread.items():
            rest = [place for place in places if views[place] is None]
            if rest:
                questions = [requests[place].question for place in rest]
                deadline_ms = requests[places[0]].plan.deadline_ms
                self._telemetry.reading()
                with self.times.measure(rung, 0 if self.answers_late(rung) else len(rest)):
                    found = self._readers[rung].read(questions, deadline_ms)
                self._telemetry.has_read(rung, len(rest))
                for place, view in zip(rest, found, strict=True):
                    views[place] = view
            for place in places:
                request, view = requests[place], views[place]
                assert view is not None
                self._store(request.series, _item_ids(request.question), rung, view)
        return views

    def read_uncached(self, rung: Rung, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """What a rung reads in the news, ahead of a decision or after it; not cached. Raises: DependencyUnavailable."""
        return self._readers[rung].read(questions, deadline_ms) if questions else []

    def read_apart(self, rung: Rung, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """Views that no decision keeps, such as those of swapped texts. Raises: DependencyUnavailable."""
        return self._readers[rung].read(questions, deadline_ms)

    def answers_late(self, rung: Rung) -> bool:
        """Whether the reader of a rung may answer after its deadline."""
        return rung in self._late_readers

    def _store(self, series: str, items: tuple[str, ...], rung: Rung, view: NewsView) -> None:
        read_ns = self._read_ns(series) if rung is Rung.TEMPLATE else view.as_of_ns
        # The generation trace belongs to the decision it was read for; later ones name its instant.
        self._views[series] = _CachedView(items, rung, replace(view, trace=None), read_ns)
        self._views.move_to_end(series)
        if len(self._views) > self._max_series:
            self._views.popitem(last=False)

    def late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """What readers have answered late since the last call, by the question's id; refused: no answer will come."""
        return [
            (late_question_id(rung, name), view)
            for rung, reader in self._late_readers.items()
            for name, view in reader.take_late_views()
        ]

    def resume_requests(self, rung: Rung, questions: Sequence[Question]) -> None:
        """Ask again for what was awaited before a crash."""
        if rung in self._late_readers:
            self._late_readers[rung].request_views(questions)

    def store_amended(self, series: str, question: Question, rung: Rung, view: NewsView) -> None:
        """Store a late view: one in depth, or the target's if the provisional view of its instant still stands."""
        kept = self._views.get(series)
        if rung is Rung.DEEP:
            if kept is None or kept.view.as_of_ns <= view.as_of_ns:
                self._store(series, _item_ids(question), rung, view)
            return
        if kept is not None and kept.view.provisional and kept.view.as_of_ns == view.as_of_ns:
            self._views[series] = replace(kept, rung=rung, view=replace(view, trace=None))

    def state(self) -> dict[str, Any]:
        return {"kept": [[series, msgspec.to_builtins(kept)] for series, kept in self._views.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._views = OrderedDict(
            (series, msgspec.convert(kept, _CachedView)) for series, kept in state["kept"]
        )


def late_question_id(rung: Rung, question: str) -> str:
    """The id of a pending question: in depth it differs from that at the rungs that share a text generator."""
    return f"{question}/deep" if rung is Rung.DEEP else question


def _item_ids(question: Question) -> tuple[str, ...]:
    names = tuple(item.id for item in question.items)
    return (*names, question.asked_as) if question.asked_as else names
