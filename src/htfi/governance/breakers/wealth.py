"""Wealth of the tests of many names: a row for each series, desk or model, a column for each test."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError
from htfi.governance.breakers.detection import BETS, detect, excess_ratio

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

_MEMORY = 2_000.0  # observations of which the usual mean score is made, before older ones count half


class ScoreBound(NamedTuple):
    """The bound m = slack + gain·usual of a test's scores, where `usual` is the name's own mean score so far.

    It starts at `prior`, worth `prior_weight` observations, and the test bets after `num_warm`. With a gain of 0 the
    bound is fixed and the false-alarm rate exact; else it holds while the mean score stays within the bound, which
    docs/breakers.md states with its measured rate. Scores teach what is usual only while the test has little evidence.
    """

    slack: float
    gain: float = 0.0
    prior: float = 0.0
    prior_weight: float = 1.0
    num_warm: float = 0.0


class NamedRows:
    """Arrays with a row for each name, which grow together and are saved together."""

    def __init__(self, blanks: dict[str, Any]) -> None:
        """`blanks` give each column's value for a new name, a scalar or an array of the row's shape."""
        self._blanks = {name: np.array(blank) for name, blank in blanks.items()}
        self._row_of: dict[str, int] = {}
        self.columns = {
            name: np.empty((0, *blank.shape), blank.dtype) for name, blank in self._blanks.items()
        }
        self._last: tuple[Sequence[str], Rows] = ((), np.empty(0, np.intp))

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def names(self) -> list[str]:
        return list(self._row_of)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    def row_of(self, name: str) -> int | None:
        """The row of a name; None where it has none."""
        return self._row_of.get(name)

    def rows_of(self, names: Sequence[str]) -> Rows:
        """The row of each name; new names get new ones."""
        known, rows = self._last
        if names is known or names == known:
            return rows
        row_of = self._row_of
        for name in names:
            if name not in row_of:
                row_of[name] = len(row_of)
        self._grow(len(row_of))
        rows = np.array([row_of[name] for name in names], np.intp)
        self._last = (list(names), rows)
        return rows

    def _grow(self, num: int) -> None:
        size = len(next(iter(self.columns.values())))
        if num <= size:
            return
        for name, column in self.columns.items():
            larger = np.empty((max(num, 2 * size, 16), *column.shape[1:]), column.dtype)
            larger[:size], larger[size:] = column, self._blanks[name]
            self.columns[name] = larger

    def state(self) -> dict[str, Any]:
        num = len(self)
        columns = {name: column[:num].tolist() for name, column in self.columns.items()}
        return {"names": self.names, "columns": columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where it was saved with other columns."""
        if set(state["columns"]) != set(self.columns):
            raise IntegrityError("the saved state of breakers is of another version: start again")
        self._row_of = {name: row for row, name in enumerate(state["names"])}
        self._last = ((), np.empty(0, np.intp))
        for name, blank in self._blanks.items():
            saved = np.array(state["columns"][name], blank.dtype).reshape(len(self), *blank.shape)
            self.columns[name] = saved
        self._grow(len(self))


class TestWealth:
    """Wealth [N, B, A] of B tests of N names, and their usual mean scores [N, B]."""

    def __init__(self, bounds: Sequence[ScoreBound], memory: Mapping[str, Any] | None = None) -> None:
        """`memory`: blank values of further columns that scores are made with."""
        num = len(bounds)
        self.names = NamedRows(
            {"wealth": np.ones((num, len(BETS))), "taught_total": np.zeros(num), "taught_num": np.zeros(num)}
            | dict(memory or {})
        )
        by_field = [np.array(column, np.float64) for column in zip(*bounds, strict=True)]
        self._slack, self._gain, self._prior, self._prior_weight, self._num_warm = by_field
        self._is_learnt = self._gain > 0.0

    def ratios(self, rows: Rows, scores: Array) -> Array:
        """The excess ratios [n, B] of scores [n, B] of these rows; 0 where a test is not warm."""
        num = self.names["taught_num"][rows]
        usual = (self._prior * self._prior_weight + self.names["taught_total"][rows]) / (
            self._prior_weight + num
        )
        ratio = excess_ratio(scores, np.minimum(self._slack + self._gain * usual, 0.95))
        return np.where(num >= self._num_warm, ratio, 0.0)

    def observe(self, rows: Rows, ratio: Array) -> Array:
        """The evidence [n, B] of tests after these excess ratios [n, B]."""
        wealth, evidence = detect(self.names["wealth"][rows], ratio)
        self.names["wealth"][rows] = wealth
        return evidence

    def learn(self, rows: Rows, scores: Array, is_usual: Mask) -> None:
        """Let scores [n, B] that are usual teach the bounds."""
        taught = is_usual & np.isfinite(scores) & self._is_learnt
        total = self.names["taught_total"][rows] + np.where(taught, scores, 0.0)
        num = self.names["taught_num"][rows] + taught
        is_full = num > _MEMORY
        self.names["taught_total"][rows] = np.where(is_full, 0.5 * total, total)
        self.names["taught_num"][rows] = np.where(is_full, 0.5 * num, num)

    def state(self) -> dict[str, Any]:
        return self.names.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.names.restore(state)
