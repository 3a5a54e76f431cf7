"""What is decided together, and the one record of each series that the steps of the main path pass on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from htfi.domain.decision import Forecast, Regime
from htfi.domain.events import Bar
from htfi.domain.governance import Hold, SwapFacts
from htfi.domain.news_view import NewsView
from htfi.market.state import MarketState
from htfi.pipeline.news_triggers import AnsweredSeries
from htfi.pipeline.view_cache import ReadRequest

_available_at = attrgetter("available_at_ns")


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """Bars of different series that closed at one instant, all visible from `as_of_ns` on.

    Between two bars they are the newest of the series that are decided because of news, each with its `answered`.
    """

    as_of_ns: int
    bars: list[Bar]
    answered: tuple[AnsweredSeries, ...] = ()


class SeriesContext(msgspec.Struct, frozen=True, gc=False):
    """One series at a decision point. `row` is its row in the point's batch of forecasts.

    `request` says what is read for it, and at which rung. The steps fill in `view` and `forecast`, each once.
    `answered` is set between two bars.
    """

    bar: Bar
    row: int
    regime: Regime
    features: dict[str, float]
    request: ReadRequest
    view: NewsView | None = None  # None where there is no news
    forecast: Forecast | None = None  # None until views are weighed
    answered: AnsweredSeries | None = None
    swaps: SwapFacts | UnsetType = UNSET  # of the view, where swaps are tested
    set_aside: tuple[Hold, ...] = ()  # why the view is not weighed, where its readers are held

    @property
    def last_price(self) -> float:
        return self.bar.close if self.answered is None else self.answered.last_price


def split_decision_points(bars: Iterable[Bar]) -> Iterator[DecisionPoint]:
    """Decision points in order of time; a series with several bars at one instant gets a point for each."""
    for as_of_ns, group in groupby(sorted(bars, key=_available_at), key=_available_at):
        together = list(group)
        if len({(bar.symbol, bar.interval) for bar in together}) == len(together):
            yield DecisionPoint(as_of_ns, together)
            continue
        points: list[list[Bar]] = []
        num_bars: dict[tuple[str, str], int] = {}
        for bar in together:
            series = (bar.symbol, bar.interval)
            nth = num_bars.get(series, 0)
            num_bars[series] = nth + 1
            if nth == len(points):
                points.append([])
            points[nth].append(bar)
        for apart in points:
            yield DecisionPoint(as_of_ns, apart)


class ClosedBars:
    """Bars that await their decision: those that the market builds, and those that a feed brings.

    Bars of a feed wait until time passes their instant, so that all that become visible together are decided together.
    """

    def __init__(self, market: MarketState) -> None:
        self._market = market
        self._feed_bars: list[Bar] = []  # all visible from one instant on

    def add(self, bar: Bar) -> None:
        """Take in a bar of a feed."""
        self._feed_bars.append(bar)

    def ended_by(self, now_ns: int) -> list[Bar]:
        """The bars that are complete once time reaches `now_ns`."""
        bars = self._market.advance(now_ns)
        if self._feed_bars and self._feed_bars[0].available_at_ns < now_ns:
            bars = bars + self.take_feed_bars()
        return bars

    def ended_at(self, at_ns: int) -> list[Bar]:
        """The bars that are complete at an instant that time has passed."""
        bars = self._market.advance(at_ns)
        if self._feed_bars and self._feed_bars[0].available_at_ns <= at_ns:
            bars = bars + self.take_feed_bars()
        return bars

    def take_feed_bars(self) -> list[Bar]:
        """The bars of a feed that wait."""
        fed, self._feed_bars = self._feed_bars, []
        return fed

    def state(self) -> list[Any]:
        return [msgspec.to_builtins(bar) for bar in self._feed_bars]

    def restore(self, state: list[Any]) -> None:
        self._feed_bars = [msgspec.convert(bar, Bar) for bar in state]
