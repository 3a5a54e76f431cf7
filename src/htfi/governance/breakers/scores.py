"""Scores of 0–1 of what breakers watch: 0 where all is well, 1 where it is as wrong as can be, NaN where unknown."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.governance.breakers.observations import PointObservation, ViewObservation
from htfi.governance.breakers.wealth import NamedRows, ScoreBound

Array = NDArray[np.float64]

# Breakers that watch bars and forecasts of series, with the bounds of their scores.
BAR_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("bands_left", ScoreBound(slack=0.06)),
    ("frozen_feed", ScoreBound(slack=0.02, gain=2.0, prior=0.005, prior_weight=50.0)),
)
# Breakers that watch the views and answers of a reader.
READER_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("draft_acceptance", ScoreBound(slack=0.12, gain=1.0, prior=0.3, prior_weight=5.0, num_warm=20.0)),
)


class BarScores:
    """What the scores of bars compare with: the last forecast and the last bar of each series."""

    def __init__(self) -> None:
        self._memory = NamedRows({"low": np.nan, "high": np.nan, "range": np.nan})

    def observe(self, rows: NDArray[np.intp], num_series: int, point: PointObservation) -> Array:
        """Scores [n, B] of a point whose series have these rows, in the order of BAR_TESTS."""
        memory = self._memory
        if len(memory) < num_series:
            memory.rows_of([str(row) for row in range(num_series)])
        low, high, width = memory["low"][rows], memory["high"][rows], memory["range"][rows]
        moved, last = point.log_return, point.range_last
        is_known = np.isfinite(moved)
        left = np.where(is_known & np.isfinite(low), (moved < low) | (moved > high), np.nan)
        repeated = np.where(is_known & np.isfinite(width), (moved == 0.0) & (last == width), np.nan)
        memory["range"][rows] = last
        if point.horizons[0] == 1:
            memory["low"][rows], memory["high"][rows] = point.quantiles[:, 0, 0], point.quantiles[:, 0, -1]
        return np.stack([left, repeated], axis=1)

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._memory.restore(state)


def reader_scores(view: ViewObservation) -> Array:
    """Scores [B] of a view in the order of READER_TESTS."""
    answer = view.answer
    rejected = np.nan
    if answer is not None and answer.num_drafted > 0:
        rejected = 1.0 - min(answer.num_accepted / answer.num_drafted, 1.0)
    return np.array([rejected])
