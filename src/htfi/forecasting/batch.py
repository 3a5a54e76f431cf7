"""The forecasts of n series at one instant, as arrays and as records. `Forecaster` makes them for the main path."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import BAND_LEVELS, TICKS_PER_UNIT, Forecast, NewsTilt, Quantiles
from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]
# ready, all experts forecast, which did, quantiles, experts, weights, calibration: one conversion for the batch
_Records = tuple[
    list[bool],
    list[bool],
    list[list[bool]],
    list[Quantiles],
    list[list[list[list[int]]]],
    list[list[list[list[float]]]],
    list[list[float]],
]

BAND_SIGMAS = 3.2897072539029444  # width of a Gaussian's 90% band in its standard deviations


@dataclass(slots=True)
class ForecastBatch:
    """The newest forecast of n series. Rows that are not `ready` hold no forecast.

    Shapes: ready [n]; quantiles [n, H, Q]; experts [n, K, H, Q], NaN for an expert without a forecast yet;
    weights [n, K, H, Z]; calibration [n, H]; usual_sigma [n], of the 90% band. `tilts` by place: what opinions on the
    news changed in `quantiles` (`Forecaster.apply_opinions`).
    """

    names: tuple[str, ...]  # the experts, sorted
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    ready: NDArray[np.bool_]
    quantiles: Array
    experts: Array
    weights: Array
    calibration: Array
    usual_sigma: Array
    rows: NDArray[np.intp]  # of the forecaster's columns
    tilts: dict[int, NewsTilt] = field(default_factory=dict[int, NewsTilt])
    _records: _Records | None = field(default=None, init=False, repr=False)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Where every expert has a forecast [n]."""
        return np.logical_and.reduce(np.isfinite(self.experts[:, :, 0, 0]), axis=1)

    def expert_ticks(self) -> NDArray[np.int64]:
        """The experts' quantiles [n, K, H, Q] in ticks; 0 for an expert without a forecast yet."""
        spoke = np.isfinite(self.experts[:, :, :1, :1])
        experts = self.experts if spoke.all() else np.where(spoke, self.experts, 0.0)
        ticks = experts * TICKS_PER_UNIT
        return np.rint(ticks, out=ticks).astype(np.int64)

    def first_shares(self) -> Array:
        """Each expert's mean weight over the zones at the first horizon [n, K], as `Forecast.first_shares` has it."""
        zones = self.weights[:, :, 0]
        total = zones[:, :, 0]
        for zone in range(1, zones.shape[2]):
            total = total + zones[:, :, zone]
        return total / zones.shape[2]

    def bands(self) -> tuple[Array, Array]:
        """The ends [n] of the central 90% at the first horizon, as log returns."""
        low, high = (self.levels.index(level) for level in BAND_LEVELS)
        return self.quantiles[:, 0, low], self.quantiles[:, 0, high]

    def take(self, places: Sequence[int]) -> "ForecastBatch":
        """The forecasts of these series, in this order."""
        if len(places) == len(self.ready) and list(places) == list(range(len(places))):
            return self
        at = np.array(places, np.intp)
        tilts = {place: self.tilts[one] for place, one in enumerate(places) if one in self.tilts}
        return ForecastBatch(
            self.names, self.horizons, self.levels, self.ready[at], self.quantiles[at], self.experts[at],
            self.weights[at], self.calibration[at], self.usual_sigma[at], self.rows[at], tilts,
        )  # fmt: skip

    def by_experts(self, places: Sequence[int]) -> "list[tuple[list[int], ForecastBatch]]":
        """The forecasts of these series, in batches of those that the same experts have a forecast of: the places of
        each batch, and the batch, which has no other experts.
        """
        spoke = np.isfinite(self.experts[:, :, 0, 0])
        if spoke.all():
            return [(list(places), self.take(places))] if len(places) else []
        groups: dict[bytes, list[int]] = {}
        for place in places:
            groups.setdefault(spoke[place].tobytes(), []).append(place)
        return [(together, self.take(together)._only(spoke[together[0]])) for together in groups.values()]

    def _only(self, present: NDArray[np.bool_]) -> "ForecastBatch":
        """The same of these experts [K] alone."""
        if present.all():
            return self
        names = tuple(
            name for name, is_present in zip(self.names, present.tolist(), strict=True) if is_present
        )
        return replace(self, names=names, experts=self.experts[:, present], weights=self.weights[:, present])

    def item(self, i: int) -> Forecast:
        """The forecast of series i in the record's form. Raises: InvalidInput where it is not ready."""
        if self._records is None:
            spoke = np.isfinite(self.experts[:, :, 0, 0])
            self._records = (
                self.ready.tolist(),
                self.full.tolist(),
                spoke.tolist(),
                self.quantiles.tolist(),
                self.expert_ticks().tolist(),
                self.weights.tolist(),
                self.calibration.tolist(),
            )
        ready, full, spoke, quantiles, experts, weights, calibration = self._records
        if not ready[i]:
            raise InvalidInput("this series' history is too short for a forecast: ask `ready` first")
        if full[i]:
            by_expert = dict(zip(self.names, experts[i], strict=False))
            shares = dict(zip(self.names, weights[i], strict=False))
        else:
            present = [k for k in range(len(self.names)) if spoke[i][k]]
            by_expert = {self.names[k]: experts[i][k] for k in present}
            shares = {self.names[k]: weights[i][k] for k in present}
        return Forecast(
            self.horizons, self.levels, quantiles[i], by_expert, shares, calibration[i], self.tilts.get(i)
        )

    def apply_tilts(self, tilts: dict[int, NewsTilt], quantiles: Array) -> None:
        """Take in opinions: the tilts by place, and the quantiles [n, H, Q] that they lead to."""
        self.tilts, self.quantiles = tilts, quantiles
        self._records = None
