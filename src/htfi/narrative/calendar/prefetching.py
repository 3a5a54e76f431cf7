"""Prepares views before scheduled announcements: each plausible outcome is read in advance, and the reported one is
served.

An announcement is opened `lead_s` before its time: then its outcomes and the news beside them are fixed, so everything
depends on the events until that instant, the calendar and the settings. When the readings are done does not matter:
those that are missing when an item reports the outcome are done then, and give the same views.

An item that corrects or retracts another, that a person admitted from quarantine, or that has less than full trust is
never matched with an announcement.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from htfi.domain.events import MacroAnnouncement, News
from htfi.domain.news import ScreenedItem, Screening
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.calendar.announcements import (
    Announcement,
    AnnouncementKind,
    AnnouncementOutcome,
    Calendar,
    describe_outcome,
    likely_outcomes,
)
from htfi.narrative.calendar.earnings import earnings_outcome
from htfi.narrative.calendar.economic_data import data_outcome
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome, rate_outcome
from htfi.narrative.config import EARLY_S, PrefetchingConfig
from htfi.narrative.question import Question, shown_items, without_bodies


class AnnouncementMatch(NamedTuple):
    """An item's announcement and the key of its outcome."""

    release: Announcement
    key: str


def match_item(
    item: News, releases: tuple[Announcement, ...], levels: dict[str, float]
) -> AnnouncementMatch | None:
    """The open announcement that the item reports; None if it is none of them, or could be several.

    `levels` are the policy rates before, by the id of the announcement.
    """
    if item.corrects or item.retracts or item.released_by:
        return None
    found: list[AnnouncementMatch] = []
    for release in releases:
        if not may_report(release, item):
            continue
        outcome = item_outcome(item, release, levels.get(release.id, release.level))
        if outcome.key is not None:
            found.append(AnnouncementMatch(release, outcome.key))
    return found[0] if len(found) == 1 else None


def may_report(release: Announcement, item: News) -> bool:
    """Whether this publisher may report this announcement, and the item's symbols do not rule it out."""
    if release.publishers:
        publishers = {item.publisher.casefold(), item.source.casefold()} - {""}
        if publishers.isdisjoint(name.casefold() for name in release.publishers):
            return False
    return not (release.symbols and item.symbols) or not set(release.symbols).isdisjoint(item.symbols)


def item_outcome(item: News, release: Announcement, level: float | None) -> HeadlineOutcome:
    """The outcome of an announcement that an item reports, from any publisher."""
    if release.kind is AnnouncementKind.RATE:
        return rate_outcome(item.headline, item.body, release, level)
    if release.kind is AnnouncementKind.EARNINGS:
        return earnings_outcome(item.headline, release)
    return data_outcome(item.headline, release)


ReadFunction = Callable[[Sequence[Question]], Sequence[NewsView]]
MAX_OPEN_NS = NS_PER_DAY  # a series without a decision within a day of an announcement is read as usual
MAX_OPEN = 64
MAX_REPORTING_ITEMS = 8  # that report one announcement
CALENDAR_SOURCE = "calendar"


class PrefetchStats(msgspec.Struct):
    """Announcements opened, reported and contradicted; readings done in advance; views served."""

    num_opened: int = 0
    num_reported: int = msgspec.field(default=0, name="num_told")
    num_contradicted: int = 0
    num_read: int = 0
    num_served: int = 0


class OpenAnnouncement(msgspec.Struct):
    """One open announcement. `wanted` are the readings that its budget admits, likeliest outcome first."""

    release: Announcement
    level: float | None
    outcomes: list[AnnouncementOutcome]
    asked: dict[str, Question]  # by series, without the anticipated headline
    wanted: list[tuple[str, str]]  # outcome's key, series
    views: dict[str, dict[str, NewsView]]  # by outcome, by series
    reported_key: str = msgspec.field(default="", name="told")  # the outcome's, once an item reported it
    reported_by: list[str] = msgspec.field(default_factory=list[str], name="told_by")
    is_contradicted: bool = False
    done: list[str] = []  # series with a decision since

    def pending_readings(self, key: str | None = None) -> list[tuple[str, str]]:
        """Readings that are wanted and not done; of one outcome if its key is given."""
        if self.is_contradicted or (key is None and self.reported_key):
            return []
        return [
            (one, series)
            for one, series in self.wanted
            if (key is None or one == key) and series not in self.views.get(one, {})
        ]


