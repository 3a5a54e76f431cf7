"""Finds the series to which news matters between two bars, and says when each is decided. The loop owns one.

An item is judged once time has passed its instant, so that all items of an instant are answered together and a replay
finds the same. The first item of a series is answered at that instant; what matters within `min_interval_s` of the
answer is judged and answered together when it ends, unless a bar closes before: its decision knows the news too. What
goes beyond the budget of the run is left to the next bar, and counted.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from htfi.domain.decision import Decision, NewsTrigger, TriggerItem, decision_id
from htfi.domain.events import Bar
from htfi.domain.news import ScreenedItem, Screening
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, NS_PER_S
from htfi.market.config import is_intraday
from htfi.market.state import MarketState
from htfi.narrative.config import TriggersConfig
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.triggering import reasons_to_decide

NEVER_NS = 1 << 63
MAX_ARRIVALS = 1_024  # items that wait to be judged; more are judged at once
MAX_ITEMS_ANSWERED = 32  # of one decision, the oldest; further ones are read with them and not listed
_HOUR_NS = 3600 * NS_PER_S
# A standing decision older than both counts no longer: its horizons have ended, or its prices have stopped.
_MAX_STANDING_NS = 7 * NS_PER_DAY
_MAX_STANDING_BARS = 7


class StandingDecision(msgspec.Struct, frozen=True):
    """The newest decision of a series that was made on a bar, and how many items had come until then."""

    bar: Bar
    as_of_ns: int
    num_items: int


class WaitingNews(msgspec.Struct):
    """Items that matter to a series and are not answered yet, oldest first; they are answered at `due_ns`."""

    due_ns: int
    items: list[TriggerItem]
    num_items: int = 0  # with those beyond MAX_ITEMS_ANSWERED


class _Arrival(msgspec.Struct, frozen=True):
    """An item that is not judged yet: no series that it is about can be decided before `judge_ns`."""

    id: str
    at_ns: int
    judge_ns: int
    number: int


class AnsweredSeries(NamedTuple):
    """A series that is decided now, between two bars: from which price, and because of what."""

    bar: Bar
    last_price: float
    trigger: NewsTrigger


class NewsTriggers:
    """The standing decision of each series, the news that waits, and what the run may still answer in this hour."""

    def __init__(self, config: TriggersConfig) -> None:
        self._config = config
        self._moment_ns = round(config.moment_ms * NS_PER_MS)
        self._interval_ns = round(config.min_interval_s * NS_PER_S)
        self.next_ns = NEVER_NS  # the earliest instant at which something may be due
        self.num_decided = 0
        self.num_covered = 0  # items that waited until a bar closed, whose decision knew them
        self.suppressed: Counter[str] = (
            Counter()
        )  # items that mattered and were left to the bars, by the rule
        self._standing: dict[str, StandingDecision] = {}
        self._series_of: dict[str, list[str]] = {}
        self._arrivals: list[_Arrival] = []
        self._waiting: dict[str, WaitingNews] = {}
        self._answered_ns: dict[str, int] = {}  # series → its last decision between bars
        self._left_out: Counter[str] = Counter()  # series → items suppressed since its last such decision
        self._recent_ns: deque[int] = deque()  # instants of such decisions in the last hour
        self._num_items = 0

    def note_standing(self, series: Sequence[str], bars: Sequence[Bar], as_of_ns: int) -> None:
        """Note that series were decided on their bars: all news that came before was known."""
        if not self._config.enabled:
            return
        for name, bar in zip(series, bars, strict=True):
            if name not in self._standing:
                self._series_of.setdefault(bar.symbol, []).append(name)
            self._standing[name] = StandingDecision(bar, as_of_ns, self._num_items)
        if not self._waiting:
            return
        covered = [waiting for name in series if (waiting := self._waiting.pop(name, None)) is not None]
        if covered:
            self.num_covered += sum(waiting.num_items for waiting in covered)
            self._find_next()

    def receive(self, screened: ScreenedItem, can_move: Callable[[ScreenedItem], bool]) -> None:
        """Take in an item as it was screened; it is judged by its scores once its instant has passed.

        One that no reading `can_move` a forecast by waits for the next bar, with those that it is scored with.
        """
        item = screened.item
        self._num_items += 1
        if not self._standing or not item.headline or screened.verdict is not Screening.PASS:
            return
        if not can_move(screened):
            return
        at_ns = judge_ns = item.available_at_ns
        if item.symbols:
            due = [
                self._due_ns(series, at_ns)
                for symbol in item.symbols
                for series in self._series_of.get(symbol, ())
            ]
            if not due:
                return
            judge_ns = at_ns if len(self._arrivals) >= MAX_ARRIVALS else min(due)
        self._arrivals.append(_Arrival(item.id, at_ns, judge_ns, self._num_items))
        self.next_ns = min(self.next_ns, judge_ns)

    def judge(self, news: NewsProcessor) -> bool:
        """Judge the items of `next_ns`, which has passed; whether a series is due then.

        Raises: DependencyUnavailable.
        """
        at_ns = self.next_ns
        if not any(arrival.judge_ns <= at_ns for arrival in self._arrivals):
            return True
        arrivals = [arrival for arrival in self._arrivals if arrival.at_ns <= at_ns]
        self._arrivals = [arrival for arrival in self._arrivals if arrival.at_ns > at_ns]
        records = news.records([arrival.id for arrival in arrivals])
        for arrival in arrivals:
            record = records.get(arrival.id)
            if record is None:
                continue
            for symbol in record.screened.item.symbols or tuple(self._series_of):
                reading = news.reading(record, symbol)
                reasons = reasons_to_decide(record, symbol, reading, self._config)
                for series in self._series_of.get(symbol, ()) if reasons else ():
                    if arrival.number > self._standing[series].num_items:
                        self._wait(series, arrival, reasons)
        self._find_next()
        return self.next_ns <= at_ns

    def take_due(self, at_ns: int, news: NewsProcessor, market: MarketState) -> list[AnsweredSeries]:
        """The series to decide at an instant, by name; what the quiet rules forbid is counted and forgotten."""
        answered: list[AnsweredSeries] = []
        for series in sorted(name for name, waiting in self._waiting.items() if waiting.due_ns <= at_ns):
            waiting, standing = self._waiting.pop(series), self._standing[series]
            known = news.records([item.id for item in waiting.items])
            items = tuple(item for item in waiting.items if item.id in known)
            if not items:  # all were taken back
                continue
            rule = self._forbidding_rule(standing, at_ns, len(answered), news)
            if rule:
                self.suppressed[rule] += waiting.num_items
                self._left_out[series] += waiting.num_items
                continue
            last_price, elapsed = _last_price(standing.bar, at_ns, market)
            num_suppressed = self._left_out.pop(series, 0)
            name = decision_id(series, standing.as_of_ns)
            trigger = NewsTrigger(items, name, elapsed, num_suppressed)
            answered.append(AnsweredSeries(standing.bar, last_price, trigger))
        self._find_next()
        return answered

    def note_decided(self, decision: Decision) -> None:
        """Note a decision between bars: it uses up the budget, and its series is quiet for a while."""
        self.num_decided += 1
        self._answered_ns[decision.series] = decision.as_of_ns
        self._recent_ns.append(decision.as_of_ns)

    def _wait(self, series: str, arrival: _Arrival, reasons: Sequence[str]) -> None:
        waiting = self._waiting.get(series)
        if waiting is None:
            waiting = self._waiting[series] = WaitingNews(self._due_ns(series, arrival.at_ns), [])
        waiting.num_items += 1
        if len(waiting.items) < MAX_ITEMS_ANSWERED:
            waiting.items.append(TriggerItem(arrival.id, tuple(reasons)))

    def _due_ns(self, series: str, at_ns: int) -> int:
        """When an item of an instant is answered, if it matters to a series."""
        waiting = self._waiting.get(series)
        if waiting is not None:
            return waiting.due_ns
        due_ns, last_ns = at_ns + self._moment_ns, self._answered_ns.get(series)
        return due_ns if last_ns is None else max(due_ns, last_ns + self._interval_ns)

    def _forbidding_rule(
        self, standing: StandingDecision, at_ns: int, num_more: int, news: NewsProcessor
    ) -> str:
        """The quiet rule that leaves a series to its bars now; empty where none does."""
        bar = standing.bar
        age_ns = at_ns - standing.as_of_ns
        if age_ns > max(_MAX_STANDING_NS, _MAX_STANDING_BARS * (bar.end_ns - bar.start_ns)):
            return "old price"
        if news.suspicion_monitor.suspicion(bar.symbol, at_ns):
            return "suspicion"
        while self._recent_ns and self._recent_ns[0] <= at_ns - _HOUR_NS:
            self._recent_ns.popleft()
        return "budget" if len(self._recent_ns) + num_more >= self._config.max_per_hour else ""

    def _find_next(self) -> None:
        self.next_ns = min((waiting.due_ns for waiting in self._waiting.values()), default=NEVER_NS)
        for arrival in self._arrivals:
            self.next_ns = min(self.next_ns, arrival.judge_ns)

    def state(self) -> dict[str, Any]:
        return {
            "standing": [
                [
                    series,
                    {
                        "bar": msgspec.to_builtins(one.bar),
                        "decision_id": decision_id(series, one.as_of_ns),
                        "as_of_ns": one.as_of_ns,
                        "num_items": one.num_items,
                    },
                ]
                for series, one in self._standing.items()
            ],
            "arrivals": msgspec.to_builtins(self._arrivals),
            "waiting": [[series, msgspec.to_builtins(one)] for series, one in self._waiting.items()],
            "answered_ns": dict(self._answered_ns),
            "left_out": dict(self._left_out),
            "recent_ns": list(self._recent_ns),
            "suppressed": dict(self.suppressed),
            "counts": [self._num_items, self.num_decided, self.num_covered],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._standing = {series: msgspec.convert(one, StandingDecision) for series, one in state["standing"]}
        self._series_of = {}
        for series, standing in self._standing.items():
            self._series_of.setdefault(standing.bar.symbol, []).append(series)
        self._arrivals = msgspec.convert(state["arrivals"], list[_Arrival])
        self._waiting = {series: msgspec.convert(one, WaitingNews) for series, one in state["waiting"]}
        self._answered_ns = dict(state["answered_ns"])
        self._left_out, self.suppressed = Counter(state["left_out"]), Counter(state["suppressed"])
        self._recent_ns = deque(state["recent_ns"])
        self._num_items, self.num_decided, self.num_covered = state["counts"]
        self._find_next()


def _last_price(bar: Bar, at_ns: int, market: MarketState) -> tuple[float, float]:
    """The price that a forecast starts from, and the part of the next bar that has passed.

    Without a tick since the bar it is the close. Of a daily bar nothing is said to have passed: its night and its day
    are not alike.
    """
    newest = market.last_price(bar.symbol)
    if newest is None or newest.at_ns < bar.end_ns:
        return bar.close, 0.0
    length_ns = bar.end_ns - bar.start_ns
    is_timed = is_intraday(bar.interval) and not bar.interval.partition(":")[1]
    elapsed = (at_ns - bar.end_ns) / length_ns if is_timed and length_ns > 0 else 0.0
    return newest.price, round(elapsed, 6) if 0.0 < elapsed < 1.0 else 0.0
