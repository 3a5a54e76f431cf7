"""Running mean scores of the fused forecast and of each expert; Forecaster keeps it, apps show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.scores import crps

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Mean score of one name ('fused' or an expert) at one horizon.

    Every name is scored on the same forecasts, those that all experts had made, so that ratios of `crps` mean
    something. `coverage90` is the share of outcomes between the 5% and 95% quantiles.
    """

    name: str
    horizon: int
    num: int
    crps: float
    coverage90: float


class Scoreboard:
    """Sums of CRPS and coverage by name and horizon."""

    def __init__(self, names: Sequence[str], horizons: Sequence[int], levels: Sequence[float]) -> None:
        self._names, self._horizons, self._levels = tuple(names), tuple(horizons), np.array(levels)
        self._low, self._high = levels.index(0.05), levels.index(0.95)
        self._crps = np.zeros((len(names), len(horizons)))
        self._inside = np.zeros((len(names), len(horizons)), np.int64)
        self._num = np.zeros(len(horizons), np.int64)

    def add(self, quantiles: Array, outcome: Array, matured: NDArray[np.bool_]) -> None:
        """Score quantiles [n, names, H, Q] by outcomes [n, H] where `matured` [n, H]."""
        y = np.where(matured, outcome, 0.0)[:, None]
        scores = crps(quantiles, y, self._levels)  # [n, names, H]
        inside = (quantiles[..., self._low] <= y) & (y <= quantiles[..., self._high]) & matured[:, None]
        self._crps += np.where(matured[:, None], scores, 0.0).sum(axis=0)
        self._inside += inside.sum(axis=0)
        self._num += matured.sum(axis=0)

    def rows(self) -> list[ScoreRow]:
        """One row for each name and horizon that has a score."""
        return [
            ScoreRow(
                name,
                horizon,
                int(self._num[j]),
                float(self._crps[k, j] / self._num[j]),
                float(self._inside[k, j] / self._num[j]),
            )
            for k, name in enumerate(self._names)
            for j, horizon in enumerate(self._horizons)
            if self._num[j]
        ]

    def state(self) -> dict[str, Any]:
        return {"crps": self._crps.copy(), "inside": self._inside.copy(), "num": self._num.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._crps = np.array(state["crps"], np.float64)
        self._inside = np.array(state["inside"], np.int64)
        self._num = np.array(state["num"], np.int64)
