"""Opinions on the news, weighed into forecasts and waiting for what came of them; Forecaster owns one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.decision import Forecast, Tilt
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.columns import Columns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.divergence import Divergences
from htfi.forecasting.earned import NarratorRow, Narrators
from htfi.forecasting.fusion import combine
from htfi.forecasting.narrator import Opinion, as_tilts, derive_tilt, derive_tilts, released, tilted
from htfi.forecasting.panel import BarBatch, Rows

Array = NDArray[np.float64]

_FIELDS = 4  # narrator's serial, shift, stretch, weight


class Hearing:
    """The newest tilt of each series, those that wait, and what their narrators have earned."""

    def __init__(self, config: ForecastConfig) -> None:
        self._horizons = config.horizons
        self._narrators = Narrators(config.horizons, config.levels)
        self._divergences = Divergences()
        self._columns = Columns()
        self._columns.declare("newest", np.full((len(config.horizons), _FIELDS), np.nan))
        for horizon in config.horizons:
            self._columns.declare(str(horizon), np.full((horizon, _FIELDS), np.nan))

    def weigh(self, batch: ForecastBatch, opinions: Mapping[int, Opinion]) -> None:
        """Tilt forecasts of `batch`, by place, as far as each narrator has earned it and its opinion may count."""
        places = [place for place in opinions if batch.ready[place]]
        if not places:
            return
        told = [opinions[place] for place in places]
        found = derive_tilts(told, batch.quantiles[places], batch.horizons, batch.levels)
        earned = {name: self._narrators.weight(name) for name in {opinion.narrator for opinion in told}}
        weights = [_at_most(earned[opinion.narrator], opinion.most_weight) for opinion in told]
        ranks = self._divergences.ranks([opinion.narrator for opinion in told], found.divergence.tolist())
        records = as_tilts(told, found, weights, ranks)
        tilts = {place: tilt for place, tilt in zip(places, records, strict=True) if tilt is not None}
        self._note(list(tilts.values()))
        if tilts:
            rows = batch.rows[list(tilts)]
            self._columns["newest"][rows] = [self._waiting(tilt) for tilt in tilts.values()]
            batch.tilt(tilts, released(batch.quantiles, tilts, batch.levels))

    def reweigh(
        self, forecast: Forecast, opinion: Opinion, weight: list[float], row: int, age: int, newest_age: int
    ) -> Forecast:
        """A forecast made at `age` with another opinion in the place of its own, at a given weight [H].

        The narrator learns from this one at the horizons whose outcome is not known yet.
        """
        plain = combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)
        weight = _at_most(weight, opinion.most_weight)
        tilt = derive_tilt(opinion, plain, forecast.horizons, forecast.levels, weight)
        if tilt is not None:
            (rank,) = self._divergences.ranks([tilt.narrator], [tilt.divergence])
            tilt = replace(tilt, divergence_rank=rank)
            self._note([tilt])
        told = self._waiting(tilt) if tilt is not None else np.full((len(self._horizons), _FIELDS), np.nan)
        for j, horizon in enumerate(self._horizons):
            if newest_age - age < horizon:
                self._columns[str(horizon)][row, age % horizon] = told[j]
        quantiles = plain if tilt is None else tilted(plain, tilt, forecast.levels)
        return replace(forecast, quantiles=quantiles, tilt=tilt)

    def _note(self, tilts: Sequence[Tilt]) -> None:
        """Later divergences are ranked among these."""
        self._divergences.learn([tilt.narrator for tilt in tilts], [tilt.divergence for tilt in tilts])

    def _waiting(self, tilt: Tilt) -> Array:
        serial = float(self._narrators.serial(tilt.narrator))
        return np.array([[serial] * len(tilt.shift), tilt.shift, tilt.stretch, tilt.weight]).T

    def forget(self, rows: Rows) -> None:
        """New forecasts stand in these rows, of which nobody has said anything yet."""
        if self._narrators.num == 0:
            return
        self._columns["newest"][rows] = np.nan

    def queue(self, batch: BarBatch) -> None:
        """Let the newest tilts wait with their forecasts."""
        if self._narrators.num == 0:
            return
        newest = self._columns["newest"][batch.index]
        for j, horizon in enumerate(self._horizons):
            self._columns[str(horizon)][batch.index, batch.age % horizon] = newest[:, j]

    def settle(self, batch: BarBatch, plain: Array, outcome: Array, known: NDArray[np.bool_]) -> Array:
        """Let narrators earn by the forecasts `plain` [n, H, Q] that matured where `known` [n, H]; those released."""
        if self._narrators.num == 0:
            return plain
        told = np.stack(
            [self._columns[str(h)][batch.index, batch.age % h] for h in self._horizons], axis=2
        )  # [n, 4, H]
        serials = np.where(known, told[:, 0], np.nan)
        heard = np.flatnonzero(np.logical_or.reduce(np.isfinite(serials), axis=1))
        if not len(heard):
            return plain
        changed = plain.copy()
        changed[heard] = self._narrators.learn(serials[heard], told[heard, 1:], plain[heard], outcome[heard])
        return changed

    def earned(self, narrator: str) -> list[float]:
        """The weight [H] that a narrator's opinions have now."""
        return self._narrators.weight(narrator)

    def rows(self) -> list[NarratorRow]:
        """How opinions have done so far, by narrator and horizon."""
        return self._narrators.rows()

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def state(self) -> dict[str, Any]:
        return {
            "columns": self._columns.state(),
            "narrators": self._narrators.state(),
            "divergences": self._divergences.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved under other horizons."""
        self._columns.restore(state["columns"])
        self._narrators.restore(state["narrators"])
        self._divergences.restore(state["divergences"])


def _at_most(weight: list[float], most: float) -> list[float]:
    return weight if most >= 1.0 else [min(share, most) for share in weight]