class AnnouncementPrefetcher:
    """Opens announcements in the calendar's order, reads in advance, matches items, and serves each series once per
    announcement.
    """

    def __init__(self, calendar: Calendar, config: PrefetchingConfig) -> None:
        self._calendar, self._config = calendar, config
        self._next = 0  # the announcement to open next
        self._levels: dict[str, float] = {}
        self._series = {release.series for release in calendar.releases if release.series}
        self._open: list[OpenAnnouncement] = []
        self.stats = PrefetchStats()

    @property
    def models(self) -> dict[str, str]:
        """The calendar, for the record of a decision."""
        digest = self._calendar.digest
        return {"calendar": f"calendar@{digest[:12]}"} if digest else {}

    def observe_rate(self, item: MacroAnnouncement) -> None:
        """Remember a rate that the calendar names."""
        if item.series in self._series:
            self._levels[item.series] = item.value

    def take_due(self, now_ns: int) -> list[Announcement]:
        """The announcements whose lead begins by `now_ns`, each once. Those whose window has passed are left out."""
        found: list[Announcement] = []
        releases, lead_ns = self._calendar.releases, round(self._config.lead_s * NS_PER_S)
        while self._next < len(releases) and releases[self._next].at_ns - lead_ns < now_ns:
            release = releases[self._next]
            self._next += 1
            if release.at_ns + self._window_ns >= now_ns:
                found.append(release)
        self._open = [one for one in self._open if one.release.at_ns + MAX_OPEN_NS >= now_ns]
        return found

    def open_announcement(self, release: Announcement, asked: Sequence[tuple[str, Question]]) -> None:
        """Fix what is read in advance: `asked` by series, the most important first, with the news so far."""
        level = release.level if release.level is not None else self._levels.get(release.series)
        likely = likely_outcomes(release, level)
        wanted = [(outcome.key, series) for outcome in likely for series, _ in asked]
        wanted = wanted[: self._config.max_readings]
        kept = {series for _, series in wanted}
        questions = {series: without_bodies(question) for series, question in asked if series in kept}
        self._open = [*self._open, OpenAnnouncement(release, level, list(likely), questions, wanted, {})][
            -MAX_OPEN:
        ]
        self.stats.num_opened += 1

    def read_ahead(self, read: ReadFunction, most: int) -> int:
        """Do at most so many of the wanted readings; returns how many were done. Raises: DependencyUnavailable."""
        for ahead in self._open:
            wanted = ahead.pending_readings()[:most]
            if wanted:
                return self._read(ahead, wanted, read)
        return 0

    def receive(self, screened: ScreenedItem, read: ReadFunction) -> None:
        """Take in an item that passed the sanitiser with full trust; if it reports an announcement, do its outcome's
        readings.

        Raises: DependencyUnavailable.
        """
        item = screened.item
        if not self._open or screened.verdict is not Screening.PASS or screened.trust < 1.0:
            return
        early_ns = round(EARLY_S * NS_PER_S)
        live = {
            one.release.id: one
            for one in self._open
            if one.release.at_ns - early_ns <= item.available_at_ns <= one.release.at_ns + self._window_ns
        }
        levels = {name: one.level for name, one in live.items() if one.level is not None}
        found = match_item(item, tuple(one.release for one in live.values()), levels)
        if found is None:
            return
        ahead = live[found.release.id]
        if ahead.reported_key and ahead.reported_key != found.key:
            if not ahead.is_contradicted:
                ahead.is_contradicted = True
                self.stats.num_contradicted += 1
            return
        if not ahead.reported_key:
            ahead.reported_key = found.key
            self.stats.num_reported += 1
        if len(ahead.reported_by) < MAX_REPORTING_ITEMS:
            ahead.reported_by = [*ahead.reported_by, item.id]
        wanted = ahead.pending_readings(found.key)
        if wanted:
            self._read(ahead, wanted, read)

    def serve(self, series: str, question: Question) -> NewsView | None:
        """The view prepared for what the question's news reports, as of its instant; None if there is none.

        Call it once for every decision: only the first one after the report is served.
        """
        for ahead in self._open:
            if not ahead.reported_key or series in ahead.done or series not in ahead.asked:
                continue
            ahead.done = [*ahead.done, series]
            view = ahead.views.get(ahead.reported_key, {}).get(series)
            reporter = next((item for item in shown_items(question) if item.id in ahead.reported_by), None)
            if view is None or reporter is None or ahead.is_contradicted:
                continue
            self.stats.num_served += 1
            return _view_for_item(view, ahead, reporter, question)
        return None

    def _read(self, ahead: OpenAnnouncement, wanted: Sequence[tuple[str, str]], read: ReadFunction) -> int:
        by_key = {outcome.key: outcome for outcome in ahead.outcomes}
        questions = [_anticipated_question(ahead, by_key[key], series) for key, series in wanted]
        for (key, series), view in zip(wanted, read(questions), strict=True):
            ahead.views.setdefault(key, {})[series] = view
        self.stats.num_read += len(wanted)
        return len(wanted)

    @property
    def _window_ns(self) -> int:
        return round(self._config.window_s * NS_PER_S)

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "levels": dict(self._levels),
            "open": [msgspec.to_builtins(one) for one in self._open],
            "tally": msgspec.to_builtins(self.stats),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._next = state["next"]
        self._levels = dict(state["levels"])
        self._open = [msgspec.convert(one, OpenAnnouncement) for one in state["open"]]
        self.stats = msgspec.convert(state["tally"], PrefetchStats)


