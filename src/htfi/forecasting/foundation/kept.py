"""Shapes at unit volatility that a slow model gave, kept until it is asked again, and whose turn it is.

Experts over language and foundation models own one: a budget bounds what a moment asks of a model, and a series that
must wait keeps its last shape at today's volatility.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import Columns
from htfi.forecasting.panel import Rows

Array = NDArray[np.float64]


class KeptShapes:
    """A shape [H, Q] a series, NaN until it is known whole, and for each kind of question when it was last put."""

    def __init__(self, num_horizons: int, num_levels: int, questions: tuple[str, ...]) -> None:
        self._columns = Columns()
        self._columns.declare("shape", np.full((num_horizons, num_levels), np.nan))
        for question in questions:
            self._columns.declare(question, -1, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def turn(
        self, index: NDArray[np.intp], age: NDArray[np.int64], question: str, most: int
    ) -> NDArray[np.intp]:
        """Of rows [n] at such ages, at most so many: those never asked, then those asked longest ago; it is noted."""
        asked = self._columns[question]
        order = np.argsort(np.where(asked[index] < 0, -1, asked[index] - age + 2**40), kind="stable")[:most]
        rows = index[order]
        asked[rows] = age[order]
        return np.sort(rows)

    def keep(self, rows: NDArray[np.intp], horizons: slice, shapes: Array) -> None:
        """Shapes [n, K, Q] of these horizons; one that is not finite leaves what was known."""
        known = np.isfinite(shapes).all(axis=(1, 2))
        self._columns["shape"][rows[known], horizons] = shapes[known]

    def at(self, rows: Rows, sigma: Array) -> Array:
        """Quantiles [n, H, Q] at volatilities [n]; NaN for a series whose shape is not known whole."""
        shape = self._columns["shape"][rows]
        known = np.isfinite(shape).all(axis=(1, 2))
        return np.where(known, sigma, np.nan)[:, None, None] * shape

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)
