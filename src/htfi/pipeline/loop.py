"""The main path: observe → forecast → plan → read → weigh → judge → record → release. Apps run it; wiring builds it.

`Loop.step` and `Loop.decide` are the whole of it. What they call is either a pure decision or a room with state
of its own, and time comes in with the events, so that a recorded day replays to the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from htfi.domain.decision import Decision, NewsView, Rung, series_id
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
from htfi.domain.generation import RequestRefused
from htfi.domain.news import Screening
from htfi.domain.time import NS_PER_MS
from htfi.narrative.question import without_bodies
from htfi.pipeline.amendments import (
    DependentDecision,
    PendingAmendment,
    PendingAmendments,
    make_amendment,
    recorded_amendment_template,
    unmerged_view,
)
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.decide import (
    central_band,
    make_decision,
    merge_all_views,
    plan_deep_readings,
    plan_readings,
    weigh_views,
)
from htfi.pipeline.moments import DecisionPoint, split_decision_points
from htfi.pipeline.operator_actions import HeldNewsStore, NullHeldNews
from htfi.pipeline.ports import EventFeed
from htfi.pipeline.recorder import DecisionRecorder
from htfi.pipeline.view_cache import ReadRequest
from htfi.pipeline.weighing import max_view_weight


def _no_watcher(_: Decision) -> None: ...


def _never_waits() -> bool:
    return False


class DecisionLoop:
    """One feed in, one ledger and one outlet out.

    A run that ends with views still awaited asks for them as long as `patience` (which waits a little) says so.
    """

    def __init__(
        self,
        feed: EventFeed,
        rooms: Components,
        recorder: DecisionRecorder,
        terms: RunContext,
        watch: Callable[[Decision], None] = _no_watcher,
        patience: Callable[[], bool] = _never_waits,
        held: HeldNewsStore | None = None,
    ) -> None:
        self.feed = feed
        self.components = rooms
        self.recorder = recorder
        self.context = terms
        self.held_news: HeldNewsStore = held or NullHeldNews()  # news in quarantine
        self.num_events = 0
        self.now_ns = 0
        self.pending = PendingAmendments(terms.pipeline.max_awaited)
        self.num_deep_reads_skipped = (
            0  # decisions that asked for a reading in depth when there was no time for it
        )
        self._watcher = watch
        self._keep_waiting = patience
        self._next_poll_ns = 0
        self._is_recovered = False  # all that the ledger held at the start is made again
        self._has_unlearnt_bars = False  # a moment has passed that nothing has learnt from yet
        self._undelivered: list[Decision] = []  # its decisions, and amendments that nobody was told of yet
        self._feed_bars: list[Bar] = []  # bars from a feed, all visible from one instant on
        self.stopped = False

    def run(self, after_item: Callable[[], None]) -> None:
        """Take every item of the feed, or those until `stop`, then commit what is open."""
        self.recorder.release_recorded()
        self.apply_late_views()
        for item in self.feed:
            self.step(item)
            after_item()
            if self.stopped:
                break
        if not self.stopped:
            self._decide_bars(self._take_feed_bars())
        self.apply_late_views()
        self.recorder.commit(now=True)
        self.learn()
        while self._is_recovered and self.pending.by_question and not self.stopped and self._keep_waiting():
            self.apply_late_views()
            self.recorder.commit(now=True)
            self.learn()

    def stop(self) -> None:
        """End after the item in hand. Safe to call from a signal handler."""
        self.stopped = True
        self.feed.stop()

    def step(self, item: FeedItem) -> None:
        """One item, all the way: what ended before it is decided without it, recorded, released, then learnt from."""
        self._decide_bars(self.bars_ended_by(item.available_at_ns))
        self._prepare(item.available_at_ns)
        self._decide_bars(self.observe(item))
        if not self._is_recovered or (self.pending.by_question and self._is_poll_due(item)):
            self.apply_late_views()
        self.recorder.commit(now=type(item) is TimePassed)
        self.learn()
        self.components.prepared.read_ahead()

    def _prepare(self, now_ns: int) -> None:
        """Open the releases whose lead began before `now_ns`, with all learnt that happened until then."""
        due = self.components.prepared.due_announcements(now_ns)
        if due:
            self.recorder.commit(now=True)
            self.learn()
            self.components.prepared.open_announcements(due, self.components.scaled_returns.recent)

    def apply_late_views(self) -> None:
        """Amend what the target has answered late; after a crash first what the ledger says that it had answered."""
        if not self._is_recovered:
            self._replay_amendments()
            if self.recorder.is_redeciding:
                return
            self._is_recovered = True
            for rung, questions in self.pending.questions.items():
                self.components.views.resume_requests(rung, questions)
        self.pending.drop_oldest()
        for name, view in self.components.views.late_views():
            several = self.pending.pop_answered(name)
            if isinstance(view, RequestRefused):
                self.pending.count_abandoned(several)
                continue
            for awaiting in several:
                self._amend(awaiting, view)

    def _learn_pending(self) -> None:
        """Learn from what is decided before news are judged by it, whether or not a silence left time to."""
        if self._has_unlearnt_bars or self._undelivered:
            self.recorder.commit(now=True)
            self.learn()

    def _is_poll_due(self, item: FeedItem) -> bool:
        """Whether to ask for what is late: in silence, and else now and then."""
        now_ns = self.recorder.elapsed_ns()
        if type(item) is not TimePassed and now_ns < self._next_poll_ns:
            return False
        self._next_poll_ns = now_ns + round(self.context.pipeline.listen_ms * NS_PER_MS)
        return True

    def learn(self) -> None:
        """Do what no decision waits for."""
        if not self._has_unlearnt_bars and not self._undelivered:
            return
        if self._has_unlearnt_bars:
            self._has_unlearnt_bars = False
            self.components.forecaster.learn()
        for decision in self._undelivered:
            if not decision.amends:
                self._score_sources(decision)
                self.components.typical_features.learn(decision.series, decision.features)
                self.components.scaled_returns.learn(
                    decision.series, decision.features.get("return_last", 0.0)
                )
            self._watcher(decision)
        self._undelivered.clear()
        self.recorder.maintain_ledger()

    def _score_sources(self, decision: Decision) -> None:
        """Let what followed an item tell of its source."""
        sigma = (
            self.components.scaled_returns.sigma(decision.series) if self.components.news.has_news else None
        )
        if sigma:
            move, bar = decision.features.get("return_last", 0.0) / sigma, decision.circumstances
            self.components.news.learn_return(decision.symbol, move, bar.bar_start_ns, bar.bar_end_ns)

    def bars_ended_by(self, now_ns: int) -> list[Bar]:
        """The bars that are complete once time reaches `now_ns`."""
        bars = self.components.market.advance(now_ns)
        if self._feed_bars and self._feed_bars[0].available_at_ns < now_ns:
            bars = bars + self._take_feed_bars()
        return bars

    def observe(self, item: FeedItem) -> Iterable[Bar]:
        """Take the item in; the volume and dollar bars that it completes."""
        self.now_ns = item.available_at_ns
        if isinstance(item, TimePassed):
            return ()
        self.num_events += 1
        self.components.inputs.add(item)
        match item:
            case Trade() | Quote() | MacroAnnouncement():
                if isinstance(item, MacroAnnouncement):
                    self.components.prepared.receive_announcement(item)
                return self.components.market.observe(item)
            case Bar():
                self._feed_bars.append(item)
            case SuspicionReset():
                self._learn_pending()
                self.components.news.suspicion_monitor.reset(item)
            case News():
                self._learn_pending()
                screened = self.components.news.receive(item)
                if screened.verdict is Screening.QUARANTINE:
                    self.held_news.hold(item, screened)
                self.components.prepared.receive_news(screened)
        return ()

    def decide(self, moment: DecisionPoint) -> Iterator[tuple[ReadRequest, Decision]]:
        """forecast → plan → read → weigh → judge, for every series of the moment that has history enough."""
        rooms = self.components
        for bar in moment.bars:
            rooms.market.close_bar(bar)
        rooms.forecaster.observe(
            moment.bars, [rooms.market.regime(bar.symbol, bar.interval) for bar in moment.bars]
        )
        batch = rooms.forecaster.forecast([series_id(bar.symbol, bar.interval) for bar in moment.bars])
        ready = [place for place, is_ready in enumerate(batch.ready) if is_ready]
        if not ready:
            return
        inputs = rooms.inputs.close()
        asked = plan_readings([moment.bars[place] for place in ready], moment.as_of_ns, rooms, self.context)
        asked, known = rooms.prepared.serve(asked, self._recorded_view)
        views = merge_all_views(asked, rooms.views.read(asked, known), rooms)
        weigh_views(moment.bars, ready, asked, views, batch, rooms)
        asked, num_undeepened = plan_deep_readings(ready, asked, views, batch, rooms, self.context)
        self.num_deep_reads_skipped += num_undeepened
        for place, question, view in zip(ready, asked, views, strict=True):
            yield (
                question,
                make_decision(moment.bars[place], question, view, batch, place, inputs, rooms, self.context),
            )

    def _recorded_view(self, place: int) -> NewsView | None:
        """What was read before a crash for a place of the moment in hand, whose entries follow each other."""
        found = self.recorder.find_recorded(place) if not self._is_recovered else None
        return unmerged_view(found) if found is not None else None

    def _decide_bars(self, bars: Iterable[Bar]) -> None:
        if not bars:
            return
        for moment in split_decision_points(bars):
            self.learn()
            self._prepare(moment.as_of_ns)
            self._has_unlearnt_bars = True
            if not self._is_recovered:
                self._replay_amendments()
            again: list[PendingAmendment] = []
            for asked, decision in self.decide(moment):
                index = self.recorder.record(decision)
                self._undelivered.append(decision)
                if decision.plan.then is not None:
                    again.append(self._pending_amendment(index, asked, decision))
                elif decision.awaits_amendment and decision.has_own_reading:
                    self.pending.add(self._pending_amendment(index, asked, decision))
                elif decision.awaits_amendment:
                    self._add_dependent(index, asked, decision)
            if again:
                self._read_deeper(again)

    def _pending_amendment(self, index: int, asked: ReadRequest, decision: Decision) -> PendingAmendment:
        rung = decision.plan.then or decision.plan.rung
        carrier = self._dependent(index, asked, decision, rung)
        return PendingAmendment(decision.series, rung, without_bodies(asked.question), [carrier])

    def _dependent(self, index: int, asked: ReadRequest, decision: Decision, rung: Rung) -> DependentDecision:
        forecaster = self.components.forecaster
        most = max_view_weight(asked, self.components.news.suspicion_monitor.config)
        weight = [
            min(share, most) for share in forecaster.track_record_weight(self.components.views.version(rung))
        ]
        is_read_for = decision.has_own_reading or decision.plan.then is not None
        return DependentDecision(index, decision.id, forecaster.age(decision.series), weight, is_read_for)

    def _add_dependent(self, index: int, asked: ReadRequest, decision: Decision) -> None:
        """Await the answer for a decision that keeps a provisional view as well, unless that was given up."""
        assert decision.view is not None
        awaiting = self.pending.find_by_read_time(decision.series, decision.view.read_at_ns)
        if awaiting is None:
            self.pending.num_abandoned += 1
        else:
            self.pending.add_dependent(awaiting, self._dependent(index, asked, decision, awaiting.rung))

    def _read_deeper(self, waiting: list[PendingAmendment]) -> None:
        """Release what is recorded, then read again and amend; what the ledger holds is not read again."""
        self.recorder.commit(now=True)
        views: dict[str, NewsView] = {}
        unread: dict[Rung, list[PendingAmendment]] = {}
        for awaiting in waiting:
            found = self.recorder.find_recorded(len(views))
            if found is None:
                unread.setdefault(awaiting.rung, []).append(awaiting)
            elif found.amends == awaiting.first_id and (read := unmerged_view(found)) is not None:
                views[awaiting.first_id] = read
        for rung, several in unread.items():
            questions = [awaiting.question for awaiting in several]
            read_again = self.components.views.read_uncached(rung, questions, self.context.fidelity.deep_ms)
            views |= {awaiting.first_id: view for awaiting, view in zip(several, read_again, strict=True)}
        for awaiting in waiting:
            view = views.get(awaiting.first_id)
            is_late = view.provisional if view is not None else self.recorder.find_recorded() is not None
            if is_late and self.components.views.answers_late(awaiting.rung):
                self.pending.add(awaiting)
            elif view is not None and view.confidence > 0.0 and not view.provisional:
                self._amend(awaiting, view)
            else:
                self.pending.count_abandoned([awaiting])

    def _replay_amendments(self) -> None:
        """Make the amendments that stand next in the ledger again, from what it tells of them."""
        while (found := self.recorder.find_recorded()) is not None and found.amends:
            read = unmerged_view(found)
            if read is None:
                raise IntegrityError(f"{found.id} in the ledger amends {found.amends} without a view")
            self._amend(self.pending.pop_recorded(found), read)

    def _amend(self, awaiting: PendingAmendment, view: NewsView) -> None:
        """Amend all that carry what stood in for this view: without anything between, so that a crash leaves a part of
        them that the next start finds in the ledger and completes.
        """
        rooms, told = self.components, ""
        rooms.views.store_amended(awaiting.series, awaiting.question, awaiting.rung, view)
        for carrier in awaiting.dependents:
            first = self.recorder.decision(carrier.index)
            decision = make_amendment(
                first, carrier, awaiting.question, view, told, rooms.forecaster, self.context
            )
            told = recorded_amendment_template(decision)
            self.recorder.record(decision)
            rooms.prepared.count_verified(decision)
            if rooms.forecaster.age(awaiting.series) == carrier.age:
                low, high = central_band(decision.forecast)
                rooms.band_widths[awaiting.series] = high - low
            self._undelivered.append(decision)

    def _take_feed_bars(self) -> list[Bar]:
        fed, self._feed_bars = self._feed_bars, []
        return fed

    def state(self) -> dict[str, Any]:
        """Everything that shapes the decisions to come; taken between two items, with no group open."""
        return {
            "rooms": self.components.state(),
            "num_events": self.num_events,
            "num_decided": self.recorder.num_decided,
            "num_withheld": self.recorder.num_withheld,
            "num_amended": self.recorder.num_amended,
            "num_undeepened": self.num_deep_reads_skipped,
            "awaited": self.pending.state(),
            "now_ns": self.now_ns,
            "fed": [msgspec.to_builtins(bar) for bar in self._feed_bars],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.components.restore(state["rooms"])
        self.num_events = state["num_events"]
        self.recorder.num_decided = state["num_decided"]
        self.recorder.num_withheld = state["num_withheld"]
        self.recorder.num_amended = state["num_amended"]
        self.num_deep_reads_skipped = state["num_undeepened"]
        self.pending.restore(state["awaited"])
        self.now_ns = state["now_ns"]
        self._feed_bars = [msgspec.convert(bar, Bar) for bar in state["fed"]]
