"""The interfaces of experts and of models of scaled returns. `Forecaster` drives experts and knows none by name."""

from collections.abc import Sequence
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
        """Make space for rows 0 … num_series−1; rows that exist keep their state."""
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


class PathSampler(Protocol):
    """A model of how scaled returns z = r / σ may continue, over C bins that rise and lie even about zero."""

    @property
    def version(self) -> str: ...

    @property
    def centres(self) -> Array:
        """The value of each bin: [C]."""
        ...

    def prefix(self, context: Sequence[float] | Array) -> tuple[int, ...]:
        """What the model reads where prices alone are known: its last scaled returns, oldest first."""
        ...

    def paths(
        self, prefixes: Sequence[Sequence[int]], horizons: Sequence[int], num_paths: int, seed: int
    ) -> tuple[Array, Array]:
        """N paths after each of n prefixes: z [n, N, H − 1], H the longest of K rising horizons, and the law of each
        path's bar h given the bars before it [n, N, K, C]. Equal prefixes and seeds have equal paths."""
        ...


class ReturnModel(Protocol):
    """A model of time series that forecasts returns from past ones, without having been fitted to them."""

    @property
    def version(self) -> str: ...

    @property
    def max_context(self) -> int:
        """The most past returns that it reads."""
        ...

    def quantiles(self, contexts: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]) -> Array:
        """Quantiles [n, K, Q] of the sum of the next h returns after each context [T_i], oldest first, in its units;
        never decreasing along Q, and NaN for a context without information, such as an unchanged price."""
        ...


class FittedReturnModel(ReturnModel, Protocol):
    """A model of returns whose P parameters are fitted to a series and then hold for the bars that follow."""

    @property
    def num_parameters(self) -> int: ...

    @property
    def min_context(self) -> int:
        """The fewest past returns that it is fitted to."""
        ...

    def fit(self, context: Array) -> Array:
        """Parameters [P] fitted to past returns, oldest first; NaN where no fit is found."""
        ...

    def quantiles_of(
        self, context: Array, parameters: Array, horizons: Sequence[int], levels: Sequence[float]
    ) -> Array:
        """Quantiles [K, Q] of the sum of the next h returns after a context, with these parameters."""
        ...
