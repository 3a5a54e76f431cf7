"""What the terminal view shows, as plain values: the run command fills it through `ViewModel`, the panels draw it.

`ViewModel.record` is on the loop's path and does next to nothing; the rest is worked out only when a refresh is due.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from htfi.domain.decision import Decision, Regime
from htfi.domain.peers import PeerChange, PeerState
from htfi.library.charts.fan import BAND_LEVELS, quantile_at
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.rationale.writer import cited_headlines
from htfi.pipeline.decided import DecidedSeries

HISTORY_BARS = 240
SHOWN_SERIES = 60
SEVERITY = {Regime.CALM: 0, Regime.NORMAL: 1, Regime.STRESSED: 2, Regime.SHOCK: 3}
_RATE_SPAN_S = 3.0
_MAX_POINTS_HELD = 4_096


class DecisionStatus(StrEnum):
    """Whether the newest decision on a series may still change."""

    FINAL = ""
    PROVISIONAL = "provisional"  # the target was late, or the news is read again in depth
    AMENDED = "amended"  # the awaited view has come since


@dataclass(frozen=True, slots=True)
class SeriesView:
    """One series now. `bands` holds, per horizon, log returns at BAND_LEVELS; `change` is a fraction."""

    name: str
    last_price: float
    change: float
    regime: Regime
    horizons: tuple[int, ...]
    bands: tuple[tuple[float, ...], ...]
    history: tuple[float, ...]
    weights: Mapping[str, float]
    status: DecisionStatus = DecisionStatus.FINAL


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """Another node as it is now; None where a figure is not known.

    `num_placed` requests were placed there in this run; `routes` counts them by route: 'in flight', 'in lock-step',
    'its own draft', 'plain'.
    """

    name: str
    state: PeerState
    rtt_p50_ms: float | None = None
    rtt_p95_ms: float | None = None
    num_queued: int | None = None
    step_ms: float | None = None
    temperature_c: float | None = None
    num_placed: int = 0
    routes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RunCounters:
    """What the loop counts. `fraction_done` is None on a stream without a known end.

    From `peers` on: for a run with other nodes. `changes` are the last few, oldest first; `num_alone` requests were
    answered here alone, `num_pending` amendments are still to come, `num_lost` requests got no answer at all.
    """

    clock_ns: int = 0
    num_events: int = 0
    num_decisions: int = 0
    num_withheld: int = 0
    ledger_size: int = 0
    ledger_root: str = ""
    quarantine: Mapping[str, int] = field(default_factory=dict[str, int])
    num_repaired: int = 0  # rows used with a field put right
    held: str = ""  # what is stopped and which breakers are not closed
    orders: str = ""  # orders, fills and the result of a run that trades
    headline: str = ""
    fraction_done: float | None = None
    peers: tuple[PeerStatus, ...] = ()
    changes: tuple[PeerChange, ...] = ()
    num_answered_locally: int = 0
    num_provisional: int = 0
    num_amended: int = 0
    num_pending: int = 0
    num_lost: int = 0


@dataclass(frozen=True, slots=True)
class ViewState:
    """One frame: the most interesting series first, and how many there are in all."""

    title: str
    counters: RunCounters
    series: tuple[SeriesView, ...] = ()
    num_series: int = 0
    rationale: str = ""
    news: str = ""  # what `reading` was made of; the newest of the whole market where nothing was read
    reading: str = ""  # the newest view of the news among all series
    events_per_s: float = 0.0
    decisions_per_s: float = 0.0
    eta_s: float | None = None
    utc_ns: int = 0  # of this machine, for the ages of changes

    @property
    def changes(self) -> tuple[PeerChange, ...]:
        return self.counters.changes


class ViewModel:
    """Remembers the latest decision and the recent prices of every series."""

    def __init__(
        self,
        title: str,
        now_s: Callable[[], float] = time.monotonic,
        utc_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._title = title
        self._now_s = now_s
        self._utc_ns = utc_ns
        self._latest: dict[str, DecidedSeries] = {}
        self._prices: dict[str, deque[float]] = {}
        self._num_recorded = 0
        self._marks: deque[tuple[float, int, int]] = deque()
        self._start: tuple[float, float] | None = None

    def record(self, decided: DecidedSeries) -> None:
        """Remember one decision, released or not. An amendment takes its place, unless the series has gone on."""
        name = decided.series
        self._num_recorded += 1
        if self._num_recorded % _MAX_POINTS_HELD == 0:
            for one in self._latest.values():
                _ = one.decision  # until it is made, it holds all series of its instant
        if decided.amends:
            if name in self._latest and self._latest[name].decision.id == decided.amends:
                self._latest[name] = decided
            return
        if decided.is_between_bars:  # its price is no close; a series is shown from its first close on
            if name in self._prices:
                self._latest[name] = decided
            return
        prices = self._prices.get(name)
        if prices is None:
            prices = self._prices[name] = deque(maxlen=HISTORY_BARS)
        prices.append(decided.last_price)
        self._latest[name] = decided

    def snapshot(self, counters: RunCounters) -> ViewState:
        """The frame for now."""
        now_s = self._now_s()
        self._marks.append((now_s, counters.num_events, counters.num_decisions))
        while len(self._marks) > 2 and self._marks[1][0] <= now_s - _RATE_SPAN_S:
            self._marks.popleft()
        since_s, events, decisions = self._marks[0]
        span_s = max(now_s - since_s, 1e-9)
        names = sorted(self._latest, key=self._display_order)
        headline, reading = self._newest_reading(names)
        return ViewState(
            title=self._title,
            counters=counters,
            series=tuple(self._series_view(name) for name in names[:SHOWN_SERIES]),
            num_series=len(names),
            rationale=self._latest[names[0]].worded().rationale.text if names else "",
            news=headline if reading else counters.headline,
            reading=reading,
            events_per_s=(counters.num_events - events) / span_s,
            decisions_per_s=(counters.num_decisions - decisions) / span_s,
            eta_s=self._eta_s(counters.fraction_done, now_s),
            utc_ns=self._utc_ns(),
        )

    def _newest_reading(self, names: list[str]) -> tuple[str, str]:
        """The headline that the newest view is of, where its rationale states it, and the view in words."""
        read = [
            name for name in names if self._latest[name].decision.view is not None and self._reading(name)
        ]
        if not read:
            return "", ""
        name = max(read, key=self._read_at_ns)
        decision = self._latest[name].worded()
        headlines = cited_headlines(decision.rationale)
        cited = decision.view.cited if decision.view is not None else ()
        return next((headlines[item] for item in cited if item in headlines), ""), self._reading(name)

    def _read_at_ns(self, name: str) -> int:
        view = self._latest[name].decision.view
        return view.as_of_ns if view is not None else 0

    def _reading(self, name: str) -> str:
        decision = self._latest[name].worded()
        slots = CURRENT.view_slots(decision.view, decision.symbol) if decision.view is not None else {}
        if not slots:
            return ""
        moves = f"{slots['direction']} by {slots['size']}" if "size" in slots else "no direction"
        sure = f"volatility {slots['volatility']}, confidence {slots['confidence']}"
        tilt, worth = decision.forecast.tilt, ""
        if tilt is not None:
            weighed = CURRENT.tilt_slots(tilt, CURRENT.recorded_unit(decision.rationale.slots))
            worth = (
                f"; weight {weighed['tilt_weight']}: median {weighed['median_move']}, "
                f"{weighed['band_change']}; divergence {tilt.divergence:.2f}, rank {tilt.divergence_rank:.2f}"
            )
        news_context = decision.news_context
        secure = "manipulation suspected: " if news_context is not None and news_context.suspicion else ""
        return f"{secure}{name} by {slots['reader']}: {moves}, {sure}: {slots['words']}{worth}"

    def _eta_s(self, fraction_done: float | None, now_s: float) -> float | None:
        if fraction_done is None:
            return None
        if self._start is None:
            self._start = (now_s, fraction_done)  # a run that was taken up again does not begin at 0
        done = fraction_done - self._start[1]
        return (now_s - self._start[0]) * (1 - fraction_done) / done if done > 0 else None

    def _display_order(self, name: str) -> tuple[int, float, str]:
        """Broken markets first, then the largest move measured in stated spreads."""
        decision = self._latest[name].decision
        spread = decision.forecast.quantiles[0][-1] - decision.forecast.quantiles[0][0]
        surprise = abs(_change(self._prices[name])) / spread if spread > 0 else 0.0
        return -SEVERITY[decision.regime], -surprise, name

    def _series_view(self, name: str) -> SeriesView:
        decision, prices = self._latest[name].decision, self._prices[name]
        forecast = decision.forecast
        return SeriesView(
            name=name,
            last_price=decision.last_price,
            change=_change(prices),
            regime=decision.regime,
            horizons=forecast.horizons,
            bands=tuple(
                tuple(quantile_at(level, forecast.levels, row) for level in BAND_LEVELS)
                for row in forecast.quantiles
            ),
            history=tuple(prices),
            weights={expert: weights[0] for expert, weights in forecast.shares.items()},
            status=_status_of(decision),
        )


def _status_of(decision: Decision) -> DecisionStatus:
    if decision.awaits_amendment or (decision.view is not None and decision.view.provisional):
        return DecisionStatus.PROVISIONAL
    return DecisionStatus.AMENDED if decision.amends else DecisionStatus.FINAL


def _change(prices: deque[float]) -> float:
    return prices[-1] / prices[-2] - 1 if len(prices) > 1 else 0.0
