"""How much each series' bars stood out a quarter, two, three and four ago: companies report once a quarter."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]

NUM_RECURRENCE_FEATURES = 5
_QUARTERS = (63, 126, 189, 252)  # daily bars
QUARTER_BARS = np.array(_QUARTERS, np.int64)
NEAR_BARS, WIDE_BARS = 1, 3  # bars by which a quarter's report may come early or late
RECENT_BARS = 40  # after a report the next is more than so far away
EVENT_SIZE = 1.5
WEEK_BARS = 5
MAX_VOLUME_FACTOR = 2.0
_MEMORY_BARS = _QUARTERS[-1] + WIDE_BARS


class QuarterlyRecurrence:
    """How much each series' bars stood out in the last year.

    A bar stands out by how far its log variance lies above the market's, times its log volume above the
    market's: a report moves both. Where there is no volume nothing stands out, and every feature is zero.
    """

    def __init__(self) -> None:
        self.columns = SeriesColumns()
        self.columns.declare("stood_out", np.zeros(_MEMORY_BARS), np.float32)
        self.columns.declare("since_bars", 10_000, np.int64)

    def features(self, bars: BarBatch, variance_above: Array, volume_above: Array) -> Array:
        """Features [n, 5] for the next bar, these bars taken in.

        `variance_above` [n] is each log variance above the market's, `volume_above` [n] each log volume above it.
        Features: this bar, the week's mean, the same days in the last four quarters (near, wide; zero after a recent
        event), and whether there was one lately.
        """
        now = np.maximum(variance_above, 0.0) * np.minimum(np.maximum(volume_above, 0.0), MAX_VOLUME_FACTOR)
        kept = self.columns["stood_out"][bars.rows]
        kept = np.concatenate([kept[:, 1:], now[:, None].astype(np.float32)], axis=1)
        self.columns["stood_out"][bars.rows] = kept
        since = np.where(now > EVENT_SIZE, 0, self.columns["since_bars"][bars.rows] + 1)
        self.columns["since_bars"][bars.rows] = since
        lately = since < RECENT_BARS
        due = np.where(
            lately[:, None],
            0.0,
            np.stack([_near_quarters(kept, NEAR_BARS), _near_quarters(kept, WIDE_BARS)], axis=1),
        )
        week = kept[:, -WEEK_BARS:].astype(np.float64).mean(axis=1)
        return np.concatenate([now[:, None], week[:, None], due, lately[:, None].astype(np.float64)], axis=1)


def _near_quarters(kept: NDArray[np.float32], reach: int) -> Array:
    """The sum [n] over quarters of the largest value near the day: the next bar is `quarter` bars later."""
    total = np.zeros(len(kept))
    for quarter in _QUARTERS:
        last = kept.shape[1] - quarter  # the newest bar, kept last, is one before the next
        total += kept[:, max(last - reach, 0) : last + reach + 1].max(axis=1)
    return total
