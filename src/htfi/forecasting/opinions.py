"""Opinions on the news: tilted forecasts that await their outcome, and how rare each divergence from the numbers is.

The rank of a divergence is the share of its narrator's earlier ones that were smaller: a rank of 0.95 is exceeded once
in twenty. At first it is the rank among opinions on simulated markets (`REFERENCE`), which count as `PRIOR_OPINIONS`.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import Forecast, NewsTilt
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.fusion import combine
from htfi.forecasting.panel import BarBatch, Rows
from htfi.forecasting.tilts import Opinion, derive_tilt, derive_tilts, tilt_batch, tilt_record, to_records
from htfi.forecasting.track_record import NarratorTrackRecords, TrackRecordRow

Array = NDArray[np.float64]

PRIOR_OPINIONS = 20.0
HALF_LIFE_OPINIONS = 1_000.0
MAX_RANKED_NARRATORS = 64  # retained, the most recent
NUM_STEPS = 1_000  # divergence and rank are kept in thousandths
_LN2 = 0.6931471805599453
_MIN_COUNT = 1e-6  # of an opinion: what has faded further is forgotten

# The shipped target's opinions at its word: (divergence, share of opinions below it), on straight lines between.
# Measured on 64 simulated worlds that no evaluation uses (seed 1500000000).
REFERENCE = (
    (0.0, 0.0), (0.001, 0.37), (0.1, 0.37), (0.2, 0.41), (0.3, 0.41), (0.4, 0.49), (0.5, 0.57), (0.55, 0.77),
    (0.6, 0.79), (0.65, 0.89), (0.7, 0.91), (0.75, 0.955), (0.8, 0.995), (1.0, 1.0),
)  # fmt: skip


class DivergenceRanks:
    """Divergences 0–1 so far, by narrator, the older the fainter, in bounded memory."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, Array] = OrderedDict()  # [STEPS + 1], the latest at the end

    def ranks(self, narrators: Sequence[str], divergences: Sequence[float]) -> list[float]:
        """The rank of each among those learnt so far, 0 to 0.999 in whole thousandths, rounded down.

        Guarantees: of one narrator's, the larger divergence never has the smaller rank.
        """
        below = {name: self._below(name) for name in dict.fromkeys(narrators)}
        return [
            _rank(below[name], _step(divergence))
            for name, divergence in zip(narrators, divergences, strict=True)
        ]

    def learn(self, narrators: Sequence[str], divergences: Sequence[float]) -> None:
        """Take in opinions, in order."""
        by_narrator: dict[str, list[int]] = {}
        for name, divergence in zip(narrators, divergences, strict=True):
            by_narrator.setdefault(name, []).append(_step(divergence))
        for name, steps in by_narrator.items():
            counts = self._counts.get(name)
            if counts is None:
                counts = np.zeros(NUM_STEPS + 1)
            counts = counts * float(exact.exp(np.array([-_LN2 * len(steps) / HALF_LIFE_OPINIONS]))[0])
            counts[counts < _MIN_COUNT] = 0.0
            np.add.at(counts, steps, 1.0)
            self._counts[name] = counts
            self._counts.move_to_end(name)
            if len(self._counts) > MAX_RANKED_NARRATORS:
                self._counts.popitem(last=False)

    def _below(self, narrator: str) -> Array:
        """For each step the share of opinions below it."""
        counts = self._counts.get(narrator)
        if counts is None:
            return _REFERENCE
        total = np.cumsum(counts)
        return (PRIOR_OPINIONS * _REFERENCE + (total - counts)) / (PRIOR_OPINIONS + total[-1])

    def state(self) -> dict[str, Any]:
        return {
            name: [[step, float(counts[step])] for step in np.flatnonzero(counts).tolist()]
            for name, counts in self._counts.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._counts = OrderedDict()
        for name, kept in state.items():
            counts = self._counts[name] = np.zeros(NUM_STEPS + 1)
            for step, count in kept:
                counts[step] = count


def _step(divergence: float) -> int:
    return min(max(int(divergence * NUM_STEPS), 0), NUM_STEPS)


def _rank(below: Array, step: int) -> float:
    return min(int(float(below[step]) * NUM_STEPS), NUM_STEPS - 1) / NUM_STEPS


def _reference() -> Array:
    at, shares = zip(*REFERENCE, strict=True)
    return np.interp(np.arange(NUM_STEPS + 1) / NUM_STEPS, at, shares)


_REFERENCE = _reference()


_FIELDS = 4  # narrator's serial, shift, stretch, weight


class OpinionTracker:
    """The newest tilt of each series, pending tilts, and the track records of their narrators."""

    def __init__(self, config: ForecastConfig) -> None:
        self._horizons = config.horizons
        self._narrators = NarratorTrackRecords(config.horizons, config.levels)
        self._divergences = DivergenceRanks()
        self._columns = SeriesColumns()
        self._columns.declare("newest", np.full((len(config.horizons), _FIELDS), np.nan))
        self._columns.declare("rank", 0.0)  # of the divergence of the newest tilt
        for horizon in config.horizons:
            self._columns.declare(str(horizon), np.full((horizon, _FIELDS), np.nan))

    def weigh(
        self, batch: ForecastBatch, opinions: Mapping[int, Opinion], *, is_tracked: bool = True
    ) -> None:
        """Tilt forecasts of `batch`, by place, as far as the narrator's track record and the opinion's limits allow.

        Where it is not `is_tracked`, neither narrators nor ranks learn from them.
        """
        places = [place for place in opinions if batch.ready[place]]
        if not places:
            return
        of_places = [opinions[place] for place in places]
        found = derive_tilts(of_places, batch.quantiles[places], batch.horizons, batch.levels)
        by_narrator = {
            name: self._narrators.weight(name) for name in {opinion.narrator for opinion in of_places}
        }
        weights = [_capped(by_narrator[opinion.narrator], opinion.max_weight) for opinion in of_places]
        ranks = self._divergences.ranks(
            [opinion.narrator for opinion in of_places], found.divergence.tolist()
        )
        records = to_records(of_places, found, weights, ranks)
        tilts = {place: tilt for place, tilt in zip(places, records, strict=True) if tilt is not None}
        if is_tracked:
            self._learn_divergences(list(tilts.values()))
        if tilts:
            if is_tracked:
                rows = batch.rows[list(tilts)]
                self._columns["newest"][rows] = [self._pending_row(tilt) for tilt in tilts.values()]
                self._columns["rank"][rows] = [tilt.divergence_rank for tilt in tilts.values()]
            batch.apply_tilts(tilts, tilt_batch(batch.quantiles, tilts, batch.levels))

    def reweigh(
        self,
        forecast: Forecast,
        opinion: Opinion,
        weight: list[float],
        row: int,
        age: int,
        newest_age: int,
        *,
        is_tracked: bool = True,
    ) -> Forecast:
        """A forecast made at `age` with another opinion in place of its own, at a given weight [H].

        The narrator learns from this one at the horizons whose outcome is not known yet, unless it is not `is_tracked`.
        """
        plain = combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)
        weight = _capped(weight, opinion.max_weight)
        tilt = derive_tilt(opinion, plain, forecast.horizons, forecast.levels, weight)
        if tilt is not None:
            (rank,) = self._divergences.ranks([tilt.narrator], [tilt.divergence])
            tilt = replace(tilt, divergence_rank=rank)
        if is_tracked:
            self._track_again(tilt, row, age, newest_age)
        quantiles = plain if tilt is None else tilt_record(plain, tilt, forecast.levels)
        return replace(forecast, quantiles=quantiles, tilt=tilt)

    def _track_again(self, tilt: NewsTilt | None, row: int, age: int, newest_age: int) -> None:
        """Let a tilt take the place of the one that was made at `age`."""
        if tilt is not None:
            self._learn_divergences([tilt])
            pending = self._pending_row(tilt)
        else:
            pending = np.full((len(self._horizons), _FIELDS), np.nan)
        for j, horizon in enumerate(self._horizons):
            if newest_age - age < horizon:
                self._columns[str(horizon)][row, age % horizon] = pending[j]
        if newest_age == age:
            self._columns["rank"][row] = tilt.divergence_rank if tilt is not None else 0.0

    def divergence(self, row: int) -> float:
        """The rank 0–1 of the divergence of a series' newest tilt; 0 before the first."""
        return float(self._columns["rank"][row])

    def _learn_divergences(self, tilts: Sequence[NewsTilt]) -> None:
        """Later divergences are ranked among these."""
        self._divergences.learn([tilt.narrator for tilt in tilts], [tilt.divergence for tilt in tilts])

    def _pending_row(self, tilt: NewsTilt) -> Array:
        serial = float(self._narrators.serial(tilt.narrator))
        return np.array([[serial] * len(tilt.shift), tilt.shift, tilt.stretch, tilt.weight]).T

    def forget(self, rows: Rows) -> None:
        """These rows have new forecasts, on which there is no opinion yet."""
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

    def learn(self, batch: BarBatch, plain: Array, outcome: Array, known: NDArray[np.bool_]) -> Array:
        """Update track records by the forecasts `plain` [n, H, Q] that matured where `known`; the tilted ones."""
        if self._narrators.num == 0:
            return plain
        pending = np.stack(
            [self._columns[str(h)][batch.index, batch.age % h] for h in self._horizons], axis=2
        )  # [n, 4, H]
        serials = np.where(known, pending[:, 0], np.nan)
        judged = np.flatnonzero(np.logical_or.reduce(np.isfinite(serials), axis=1))
        if not len(judged):
            return plain
        changed = plain.copy()
        changed[judged] = self._narrators.learn(
            serials[judged], pending[judged, 1:], plain[judged], outcome[judged]
        )
        return changed

    def track_record_weight(self, narrator: str) -> list[float]:
        """The weight [H] that a narrator's opinions have now."""
        return self._narrators.weight(narrator)

    def potential_weight(self, narrator: str) -> float:
        """As `NarratorTrackRecords.potential`."""
        return self._narrators.potential(narrator)

    def track_records(self) -> list[TrackRecordRow]:
        """The track record of opinions, by narrator and horizon."""
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


def _capped(weight: list[float], bound: float) -> list[float]:
    return weight if bound >= 1.0 else [min(share, bound) for share in weight]
