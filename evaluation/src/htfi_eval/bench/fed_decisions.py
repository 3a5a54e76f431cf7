"""Runs the real loop over the sample's Fed decisions in minute bars, with and without a calendar, and times its views.

`htfi bench buffering` calls it. Both runs get the same items; an announcement is the headline of the sample.
"""

import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from htfi.domain.decision import Decision, Rung
from htfi.domain.events import FeedItem, MacroAnnouncement, News, Trade
from htfi.domain.generation import SpeculationStats
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_S, parse_timestamp
from htfi.narrative.calendar.announcements import rate_key
from htfi.narrative.calendar.prefetching import prepared_label
from htfi.narrative.ports import NewsReader
from htfi.narrative.question import Question
from htfi.narrative.rationale.amendment import OTHER_DIRECTION_AFTER_NEWS, SAME_DIRECTION_AFTER_NEWS, has_part
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.calendar import open_calendar
from htfi.wiring.calendar_reading import SAMPLE_CALENDAR
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.models.readers import open_readers
from htfi.wiring.outputs import DecisionJournal
from htfi.wiring.run import deferred_garbage_collection
from htfi.wiring.settings import Settings, load_settings, override
from htfi_eval.item_feed import ItemFeed

SYMBOLS = ("AAA", "BBB", "CCC")
SERIES = "FED_FUNDS_TARGET_UPPER"
BEFORE_S, AFTER_S = 25 * 60, 3 * 60  # of trading around an announcement
WARM_UP = "warm"
STEP_S = 20  # between two trades of a symbol


@dataclass(frozen=True, slots=True)
class FedDecision:
    """A scheduled decision of the sample: its news item, and the key of its outcome."""

    id: str
    item: News
    key: str
    value: float


@dataclass(slots=True)
class AnnouncementTiming:
    """One announcement in one run. `view_ms`: from the item to the first decision that uses it."""

    view_ms: float = 0.0
    receive_ms: float = 0.0
    ahead_ms: float = 0.0  # of reading before the announcement
    num_ahead: int = 0
    served: list[str] = field(default_factory=list[str])  # what its views were prepared for
    num_confirmed: int = 0
    num_amended: int = 0
    num_same: int = 0  # with equal direction, size and volatility


class _TimedReader:
    """A reader with a timer."""

    def __init__(self, reader: NewsReader) -> None:
        self._reader = reader
        self.elapsed_ms, self.num = 0.0, 0

    @property
    def version(self) -> str:
        return self._reader.version

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._reader.speculation_stats

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        begun = time.perf_counter()
        views = self._reader.read(questions, deadline_ms)
        self.elapsed_ms += 1e3 * (time.perf_counter() - begun)
        self.num += len(questions)
        return views


class _FirstReleaseJournal(DecisionJournal):
    """The journal, with the time of its first release since `first_ns` was reset."""

    first_ns = 0

    def flush(self) -> None:
        super().flush()
        self.first_ns = self.first_ns or time.perf_counter_ns()


def sample_fed_decisions() -> list[FedDecision]:
    """The scheduled decisions in the sample's headlines, with their outcomes."""
    by_instant = dict(sample_policy_rates())
    planned = {release.at_ns: release for release in open_calendar(SAMPLE_CALENDAR).releases}
    before: float | None = None
    keys: dict[int, str] = {}
    for at_ns, value in sorted(by_instant.items()):
        keys[at_ns] = rate_key(round(100.0 * (value - before))) if before is not None else "hold"
        before = value
    found: list[FedDecision] = []
    headlines = files("htfi.sample").joinpath("headlines.jsonl").read_text().splitlines()
    for row, line in enumerate(headlines, 1):
        fields: dict[str, Any] = json.loads(line)
        at_ns = parse_timestamp(fields["published_at"])
        if at_ns in planned and fields["id"].startswith("fomc-"):
            item = News(at_ns, at_ns, "headlines", row, fields["id"], fields["headline"], body=fields["body"])
            found.append(FedDecision(planned[at_ns].id, item, keys[at_ns], by_instant[at_ns]))
    return found


def sample_policy_rates() -> list[tuple[int, float]]:
    """Instants and target rates in percent, unscheduled decisions included."""
    rows = files("htfi.sample").joinpath("policy_rate.jsonl").read_text().splitlines()
    return sorted((parse_timestamp(row["published_at"]), row["value"]) for row in map(json.loads, rows))


def latest_fed_decisions(num: int | None) -> list[FedDecision]:
    """The last `num` decisions, all but the first by default: it has no previous rate."""
    return sample_fed_decisions()[1:][-num if num else None :]


