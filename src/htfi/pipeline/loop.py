"""The main path: observe → forecast → plan → read → weigh → judge → record → release. Apps run it; wiring builds it.

`DecisionLoop.step` and `DecisionLoop.decide` are the whole of it. Time comes in with the events, so that a recorded day
replays to the same bytes. After a crash `LedgerCursor` (the recorder's) knows what the ledger holds already. What a run
learns from released decisions is deferred until no decision is waiting.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError
from htfi.domain.events import (
    Bar,
    FeedItem,
    MacroAnnouncement,
    News,
    Quote,
    SuspicionReset,
    TimePassed,
    Trade,
)
from htfi.domain.news import ScreenedItem, Screening
from htfi.governance.breakers.observations import BreakerObservation, observe_decisions, observe_item
from htfi.pipeline.amendments import PendingAmendment, judge_amendment, released_decision
from htfi.pipeline.breakers import observe_point
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.decide import decide_series, read_news, weigh_views
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.late_views import LateView, LateViews
from htfi.pipeline.news_triggers import NewsTriggers
from htfi.pipeline.numeric import is_numeric
from htfi.pipeline.operator_actions import HeldNewsStore, NullHeldNews
from htfi.pipeline.point import PointColumns, open_point
from htfi.pipeline.point_telemetry import NO_TELEMETRY, PointTelemetry, Stage
from htfi.pipeline.ports import EventFeed
from htfi.pipeline.reading_influence import can_move_forecasts
from htfi.pipeline.reading_plans import plan_deep_readings, plan_readings
from htfi.pipeline.recorder import DecisionRecorder
from htfi.pipeline.series import ClosedBars, DecisionPoint, SeriesContext, split_decision_points


class OutcomeLearning:
    """Weights and scores of forecasts, the records of news sources, usual feature values."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._has_new_bars = False  # a decision point has passed that nothing has learnt from yet
        self._decided: list[PointColumns] = []

    @property
    def is_due(self) -> bool:
        return self._has_new_bars or bool(self._decided)

    def bars_closed(self) -> None:
        """Note that bars have closed: their outcomes are known."""
        self._has_new_bars = True

    def add(self, columns: PointColumns) -> None:
        """Note series that were decided on a bar."""
        self._decided.append(columns)

    def learn(self) -> None:
        """Learn from all that was noted since the last call."""
        components = self._components
        if self._has_new_bars:
            self._has_new_bars = False
            components.forecaster.learn()
        for columns in self._decided:
            market = columns.market
            last_returns = np.nan_to_num(market.feature("return_last"), nan=0.0).tolist()
            if components.news.has_news:
                self._judge_sources(columns, last_returns)
            components.typical_features.learn(columns.series, market.names, market.features.reshape(-1))
            for series, last_return in zip(columns.series, last_returns, strict=True):
                components.scaled_returns.learn(series, last_return)
        self._decided.clear()

    def _judge_sources(self, columns: PointColumns, last_returns: Sequence[float]) -> None:
        """Judge the sources of earlier news by the returns that followed."""
        news, scaled = self._components.news, self._components.scaled_returns
        for series, bar, last_return in zip(columns.series, columns.bars, last_returns, strict=True):
            sigma = scaled.sigma(series)
            if sigma:
                news.learn_return(bar.symbol, last_return / sigma, bar.start_ns, bar.end_ns)


class DecidedPoint(NamedTuple):
    """What was decided on the series of a point, a row each; `contexts` are those of series with one."""

    columns: PointColumns
    contexts: list[SeriesContext]
    decided: list[DecidedSeries]


