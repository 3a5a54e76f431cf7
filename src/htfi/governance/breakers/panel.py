"""All circuit breakers as one object: what trips, at which scope, by which evidence. The loop observes with it.

Every test reduces what it watches to scores of 0–1 with a bound (`scores`, `reading_scores`), and bets against the
bound (`detection`). Series, desks, experts, readers and the firm have wealth of their own. A desk's and the firm's bets
are the mean of those of their series (`members`), so that what befalls all at once is found sooner than in any one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from htfi.domain.governance import BreakerState, ScopeLevel
from htfi.governance.breakers.config import MEANINGS, BreakerConfig, BreakerLimits
from htfi.governance.breakers.detection import share_evidence
from htfi.governance.breakers.members import ScopeMembers
from htfi.governance.breakers.observations import BreakerObservation, NewsObservation, PointObservation
from htfi.governance.breakers.reading_scores import (
    NEWS_TESTS,
    OUTCOME,
    REACH_BOUND,
    READER_TESTS,
    SERIES_NEWS_TESTS,
    ItemMemory,
    ReadingMemory,
)
from htfi.governance.breakers.scores import BAR_MEMORY, BAR_TESTS, EXPERT_TESTS, bar_scores, expert_scores
from htfi.governance.breakers.states import (
    FIRM_SCOPE,
    BreakerCell,
    BreakerChange,
    advance_cell,
    open_cell,
)
from htfi.governance.breakers.wealth import Array, Mask, ScoreBound, TestWealth

_NS_PER_YEAR = 365.25 * 86_400e9
_MIN_BAR_NS = 1e9
NUM_READ_A_YEAR = 100_000.0  # answers of a reader, or items of news, that the bounds on false alarms hold for
NUM_WIDE_A_YEAR = 10_000.0  # items that move several series and are not confirmed yet
_MIN_MOVED = 0.01  # of the band: a view that moves the median less moves nothing
_MIN_EVIDENCE = 2.0  # no limit is lower: without observations the evidence is 1
_SWAP_EVIDENCE = 1.0  # a fact, not a test: a changed model is certain


# What watches items of news, which the ledger does not hold as they were screened.
ITEM_BREAKERS = frozenset({"quarantine_swells", "headline_reach"})


def item_threshold(config: BreakerConfig, breaker: str) -> float:
    """The evidence at which one of `ITEM_BREAKERS` trips; infinite where it does not act."""
    if breaker == "headline_reach":
        return NUM_WIDE_A_YEAR * _alarms(config.headline_reach, "desk", 1)
    return NUM_READ_A_YEAR * _alarms(config.of(breaker), "firm", 1)


class _Watch:
    """Tests of one kind: their wealth at each level that they are watched at, and their limits there."""

    def __init__(
        self,
        tests: Sequence[tuple[str, ScoreBound]],
        config: BreakerConfig,
        memory: dict[str, Any] | None = None,
    ) -> None:
        self.breakers = [name for name, _ in tests]
        self.wealth = TestWealth([bound for _, bound in tests], memory)
        shares = {name: self.breakers.count(name) for name in self.breakers}
        self._limits: dict[str, Array] = {
            level.value: np.array([_alarms(config.of(name), level, shares[name]) for name in self.breakers])
            for level in ScopeLevel
        }

    def limits(self, level: str) -> Array:
        """The evidence that trips at a level for one observation a year [B]; infinite where a test does not act."""
        return self._limits[level]


def _alarms(limits: BreakerLimits, level: str, num_tests: int) -> float:
    """1/r of the false alarms a year r that one of a breaker's tests may raise at a level; infinite for none."""
    if not limits.is_on or level not in limits.scopes:
        return np.inf
    return len(limits.scopes) * num_tests / limits.false_alarms_a_year


class _Trip(NamedTuple):
    breaker: str
    scope: str
    statistic: float
    threshold: float
    detail: str


