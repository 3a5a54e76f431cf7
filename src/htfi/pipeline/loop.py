"""The main path: observe → forecast → plan → read → weigh → judge → record → release. Apps run it; wiring builds it.

`Loop.step` and `Loop.decide` are the whole of it. What they call is either a pure decision or a room with state
of its own, and time comes in with the events, so that a recorded day replays to the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from htfi.domain.decision import Decision, Rung, View, series_id
from htfi.domain.errors import IntegrityError
from htfi.domain.events import Bar, Cleared, FeedItem, MacroRelease, News, Quote, TimePassed, Trade
from htfi.domain.news import Screening
from htfi.domain.time import NS_PER_MS
from htfi.domain.writing import Refusal
from htfi.narrative.question import briefly
from htfi.pipeline.amending import Awaited, Awaiting, Carrier, amend, ending_of, own_view
from htfi.pipeline.decide import ask_all, band, decide_series, deepen_all, merge_all, weigh_all
from htfi.pipeline.moments import Moment, split_moments
from htfi.pipeline.ports import Feed
from htfi.pipeline.reading import Asked
from htfi.pipeline.recorder import Recorder
from htfi.pipeline.releases import HeldNews, HoldNothing
from htfi.pipeline.rooms import Rooms, Terms
from htfi.pipeline.suspicion import most_weight


def _ignore(_: Decision) -> None: ...


def _no_patience() -> bool:
    return False


class Loop:
    """One feed in, one ledger and one outlet out.

    A run that ends with views still awaited asks for them as long as `patience` (which waits a little) says so.
    """

    def __init__(
        self,
        feed: Feed,
        rooms: Rooms,
        recorder: Recorder,
        terms: Terms,
        watch: Callable[[Decision], None] = _ignore,
        patience: Callable[[], bool] = _no_patience,
        held: HeldNews | None = None,
    ) -> None:
        self.feed = feed
        self.rooms = rooms
        self.recorder = recorder
        self.terms = terms
        self.held: HeldNews = held or HoldNothing()  # news in quarantine
        self.num_events = 0
        self.now_ns = 0
        self.awaited = Awaited(terms.pipeline.max_awaited)
        self.num_undeepened = 0  # decisions that asked for a reading in depth when there was no time for it
        self._watch = watch
        self._patience = patience
        self._listen_ns = 0
        self._caught_up = False  # all that the ledger held at the start is made again
        self._taught = False  # a moment has passed that nothing has learnt from yet
        self._fresh: list[Decision] = []  # its decisions, and amendments that nobody was told of yet
        self._fed: list[Bar] = []  # bars from a feed, all visible from one instant on
        self.stopped = False

    def run(self, after_item: Callable[[], None]) -> None:
        """Take every item of the feed, or those until `stop`, then commit what is open."""
        self.recorder.catch_up()
        self.hear_late()
        for item in self.feed:
            self.step(item)
            after_item()
            if self.stopped:
                break
        if not self.stopped:
            self._decide_on(self._take_fed())
        self.hear_late()
        self.recorder.release(now=True)
        self.learn()
        while self._caught_up and self.awaited.waiting and not self.stopped and self._patience():
            self.hear_late()
            self.recorder.release(now=True)
            self.learn()

    def stop(self) -> None:
        """End after the item in hand. Safe to call from a signal handler."""
        self.stopped = True
        self.feed.stop()

    def step(self, item: FeedItem) -> None:
        """One item, all the way: what ended before it is decided without it, recorded, released, then learnt from."""
        self._decide_on(self.ended_by(item.available_at_ns))
        self._prepare(item.available_at_ns)
        self._decide_on(self.observe(item))
        if not self._caught_up or (self.awaited.waiting and self._listens(item)):
            self.hear_late()
        self.recorder.release(now=type(item) is TimePassed)
        self.learn()
        self.rooms.preparing.work()

    def _prepare(self, now_ns: int) -> None:
        """Open the releases whose lead began before `now_ns`, with all learnt that happened until then."""
        due = self.rooms.preparing.due(now_ns)
        if due:
            self.recorder.release(now=True)
            self.learn()
            self.rooms.preparing.open(due, self.rooms.scaled.of)

    def hear_late(self) -> None:
        """Amend what the target has answered late; after a crash first what the ledger says that it had answered."""
        if not self._caught_up:
            self._amend_again()
            if self.recorder.is_redeciding:
                return
            self._caught_up = True
            for rung, questions in self.awaited.questions.items():
                self.rooms.readings.pursue(rung, questions)
        self.awaited.trim()
        for name, view in self.rooms.readings.later():
            several = self.awaited.take(name)
            if isinstance(view, Refusal):
                self.awaited.give_up(several)
                continue
            for awaiting in several:
                self._amend(awaiting, view)

    def _settle(self) -> None:
        """Learn from what is decided before news are judged by it, whether or not a silence left time to."""
        if self._taught or self._fresh:
            self.recorder.release(now=True)
            self.learn()

    def _listens(self, item: FeedItem) -> bool:
        """Whether to ask for what is late: in silence, and else now and then."""
        now_ns = self.recorder.elapsed_ns()
        if type(item) is not TimePassed and now_ns < self._listen_ns:
            return False
        self._listen_ns = now_ns + round(self.terms.pipeline.listen_ms * NS_PER_MS)
        return True

    def learn(self) -> None:
        """Do what no decision waits for."""
        if not self._taught and not self._fresh:
            return
        if self._taught:
            self._taught = False
            self.rooms.forecaster.learn()
        for decision in self._fresh:
            if not decision.amends:
                self._judge_sources(decision)
                self.rooms.usual.learn(decision.series, decision.features)
                self.rooms.scaled.learn(decision.series, decision.features.get("return_last", 0.0))
            self._watch(decision)
        self._fresh.clear()
        self.recorder.tidy()

    def _judge_sources(self, decision: Decision) -> None:
        """Let what followed an item tell of its source."""
        sigma = self.rooms.scaled.sigma(decision.series) if self.rooms.desk.has_heard else None
        if sigma:
            move, bar = decision.features.get("return_last", 0.0) / sigma, decision.circumstances
            self.rooms.desk.learn(decision.symbol, move, bar.bar_start_ns, bar.bar_end_ns)

    def ended_by(self, now_ns: int) -> list[Bar]:
        """The bars that are complete once time reaches `now_ns`."""
        bars = self.rooms.market.advance(now_ns)
        if self._fed and self._fed[0].available_at_ns < now_ns:
            bars = bars + self._take_fed()
        return bars

    def observe(self, item: FeedItem) -> Iterable[Bar]:
        """Take the item in; the volume and dollar bars that it completes."""
        self.now_ns = item.available_at_ns
        if isinstance(item, TimePassed):
            return ()
        self.num_events += 1
        self.rooms.inputs.add(item)
        match item:
            case Trade() | Quote() | MacroRelease():
                if isinstance(item, MacroRelease):
                    self.rooms.preparing.note(item)
                return self.rooms.market.observe(item)
            case Bar():
                self._fed.append(item)
            case Cleared():
                self._settle()
                self.rooms.desk.secure.clear(item)
            case News():
                self._settle()
                screened = self.rooms.desk.hear(item)
                if screened.verdict is Screening.QUARANTINE:
                    self.held.hold(item, screened)
                self.rooms.preparing.hear(screened)
        return ()

    def decide(self, moment: Moment) -> Iterator[tuple[Asked, Decision]]:
        """forecast → plan → read → weigh → judge, for every series of the moment that has history enough."""
        rooms = self.rooms
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
        asked = ask_all([moment.bars[place] for place in ready], moment.as_of_ns, rooms, self.terms)
        asked, known = rooms.preparing.serve(asked, self._view_recorded)
        views = merge_all(asked, rooms.readings.read(asked, known), rooms)
        weigh_all(moment.bars, ready, asked, views, batch, rooms)
        asked, num_undeepened = deepen_all(ready, asked, views, batch, rooms, self.terms)
        self.num_undeepened += num_undeepened
        for place, question, view in zip(ready, asked, views, strict=True):
            yield (
                question,
                decide_series(moment.bars[place], question, view, batch, place, inputs, rooms, self.terms),
            )

    def _view_recorded(self, place: int) -> View | None:
        """What was read before a crash for a place of the moment in hand, whose entries follow each other."""
        found = self.recorder.recorded(place) if not self._caught_up else None
        return own_view(found) if found is not None else None

    def _decide_on(self, bars: Iterable[Bar]) -> None:
        if not bars:
            return
        for moment in split_moments(bars):
            self.learn()
            self._prepare(moment.as_of_ns)
            self._taught = True
            if not self._caught_up:
                self._amend_again()
            again: list[Awaiting] = []
            for asked, decision in self.decide(moment):
                index = self.recorder.record(decision)
                self._fresh.append(decision)
                if decision.plan.then is not None:
                    again.append(self._awaiting(index, asked, decision))
                elif decision.awaits and decision.is_read_for:
                    self.awaited.add(self._awaiting(index, asked, decision))
                elif decision.awaits:
                    self._carry(index, asked, decision)
            if again:
                self._read_again(again)

    def _awaiting(self, index: int, asked: Asked, decision: Decision) -> Awaiting:
        rung = decision.plan.then or decision.plan.rung
        carrier = self._carrier(index, asked, decision, rung)
        return Awaiting(decision.series, rung, briefly(asked.question), [carrier])

    def _carrier(self, index: int, asked: Asked, decision: Decision, rung: Rung) -> Carrier:
        forecaster = self.rooms.forecaster
        most = most_weight(asked, self.rooms.desk.secure.config)
        weight = [min(share, most) for share in forecaster.earned(self.rooms.readings.version(rung))]
        is_read_for = decision.is_read_for or decision.plan.then is not None
        return Carrier(index, decision.id, forecaster.age(decision.series), weight, is_read_for)

    def _carry(self, index: int, asked: Asked, decision: Decision) -> None:
        """Await the answer for a decision that keeps a provisional view as well, unless that was given up."""
        assert decision.view is not None
        awaiting = self.awaited.carried(decision.series, decision.view.read_ns)
        if awaiting is None:
            self.awaited.num_given_up += 1
        else:
            self.awaited.carry(awaiting, self._carrier(index, asked, decision, awaiting.rung))

    def _read_again(self, waiting: list[Awaiting]) -> None:
        """Release what is recorded, then read again and amend; what the ledger holds is not read again."""
        self.recorder.release(now=True)
        views: dict[str, View] = {}
        unread: dict[Rung, list[Awaiting]] = {}
        for awaiting in waiting:
            found = self.recorder.recorded(len(views))
            if found is None:
                unread.setdefault(awaiting.rung, []).append(awaiting)
            elif found.amends == awaiting.first_id and (read := own_view(found)) is not None:
                views[awaiting.first_id] = read
        for rung, several in unread.items():
            questions = [awaiting.question for awaiting in several]
            read_again = self.rooms.readings.read_apart(rung, questions, self.terms.fidelity.deep_ms)
            views |= {awaiting.first_id: view for awaiting, view in zip(several, read_again, strict=True)}
        for awaiting in waiting:
            view = views.get(awaiting.first_id)
            is_late = view.provisional if view is not None else self.recorder.recorded() is not None
            if is_late and self.rooms.readings.answers_late(awaiting.rung):
                self.awaited.add(awaiting)
            elif view is not None and view.confidence > 0.0 and not view.provisional:
                self._amend(awaiting, view)
            else:
                self.awaited.give_up([awaiting])

    def _amend_again(self) -> None:
        """Make the amendments that stand next in the ledger again, from what it tells of them."""
        while (found := self.recorder.recorded()) is not None and found.amends:
            read = own_view(found)
            if read is None:
                raise IntegrityError(f"{found.id} in the ledger amends {found.amends} without a view")
            self._amend(self.awaited.take_first(found), read)

    def _amend(self, awaiting: Awaiting, view: View) -> None:
        """Amend all that carry what stood in for this view: without anything between, so that a crash leaves a part of
        them that the next start finds in the ledger and completes.
        """
        rooms, told = self.rooms, ""
        rooms.readings.amend(awaiting.series, awaiting.question, awaiting.rung, view)
        for carrier in awaiting.carriers:
            first = self.recorder.decision(carrier.index)
            decision = amend(first, carrier, awaiting.question, view, told, rooms.forecaster, self.terms)
            told = ending_of(decision)
            self.recorder.record(decision)
            rooms.preparing.verified(decision)
            if rooms.forecaster.age(awaiting.series) == carrier.age:
                low, high = band(decision.forecast)
                rooms.widths[awaiting.series] = high - low
            self._fresh.append(decision)

    def _take_fed(self) -> list[Bar]:
        fed, self._fed = self._fed, []
        return fed

    def state(self) -> dict[str, Any]:
        """Everything that shapes the decisions to come; taken between two items, with no group open."""
        return {
            "rooms": self.rooms.state(),
            "num_events": self.num_events,
            "num_decided": self.recorder.num_decided,
            "num_withheld": self.recorder.num_withheld,
            "num_amended": self.recorder.num_amended,
            "num_undeepened": self.num_undeepened,
            "awaited": self.awaited.state(),
            "now_ns": self.now_ns,
            "fed": [msgspec.to_builtins(bar) for bar in self._fed],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.rooms.restore(state["rooms"])
        self.num_events = state["num_events"]
        self.recorder.num_decided = state["num_decided"]
        self.recorder.num_withheld = state["num_withheld"]
        self.recorder.num_amended = state["num_amended"]
        self.num_undeepened = state["num_undeepened"]
        self.awaited.restore(state["awaited"])
        self.now_ns = state["now_ns"]
        self._fed = [msgspec.convert(bar, Bar) for bar in state["fed"]]
