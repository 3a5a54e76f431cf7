"""Views read ahead of scheduled releases: what may be said is read before it is, and what was said is served at once.
The pipeline's `preparing` drives it.

A release is opened `lead_s` before its hour: then its outcomes and the news they would join are settled, so all depends
on the events until that instant, the calendar and the settings. When the readings are done does not matter: those that
are not when an item tells the outcome are done then, and give the same views.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import View
from htfi.domain.events import MacroRelease, News
from htfi.domain.news import Screened, Screening
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.calendar.config import BufferingConfig
from htfi.narrative.calendar.matching import match
from htfi.narrative.calendar.outcomes import describe, outcomes
from htfi.narrative.calendar.release import Calendar, Outcome, Release
from htfi.narrative.question import Question, briefly, shown

Read = Callable[[Sequence[Question]], Sequence[View]]
KEPT_NS = NS_PER_DAY  # a series that is not decided on within a day of a release is read for as usual
MAX_OPEN = 64
MAX_ITEMS = 8  # that tell a release, kept
SOURCE = "calendar"


@dataclass(slots=True)
class Tally:
    """What has come of it: releases opened, told and contradicted; readings ahead; views served."""

    num_opened: int = 0
    num_told: int = 0
    num_contradicted: int = 0
    num_read: int = 0
    num_served: int = 0


class Ahead(msgspec.Struct):
    """One release that is open. `wanted` are the readings that its budget admits, likeliest outcome first."""

    release: Release
    level: float | None
    outcomes: list[Outcome]
    asked: dict[str, Question]  # by series, without the headline that is to come
    wanted: list[tuple[str, str]]  # outcome's key, series
    views: dict[str, dict[str, View]]  # by outcome, by series
    told: str = ""  # the outcome's key, once an item has told it
    told_by: list[str] = []
    is_contradicted: bool = False
    done: list[str] = []  # series that have decided since

    def unread(self, key: str | None = None) -> list[tuple[str, str]]:
        """Readings that are wanted and not done; of one outcome where its key is given."""
        if self.is_contradicted or (key is None and self.told):
            return []
        return [
            (one, series)
            for one, series in self.wanted
            if (key is None or one == key) and series not in self.views.get(one, {})
        ]


class PreparedReader:
    """Opens releases in the calendar's order, reads ahead, matches items, and serves each series once a release."""

    def __init__(self, calendar: Calendar, config: BufferingConfig) -> None:
        self._calendar, self._config = calendar, config
        self._next = 0  # the release to open next
        self._levels: dict[str, float] = {}
        self._series = {release.series for release in calendar.releases if release.series}
        self._open: list[Ahead] = []
        self.tally = Tally()

    @property
    def models(self) -> dict[str, str]:
        """The calendar, for the record of a decision."""
        digest = self._calendar.digest
        return {"calendar": f"calendar@{digest[:12]}"} if digest else {}

    def note(self, item: MacroRelease) -> None:
        """Remember a rate that the calendar names."""
        if item.series in self._series:
            self._levels[item.series] = item.value

    def due(self, now_ns: int) -> list[Release]:
        """The releases that time, going on to `now_ns`, brings within their lead; each once. Those gone by are left."""
        found: list[Release] = []
        releases, lead_ns = self._calendar.releases, round(self._config.lead_s * NS_PER_S)
        while self._next < len(releases) and releases[self._next].at_ns - lead_ns < now_ns:
            release = releases[self._next]
            self._next += 1
            if release.at_ns + self._window_ns >= now_ns:
                found.append(release)
        self._open = [one for one in self._open if one.release.at_ns + KEPT_NS >= now_ns]
        return found

    def open(self, release: Release, asked: Sequence[tuple[str, Question]]) -> None:
        """Settle what is read ahead for a release: `asked` by series, the first most worth it, with the news so far."""
        level = release.level if release.level is not None else self._levels.get(release.series)
        likely = outcomes(release, level)
        wanted = [(outcome.key, series) for outcome in likely for series, _ in asked]
        wanted = wanted[: self._config.most_readings]
        kept = {series for _, series in wanted}
        questions = {series: briefly(question) for series, question in asked if series in kept}
        self._open = [*self._open, Ahead(release, level, list(likely), questions, wanted, {})][-MAX_OPEN:]
        self.tally.num_opened += 1

    def work(self, read: Read, most: int) -> int:
        """Do at most so many of the readings that are wanted; how many were done. Raises: DependencyUnavailable."""
        for ahead in self._open:
            wanted = ahead.unread()[:most]
            if wanted:
                return self._read(ahead, wanted, read)
        return 0

    def hear(self, screened: Screened, read: Read) -> None:
        """Take in an item that passed the sanitiser whole; where it tells a release, have its outcome's readings done.

        Raises: DependencyUnavailable.
        """
        item = screened.item
        if not self._open or screened.verdict is not Screening.PASS or screened.trust < 1.0:
            return
        early_ns = round(self._config.early_s * NS_PER_S)
        live = {
            one.release.id: one
            for one in self._open
            if one.release.at_ns - early_ns <= item.available_at_ns <= one.release.at_ns + self._window_ns
        }
        levels = {name: one.level for name, one in live.items() if one.level is not None}
        found = match(item, tuple(one.release for one in live.values()), levels)
        if found is None:
            return
        ahead = live[found.release.id]
        if ahead.told and ahead.told != found.key:
            if not ahead.is_contradicted:
                ahead.is_contradicted = True
                self.tally.num_contradicted += 1
            return
        if not ahead.told:
            ahead.told = found.key
            self.tally.num_told += 1
        if len(ahead.told_by) < MAX_ITEMS:
            ahead.told_by = [*ahead.told_by, item.id]
        wanted = ahead.unread(found.key)
        if wanted:
            self._read(ahead, wanted, read)

    def serve(self, series: str, question: Question) -> View | None:
        """The view prepared for what the question's news tell, as of its instant; None where there is none.

        Call it once for every decision: the first after a release is told is the only one that is served.
        """
        for ahead in self._open:
            if not ahead.told or series in ahead.done or series not in ahead.asked:
                continue
            ahead.done = [*ahead.done, series]
            view = ahead.views.get(ahead.told, {}).get(series)
            teller = next((item for item in shown(question) if item.id in ahead.told_by), None)
            if view is None or teller is None or ahead.is_contradicted:
                continue
            self.tally.num_served += 1
            return _as_told(view, ahead, teller, question)
        return None

    def _read(self, ahead: Ahead, wanted: Sequence[tuple[str, str]], read: Read) -> int:
        by_key = {outcome.key: outcome for outcome in ahead.outcomes}
        questions = [_foreseen(ahead, by_key[key], series) for key, series in wanted]
        for (key, series), view in zip(wanted, read(questions), strict=True):
            ahead.views.setdefault(key, {})[series] = view
        self.tally.num_read += len(wanted)
        return len(wanted)

    @property
    def _window_ns(self) -> int:
        return round(self._config.window_s * NS_PER_S)

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "levels": dict(self._levels),
            "open": [msgspec.to_builtins(one) for one in self._open],
            "tally": msgspec.to_builtins(self.tally),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._next = state["next"]
        self._levels = dict(state["levels"])
        self._open = [msgspec.convert(one, Ahead) for one in state["open"]]
        self.tally = msgspec.convert(state["tally"], Tally)