class BreakerPanel:
    """Observes in order of time; the same observations give the same changes."""

    def __init__(
        self, config: BreakerConfig | None = None, desks_of: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """`desks_of`: the desks of a symbol; a symbol without one is of the desk 'default'."""
        self._config = config or BreakerConfig()
        self._desks_of = desks_of or {}
        self._series = _Watch(BAR_TESTS, self._config, BAR_MEMORY)
        self._desks = _Watch(BAR_TESTS, self._config)
        self._experts = _Watch(EXPERT_TESTS, self._config)
        self._readers = _Watch(READER_TESTS, self._config)
        self._series_news = _Watch(SERIES_NEWS_TESTS, self._config)
        self._news = _Watch(NEWS_TESTS, self._config)
        self._readings = ReadingMemory()
        self._items = ItemMemory()
        self._models: dict[str, str] = {}
        self._bundle = ""
        self._cells: dict[tuple[str, str], BreakerCell] = {}
        self._members = ScopeMembers((), (), self._desks_of)

    @property
    def not_closed(self) -> dict[tuple[str, str], BreakerState]:
        """The state of each breaker (name, scope) that is not closed."""
        return {key: cell.state for key, cell in self._cells.items()}

    def observe(self, observation: BreakerObservation) -> list[BreakerChange]:
        """Take in one observation; the changes of state that follow, in order."""
        if isinstance(observation, NewsObservation):
            trips = self._observe_item(observation)
            return self._apply_trips(trips, {FIRM_SCOPE} if trips or self._cells else (), observation.at_ns)
        trips = self._observe_models(observation)
        touched: set[str] = set()
        if not observation.is_between_bars:
            trips += self._observe_bars(observation, touched)
            trips += self._observe_outcomes(observation)
        if observation.views:
            trips += self._observe_views(observation, touched)
        if not trips and not self._cells:
            return []
        return self._apply_trips(trips, touched, observation.as_of_ns)

    def reenable(self, scope: str, by: str, why: str, at_ns: int, breaker: str = "") -> list[BreakerChange]:
        """A named person closes the breakers of a scope, or the one of a name; their tests have begun anew."""
        closed = [key for key in self._cells if key[1] == scope and breaker in ("", key[0])]
        return [self._close(key, at_ns, f"re-enabled by {by}: {why}") for key in closed]

    def keep_open(self, before: "BreakerPanel") -> None:
        """Take over what is not closed under other limits: a new bundle closes no breaker."""
        self._cells = dict(before._cells)

    def _observe_bars(self, point: PointObservation, touched: set[str]) -> list[_Trip]:
        """Tests of each series, then of the desks and the firm by the mean of their series' bets, then of experts."""
        watch, names = self._series, self._series.wealth.names
        rows = names.rows_of(point.series)
        if len(names) != self._members.num:
            self._members = ScopeMembers(names.names, self._desks.wealth.names.names, self._desks_of)
            self._desks.wealth.names.rows_of(self._members.desks)
        members = self._members
        scores = bar_scores(names, rows, point)
        ratio = watch.wealth.ratios(rows, scores)
        lengths_ns = np.maximum((point.bar_end_ns - point.bar_start_ns).astype(np.float64), _MIN_BAR_NS)
        num_bars = _NS_PER_YEAR / float(lengths_ns.min())
        evidence = watch.wealth.observe(rows, ratio)
        limits = np.maximum(
            (members.largest_desk[rows] * num_bars)[:, None] * watch.limits("series"), _MIN_EVIDENCE
        )
        is_tripped = evidence >= limits
        watch.wealth.learn(rows, scores, evidence * evidence < limits)
        trips: list[_Trip] = []
        if is_tripped.any():
            trips += _trips(
                watch, evidence, limits, is_tripped, ratio, lambda row: f"series:{point.series[row]}"
            )
            _begin_anew(watch, rows, is_tripped)
        desks, bets, present = members.bets(rows, ratio, np.isfinite(scores))
        evidence = self._desks.wealth.observe(desks, bets)
        level = np.where((desks == 0)[:, None], self._desks.limits("firm"), self._desks.limits("desk"))
        limits = np.maximum(
            (np.maximum(members.sizes[desks] / present, 1.0) * num_bars)[:, None] * level, _MIN_EVIDENCE
        )
        is_tripped = evidence >= limits
        if is_tripped.any():
            scopes = [members.scopes[int(desk)] for desk in desks]
            trips += _trips(self._desks, evidence, limits, is_tripped, bets, lambda row: scopes[row])
            _begin_anew(self._desks, desks, is_tripped)
        if self._cells or trips:
            touched.update(f"series:{name}" for name in point.series)
            touched.update(members.scopes[int(desk)] for desk in desks)
        return trips + self._observe_experts(point, num_bars, touched)

    def _observe_experts(self, point: PointObservation, num_bars: float, touched: set[str]) -> list[_Trip]:
        if not point.expert_names:
            return []
        watch = self._experts
        scores = expert_scores(point)  # [n, K]
        seen = np.isfinite(scores)
        num = np.add.reduce(seen, axis=0)
        touched.update(f"model:{name}" for name, count in zip(point.expert_names, num, strict=True) if count)
        mean = np.where(
            num > 0, np.add.reduce(np.where(seen, scores, 0.0), axis=0) / np.maximum(num, 1), np.nan
        )
        part = max(len(self._series.wealth.names) / len(point.series), 1.0)
        return self._judge(watch, "model", point.expert_names, mean[:, None], num_bars * part)

    def _observe_outcomes(self, point: PointObservation) -> list[_Trip]:
        """The outcomes of views that were read before these bars."""
        if not self._readings.awaiting:
            return []
        trips: list[_Trip] = []
        for series, moved in zip(point.series, point.log_return.tolist(), strict=True):
            found = self._readings.outcome_score(series, moved)
            if found is not None:
                scores = np.full((1, len(READER_TESTS)), np.nan)
                scores[0, OUTCOME] = found[1]
                trips += self._judge(self._readers, "model", [found[0]], scores, NUM_READ_A_YEAR)
        return trips

    def _observe_views(self, point: PointObservation, touched: set[str]) -> list[_Trip]:
        trips: list[_Trip] = []
        reached: dict[str, set[int]] = {}
        for place, view in point.views.items():
            series = point.series[place]
            if not view.is_new:
                continue
            is_late = bool(point.bar_end_ns[place] < self._newest_end_ns(series))
            scores = self._readings.view_scores(series, view, is_late=is_late)
            trips += self._judge(self._readers, "model", [view.reader], scores[None], NUM_READ_A_YEAR)
            contradiction = np.array([[min(max(view.contradiction, 0.0), 1.0)]])
            trips += self._judge(self._series_news, "series", [series], contradiction, NUM_READ_A_YEAR)
            touched |= {f"model:{view.reader}", f"series:{series}"}
            if view.moved >= _MIN_MOVED:
                for item in view.cited:
                    reached.setdefault(item, set()).add(place)
        for item, places in reached.items():
            if len(places) > 1 and self._items.is_unconfirmed(item):
                trips += self._judge_reach(point, item, places)
        return trips

    def _newest_end_ns(self, series: str) -> int:
        """The end of the newest bar of a series: the view of an amendment may come after the bar that it is on."""
        row = self._series.wealth.names.row_of(series)
        return 0 if row is None else int(self._series.wealth.names["end_ns"][row])

    def _judge_reach(self, point: PointObservation, item: str, places: set[int]) -> list[_Trip]:
        """Whether an item moves more of a desk's series than those that it names."""
        rows = self._series.wealth.names.rows_of(point.series)
        named = set(self._items.symbols(item))
        threshold = item_threshold(self._config, "headline_reach")
        trips: list[_Trip] = []
        for desk, members in self._members.places_by_scope(rows).items():
            others = [place for place in members if point.series[place].partition("/")[0] not in named]
            num_moved = len(places.intersection(others))
            evidence = share_evidence(num_moved, len(others), REACH_BOUND)
            if evidence >= threshold:
                self._items.mark_judged(item)
                detail = f"{item[:60]} moved {num_moved} of {len(others)} that it does not name"
                trips.append(_Trip("headline_reach", f"desk:{desk}", evidence, threshold, detail))
        return trips

    def _observe_models(self, point: PointObservation) -> list[_Trip]:
        """A model whose name or version is another while the bundle is the same."""
        models, before = dict(point.models), self._models
        is_other_bundle, self._bundle = point.bundle != self._bundle, point.bundle
        if models == before:
            return []
        self._models = before | models
        limits = self._config.model_swapped
        if is_other_bundle or not limits.is_on or "firm" not in limits.scopes:
            return []
        changed = [name for name, version in models.items() if before.get(name, version) != version]
        words = [f"{name} was {before[name]} and is {models[name]}" for name in changed[:3]]
        detail = "; ".join(words)
        return [_Trip("model_swapped", FIRM_SCOPE, _SWAP_EVIDENCE, _SWAP_EVIDENCE, detail)] if changed else []

    def _observe_item(self, item: NewsObservation) -> list[_Trip]:
        self._items.learn(item)
        return self._judge(
            self._news, "firm", [""], np.array([[float(item.is_quarantined)]]), NUM_READ_A_YEAR
        )

    def _judge(
        self, watch: _Watch, level: str, names: Sequence[str], scores: Array, num_a_year: float
    ) -> list[_Trip]:
        """The tests of names at one level by their scores [n, B], so many of which come a year."""
        rows = watch.wealth.names.rows_of(names)
        ratio = watch.wealth.ratios(rows, scores)
        evidence = watch.wealth.observe(rows, ratio)
        limits = np.broadcast_to(np.maximum(num_a_year * watch.limits(level), _MIN_EVIDENCE), evidence.shape)
        is_tripped = evidence >= limits
        watch.wealth.learn(rows, scores, evidence * evidence < limits)
        if not is_tripped.any():
            return []
        _begin_anew(watch, rows, is_tripped)
        return _trips(
            watch,
            evidence,
            limits,
            is_tripped,
            ratio,
            lambda row: f"{level}:{names[row]}" if names[row] else level,
        )

    def _apply_trips(
        self, trips: Sequence[_Trip], touched: Collection[str], now_ns: int
    ) -> list[BreakerChange]:
        """Open what tripped; let the other breakers of the scopes that were observed advance."""
        changes: list[BreakerChange] = []
        opened: set[tuple[str, str]] = set()
        for trip in trips:
            key = trip.breaker, trip.scope
            before = self._cells.get(key)
            self._cells[key] = open_cell(now_ns, before)
            opened.add(key)
            if before is None or before.state is not BreakerState.OPEN:
                words = f"{MEANINGS[trip.breaker]}: {trip.detail}"
                changes.append(
                    BreakerChange(now_ns, *key, BreakerState.OPEN, trip.statistic, trip.threshold, words)
                )
        for key, cell in list(self._cells.items()):
            if key not in opened and key[1] in touched:
                changes += self._advance(key, cell, now_ns)
        return changes

    def _advance(self, key: tuple[str, str], cell: BreakerCell, now_ns: int) -> list[BreakerChange]:
        limits = self._config.of(key[0])
        cool_down_ns = round(limits.cool_down_minutes * 60e9)
        after = advance_cell(cell, key[1], now_ns, cool_down_ns, limits.half_open_observations)
        if after is None:
            return [self._close(key, now_ns, "no trip while it was half-open")]
        self._cells[key] = after
        if after.state is cell.state:
            return []
        words = f"half-open for {after.num_left} observations"
        return [BreakerChange(now_ns, *key, after.state, 0.0, 0.0, words)]

    def _close(self, key: tuple[str, str], now_ns: int, words: str) -> BreakerChange:
        del self._cells[key]
        return BreakerChange(now_ns, *key, BreakerState.CLOSED, 0.0, 0.0, words)

    def state(self) -> dict[str, Any]:
        """Everything that later changes depend on, as plain data."""
        return {
            "wealth": {name: watch.wealth.state() for name, watch in self._watches().items()},
            "readings": self._readings.state(),
            "items": self._items.state(),
            "models": dict(self._models),
            "bundle": self._bundle,
            "cells": [[*key, msgspec.to_builtins(cell)] for key, cell in self._cells.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where it was saved by another version."""
        for name, watch in self._watches().items():
            watch.wealth.restore(state["wealth"][name])
        self._readings.restore(state["readings"])
        self._items.restore(state["items"])
        self._models, self._bundle = dict(state["models"]), state["bundle"]
        self._cells = {
            (breaker, scope): msgspec.convert(cell, BreakerCell) for breaker, scope, cell in state["cells"]
        }
        self._members = ScopeMembers(
            self._series.wealth.names.names, self._desks.wealth.names.names, self._desks_of
        )

    def _watches(self) -> dict[str, _Watch]:
        return {
            "series": self._series, "desks": self._desks, "experts": self._experts, "readers": self._readers,
            "series_news": self._series_news, "news": self._news,
        }  # fmt: skip


def _trips(
    watch: _Watch,
    evidence: Array,
    limits: Array,
    is_tripped: Mask,
    ratio: Array,
    scope_of: Callable[[int], str],
) -> list[_Trip]:
    """The trips of these rows and tests, row by row."""
    rows, tests = np.nonzero(is_tripped)
    return [
        _Trip(
            watch.breakers[test], scope_of(row), float(evidence[row, test]), float(limits[row, test]),
            f"the last score was {1.0 + ratio[row, test]:.3g} times its bound",
        )
        for row, test in zip(rows.tolist(), tests.tolist(), strict=True)
    ]  # fmt: skip


def _begin_anew(watch: _Watch, rows: Any, is_tripped: Mask) -> None:
    places, tests = np.nonzero(is_tripped)
    watch.wealth.names["wealth"][rows[places], tests] = 1.0
