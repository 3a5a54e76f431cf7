"""How surprised each series was at each of the last instants, side by side; Forecaster keeps it.

A surprise is the normal score of a one-bar outcome under the fused quantiles forecast a bar before.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.time import parse_duration
from htfi.forecasting.joint.marginals import Marginals

Array = NDArray[np.float64]
Scores = NDArray[np.float32]  # [T, n], NaN where a series had no forecast or no bar

WINDOW = 500  # instants
_NEVER = np.iinfo(np.int64).min
_NOWHERE = -1


class JointHistory:
    """A ring of normal scores [W, N] in single precision: 20 MB for 10,000 series.

    Series of one interval share instants; scores of different intervals never stand side by side. An instant
    is the stretch of one interval in which a bar ends, counted from 1970 UTC: so markets that close at different
    hours of one day meet, and bars of one instant may come in several calls. Bars without a time length meet
    where they end at the same nanosecond.
    """

    def __init__(self, levels: Sequence[float], window: int = WINDOW) -> None:
        self._marginals = Marginals(levels)
        self._window = window
        self._scores: Scores = np.full((window, 0), np.nan, np.float32)
        self._intervals: list[str] = []
        self._group = np.zeros(0, np.int64)  # [N], which of the intervals
        self._stamps = np.full((0, window), _NEVER, np.int64)  # [G, W], the instant that a slot holds
        self._newest = np.zeros(0, np.int64)  # [G], slot

    def grow(self, intervals: Sequence[str]) -> None:
        """Make room for all series, in the order of their rows; `intervals` [N] names the interval of each."""
        known, num = len(self._group), len(intervals)
        groups = np.array([self._group_of(interval) for interval in intervals[known:]], np.int64)
        self._group = np.concatenate([self._group, groups])
        if num > self._scores.shape[1]:
            larger = np.full((self._window, max(num, known + known // 2)), np.nan, np.float32)
            larger[:, :known] = self._scores[:, :known]
            self._scores = larger

    def learn(
        self, index: NDArray[np.intp], ends_ns: NDArray[np.int64], quantiles: Array, outcome: Array
    ) -> None:
        """Take in one-bar outcomes [n] of rows `index` [n], whose bars ended at `ends_ns` [n].

        `quantiles` [n, Q] were forecast a bar before; NaN in them or in an outcome leaves a gap. An instant that
        lies further back than the ring reaches is passed over.
        """
        scores = self._marginals.scores(quantiles, outcome)
        groups = self._group[index]
        for group in np.unique(groups).tolist():
            length_ns = _length_ns(self._intervals[group])
            stamps = (ends_ns - 1) // length_ns
            of_group = groups == group
            for stamp in np.unique(stamps[of_group]).tolist():
                slot = self._slot(group, stamp)
                if slot != _NOWHERE:
                    here = of_group & (stamps == stamp)
                    self._scores[slot, index[here]] = scores[here]

    def scores(self, rows: NDArray[np.intp]) -> Scores:
        """Normal scores [T, n] of series that share an interval, oldest instant first; none of them is all NaN.

        Raises: InvalidInput where the series are of different intervals.
        """
        groups = np.unique(self._group[rows])
        if len(groups) != 1:
            names = [self._intervals[group] for group in groups.tolist()]
            raise InvalidInput(f"series of intervals {names} have no instants in common: choose one interval")
        group = int(groups[0])
        order = np.argsort(self._stamps[group], kind="stable")
        order = order[self._stamps[group][order] != _NEVER]
        found = self._scores[order][:, rows]
        return found[np.isfinite(found).any(axis=1)]

    def state(self) -> dict[str, Any]:
        return {
            "scores": self._scores[:, : len(self._group)].copy(),
            "intervals": list(self._intervals),
            "group": self._group.copy(),
            "stamps": self._stamps.copy(),
            "newest": self._newest.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved with another window."""
        scores = np.array(state["scores"], np.float32)
        if scores.ndim != 2 or len(scores) != self._window:
            raise IntegrityError(f"saved joint history has no {self._window} instants: start anew")
        self._scores = scores
        self._intervals = [str(interval) for interval in state["intervals"]]
        self._group = np.array(state["group"], np.int64)
        self._stamps = np.array(state["stamps"], np.int64).reshape(-1, self._window)
        self._newest = np.array(state["newest"], np.int64)

    def _group_of(self, interval: str) -> int:
        if interval not in self._intervals:
            self._intervals.append(interval)
            self._stamps = np.concatenate([self._stamps, np.full((1, self._window), _NEVER, np.int64)])
            self._newest = np.append(self._newest, 0)
        return self._intervals.index(interval)

    def _slot(self, group: int, stamp: int) -> int:
        """Where the instant's scores stand, made ready at its first; −1 for one older than the ring."""
        stamps, newest = self._stamps[group], int(self._newest[group])
        if stamps[newest] == stamp:
            return newest
        if stamp < stamps[newest]:
            found = np.flatnonzero(stamps == stamp)
            return int(found[0]) if len(found) else _NOWHERE
        slot = (newest + 1) % self._window
        self._scores[slot, : len(self._group)][self._group == group] = np.nan
        stamps[slot], self._newest[group] = stamp, slot
        return slot


def _length_ns(interval: str) -> int:
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 1
