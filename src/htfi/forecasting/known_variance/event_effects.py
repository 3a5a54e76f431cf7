"""How much events change variance: a log factor for each kind, learnt online from shipped priors.

A factor is of the scale of a bar's return: its prior by kind and asset class, moved by what all series of an interval
have taught, then by what the series itself has. It applies to the bar that holds the event and, apart, to the next one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.known_variance.event_table import ScheduledLines
from htfi.forecasting.known_variance.priors import Priors
from htfi.forecasting.known_variance.relations import (
    FX,
    NUM_RELATIONS,
    OWN,
    UNRELATED,
    asset_class,
    relations,
)

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Rows = NDArray[np.intp]

WEEKEND = "gap_weekend"
NUM_LAGS = 2  # the bar that holds the event, and the next
SHARED_EXCESS = 0.25  # of the variance that further events of one bar add: most come together
_MAX_LOG = 3.0
_FREEDOM = (
    4.0  # of the Student-t whose score teaches: an outlier counts for no more than four usual surprises
)
_BAND_SCORE = 2.13184679  # its 95% quantile, in its own scale
_INFORMATION = 2.0 * _FREEDOM / (_FREEDOM + 3.0)  # of one bar about a log scale
_MIN_DAILY_LOG = 0.05  # of the scale of a day, for a kind to be told apart
_POOL_MEMORY, _OWN_PRIOR, _OWN_MEMORY = 60.0, 12.0, 60.0  # in events


@dataclass(frozen=True, slots=True, eq=False)
class BarWithEvents:
    """A bar of n series that held m events, or followed them.

    Shapes: rows [n]; sources and lags [m]; variances [n, m], the events' factors, 0 where one is none of a series';
    ratio [n], the size of the return over half the central 90% band that was forecast, NaN where none was.
    """

    rows: Rows
    sources: Places
    lags: Places
    variances: Array
    ratio: Array


class EventEffects:
    """Log factors of events on N series, by what is scheduled: K sources, such as a currency's or a company's, of P
    kinds. What is learnt of a kind is common to its sources; which of them concern a series differs."""

    def __init__(self, table: ScheduledLines, priors: Priors, gaps: Sequence[str] = ()) -> None:
        """`gaps` are kinds of the series whose asset class has priors of them, numbered after those of the table."""
        self._priors, self._gaps = priors, tuple(gaps)
        self._currencies, self._symbols = (
            np.array(table.currencies, np.str_),
            np.array(table.symbols, np.str_),
        )
        sources = (*table.kinds, *gaps)
        self.kinds = tuple(sorted(set(sources)))
        self._kind_of = np.array([self.kinds.index(kind) for kind in sources], np.int64)
        num = len(self.kinds)
        self._columns = SeriesColumns()
        self._columns.declare("relation", np.full(len(sources), UNRELATED), np.int8)
        self._columns.declare("group", 0, np.int64)
        self._columns.declare("moved", np.zeros((num, NUM_LAGS)), np.float32)
        self._columns.declare("num", np.zeros((num, NUM_LAGS)), np.float32)
        self._groups: list[tuple[str, int]] = []  # asset class and length of bars
        self._pool = SeriesColumns()
        for name in ("moved", "num"):
            self._pool.declare(name, np.zeros((num, NUM_RELATIONS, NUM_LAGS)))
        self._base = np.zeros((0, num, NUM_RELATIONS, NUM_LAGS))
        self._strength = np.zeros((0, num))
        self.is_of_company = (
            np.array([*(table.symbols), *("" for _ in gaps)], np.str_) != ""
        )  # of each source
        self._pairs: list[tuple[int, int]] = []  # a company's source and a series of it
        self._sorted_pairs = np.empty((0, 2), np.int64)  # by source; in step with the pairs
        self.watch: Callable[[BarWithEvents], None] | None = (
            None  # of what is learnt from, for fits of priors
        )

    def add(self, row: int, symbol: str, length_ns: int) -> None:
        """Make a row of a series with bars of this length."""
        self._columns.grow(row + 1)
        known = self._priors.kinds(asset_class(symbol))
        of_gaps = [OWN if gap in known else UNRELATED for gap in self._gaps]
        related = relations(symbol, self._currencies, self._symbols)
        group = self._join(asset_class(symbol), length_ns)
        if length_ns >= NS_PER_DAY:
            related[(self._symbols == "") & ~self._moves_days(group, related)] = UNRELATED
        self._columns["relation"][row] = [*related, *of_gaps]
        self._pairs += [
            (source, row)
            for source in np.flatnonzero(
                self.is_of_company & (self._columns["relation"][row] == OWN)
            ).tolist()
        ]
        self._columns["group"][row] = group

    def _join(self, assets: str, length_ns: int) -> int:
        if (assets, length_ns) not in self._groups:
            self._groups.append((assets, length_ns))
            self._pool.grow(len(self._groups))
            found = self._priors.log_factors(self.kinds, assets, length_ns)
            self._base = np.concatenate([self._base, found.log_factors[None]])
            self._strength = np.concatenate([self._strength, found.strength[None]])
        return self._groups.index((assets, length_ns))

    def _moves_days(self, group: int, related: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Which figures of the calendar [K] move a whole day of a series that is so `related` to them enough to count:
        none those of shares, of currencies those that priors tell of. The others cost CRPS."""
        if self._groups[group][0] != FX:
            return np.zeros(len(related), np.bool_)
        kinds = self._kind_of[: len(related)]
        return np.abs(self._base[group, kinds, related, 0]) >= _MIN_DAILY_LOG

    def are_pairs(self, rows: Rows) -> NDArray[np.bool_]:
        """Which series [n] are pairs of currencies."""
        of_pairs = np.array([assets == FX for assets, _ in self._groups], np.bool_)
        return of_pairs[self.groups_of(rows)]

    def has_gaps(self, symbol: str) -> bool:
        """Whether weekends are known to change the variance of what such a symbol names."""
        return WEEKEND in self._priors.kinds(asset_class(symbol))

    def kind(self, source: int) -> str:
        """The kind of a source by its number."""
        return self.kinds[int(self._kind_of[source])]

    def relations(self, rows: Rows, sources: Places) -> Places:
        """How each series is related to each source [n, m]."""
        return self._columns["relation"][rows[:, None], sources].astype(np.int64)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Classes of assets with lengths of bars that learn together."""
        return list(self._groups)

    @property
    def num_groups(self) -> int:
        """How many there are."""
        return len(self._groups)

    def groups_of(self, rows: Rows) -> Places:
        """The number of each series' group [n]."""
        return self._columns["group"][rows]

    def class_factors(self, group: int, kind: int, relation: int) -> tuple[float, float]:
        """The factor of scale of the bar that holds an event: before a run, and as a group's series have taught it."""
        prior = self._base[group, kind, relation, 0]
        logs = np.array([prior, prior + self._pool["moved"][group, kind, relation, 0]])
        before, learnt = exact.exp(np.minimum(np.maximum(logs, -_MAX_LOG), _MAX_LOG)).tolist()
        return before, learnt

    def variances(self, rows: Rows, sources: Places) -> Array:
        """Factors of variance [n, m, L] of events by source [m] on these series; 0 where one is none of theirs."""
        columns, kinds = self._columns, self._kind_of[sources]
        relation = columns["relation"][rows[:, None], sources]
        group, related = columns["group"][rows][:, None], np.maximum(relation, 0)
        logs = self._base[group, kinds, related] + self._pool["moved"][group, kinds, related]
        logs = logs + columns["moved"][rows[:, None], kinds]
        factors = exact.exp(2.0 * np.minimum(np.maximum(logs, -_MAX_LOG), _MAX_LOG))
        return np.where(relation[:, :, None] == UNRELATED, 0.0, factors)

    @property
    def num_series(self) -> int:
        """How many rows there are."""
        return self._columns.num_rows

    def series_of(self, sources: Places) -> tuple[Places, Rows]:
        """The series of companies' sources [m]: the place in `sources` [E] and the row [E] of each pair."""
        if len(self._sorted_pairs) != len(self._pairs):
            self._sorted_pairs = np.array(sorted(self._pairs), np.int64).reshape(-1, 2)
        by_source, row = self._sorted_pairs.T
        first, beyond = (np.searchsorted(by_source, sources, side) for side in ("left", "right"))
        num = beyond - first
        event = np.repeat(np.arange(len(sources)), num)
        return event, row[np.arange(len(event)) + np.repeat(first - np.cumsum(num) + num, num)]

    def own_variances(self, rows: Rows, sources: Places) -> Array:
        """Factors of variance [E, L] of one event of its own each on these series [E]."""
        columns, kinds = self._columns, self._kind_of[sources]
        group = columns["group"][rows]
        logs = (
            self._base[group, kinds, OWN]
            + self._pool["moved"][group, kinds, OWN]
            + columns["moved"][rows, kinds]
        )
        return exact.exp(2.0 * np.minimum(np.maximum(logs, -_MAX_LOG), _MAX_LOG))

    def learn(self, bars: BarWithEvents) -> None:
        """Take in a bar of some series that held events."""
        if self.watch is not None:
            self.watch(bars)
        rows, columns = bars.rows, self._columns
        x = _BAND_SCORE * bars.ratio
        score = (_FREEDOM + 1.0) * x * x / (_FREEDOM + x * x) - 1.0
        known = np.isfinite(score)
        teaches = (
            bars.lags < NUM_LAGS
        )  # later bars of a session after results have a share of its first one's
        weights = shares(bars.variances) * known[:, None] * teaches
        pull = weights * np.where(known, score, 0.0)[:, None] / _INFORMATION
        kinds, lags, add_up = _by_kind(self._kind_of[bars.sources], np.minimum(bars.lags, NUM_LAGS - 1))
        group, at = columns["group"][rows], rows[:, None]
        relation = columns["relation"][at, bars.sources]
        for number in sorted(set(group.tolist())):
            for related in range(NUM_RELATIONS):
                among = (group == number)[:, None] & (relation == related) & known[:, None]
                count = np.maximum(among.sum(axis=0), 1)
                place = (number, kinds, related, lags)
                total = self._pool["num"][place] + add_up((weights * among).sum(axis=0) / count)
                self._pool["num"][place] = np.minimum(total, _POOL_MEMORY)
                pulls = add_up((pull * among).sum(axis=0) / count)
                self._pool["moved"][place] += pulls / (self._strength[number, kinds] + total)
        total = columns["num"][at, kinds, lags] + add_up(weights)
        columns["num"][at, kinds, lags] = np.minimum(total, _OWN_MEMORY)
        columns["moved"][at, kinds, lags] += add_up(pull) / (_OWN_PRIOR + total)

    def state(self) -> dict[str, Any]:
        names = ("moved", "num")
        return {
            "kinds": list(self.kinds),
            "groups": [list(group) for group in self._groups],
            "own": {name: self._columns[name].copy() for name in names},
            "pool": {name: self._pool[name].copy() for name in names},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Series are added before; kinds that the saved calendar did not have begin at their priors."""
        saved = {kind: place for place, kind in enumerate(state["kinds"])}
        both = [(place, saved[kind]) for place, kind in enumerate(self.kinds) if kind in saved]
        here, there = (np.array([pair[side] for pair in both], np.int64) for side in (0, 1))
        groups = [(str(assets), int(length)) for assets, length in state["groups"]]
        for name in ("moved", "num"):
            own = np.asarray(state["own"][name])
            self._columns.grow(len(own))
            self._columns[name][: len(own), here] = own[:, there]
            for number, group in enumerate(groups):
                at = self._join(*group)
                self._pool[name][at, here] = np.asarray(state["pool"][name])[number, there]


def combined_variance(largest: Array, excess: Array) -> Array:
    """The factor of a bar's variance from the largest of its events and the sum of what each adds to 1: the largest,
    and a share of what the others add. 1 where no event is the series' (0 the largest)."""
    total = largest + SHARED_EXCESS * (excess - np.maximum(largest - 1.0, 0.0))
    return np.where(largest > 0.0, total, 1.0)


def combine(variances: Array) -> Array:
    """The factors [n] of the variance of one bar with events [n, m]."""
    excess = np.add.reduceat(np.maximum(variances - 1.0, 0.0), [0], axis=1)[:, 0]
    return combined_variance(variances.max(axis=1), excess)


def _by_kind(kinds: Places, lags: Places) -> tuple[Places, Places, Callable[[Array], Array]]:
    """The kinds and lags [u] of m events, each pair once, and what adds values [..., m] up by them [..., u].

    Several companies report in one bar, or two currencies have the same kind of day: each of them teaches.
    """
    pairs, of_pair = np.unique(kinds * NUM_LAGS + lags, return_inverse=True)

    def add_up(values: Array) -> Array:
        total = np.zeros((*values.shape[:-1], len(pairs)))
        for place, pair in enumerate(of_pair.tolist()):
            total[..., pair] += values[..., place]
        return total

    return pairs // NUM_LAGS, pairs % NUM_LAGS, add_up


def shares(variances: Array) -> Array:
    """How much each event's own factor [n, m] moves what `combine` makes of one bar: derivatives of its logarithm."""
    total = combine(variances)[:, None]
    is_first = np.arange(variances.shape[1], dtype=np.int64) == variances.argmax(axis=1)[:, None]
    counted = np.where(is_first, 1.0, np.where(variances >= 1.0, SHARED_EXCESS, 0.0))
    return np.where(variances > 0.0, counted * variances / total, 0.0)
