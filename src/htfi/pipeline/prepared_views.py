"""Prepares views for scheduled announcements, and serves decisions with them. The loop calls it between its steps.

A decision that is served needs no time for its view: its plan states what the view was prepared for, and which rung
reads the news itself right after the decision is released.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from htfi.domain.decision import Decision, Rung
from htfi.domain.events import MacroAnnouncement
from htfi.domain.news import ScreenedItem
from htfi.domain.news_view import NewsView
from htfi.narrative.calendar.announcements import Announcement, Calendar
from htfi.narrative.calendar.prefetching import AnnouncementPrefetcher
from htfi.narrative.config import READING_MS, PrefetchingConfig
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.question import Question, facts_of
from htfi.narrative.rationale.amendment import SAME_DIRECTION_AFTER_NEWS, has_part
from htfi.pipeline.view_cache import ReadRequest, ViewCache
from htfi.scheduling.fidelity import is_prepared, prepared_plan

MAX_READINGS_PER_STEP = 4  # readings between two steps: no decision waits longer
MAX_SERIES = 4096
RecentReturns = Callable[[str], tuple[float, ...]]  # series → its last returns, in units of volatility


class PreparedViews:
    """The prefetcher of announcements, and the series that decisions were made on, by name."""

    def __init__(
        self, calendar: Calendar, config: PrefetchingConfig, processor: NewsProcessor, readings: ViewCache
    ) -> None:
        self.prefetcher = AnnouncementPrefetcher(calendar, config)
        self._config, self._processor, self._view_cache = config, processor, readings
        self.num_verified = self.num_confirmed = 0  # amendments of what was served; those that say the same
        self._series: OrderedDict[str, tuple[str, int]] = OrderedDict()  # symbol, bar in ns
        self.rung = next((rung for rung in (Rung.SPECULATIVE, Rung.EDGE) if rung in readings.rungs), None)
        self._moves_bands = bool(calendar.events)
        self.is_on = bool(calendar.releases) and self.rung is not None and config.max_readings > 0

    @property
    def models(self) -> dict[str, str]:
        """The calendar, for the record of a decision: of its views or its band."""
        return self.prefetcher.models if self.is_on or self._moves_bands else {}

    def due_announcements(self, now_ns: int) -> list[Announcement]:
        """Announcements to open before any event at `now_ns` is taken in."""
        return self.prefetcher.take_due(now_ns) if self.is_on else []

    def open_announcements(
        self, announcements: Sequence[Announcement], recent_returns: RecentReturns
    ) -> None:
        """Decide what is read ahead. All that happened until now must have been learnt from."""
        for announcement in announcements:
            questions: list[tuple[str, Question]] = []
            for series, (symbol, bar_ns) in sorted(self._series.items()):
                if announcement.symbols and symbol not in announcement.symbols:
                    continue
                selection = self._processor.select(symbol, announcement.at_ns)
                if not selection.suspicion:
                    question = Question(
                        symbol,
                        announcement.at_ns,
                        bar_ns,
                        selection.items,
                        recent_returns(series),
                        facts=facts_of(selection.items, selection.readings),
                    )
                    questions.append((series, question))
            self.prefetcher.open_announcement(announcement, questions)

    def read_ahead(self) -> None:
        """Read a little ahead, while nothing waits. Raises: DependencyUnavailable."""
        if self.is_on:
            self.prefetcher.read_ahead(self._read, MAX_READINGS_PER_STEP)

    def receive_announcement(self, item: MacroAnnouncement) -> None:
        """Remember a rate that the calendar names."""
        if self.is_on:
            self.prefetcher.observe_rate(item)

    def receive_news(self, screened: ScreenedItem | None) -> None:
        """Take in an item as the news processor has it. Raises: DependencyUnavailable."""
        if self.is_on and screened is not None:
            self.prefetcher.receive(screened, self._read)

    def serve(self, request: ReadRequest, recorded: NewsView | None) -> ReadRequest:
        """The request with the view that is known for it; where that was prepared, its plan says so.

        `recorded` is what was read for it before a crash: that stands.
        """
        if not self.is_on:
            return request._replace(known=recorded)
        self._remember_series(request)
        view = self.prefetcher.serve(request.series, request.question)
        if recorded is not None:
            is_prepared = recorded.prepared and recorded.as_of_ns == request.question.as_of_ns
            view = recorded if is_prepared else None
        if view is None or request.news.suspicion:
            return request._replace(known=recorded)
        return request._replace(plan=prepared_plan(request.plan, self.rung), known=view)

    def count_verified(self, decision: Decision) -> None:
        """Count an amendment that takes the place of a decision which was served."""
        if is_prepared(decision.plan):
            self.num_verified += 1
            self.num_confirmed += has_part(decision.rationale, SAME_DIRECTION_AFTER_NEWS)

    def _remember_series(self, request: ReadRequest) -> None:
        self._series[request.series] = (request.question.symbol, request.question.bar_ns)
        self._series.move_to_end(request.series)
        if len(self._series) > MAX_SERIES:
            self._series.popitem(last=False)

    def _read(self, questions: Sequence[Question]) -> list[NewsView]:
        assert self.rung is not None
        deadline_ms = len(questions) * READING_MS
        return self._view_cache.read_uncached(self.rung, questions, deadline_ms)

    def state(self) -> dict[str, Any]:
        series = [[name, symbol, bar_ns] for name, (symbol, bar_ns) in self._series.items()]
        counts = [self.num_verified, self.num_confirmed]
        return {"series": series, "reader": self.prefetcher.state(), "counts": counts}

    def restore(self, state: dict[str, Any]) -> None:
        self._series = OrderedDict((name, (symbol, bar_ns)) for name, symbol, bar_ns in state["series"])
        self.prefetcher.restore(state["reader"])
        self.num_verified, self.num_confirmed = state["counts"]
