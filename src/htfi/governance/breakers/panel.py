"""All circuit breakers as one object: what trips, at which scope, by which evidence. The loop observes with it.

Every test reduces what it watches to scores of 0–1 with a bound (`scores`), and bets against the bound (`detection`).
Series, desks, models and the firm have wealth of their own. A desk's and the firm's bets are the mean of those of its
series, so that what befalls all of them at once is found sooner than for any one of them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.governance.breakers.config import BREAKERS, BreakerConfig, BreakerLimits
from htfi.governance.breakers.detection import alarm_threshold
from htfi.governance.breakers.observations import BreakerObservation, NewsObservation, PointObservation
from htfi.governance.breakers.scores import BAR_TESTS, READER_TESTS, BarScores, reader_scores
from htfi.governance.breakers.states import (
    FIRM_SCOPE,
    BreakerCell,
    BreakerChange,
    BreakerState,
    advance_cell,
    open_cell,
)
from htfi.governance.breakers.wealth import TestWealth

Array = NDArray[np.float64]

DEFAULT_DESK = "default"  # of series that are of no desk
_NS_PER_YEAR = 365.25 * 86_400e9
_MIN_BAR_NS = 1e9
_NUM_ANSWERS_A_YEAR = 100_000  # that the bound on false alarms of a reader's tests holds for
_MAX_CHANGES = 10_000


class BreakerPanel:
    """Observes in order of time; the same observations give the same changes."""

    def __init__(
        self, config: BreakerConfig | None = None, desks_of: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """`desks_of`: the desks of a symbol; a symbol without one is of the desk 'default'."""
        self._config = config or BreakerConfig()
        self._desks_of = desks_of or {}
        self._scores = BarScores()
        self._series = TestWealth([bound for _, bound in BAR_TESTS])
        self._desks = TestWealth([bound for _, bound in BAR_TESTS])
        self._readers = TestWealth([bound for _, bound in READER_TESTS])
        self._bar_limits = _ScopeLimits([name for name, _ in BAR_TESTS], self._config)
        self._reader_limits = _ScopeLimits([name for name, _ in READER_TESTS], self._config)
        self._cells: dict[tuple[str, str], BreakerCell] = {}
        self._members: _Members = _Members((), {}, self._desks_of)

    @property
    def not_closed(self) -> dict[tuple[str, str], BreakerState]:
        """The state of each breaker (name, scope) that is not closed."""
        return {key: cell.state for key, cell in self._cells.items()}

    def observe(self, observation: BreakerObservation) -> list[BreakerChange]:
        """Take in one observation; the changes of state that follow, in order."""
        if isinstance(observation, NewsObservation):
            return []
        changes: list[BreakerChange] = []
        if not observation.is_between_bars:
            changes += self._observe_bars(observation)
        changes += self._observe_views(observation)
        return changes

    def reenable(self, scope: str, by: str, why: str, at_ns: int, breaker: str = "") -> list[BreakerChange]:
        """A named person closes the breakers of a scope, or the one of a name; the tests begin anew."""
        closed = [key for key in self._cells if key[1] == scope and breaker in ("", key[0])]
        return [self._close(key, at_ns, f"re-enabled by {by}: {why}") for key in closed]

    def _observe_bars(self, point: PointObservation) -> list[BreakerChange]:
        names = self._series.names
        rows = names.rows_of(point.series)
        if len(names) != self._members.num:
            self._members = _Members(names.names, dict.fromkeys(self._desks.names.names), self._desks_of)
            self._desks.names.rows_of(self._members.desks)
        members = self._members
        scores = self._scores.observe(rows, len(names), point)
        ratio = self._series.ratios(rows, scores)
        lengths_ns = np.maximum((point.bar_end_ns - point.bar_start_ns).astype(np.float64), _MIN_BAR_NS)
        base = alarm_threshold(members.desk_size[rows] * (_NS_PER_YEAR / lengths_ns), 1.0)  # [n]
        evidence = self._series.observe(rows, ratio)
        limits = base[:, None] + self._bar_limits.offset("series")
        self._series.learn(rows, scores, evidence < 0.5 * limits)
        changes: list[BreakerChange] = []
        tripped = evidence >= limits
        if tripped.any():
            for place, test in _places(tripped):
                changes += self._trip(
                    BAR_TESTS[test][0], f"series:{point.series[place]}", point.as_of_ns, float(evidence[place, test]),
                    float(limits[place, test]), self._series, point.series[place], test,
                )  # fmt: skip
        changes += self._observe_desks(point, rows, scores, ratio, float(base.max()))
        changes += self._advance(
            {f"series:{name}" for name in point.series} | self._members.scopes, point.as_of_ns
        )
        return changes

    def _observe_desks(
        self, point: PointObservation, rows: NDArray[np.intp], scores: Array, ratio: Array, base: float
    ) -> list[BreakerChange]:
        """Bets of each desk with a series in the point, and of the firm: the mean of those of their series."""
        desks, means = self._members.means(rows, ratio, np.isfinite(scores))
        names = [self._members.desks[desk] for desk in np.asarray(desks).tolist()]
        evidence = self._desks.observe(desks, means)
        changes: list[BreakerChange] = []
        for level, chosen in (("desk", [place for place, name in enumerate(names) if name]), ("firm", [0])):
            limits = base + self._bar_limits.offset(level)
            for place in chosen:
                for test in np.flatnonzero(evidence[place] >= limits).tolist():
                    scope = FIRM_SCOPE if level == "firm" else f"desk:{names[place]}"
                    changes += self._trip(
                        BAR_TESTS[test][0], scope, point.as_of_ns, float(evidence[place, test]), float(limits[test]),
                        self._desks, names[place], test,
                    )  # fmt: skip
        return changes

    def _observe_views(self, point: PointObservation) -> list[BreakerChange]:
        changes: list[BreakerChange] = []
        for view in point.views.values():
            scores = reader_scores(view)[None]
            if not np.isfinite(scores).any():
                continue
            rows = self._readers.names.rows_of([view.reader])
            evidence = self._readers.observe(rows, self._readers.ratios(rows, scores))
            limits = alarm_threshold(_NUM_ANSWERS_A_YEAR, 1.0) + self._reader_limits.offset("model")
            self._readers.learn(rows, scores, evidence < 0.5 * limits)
            scope = f"model:{view.reader}"
            for test in np.flatnonzero(evidence[0] >= limits).tolist():
                changes += self._trip(
                    READER_TESTS[test][0], scope, point.as_of_ns, float(evidence[0, test]), float(limits[test]),
                    self._readers, view.reader, test,
                )  # fmt: skip
            changes += self._advance({scope}, point.as_of_ns)
        return changes

    def _trip(
        self, breaker: str, scope: str, now_ns: int, statistic: float, threshold: float, wealth: TestWealth,
        name: str, test: int,
    ) -> list[BreakerChange]:  # fmt: skip
        wealth.begin_anew(name, test)
        before = self._cells.get((breaker, scope))
        self._cells[breaker, scope] = open_cell(now_ns)
        if before is not None and before.state is BreakerState.OPEN:
            return []
        words = f"evidence of {statistic:.1f} nats against {threshold:.1f}"
        return [BreakerChange(now_ns, breaker, scope, BreakerState.OPEN, statistic, threshold, words)]

    def _advance(self, scopes: Collection[str], now_ns: int) -> list[BreakerChange]:
        """One more observation of these scopes for the breakers that did not trip by it."""
        changes: list[BreakerChange] = []
        for key, cell in list(self._cells.items()) if self._cells else ():
            breaker, scope = key
            if scope not in scopes or cell.since_ns == now_ns:
                continue
            limits = self._config.of(breaker)
            cool_down_ns = round(limits.cool_down_minutes * 60e9)
            after = advance_cell(cell, scope, now_ns, cool_down_ns, limits.half_open_observations)
            if after is None:
                changes.append(self._close(key, now_ns, "no trip while it was half-open"))
                continue
            self._cells[key] = after
            if after.state is not cell.state:
                words = f"half-open for {after.num_left} observations"
                changes.append(BreakerChange(now_ns, breaker, scope, after.state, 0.0, 0.0, words))
        return changes

    def _close(self, key: tuple[str, str], now_ns: int, words: str) -> BreakerChange:
        del self._cells[key]
        return BreakerChange(now_ns, *key, BreakerState.CLOSED, 0.0, 0.0, words)

    def state(self) -> dict[str, Any]:
        """Everything that later changes depend on, as plain data."""
        return {
            "scores": self._scores.state(),
            "series": self._series.state(),
            "desks": self._desks.state(),
            "readers": self._readers.state(),
            "cells": [[*key, msgspec.to_builtins(cell)] for key, cell in self._cells.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where it was saved by another version."""
        self._scores.restore(state["scores"])
        self._series.restore(state["series"])
        self._desks.restore(state["desks"])
        self._readers.restore(state["readers"])
        self._cells = {
            (breaker, scope): msgspec.convert(cell, BreakerCell) for breaker, scope, cell in state["cells"]
        }
        self._members = _Members((), {}, self._desks_of)


