"""The kinds of failure that breakers must find: each changes bars, forecasts, views or news from an instant on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from msgspec.structs import replace as replace_struct

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_S
from htfi.governance.breakers.observations import (
    AnswerObservation,
    BreakerObservation,
    NewsObservation,
    PointObservation,
    ViewObservation,
)

Rng = np.random.Generator
MARKET, MINUTES, READINGS = "market", "minutes", "readings"


class FaultInjection:
    """One occurrence of a fault. `bars` changes the bars of an instant, `observed` what breakers observe of it.

    Both get the number of instants since the fault began. `severity` is what was drawn for how bad it is, in units of
    its own; None where there is one alone.
    """

    severity: float | None = None

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def bars(self, number: int, bars: list[Bar]) -> list[Bar]:
        del number
        return bars

    def observed(self, number: int, seen: BreakerObservation) -> Iterable[BreakerObservation]:
        yield self.point(number, seen) if isinstance(seen, PointObservation) else self.item(number, seen)

    def point(self, number: int, point: PointObservation) -> PointObservation:
        views = {place: self.view(number, view) for place, view in point.views.items()}
        return replace(point, views=views)

    def item(self, number: int, item: NewsObservation) -> NewsObservation:
        del number
        return item

    def view(self, number: int, view: ViewObservation) -> ViewObservation:
        answer = view.answer if view.answer is None else self.answer(number, view.answer)
        return replace_struct(view, answer=answer)

    def answer(self, number: int, answer: AnswerObservation) -> AnswerObservation:
        del number
        return answer


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of failure: where it happens, what changes, which breakers may find it, and within how many instants."""

    name: str
    world: str
    deadline: int
    finders: frozenset[str]
    begin: Callable[[Rng], FaultInjection]


class FrozenFeed(FaultInjection):
    """All series repeat their last bar."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._kept: dict[str, Bar] = {}

    def is_frozen(self, symbol: str, place: int) -> bool:
        del symbol, place
        return True

    def bars(self, number: int, bars: list[Bar]) -> list[Bar]:
        del number
        found: list[Bar] = []
        for place, bar in enumerate(bars):
            old = self._kept.setdefault(bar.symbol, bar)
            same = replace_struct(
                bar, open=old.close, high=old.high, low=old.low, close=old.close, volume=old.volume
            )
            found.append(same if self.is_frozen(bar.symbol, place) else bar)
        return found


class OneFrozenSeries(FrozenFeed):
    """One series repeats its last bar."""

    def is_frozen(self, symbol: str, place: int) -> bool:
        del symbol
        return place == 0


class PoisonedPrices(FaultInjection):
    """Every third bar of three series is a print far off, which the next one takes back."""

    def bars(self, number: int, bars: list[Bar]) -> list[Bar]:
        if number % 3:
            return bars
        factor = float(np.exp(self.rng.choice([-0.35, 0.35])))
        found: list[Bar] = []
        for place, bar in enumerate(bars):
            close = bar.close * (factor if place < 3 else 1.0)
            found.append(replace_struct(bar, close=close, high=max(bar.high, close), low=min(bar.low, close)))
        return found


class FlashCrash(FaultInjection):
    """All prices fall by 5 to 13% within minutes and come back, as on 6 May 2010."""

    _PATH = (-0.004, -0.012, -0.028, -0.035, -0.018, 0.012, 0.025, 0.022, 0.012, 0.008)

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._level, self._scale = 0.0, float(rng.uniform(0.5, 1.3))

    def bars(self, number: int, bars: list[Bar]) -> list[Bar]:
        before = self._level
        if number < len(self._PATH):
            self._level += self._scale * self._PATH[number]
        found: list[Bar] = []
        for bar in bars:
            depth = float(self.rng.uniform(0.6, 1.4))
            first, last = float(np.exp(before)), float(np.exp(before + depth * (self._level - before)))
            opened, closed = bar.open * first, bar.close * last
            found.append(
                replace_struct(
                    bar, open=opened, close=closed, high=max(opened, closed), low=min(opened, closed)
                )
            )
        return found


class SteppingClock(FaultInjection):
    """The feed's clock steps back by several bars, and forward again."""

    def point(self, number: int, point: PointObservation) -> PointObservation:
        length_ns = point.bar_end_ns - point.bar_start_ns
        shift_ns = (-3 if number % 4 < 2 else 0) * length_ns
        return replace(
            point, bar_start_ns=point.bar_start_ns + shift_ns, bar_end_ns=point.bar_end_ns + shift_ns
        )


