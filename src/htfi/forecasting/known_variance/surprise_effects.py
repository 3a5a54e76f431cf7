"""What surprises do to the bars that hold them: slopes of the return and of its variance, learnt online and shown.

A return z, in σ of the band that was forecast for it, is z = b·x + e with x the surprise in usual sizes, and the log
scale of e moves by c·(|x| − its mean). b and c are drawn to 0 by kind of event and class of assets, then each series'
own to that of its class. Nothing here enters a forecast: once a surprise is known, the price has moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_table import ScheduledLines, line_key
from htfi.forecasting.known_variance.relations import NUM_RELATIONS, UNRELATED, currencies_of
from htfi.forecasting.surprises import surprises

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Rows = NDArray[np.intp]

POOL_STRENGTH = 20.0  # squared usual sizes that 'no effect' counts for, by kind and class of assets
OWN_STRENGTH = 20.0  # the same of the class' slope, for each series
Z90 = 1.6448536269514722
_MAX_SIGMAS = 5.0  # what a larger return counts as
_MEAN_SIZE, _MEAN_STRENGTH = 0.8, 10.0  # of |x| before any is known: a normal variable's
_FREEDOM = 4.0  # of the Student-t whose score teaches the variance, as in EventEffects
_BAND_SCORE = 2.13184679
_INFORMATION = 2.0 * _FREEDOM / (_FREEDOM + 3.0)
_MAX_LOG = 1.5  # of a log scale at one usual size
_OWN = ("xx", "xz", "aa", "moved", "num")
_POOL = (*_OWN, "squares", "sizes", "seen", "last_ns")


class Slope(NamedTuple):
    """An estimate with its central 90% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class ClosedBar:
    """A bar of n series that ended together and held m events, by places in the table.

    Shapes: rows and sigmas [n], the return in σ of its band, NaN where none was forecast; places and sources [m].
    """

    rows: Rows
    places: Places
    sources: Places
    sigmas: Array
    end_ns: int


