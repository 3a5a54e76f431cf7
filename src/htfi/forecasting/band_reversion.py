"""Volatility returns to its level: bands that are narrow for a series are widened and wide ones narrowed, the more so
the further ahead they look.

Experts follow what volatility is; over weeks it comes back further than they say. That holds of the mix of all of them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.panel import SIGMA_FLOOR

Array = NDArray[np.float64]

_LEVEL_BARS = 1000.0  # over which the log width has its level: of all bars until there are so many
_MAX_AWAY = 1.5  # log width from its level
_BELOW, _ABOVE = (0.0626, 2.0), (0.0675, 5.0)  # by ln(bars / first bars): 0.15 and 0.1 at 22 bars
_MAX_BARS = 66.0  # beyond which bands are not drawn further to their level: nothing is known of it


def reversions(horizons: Sequence[int], per_log_bars: float, first_bars: float) -> Array:
    """The share of its distance from the level [H], in logs, by which a band is drawn to it."""
    return np.array(
        [round(per_log_bars * math.log(max(min(bars, _MAX_BARS) / first_bars, 1.0)), 12) for bars in horizons]
    )


class BandReversion:
    """A factor for the band of each series and horizon h: exp(−b·x), b rising with ln h, x the log of the band's width
    above its slow mean.

    The width is the experts' mean at the longest horizon, less what was known of the coming bars' variance: an hour of
    the day or a release is no state of volatility.
    """

    def __init__(self, horizons: Sequence[int], low: int, high: int) -> None:
        """`low` and `high`: the places of the band's quantiles among the levels."""
        self._below = reversions(horizons, *_BELOW)
        self._above = reversions(horizons, *_ABOVE)
        self._low, self._high = low, high
        self.columns = SeriesColumns()
        self.columns.declare("level", 0.0)
        self.columns.declare("num", 0.0)

    def apply(self, index: NDArray[np.intp], experts: Array, ahead: Array | None, stretch: Array) -> None:
        """Take in the newest quantiles [n, K, H, Q] and multiply stretches [n, H] by the factors; once a bar.

        `ahead` [n, H]: the factors that known variance has in the quantiles. Experts that are NaN do not count.
        """
        columns = self.columns
        if compiled.core is not None:
            compiled.core.revert_bands(
                index, experts, ahead, columns["level"], columns["num"], self._below, self._above, stretch,
                self._low, self._high, SIGMA_FLOOR, _LEVEL_BARS, _MAX_AWAY,
            )  # fmt: skip
            return
        longest = experts[:, :, -1]
        width = longest[..., self._high] - longest[..., self._low]  # [n, K]
        ready = np.isfinite(width)
        total, num_ready = np.zeros(len(width)), ready.sum(axis=1)
        for k in range(width.shape[1]):
            total += np.where(ready[:, k], width[:, k], 0.0)
        mean = total / np.maximum(num_ready, 1)
        if ahead is not None:
            mean = mean / ahead[:, -1]
        log_width = exact.log(np.maximum(mean, SIGMA_FLOOR))
        is_known = num_ready > 0
        level, num = columns["level"][index], columns["num"][index]
        num = np.where(is_known, np.minimum(num + 1.0, _LEVEL_BARS), num)
        level = np.where(is_known, level + (log_width - level) / np.maximum(num, 1.0), level)
        columns["level"][index], columns["num"][index] = level, num
        away = np.minimum(np.maximum(log_width - level, -_MAX_AWAY), _MAX_AWAY)[:, None]
        factor = exact.exp(-(np.where(away < 0.0, self._below, self._above) * away))
        stretch *= np.where(is_known[:, None], factor, 1.0)

    def state(self) -> dict[str, Any]:
        return self.columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.columns.restore(state)