def prepared_label(release: Announcement, key: str) -> str:
    """What a view was prepared for, as `NewsView.prepared` records it."""
    return f"{release.id}, {describe_outcome(release.kind, key)}"


def is_prepared_for(prepared: str, anticipated_id: str) -> bool:
    """Whether a view with this label was read from the anticipated headline of that id."""
    release, _, _ = anticipated_id.rpartition("/")
    return prepared.startswith(f"{release}, ")


def _anticipated_question(ahead: OpenAnnouncement, outcome: AnnouncementOutcome, series: str) -> Question:
    """The question at the announcement's time if it turned out so."""
    release, question = ahead.release, ahead.asked[series]
    headline = News(
        available_at_ns=release.at_ns,
        event_time_ns=release.at_ns,
        source=CALENDAR_SOURCE,
        row=0,
        id=_anticipated_id(release, outcome.key),
        headline=outcome.headline,
        symbols=release.symbols,
    )
    return replace(question, items=(headline, *question.items))


def _anticipated_id(release: Announcement, key: str) -> str:
    return f"{release.id}/{key}"


def _view_for_item(
    view: NewsView, ahead: OpenAnnouncement, reporter: News, question: Question
) -> NewsView | None:
    if view.confidence <= 0.0 or view.provisional:
        return None
    foreseen, known = _anticipated_id(ahead.release, ahead.reported_key), {item.id for item in question.items}
    cited = (reporter.id if name == foreseen else name for name in view.cited)
    return replace(
        view,
        cited=tuple(name for name in cited if name in known),
        as_of_ns=question.as_of_ns,
        provisional=True,
        prepared=prepared_label(ahead.release, ahead.reported_key),
        trace=None if view.trace is None else replace(view.trace, asked_ns=ahead.release.at_ns),
    )