class StaleClock(FaultInjection):
    """The feed's clock stands still: bars come, and their ends stay the same."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._end_ns = 0

    def point(self, number: int, point: PointObservation) -> PointObservation:
        if number == 0:
            self._end_ns = int(point.bar_end_ns.min())
        length_ns = point.bar_end_ns - point.bar_start_ns
        end_ns = np.full(len(length_ns), self._end_ns, np.int64)
        return replace(point, bar_start_ns=end_ns - length_ns, bar_end_ns=end_ns)


class LateFeed(FaultInjection):
    """Bars come ever later: 40 seconds more with each."""

    def point(self, number: int, point: PointObservation) -> PointObservation:
        return replace(point, as_of_ns=point.as_of_ns + 40 * (number + 1) * NS_PER_S)


class NarrowBands(FaultInjection):
    """Forecasts a quarter to a half as wide as they should be: a wrong unit, or a broken calibration."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._factor = self.severity = float(rng.uniform(0.25, 0.5))

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        median = point.quantiles[:, :, len(point.levels) // 2, None]
        return replace(point, quantiles=median + self._factor * (point.quantiles - median))


class MisplacedBands(FaultInjection):
    """Forecasts shifted by 0.4 to 1 of the width of their outermost quantiles: another price's, or a sign error."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._shift = self.severity = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 1.0))

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        width = point.quantiles[:, :, -1:] - point.quantiles[:, :, :1]
        return replace(point, quantiles=point.quantiles + self._shift * width)


class SwappedExpert(FaultInjection):
    """One expert's forecasts are those of another model, many times as wide, under its old name and version."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._factor = float(rng.choice([0.1, 0.2, 5.0, 8.0]))

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        experts = point.experts.copy()
        experts[:, 1] *= self._factor
        return replace(point, experts=experts)


class IdenticalExperts(FaultInjection):
    """Two experts give one forecast."""

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        experts = point.experts.copy()
        experts[:, 1] = experts[:, 0]
        return replace(point, experts=experts)


class SwappedVersion(FaultInjection):
    """A model of another version serves, and no bundle names it."""

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        return replace(point, models=dict(point.models) | {"reader.speculative": "another-target"})


class RejectedDrafts(FaultInjection):
    """The target rejects half of what it accepted before, or more."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._kept = self.severity = float(rng.uniform(0.1, 0.5))

    def answer(self, number: int, answer: AnswerObservation) -> AnswerObservation:
        del number
        return replace_struct(answer, num_accepted=int(self.rng.binomial(answer.num_accepted, self._kept)))


class RunawayDraft(FaultInjection):
    """The draft proposes three to eight times as many tokens as before."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._factor = self.severity = float(rng.uniform(3.0, 8.0))

    def answer(self, number: int, answer: AnswerObservation) -> AnswerObservation:
        del number
        return replace_struct(answer, num_drafted=int(self._factor * answer.num_drafted))


class RepeatedTokens(FaultInjection):
    """Answers are longer and repeat a part of their tokens."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._share = float(rng.uniform(0.4, 0.75))

    def answer(self, number: int, answer: AnswerObservation) -> AnswerObservation:
        del number
        length, entropy = int(answer.num_tokens / self._share), self._share * answer.entropy_nats
        return replace_struct(answer, num_tokens=length, entropy_nats=entropy)


class AlwaysUp(FaultInjection):
    """A silently swapped reader: its views point up, and are large and sure."""

    def view(self, number: int, view: ViewObservation) -> ViewObservation:
        del number
        return replace_struct(
            view, direction=1.0, shift_sigmas=float(self.rng.choice([1.5, 2.0, 3.0])), confidence=0.9
        )


class StuckReader(FaultInjection):
    """The reader gives the same view whatever the news."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._first: ViewObservation | None = None

    def view(self, number: int, view: ViewObservation) -> ViewObservation:
        del number
        first = self._first = self._first or view
        return replace_struct(
            view, direction=first.direction, shift_sigmas=first.shift_sigmas, confidence=first.confidence,
            volatility_multiplier=first.volatility_multiplier,
        )  # fmt: skip


class FlippingReader(FaultInjection):
    """The reader reads the same items again and again, and answers by chance."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._views: dict[int, ViewObservation] = {}

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        self._views = self._views or dict(point.views)
        views = {
            place: replace_struct(view, direction=float(self.rng.choice([-1.0, 1.0])), confidence=0.6)
            for place, view in self._views.items()
        }
        return replace(point, views=views)


class InvertedReader(FaultInjection):
    """Views are sure, and point the wrong way."""

    def view(self, number: int, view: ViewObservation) -> ViewObservation:
        del number
        return replace_struct(
            view, direction=-view.direction, shift_sigmas=-view.shift_sigmas, confidence=0.9
        )


class ContradictorySources(FaultInjection):
    """Sources of each series with news contradict each other: a poisoned feed."""

    def point(self, number: int, point: PointObservation) -> PointObservation:
        del number
        views = {
            place % 2: replace_struct(view, contradiction=float(self.rng.uniform(0.7, 1.0)))
            for place, view in point.views.items()
        }
        return replace(point, views=views)


class QuarantineFlood(FaultInjection):
    """Three to seven tenths of the news are quarantined."""

    def __init__(self, rng: Rng) -> None:
        super().__init__(rng)
        self._share = self.severity = float(rng.uniform(0.3, 0.7))

    def item(self, number: int, item: NewsObservation) -> NewsObservation:
        del number
        return replace_struct(item, is_quarantined=bool(self.rng.random() < self._share))


class FalseHeadline(FaultInjection):
    """One unconfirmed headline on the whole market moves seven series in ten or more, as on 23 April 2013."""

    def observed(self, number: int, seen: BreakerObservation) -> Iterable[BreakerObservation]:
        if number or not isinstance(seen, PointObservation):
            yield seen
            return
        share = float(self.rng.uniform(0.7, 0.95))
        yield NewsObservation(seen.as_of_ns - 1, "false", "wire", (), False, 1.0, "false")
        views = {
            place: ViewObservation("mini-target-int8", -1.0, -2.0, 0.7, 2.0, ("false",), moved=0.1)
            for place in range(len(seen.series))
            if self.rng.random() < share
        }
        yield replace(seen, views=views)


def _fault(
    name: str, world: str, deadline: int, begin: Callable[[Rng], FaultInjection], *finders: str
) -> Fault:
    return Fault(name, world, deadline, frozenset(finders), begin)


FAULTS: tuple[Fault, ...] = (
    _fault("frozen feed", MARKET, 10, FrozenFeed, "frozen_feed"),
    _fault("one frozen series", MARKET, 15, OneFrozenSeries, "frozen_feed"),
    _fault("poisoned prices", MARKET, 30, PoisonedPrices, "price_unconfirmed"),
    _fault("2010-like crash", MINUTES, 10, FlashCrash, "market_crash"),
    _fault("stepping clock", MARKET, 10, SteppingClock, "clock"),
    _fault("stale clock", MARKET, 10, StaleClock, "clock"),
    _fault("late feed", MINUTES, 20, LateFeed, "clock"),
    _fault("forecasts too narrow", MARKET, 30, NarrowBands, "bands_left"),
    _fault("forecasts misplaced", MARKET, 30, MisplacedBands, "bands_left"),
    _fault("expert swapped", MARKET, 30, SwappedExpert, "model_disagrees"),
    _fault("experts identical", MARKET, 30, IdenticalExperts, "experts_identical"),
    _fault("version swapped", MARKET, 5, SwappedVersion, "model_swapped"),
    _fault("drafts rejected", READINGS, 60, RejectedDrafts, "draft_acceptance"),
    _fault("runaway draft", READINGS, 60, RunawayDraft, "draft_runaway"),
    _fault("answers repeat tokens", READINGS, 60, RepeatedTokens, "answers_shift"),
    _fault("reader swapped", READINGS, 60, AlwaysUp, "views_shift"),
    _fault("reader stuck", READINGS, 60, StuckReader, "views_repeat", "views_shift"),
    _fault("reader flips", READINGS, 60, FlippingReader, "views_flip"),
    _fault("reader inverted", READINGS, 100, InvertedReader, "confidence_apart", "views_shift"),
    _fault("sources contradict", READINGS, 60, ContradictorySources, "sources_contradict"),
    _fault("quarantine flood", READINGS, 20, QuarantineFlood, "quarantine_swells"),
    _fault("2013-like headline", READINGS, 2, FalseHeadline, "headline_reach"),
)