class DecisionLoop:
    """One feed in, one ledger and one sink out.

    A run that ends while amendments are pending polls for them as long as `keep_waiting`, which waits a little, agrees.
    """

    def __init__(
        self,
        feed: EventFeed,
        components: Components,
        recorder: DecisionRecorder,
        context: RunContext,
        keep_waiting: Callable[[], bool] = lambda: False,
        held_news: HeldNewsStore | None = None,
        telemetry: PointTelemetry = NO_TELEMETRY,
    ) -> None:
        self.feed = feed
        self.telemetry = telemetry
        self.components = components
        self.recorder = recorder
        self.context = context
        self.held_news: HeldNewsStore = held_news or NullHeldNews()  # news in quarantine
        self.bars = ClosedBars(components.market)
        self.late = LateViews(recorder, components, context)
        self.triggers = NewsTriggers(context.triggers)
        self.learning = OutcomeLearning(components)
        self.num_events = 0
        self.now_ns = 0
        self.num_deep_reads_skipped = 0  # decisions for whose reading in depth there was no time
        self.stopped = False
        self._keep_waiting = keep_waiting

    def run(self, after_item: Callable[[], None]) -> None:
        """Take every item of the feed, or those until `stop`, then commit what is open."""
        self.begin()
        for item in self.feed:
            self.step(item)
            after_item()
            if self.stopped:
                break
        self.end()

    def begin(self) -> None:
        """Release what was recorded and not released, before the first item."""
        self.recorder.release_recorded()
        self.amend_late()
        self.release_answered()

    def end(self) -> None:
        """Decide what waits for time to pass, unless it was stopped, and commit what is open."""
        if not self.stopped:
            self._decide_bars(self.bars.take_feed_bars())
            self._answer_news(self.now_ns + 1)
        self._finish()
        while self.late.is_waiting and not self.stopped and self._keep_waiting():
            self._finish()

    def step(self, item: FeedItem) -> None:
        """One item: what ended before it is decided without it, recorded, released, and learnt from."""
        if self.triggers.next_ns < item.available_at_ns:
            self._answer_news(item.available_at_ns)
        if ended := self.bars.ended_by(item.available_at_ns):
            self._decide_bars(ended)
        self._open_due_announcements(item.available_at_ns)
        if completed := self.observe(item):
            self._decide_bars(completed)
        if self.late.is_due(item):
            self.amend_late()
        self.release_answered()
        self.recorder.commit(now=type(item) is TimePassed)
        self.learn()
        self.components.prepared.read_ahead()

    def decide(self, point: DecisionPoint) -> DecidedPoint | None:
        """forecast → plan → read → weigh → judge, for every series of the point that has history enough."""
        components, context, recorder = self.components, self.context, self.recorder
        mark = self.telemetry.mark
        components.governance.take_requests(recorder.ledger.size, self.now_ns)
        columns = open_point(point, components, context)
        mark(Stage.FORECAST)
        if columns is None:
            return None
        first = recorder.num_recorded
        contexts = plan_readings(columns, components, context, recorder.cursor, first)
        mark(Stage.PLAN)
        contexts = read_news(contexts, components, recorder.cursor)
        mark(Stage.READ)
        contexts = weigh_views(contexts, columns, components, first, recorder.cursor)
        contexts, num_skipped = plan_deep_readings(contexts, components, context, recorder.cursor, first)
        self.num_deep_reads_skipped += num_skipped
        mark(Stage.WEIGH)
        if components.governance.has_breakers(first):
            self._observe(observe_point(columns, contexts, components, context))
        decided = decide_series(columns, contexts, recorder.num_recorded, components, context)
        mark(Stage.JUDGE)
        return DecidedPoint(columns, contexts, decided)

    def observe(self, item: FeedItem) -> Iterable[Bar]:
        """Take the item in; the volume and dollar bars that it completes."""
        self.now_ns = item.available_at_ns
        if isinstance(item, TimePassed):
            return ()
        self.num_events += 1
        components = self.components
        components.inputs.add(item)
        match item:
            case Trade() | Quote():  # first, as most items are
                pass
            case Bar():
                self.bars.add(item)
                return ()
            case News():
                self._learn_now()  # so that the item is judged by all that happened before it
                screened = components.news.receive(item)
                self.telemetry.screened(screened)
                if screened.verdict is Screening.QUARANTINE:
                    self.held_news.hold(item, screened)
                components.prepared.receive_news(screened)
                self.triggers.receive(screened, self._can_move_forecasts)
                if components.governance.has_breakers(self.recorder.num_recorded):
                    self._observe(observe_item(screened))
                return ()
            case SuspicionReset():
                self._learn_now()
                components.news.suspicion_monitor.reset(item)
                return ()
            case MacroAnnouncement():
                components.prepared.receive_announcement(item)
        return components.market.observe(item)

    def _observe(self, observation: BreakerObservation) -> bool:
        """Let the breakers observe; whether they change anything, which holds from the next decision on."""
        recorder, governance = self.recorder, self.components.governance
        changes = governance.observe(observation, recorder.num_recorded)
        if changes:
            recorder.commit(now=True)
            governance.log_changes(changes, is_replaying=recorder.cursor.is_replaying)
        return bool(changes)

    def _can_move_forecasts(self, screened: ScreenedItem) -> bool:
        return can_move_forecasts(screened, self.components, self.context.fidelity)

    def amend_late(self) -> None:
        """Amend the decisions whose views have been answered since."""
        self._make_again()
        self._amend(self.late.poll())

    def release_answered(self) -> None:
        """Release the decisions that people have approved, or whose deadline says so."""
        governance, recorder = self.components.governance, self.recorder
        if not governance.waiting.is_waiting:
            return
        self._make_again()
        governance.take_requests(recorder.ledger.size, self.now_ns)
        if recorder.cursor.is_replaying:
            return
        places = governance.waiting.due()
        for index in places:
            self._release(index)
        recorder.commit(now=bool(places))

    def learn(self) -> None:
        """Do what no decision waits for."""
        if self.learning.is_due:
            self.learning.learn()
            self.recorder.maintain_ledger()

    def stop(self) -> None:
        """End after the item in hand. Safe to call from a signal handler."""
        self.stopped = True
        self.feed.stop()

    def _decide_bars(self, bars: Iterable[Bar]) -> None:
        if not bars:
            return
        for point in split_decision_points(bars):
            self.learn()
            self._open_due_announcements(point.as_of_ns)
            self.learning.bars_closed()
            self._decide_point(point)

    def _answer_news(self, before_ns: int) -> None:
        """Decide the series to which news matters that came before this instant."""
        triggers, components = self.triggers, self.components
        while (at_ns := triggers.next_ns) < before_ns:
            if not triggers.judge(components.news):
                continue
            self._decide_bars(self.bars.ended_at(at_ns))
            answered = triggers.take_due(at_ns, components.news, components.market)
            if answered:
                self._learn_now()
                self._open_due_announcements(at_ns)
                self._decide_point(DecisionPoint(at_ns, [one.bar for one in answered], tuple(answered)))
                self.recorder.commit()

    def _decide_point(self, point: DecisionPoint) -> None:
        self._make_again()
        self.telemetry.begin()
        point_decided = self.decide(point)
        if point_decided is None:
            self.telemetry.leave()
            return
        columns, contexts, decided = point_decided
        first = self.recorder.record_all(decided)
        self.recorder.commit()  # released first: what follows waits for no subscriber
        self.telemetry.end(columns, contexts, decided)
        self._note_decided(columns, decided)
        deeper: list[PendingAmendment] = []
        for one in contexts:
            if not is_numeric(one):
                decision = decided[one.row].decision
                pending = self.late.expect(first + one.row, one.request, decision)
                if pending is not None:
                    deeper.append(pending)
                if pending is not None or decision.awaits_amendment:
                    self.telemetry.awaits(decision)
        if deeper:
            self.recorder.commit(now=True)
            self._amend(self.late.read_deeper(deeper))

    def _note_decided(self, columns: PointColumns, decided: Sequence[DecidedSeries]) -> None:
        """Note what was recorded, for what comes after it."""
        if columns.answered:
            for one in decided:
                self.triggers.note_decided(one.decision)
            return
        self.components.band_widths.update(zip(columns.series, columns.widths().tolist(), strict=True))
        self.learning.add(columns)
        self.triggers.note_standing(columns.series, columns.bars, columns.as_of_ns)

    def _note_width(self, decided: DecidedSeries) -> None:
        """Note the newest 90% band of a series."""
        low, high = decided.central_band
        self.components.band_widths[decided.series] = high - low

    def _make_again(self) -> None:
        """Make again the amendments and releases that stand next in the ledger."""
        if not self.recorder.cursor.is_replaying:
            return
        self._amend(self.late.recorded())
        while (found := self.recorder.cursor.next_release()) is not None:
            index = self.components.governance.waiting.place_of(found.amends)
            if index is None:
                raise IntegrityError(
                    f"{found.id} in the ledger releases {found.amends}, which did not wait: "
                    "the inputs, the settings or the code changed since; use a new folder"
                )
            self._release(index)
            self._amend(self.late.recorded())

    def _release(self, index: int) -> None:
        """Record the release of the decision that stands at an index of the ledger."""
        governance, recorder = self.components.governance, self.recorder
        first = recorder.decision(index)
        recorder.record(DecidedSeries.of(released_decision(first, governance, recorder.num_recorded)))
        governance.waiting.mark_released(first.id)

    def _amend(self, late_views: Iterable[LateView]) -> None:
        for late in late_views:
            self.telemetry.amending()
            for amendment, is_newest in self.late.amendments(late):
                decided = DecidedSeries.of(self._observe_amendment(amendment))
                self.telemetry.amended(decided.decision)
                self.recorder.record(decided)
                if is_newest:
                    self._note_width(decided)
                self.components.prepared.count_verified(amendment)

    def _observe_amendment(self, amendment: Decision) -> Decision:
        """Let the breakers observe a view that came late; the amendment as it is judged after that."""
        governance, index = self.components.governance, self.recorder.num_recorded
        if not governance.has_breakers(index):
            return amendment
        bundle = governance.state_now.bundle_digest
        is_changed = self._observe(observe_decisions([amendment], bundle))
        return judge_amendment(amendment, governance, index) if is_changed else amendment

    def _open_due_announcements(self, now_ns: int) -> None:
        """Open the announcements whose lead began before `now_ns`, with all learnt that happened until then."""
        due = self.components.prepared.due_announcements(now_ns)
        if due:
            self.recorder.commit(now=True)
            self.learn()
            self.components.prepared.open_announcements(due, self.components.scaled_returns.recent)

    def _learn_now(self) -> None:
        if self.learning.is_due:
            self.recorder.commit()  # in a live run every group is due: no decision waits for what is learnt
            self.learn()

    def _finish(self) -> None:
        self.amend_late()
        self.recorder.commit(now=True)
        self.release_answered()
        self.learn()

    def state(self) -> dict[str, Any]:
        """Everything that shapes the decisions to come; taken between two items, with no group open."""
        return {
            "rooms": self.components.state(),
            "recorder": self.recorder.state(),
            "awaited": self.late.state(),
            "fed": self.bars.state(),
            "counts": [self.num_events, self.num_deep_reads_skipped],
            "now_ns": self.now_ns,
            "triggers": self.triggers.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.components.restore(state["rooms"])
        self.recorder.restore(state["recorder"])
        self.late.restore(state["awaited"])
        self.bars.restore(state["fed"])
        self.num_events, self.num_deep_reads_skipped = state["counts"]
        self.now_ns = state["now_ns"]
        if "triggers" in state:  # not in one that an earlier version saved
            self.triggers.restore(state["triggers"])
