"""Arrays with a row for each series that grow, are saved and are restored together.

Experts keep their state in them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError


class SeriesColumns(dict[str, NDArray[Any]]):
    """Named arrays [N, …]. New rows hold the value that the column was declared with."""

    def __init__(self) -> None:
        super().__init__()
        self._blank: dict[str, NDArray[Any]] = {}
        self.num_rows = 0

    def declare(self, name: str, blank: object, dtype: type[np.generic] = np.float64) -> None:
        """Add a column whose every row starts as `blank`, a scalar or an array of the row's shape."""
        self._blank[name] = np.array(blank, dtype)
        self[name] = np.empty((0, *self._blank[name].shape), dtype)

    def grow(self, num_rows: int) -> None:
        """Make space for rows 0 … num_rows−1, by doubling, so that growth is cheap in total."""
        if num_rows <= self.num_rows:
            return
        capacity = max(num_rows, 2 * self.num_rows)
        for name, column in self.items():
            larger = np.empty((capacity, *column.shape[1:]), column.dtype)
            larger[: len(column)] = column
            larger[len(column) :] = self._blank[name]
            self[name] = larger
        self.num_rows = capacity

    def state(self) -> dict[str, Any]:
        return {name: column.copy() for name, column in self.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved under other columns, such as other horizons."""
        if set(state) != set(self):
            raise IntegrityError(
                f"saved forecasting state holds {sorted(state)}, not {sorted(self)}: start again"
            )
        for name, column in self.items():
            saved = np.array(state[name], column.dtype)
            if saved.shape[1:] != column.shape[1:]:
                raise IntegrityError(
                    f"saved forecasting state '{name}' has rows of shape {saved.shape[1:]}, not "
                    f"{column.shape[1:]}: restore under the settings it was saved with"
                )
            self[name] = saved
            self.num_rows = len(saved)


def distinct(numbers: NDArray[np.int64]) -> list[int]:
    """The distinct numbers of a few, rising."""
    return sorted(set(numbers.tolist()))


def row_means(window: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each row [n] of a window [n, W]: `window.mean(axis=1)` without its overhead."""
    return np.add.reduce(window, axis=1) / window.shape[1]


def push_window(column: NDArray[Any], rows: slice | NDArray[np.intp], newest: NDArray[Any]) -> NDArray[Any]:
    """Shift a window [N, W] of these rows by one and write the newest [n] last; the window after it."""
    window = np.concatenate([column[rows][:, 1:], newest[:, None]], axis=1)
    column[rows] = window
    return window
