"""A foundation model of time series as a peer, at a sample of series and dates: each forecast costs a pass."""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pretrained import FoundationExpert
from htfi.forecasting.panel import BarBatch
from htfi_eval.eval.walk import Places

Array = NDArray[np.float64]

FOUNDATION = "chronos"


class FoundationPeer:
    """Forecasts only at the chosen points [T, N, H]; NaN elsewhere."""

    name = FOUNDATION

    def __init__(self, expert: FoundationExpert, chosen: NDArray[np.bool_], config: ForecastConfig) -> None:
        self._expert, self._chosen = expert, chosen
        self._shape = (len(config.horizons), len(config.levels))

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:
        self._expert.grow(int(batch.index.max()) + 1)
        self._expert.observe(batch)
        found = np.full((len(places), *self._shape), np.nan)
        chosen = self._chosen[t, places]  # [n, H]
        at = np.flatnonzero(chosen.any(axis=1))
        if len(at):
            found[at] = np.where(chosen[at, :, None], self._expert.predict(batch.index[at]), np.nan)
        return found
