"""What a numeric expert must offer. Forecaster drives experts through this and knows none by name."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.panel import BarBatch, Rows

Array = NDArray[np.float64]


class Expert(Protocol):
    """One model of returns, held for every series at once in arrays with a row per series."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def grow(self, num_series: int) -> None:
        """Make room for rows 0 … num_series−1; rows that exist keep their state."""
        ...

    def update(self, bars: BarBatch) -> None:
        """Take in one closed bar of each row in `bars`: all that the next quantiles must know of it."""
        ...

    def learn(self, bars: BarBatch) -> None:
        """Learn from the same bars what may wait until the forecast is out. Follows each `update`."""
        ...

    def quantiles(self, rows: Rows) -> Array:
        """Quantiles [n, H, Q] of the log return over each horizon, finite and never decreasing along Q.

        A row whose history is too short is NaN throughout.
        """
        ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...