def prepared_for(release: Release, key: str) -> str:
    """What a view was prepared for, as `View.prepared` tells it."""
    return f"{release.id}, {describe(release.kind, key)}"


def _foreseen(ahead: Ahead, outcome: Outcome, series: str) -> Question:
    """What would be asked at the release's hour if it turned out so."""
    release, question = ahead.release, ahead.asked[series]
    headline = News(
        available_at_ns=release.at_ns,
        event_time_ns=release.at_ns,
        source=SOURCE,
        row=0,
        id=_foreseen_id(release, outcome.key),
        headline=outcome.headline,
        symbols=release.symbols,
    )
    return replace(question, items=(headline, *question.items))


def _foreseen_id(release: Release, key: str) -> str:
    return f"{release.id}/{key}"


def _as_told(view: View, ahead: Ahead, teller: News, question: Question) -> View | None:
    if view.confidence <= 0.0 or view.provisional:
        return None
    foreseen, known = _foreseen_id(ahead.release, ahead.told), {item.id for item in question.items}
    cited = (teller.id if name == foreseen else name for name in view.cited)
    return replace(
        view,
        cited=tuple(name for name in cited if name in known),
        as_of_ns=question.as_of_ns,
        provisional=True,
        prepared=prepared_for(ahead.release, ahead.told),
        wording=None if view.wording is None else replace(view.wording, asked_ns=ahead.release.at_ns),
    )