def _places(found: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Row and column of what was found, row by row."""
    rows, columns = np.nonzero(found)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


class _ScopeLimits:
    """What the limits of B breakers add to the threshold at each level [B]; infinite where one does not act."""

    def __init__(self, breakers: Sequence[str], config: BreakerConfig) -> None:
        assert set(breakers) <= set(BREAKERS)
        self._offsets = {
            level: np.array([_offset(config.of(name), level) for name in breakers])
            for level in ("series", "desk", "model", "firm")
        }  # fmt: skip

    def offset(self, level: str) -> Array:
        return self._offsets[level]


def _offset(limits: BreakerLimits, level: str) -> float:
    """ln(1/r) for the share r of the false alarms a year that a breaker may raise at a level."""
    if not limits.is_on or level not in limits.scopes:
        return np.inf
    return -float(np.log(limits.false_alarms_a_year / len(limits.scopes)))


class _Members:
    """Which series are of which desk, by row; desk 0, without a name, is the firm."""

    def __init__(
        self, series: Sequence[str], known: Mapping[str, None], desks_of: Mapping[str, Collection[str]]
    ) -> None:
        self.num = len(series)
        place_of = {"": 0} | {name: place for place, name in enumerate(known) if name}
        pairs: list[tuple[int, int]] = []
        for row, name in enumerate(series):
            pairs.append((row, 0))
            desks = desks_of.get(name.partition("/")[0]) or (DEFAULT_DESK,)
            pairs += [(row, place_of.setdefault(desk, len(place_of))) for desk in desks]
        self.desks: list[str] = list(place_of)
        self.scopes = {FIRM_SCOPE, *(f"desk:{name}" for name in self.desks if name)}
        table = np.array(pairs, np.intp).reshape(-1, 2)
        self._row: NDArray[np.intp] = table[:, 0]
        self._desk: NDArray[np.intp] = table[:, 1]
        sizes = np.bincount(self._desk, minlength=len(self.desks)).astype(np.float64)
        sizes[0] = 0.0  # the firm is no desk
        self.desk_size = np.ones(self.num)
        np.maximum.at(self.desk_size, self._row, sizes[self._desk])

    def means(
        self, rows: NDArray[np.intp], ratio: Array, is_seen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], Array]:
        """The desks [D] with series among these rows, and the mean ratio [D, B] of those that were seen."""
        place = np.full(self.num, -1, np.intp)
        place[rows] = np.arange(len(rows))
        at = place[self._row]
        desk, at = self._desk[at >= 0], at[at >= 0]
        num_tests, num_desks = ratio.shape[1], len(self.desks)
        cell: NDArray[np.intp] = (desk[:, None] * num_tests + np.arange(num_tests)).ravel()
        size = num_desks * num_tests
        total = np.bincount(cell, ratio[at].ravel(), size).reshape(num_desks, num_tests)
        count = np.bincount(cell, is_seen[at].ravel(), size).reshape(num_desks, num_tests)
        touched = np.flatnonzero(np.bincount(desk, minlength=num_desks))
        return touched, total[touched] / np.maximum(count[touched], 1.0)
