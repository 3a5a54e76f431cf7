"""Forecasts between two bars: from a later price to the same ends of their horizons.

The standing forecast states returns from the last close. What of a bar has passed is in the later price already, so the
returns that are left spread less: over h bars, e of a bar later, by √(1 − e/h). An auditor derives it with
`remaining_ticks`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import TICKS_PER_UNIT
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.fusion import mix, on_grid

Array = NDArray[np.float64]

MAX_ELAPSED_BARS = 0.9  # the last tenth of a bar is not cut away: news moves prices within it


def remaining_spread(elapsed_bars: Array, horizons: Sequence[int]) -> Array:
    """√(1 − e/h) for e [n], over h bars [n, H]."""
    elapsed = np.minimum(np.maximum(elapsed_bars, 0.0), MAX_ELAPSED_BARS)
    return np.sqrt(1.0 - elapsed[:, None] / np.array(horizons, np.float64))


def shorten(batch: ForecastBatch, elapsed_bars: Sequence[float]) -> None:
    """Let the forecasts [n] begin so many bars after the newest close; those at 0 stay to the last bit."""
    places = [place for place, elapsed in enumerate(elapsed_bars) if elapsed > 0.0 and batch.ready[place]]
    if not places:
        return
    factor = remaining_spread(np.array([elapsed_bars[place] for place in places]), batch.horizons)  # [m, H]
    experts = on_grid(batch.experts[places] * factor[:, None, :, None])  # [m, K, H, Q]
    spoke = np.isfinite(experts)
    batch.experts[places] = experts
    batch.quantiles[places] = mix(
        np.where(spoke, experts, 0.0), batch.weights[places], batch.calibration[places], batch.levels
    )


def remaining_ticks(
    ticks: Sequence[Sequence[int]], elapsed_bars: float, horizons: Sequence[int]
) -> list[list[int]]:
    """An expert's recorded quantiles [H, Q] as they stand so many bars later, bit for bit as `shorten` has them."""
    if elapsed_bars <= 0.0:
        return [list(row) for row in ticks]
    factor = remaining_spread(np.array([elapsed_bars]), horizons)[0]
    later = on_grid(np.array(ticks, np.float64) / TICKS_PER_UNIT * factor[:, None])
    return np.rint(later * TICKS_PER_UNIT).astype(np.int64).tolist()