class SurpriseEffects:
    """Slopes of N series on the surprises of a calendar's kinds of events."""

    def __init__(
        self, effects: EventEffects, table: ScheduledLines, events: Sequence[ScheduledEvent]
    ) -> None:
        self._effects, self._times_ns = effects, table.time_ns
        self._sizes, self._known_ns = _stated(table, events)
        self._currencies = np.array(table.currencies, np.str_)
        self._kind_of = np.array([effects.kinds.index(kind) for kind in table.kinds], np.int64)
        surprising: list[int] = self._kind_of[table.kind[np.isfinite(self._sizes)]].tolist()
        self._kinds = tuple(sorted({effects.kinds[kind] for kind in surprising}))
        self._own_place = np.array(
            [self._kinds.index(kind) if kind in self._kinds else -1 for kind in effects.kinds], np.int64
        )
        self._columns = SeriesColumns()
        self._columns.declare("side", np.ones(len(table.kinds)), np.int8)
        for name in _OWN:
            self._columns.declare(name, np.zeros(len(self._kinds)), np.float32)
        self._pool = SeriesColumns()  # a row for each class of assets and length of bars
        for name in _POOL:
            dtype = np.int64 if name in ("seen", "last_ns") else np.float64
            self._pool.declare(name, np.zeros((len(effects.kinds), NUM_RELATIONS)), dtype)

    def add(self, row: int, symbol: str) -> None:
        """Make a row of a series; of a pair of currencies, what lifts the second lowers its price."""
        self._columns.grow(row + 1)
        self._pool.grow(self._effects.num_groups)
        pair = currencies_of(symbol)
        self._columns["side"][row] = np.where(self._currencies == pair[1], -1, 1) if pair else 1

    def learn(self, bar: ClosedBar) -> None:
        """Take in a bar that held events; an actual that came after its end teaches nothing."""
        groups = self._effects.groups_of(bar.rows)
        self._count(bar, groups)
        counts = np.isfinite(self._sizes[bar.places]) & (self._known_ns[bar.places] <= bar.end_ns)
        known = np.isfinite(bar.sigmas)
        if not counts.any() or not known.any():
            return
        rows, groups, sources = bar.rows[known], groups[known], bar.sources[counts]
        x, kinds = self._sizes[bar.places[counts]], self._kind_of[sources]
        relation = self._effects.relations(rows, sources)
        related = relation != UNRELATED
        z = np.minimum(np.maximum(bar.sigmas[known], -_MAX_SIGMAS), _MAX_SIGMAS)
        slopes = self._slopes(rows, groups, sources, relation)
        moves = np.where(related, slopes * x, 0.0)
        rest = z - moves.sum(axis=1)
        size = np.abs(x) - self._mean_sizes(groups, kinds, relation)
        of_class, own = self._log_scales(rows, groups, sources, relation)
        pulls = (
            _pull(rest, np.where(related, of_class * size, 0.0).sum(axis=1)),
            _pull(rest, np.where(related, (of_class + own) * size, 0.0).sum(axis=1)),
        )
        for place in range(len(x)):  # a few, such as payrolls and the rate of unemployment
            self._learn_one(
                rows, groups, int(sources[place]), float(x[place]), relation[:, place], size[:, place],
                rest + moves[:, place], rest, pulls,
            )  # fmt: skip

    def _learn_one(
        self, rows: Rows, groups: Places, source: int, x: float, relation: Places, size: Array, z: Array, rest: Array,
        pulls: tuple[Array, Array],
    ) -> None:  # fmt: skip
        """One surprise x; z [n] is what other surprises of the bar leave of the returns. The class learns from what it
        does not explain itself, a series from what both do not."""
        of_class, of_own = pulls
        kind = int(self._kind_of[source])
        own = int(self._own_place[kind])
        columns, side = self._columns, self._columns["side"][rows, source]
        for group, related in sorted(set(zip(groups.tolist(), relation.tolist(), strict=True))):
            if related == UNRELATED:
                continue
            among, at = (groups == group) & (relation == related), (group, kind, related)
            pool, here = self._pool, rows[among]
            strength = pool["aa"][at] + size[among].mean() ** 2
            pool["xx"][at] += x * x
            pool["xz"][at] += x * (side[among] * z[among]).mean()
            pool["aa"][at] = strength
            pool["moved"][at] += (size[among] * of_class[among]).mean() / (strength + POOL_STRENGTH)
            pool["num"][at] += 1.0
            pool["squares"][at] += (rest[among] * rest[among]).mean()
            pool["sizes"][at] += abs(x)
            columns["xx"][here, own] += x * x
            columns["xz"][here, own] += x * z[among]
            strengths = columns["aa"][here, own] + size[among] * size[among]
            columns["aa"][here, own] = strengths
            columns["moved"][here, own] += size[among] * of_own[among] / (strengths + OWN_STRENGTH)
            columns["num"][here, own] += 1.0

    def _count(self, bar: ClosedBar, groups: Places) -> None:
        for place, source in zip(bar.places.tolist(), bar.sources.tolist(), strict=True):
            relation = self._effects.relations(bar.rows, np.array([source]))[:, 0]
            kind, time_ns = int(self._kind_of[source]), int(self._times_ns[place])
            for group, related in set(zip(groups.tolist(), relation.tolist(), strict=True)):
                at = (group, kind, related)
                if related != UNRELATED and time_ns > self._pool["last_ns"][at]:
                    self._pool["seen"][at] += 1
                    self._pool["last_ns"][at] = time_ns

    def _mean_sizes(self, groups: Places, kinds: Places, relation: Places) -> Array:
        at = (groups[:, None], kinds, np.maximum(relation, 0))
        total = self._pool["sizes"][at] + _MEAN_STRENGTH * _MEAN_SIZE
        return total / (self._pool["num"][at] + _MEAN_STRENGTH)

    def _slopes(self, rows: Rows, groups: Places, sources: Places, relation: Places) -> Array:
        """Of the returns on each source's surprise [n, m]."""
        kinds = self._kind_of[sources]
        at, own = (groups[:, None], kinds, np.maximum(relation, 0)), (rows[:, None], self._own_place[kinds])
        of_class = self._pool["xz"][at] / (self._pool["xx"][at] + POOL_STRENGTH)
        side = self._columns["side"][rows[:, None], sources]
        xx, xz = (self._columns[name][own].astype(np.float64) for name in ("xx", "xz"))
        return (xz + OWN_STRENGTH * side * of_class) / (xx + OWN_STRENGTH)

    def _log_scales(
        self, rows: Rows, groups: Places, sources: Places, relation: Places
    ) -> tuple[Array, Array]:
        """Of the residual for a surprise of one usual size [n, m]: the class', and what a series adds to it."""
        kinds = self._kind_of[sources]
        of_class = self._pool["moved"][groups[:, None], kinds, np.maximum(relation, 0)]
        return of_class, self._columns["moved"][rows[:, None], self._own_place[kinds]].astype(np.float64)

    def seen(self, group: int, kind: int, relation: int) -> int:
        """How many events of a kind bars of a class of assets have held."""
        return int(self._pool["seen"][group, kind, relation])

    def num_with_surprise(self, group: int, kind: int, relation: int) -> int:
        """How many of them taught something."""
        return int(self._pool["num"][group, kind, relation])

    def of_class(self, group: int, kind: int, relation: int) -> tuple[Slope, Slope]:
        """What a surprise of one usual size does to the return in σ, upwards where it lifts the event's own currency,
        and to the variance as a factor over that of no surprise."""
        pool, at = self._pool, (group, kind, relation)
        deviation = self._residual_deviation(at)
        total = float(pool["xx"][at]) + POOL_STRENGTH
        mean = _interval(float(pool["xz"][at]) / total, deviation * (1.0 / total) ** 0.5)
        spread = (1.0 / (_INFORMATION * (float(pool["aa"][at]) + POOL_STRENGTH))) ** 0.5
        return mean, _as_variance(float(pool["moved"][at]), spread)

    def of_series(self, row: int, source: int) -> tuple[int, Slope, Slope] | None:
        """How many surprises of a source's kind a series has seen, and the same of it; None where it saw none."""
        kind, group = int(self._kind_of[source]), int(self._effects.groups_of(np.array([row]))[0])
        own = int(self._own_place[kind])
        rows, sources = np.array([row], np.intp), np.array([source])
        relation = self._effects.relations(rows, sources)
        if own < 0 or relation[0, 0] == UNRELATED or self._columns["num"][row, own] == 0.0:
            return None
        groups = np.array([group])
        slopes = self._slopes(rows, groups, sources, relation)
        log_scale = sum(float(part[0, 0]) for part in self._log_scales(rows, groups, sources, relation))
        at = (group, kind, int(relation[0, 0]))
        of_mean, of_log = (
            _joint_spread(float(self._columns[name][row, own]), float(self._pool[name][at])) for name in ("xx", "aa")
        )  # fmt: skip
        mean = _interval(float(slopes[0, 0]), self._residual_deviation(at) * of_mean)
        variance = _as_variance(log_scale, of_log / _INFORMATION**0.5)
        return int(self._columns["num"][row, own]), mean, variance

    def _residual_deviation(self, at: tuple[int, int, int]) -> float:
        total = float(self._pool["squares"][at]) + _MEAN_STRENGTH
        return (total / (float(self._pool["num"][at]) + _MEAN_STRENGTH)) ** 0.5

    def state(self) -> dict[str, Any]:
        return {
            "kinds": list(self._effects.kinds),
            "surprising": list(self._kinds),
            "own": {name: self._columns[name].copy() for name in _OWN},
            "pool": {name: self._pool[name].copy() for name in _POOL},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Series are added and the effects restored before; kinds that the saved calendar did not have begin anew."""
        here, there = _shared_places(self._effects.kinds, state["kinds"])
        own_here, own_there = _shared_places(self._kinds, state["surprising"])
        for name in _POOL:
            saved = np.asarray(state["pool"][name])
            self._pool.grow(len(saved))
            self._pool[name][: len(saved), here] = saved[:, there]
        for name in _OWN:
            saved = np.asarray(state["own"][name])
            self._columns.grow(len(saved))
            self._columns[name][: len(saved), own_here] = saved[:, own_there]


def _stated(table: ScheduledLines, events: Sequence[ScheduledEvent]) -> tuple[Array, Places]:
    """The surprise of each line of a table [E] and when it was known; NaN where it has none.

    Of figures of one kind that come at one time, such as two rates of inflation, it is the mean.
    """
    sizes, known_ns = np.full(len(table.time_ns), np.nan), np.zeros(len(table.time_ns), np.int64)
    found: dict[tuple[int, str, str, str, bool], list[tuple[float, int]]] = {}
    for one in surprises(events):
        found.setdefault(line_key(one.event), []).append((one.size, one.known_ns))
    if not found:
        return sizes, known_ns
    for place in range(len(sizes)):
        kind = int(table.kind[place])
        source = table.kinds[kind], table.currencies[kind], table.symbols[kind]
        key = int(table.time_ns[place]), *source, bool(table.is_exact[place])
        parts = found.get(key)
        if parts is not None:
            sizes[place] = sum(size for size, _ in parts) / len(parts)
            known_ns[place] = max(known for _, known in parts)
    return sizes, known_ns


def _pull(rest: Array, log_scale: Array) -> Array:
    """By how much residuals in σ would move their log scale, each alone."""
    clamped = np.minimum(np.maximum(log_scale, -_MAX_LOG), _MAX_LOG)
    scaled = (_BAND_SCORE / Z90) * rest * exact.exp(-clamped)
    square = scaled * scaled
    return ((_FREEDOM + 1.0) * square / (_FREEDOM + square) - 1.0) / _INFORMATION


def _joint_spread(own: float, pool: float) -> float:
    """Of a slope in deviations of the residual: its own, and what is not known of the class' slope."""
    total = own + OWN_STRENGTH
    return (1.0 / total + (OWN_STRENGTH / total) ** 2 / (pool + POOL_STRENGTH)) ** 0.5


def _interval(value: float, deviation: float) -> Slope:
    return Slope(value, value - Z90 * deviation, value + Z90 * deviation)


def _as_variance(log_scale: float, deviation: float) -> Slope:
    return Slope(*(float(exact.exp(np.array([2.0 * each]))[0]) for each in _interval(log_scale, deviation)))


def _shared_places(here: Sequence[str], there: Sequence[str]) -> tuple[Places, Places]:
    saved = {kind: place for place, kind in enumerate(there)}
    both = [(place, saved[kind]) for place, kind in enumerate(here) if kind in saved]
    return np.array([one for one, _ in both], np.int64), np.array([other for _, other in both], np.int64)