def items_around_decisions(decisions: Sequence[FedDecision], seed: int) -> list[FeedItem]:
    """Trades of a few symbols around every announcement, its item in the middle of a minute, and the rates."""
    rng = random.Random(seed)
    rates = dict(sample_policy_rates())
    items: list[FeedItem] = []
    warm_ns = (
        decisions[0].item.available_at_ns - 3000 * NS_PER_S
    )  # loads everything that the first headline loads
    items.append(News(warm_ns, warm_ns, "headlines", 0, WARM_UP, "A quiet morning on the exchanges"))
    row = 1
    prices = dict.fromkeys(SYMBOLS, 100.0)
    for one in decisions:
        at_ns = one.item.available_at_ns
        around: list[FeedItem] = []
        for step in range(-BEFORE_S // STEP_S, AFTER_S // STEP_S):
            for place, symbol in enumerate(SYMBOLS):
                row += 1
                prices[symbol] *= 1.0 + rng.gauss(0.0, 3e-4)
                tick_ns = at_ns + (step * STEP_S + 5 + place) * NS_PER_S
                around.append(Trade(tick_ns, tick_ns, "trades", row, symbol, prices[symbol], 100.0))
        rate_ns, known_ns = at_ns + 2 * NS_PER_S, at_ns - (BEFORE_S + 60) * NS_PER_S
        known = max((since_ns for since_ns in rates if since_ns < at_ns), default=at_ns)
        around.append(MacroAnnouncement(known_ns, known_ns, "rate", row, SERIES, rates[known]))
        around += [one.item, MacroAnnouncement(rate_ns, rate_ns, "rate", row, SERIES, one.value)]
        items += sorted(around, key=lambda item: item.available_at_ns)
    return items


def run(decisions: Sequence[FedDecision], seed: int, *, buffered: bool) -> list[AnnouncementTiming]:
    """One run of the loop with the shipped models; the timing of each announcement."""
    settings = override(load_settings(environment={}), "market", bar="60s")
    settings = override(settings, "pipeline", group_ms=0.0)
    settings = override(settings, "narrative", calendar=SAMPLE_CALENDAR if buffered else "")
    opened = open_readers(settings.models, settings.narrative, settings.decoding)
    readers = {rung: _TimedReader(reader) for rung, reader in opened.items()}
    _warm(readers)
    by_item = {one.item.id: AnnouncementTiming() for one in decisions}
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as folder:
        ledger = open_ledger(Path(folder), origin="htfi.bench", durable=False)
        outlet = _FirstReleaseJournal(Path(folder))
        _drive(settings, items_around_decisions(decisions, seed), readers, ledger, outlet, by_item)
        _count([decode_entry(ledger.entry(index)) for index in range(ledger.size)], decisions, by_item)
        outlet.close()
        ledger.close()
    return [by_item[one.item.id] for one in decisions]


def _warm(readers: Mapping[Rung, _TimedReader]) -> None:
    """Load the models before timing."""
    item = News(0, 0, "warm", 1, "w", "Fed leaves its target rate unchanged")
    for rung, reader in readers.items():
        if rung is not Rung.TEMPLATE:
            reader.read([Question("AAA", 0, 60 * NS_PER_S, (item,))], 1e4)


def _drive(
    settings: Settings,
    items: Sequence[FeedItem],
    readers: Mapping[Rung, _TimedReader],
    ledger: Any,
    outlet: _FirstReleaseJournal,
    by_item: Mapping[str, AnnouncementTiming],
) -> None:
    loop = build_loop(settings, ItemFeed(items), ledger, outlet, readers=dict(readers))
    turn, ahead, waiting = 0, readers[Rung.SPECULATIVE], ""
    start_ms, start_num = ahead.elapsed_ms, ahead.num
    with deferred_garbage_collection():
        for item in items:
            is_reported = False
            if isinstance(item, News) and item.id != WARM_UP:
                is_reported = True
                timed = by_item[item.id]
                lead = loop.components.prepared.prefetcher.stats.num_read
                timed.num_ahead, start_num = lead - (start_num if turn else 0), lead
                timed.ahead_ms = (ahead.elapsed_ms - start_ms) if timed.num_ahead else 0.0
                waiting, turn = item.id, turn + 1
            decided, outlet.first_ns = loop.recorder.num_decided, 0
            begun_ns = time.perf_counter_ns()
            loop.step(item)
            ended_ns = time.perf_counter_ns()
            if is_reported:
                by_item[waiting].receive_ms = (ended_ns - begun_ns) / 1e6
            elif waiting and loop.recorder.num_decided > decided:
                timed = by_item[waiting]
                timed.view_ms = timed.receive_ms + (outlet.first_ns - begun_ns) / 1e6
                waiting, start_ms = "", ahead.elapsed_ms


def _count(
    found: Sequence[Decision], decisions: Sequence[FedDecision], by_item: Mapping[str, AnnouncementTiming]
) -> None:
    """Count the views served for each announcement, and their confirmations."""
    first: dict[str, Decision] = {}
    for decision in found:
        view = decision.view
        if decision.amends in first and view is not None:
            before = first[decision.amends]
            timed = by_item[_item_served(before, decisions)]
            timed.num_amended += 1
            timed.num_confirmed += has_part(decision.rationale, SAME_DIRECTION_AFTER_NEWS)
            assert has_part(decision.rationale, SAME_DIRECTION_AFTER_NEWS, OTHER_DIRECTION_AFTER_NEWS)
            was = before.view
            timed.num_same += was is not None and (
                was.direction,
                was.size_sigmas,
                was.volatility_multiplier,
            ) == (view.direction, view.size_sigmas, view.volatility_multiplier)
        elif view is not None and view.prepared and decision.plan.rung_after_release is not None:
            first[decision.id] = decision
            by_item[_item_served(decision, decisions)].served.append(view.prepared)


def _item_served(decision: Decision, decisions: Sequence[FedDecision]) -> str:
    """The news item whose prepared view the decision used."""
    release = decision.view.prepared.partition(",")[0] if decision.view is not None else ""
    return next(one.item.id for one in decisions if one.id == release)


def right_words(one: FedDecision) -> str:
    """The outcome for which the right view of an announcement was prepared."""
    release = next(release for release in open_calendar(SAMPLE_CALENDAR).releases if release.id == one.id)
    return prepared_label(release, one.key)
