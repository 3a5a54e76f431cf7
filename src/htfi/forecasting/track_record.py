"""The track record of each narrator's opinions, and the weight that follows from it, learnt online from CRPS.

Exponential weights over four levels of weight (0, a quarter, a half, 1), with a prior that mostly ignores the narrator;
the rate is AdaHedge's, held below one (docs/decisions/d05-fusion.md). Ignoring a narrator is scored as the null reader
would be, which knows that there is news and reads none: so stating that prices are more volatile takes more than that.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.errors import IntegrityError
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.scores import crps, integration_weights
from htfi.forecasting.tilts import apply_tilt

Array = NDArray[np.float64]

WEIGHT_LEVELS = (0.0, 0.25, 0.5, 1.0)
WEIGHT_PRIOR = (0.7, 0.1, 0.1, 0.1)
HALF_LIFE_OUTCOMES = 250.0
MAX_NARRATORS = 64  # retained, the most recent
_MAX_RATE = 1.0  # per standard deviation of the plain forecast
_UNITS = 1e6  # weights are recorded in millionths
_NULL_STEP = 0.1  # of the null reader's log stretch, by AdaGrad (Duchi, Hazan and Singer 2011)
_NULL_SQUARE = 1e-6
_MAX_NULL_STRETCH = 1.0  # of that log stretch
_STATE = ("losses", "gap", "bell", "square", "rung", "num", "plain", "told")


@dataclass(frozen=True, slots=True)
class TrackRecordRow:
    """One narrator's opinions at one horizon so far: mean CRPS without and with its tilt, and its weight now."""

    narrator: str
    horizon: int
    num: int
    plain_crps: float
    tilted_crps: float
    weight: float


class _TrackRecord:
    """One narrator's: cumulated losses by level of weight, the part of them that no rate avoids, and sums of scores.

    `bell` is the log stretch of the null reader at its instants, whatever the opinion; `rung` the null reader's loss.
    """

    def __init__(self, serial: int, num_horizons: int) -> None:
        self.serial = serial
        self.losses = np.zeros((num_horizons, len(WEIGHT_LEVELS)))
        self.gap = np.zeros(num_horizons)
        self.bell = np.zeros(num_horizons)
        self.square = np.full(num_horizons, _NULL_SQUARE)
        self.rung = np.zeros(num_horizons)
        self.num = np.zeros(num_horizons, np.int64)
        self.plain = np.zeros(num_horizons)
        self.told = np.zeros(num_horizons)
        self.weights: list[float] | None = None  # by horizon, as of the last outcome; None where they are due


class NarratorTrackRecords:
    """The narrators and the weight of each at each horizon. Pooled over all series."""

    def __init__(self, horizons: Sequence[int], levels: Sequence[float]) -> None:
        self._horizons, self._levels = tuple(horizons), np.array(levels)
        self._median = list(levels).index(0.5)
        self._low, self._high = list(levels).index(0.05), list(levels).index(0.95)
        self._cells = 2.0 * integration_weights(levels)
        self._levels_of_weight, self._prior = np.array(WEIGHT_LEVELS), np.array(WEIGHT_PRIOR)
        self._log_num_levels = math.log(len(WEIGHT_LEVELS))
        self._keep = round(0.5 ** (1.0 / HALF_LIFE_OUTCOMES), 12)
        self._records: OrderedDict[str, _TrackRecord] = OrderedDict()
        self._next_serial = 0

    @property
    def num(self) -> int:
        """Narrators so far."""
        return self._next_serial

    def serial(self, narrator: str) -> int:
        """The number that identifies a narrator in pending forecasts; a new narrator is added."""
        record = self._records.get(narrator)
        if record is None:
            record = self._records[narrator] = _TrackRecord(self._next_serial, len(self._horizons))
            self._next_serial += 1
            if len(self._records) > MAX_NARRATORS:
                self._records.popitem(last=False)
        self._records.move_to_end(narrator)
        return record.serial

    def weight(self, narrator: str) -> list[float]:
        """0–1 [H]: how much of its tilts counts."""
        record = self._records.get(narrator)
        if record is None:
            return [_in_units(float((self._prior * self._levels_of_weight).sum()))] * len(self._horizons)
        if record.weights is None:
            shares = self._shares(record)
            record.weights = [_in_units(float((share * self._levels_of_weight).sum())) for share in shares]
        return list(record.weights)

    def potential(self, narrator: str) -> float:
        """What of a narrator's weight was earned, 0–1, at its best horizon; an unknown narrator's is the prior's.

        The prior lends a weight that says nothing of the narrator. It is taken back with the outcomes at the first
        horizon, half of it by `HALF_LIFE_OUTCOMES`: who has earned no more by then is known not to matter.
        """
        record = self._records.get(narrator)
        num = 0 if record is None else int(record.num[0])
        lent = num / (num + HALF_LIFE_OUTCOMES) * float((self._prior * self._levels_of_weight).sum())
        return max(max(self.weight(narrator)) - lent, 0.0)

    def _rates(self, record: _TrackRecord) -> Array:
        return np.minimum(_MAX_RATE, self._log_num_levels / np.maximum(record.gap, 1e-9))

    def _shares(self, record: _TrackRecord) -> Array:
        """Of each level of weight [H, W]."""
        score = -self._rates(record)[:, None] * record.losses
        share = self._prior * exact.exp(score - score.max(axis=1, keepdims=True))
        return share / share.sum(axis=1, keepdims=True)

    def learn(self, serials: Array, tilts: Array, plain: Array, outcome: Array) -> Array:
        """Score tilts [n, 3, H] (shift, stretch, weight) of matured forecasts [n, H, Q] by outcomes [n, H]; what was
        released [n, H, Q].

        `serials` [n, H] identify the narrator; NaN where there was no opinion. Losses are in standard deviations of the
        plain forecast; those of one instant are summed and divided by the root of their number, as they are neither one
        event nor unrelated.
        """
        shift, stretch, weight = (np.where(np.isfinite(serials), tilts[:, k], 0.0) for k in range(3))
        stretch = np.where(np.isfinite(serials), stretch, 1.0)
        weighted = apply_tilt(plain, shift, stretch, weight, self._median)
        present = np.unique(serials[np.isfinite(serials)]).tolist()
        for record in self._records.values():
            if record.serial not in present:
                continue
            for j in range(len(self._horizons)):
                at = np.flatnonzero(serials[:, j] == record.serial)
                if len(at):
                    self._learn_one(
                        record,
                        j,
                        plain[at, j],
                        weighted[at, j],
                        (shift[at, j], stretch[at, j]),
                        outcome[at, j],
                    )
        return weighted

    def _learn_one(
        self,
        record: _TrackRecord,
        j: int,
        plain: Array,
        weighted: Array,
        tilt: tuple[Array, Array],
        outcome: Array,
    ) -> None:
        scale = np.maximum(plain[:, self._high] - plain[:, self._low], 1e-12) / BAND_SIGMAS
        tilted = [
            apply_tilt(plain, *tilt, np.full(len(plain), weight_level), self._median)
            for weight_level in WEIGHT_LEVELS[1:]
        ]
        without = self._null_reading(record, j, plain, outcome, scale)
        scores = crps(np.stack([plain, weighted, without, *tilted]), outcome, self._levels)  # [2 + W, n]
        numbers, released = scores[0], scores[1]
        losses = ((scores[2:] - numbers) / scale).sum(axis=1) / math.sqrt(len(plain))  # [W]
        record.rung[j] = record.rung[j] * self._keep + losses[0]
        losses[0] = (
            min(0.0, record.rung[j]) - record.losses[j, 0] * self._keep
        )  # where the null reader does not help, it has none
        share, rate = self._shares(record)[j], float(self._rates(record)[j])
        loss, smallest = float((share * losses).sum()), float(losses.min())
        mixed = smallest - float(exact.log((share * exact.exp(-rate * (losses - smallest))).sum())) / rate
        record.weights = None
        record.losses[j] = record.losses[j] * self._keep + losses
        record.gap[j] = record.gap[j] * self._keep + max(0.0, loss - mixed)
        record.num[j] += len(plain)
        record.plain[j] += float(numbers.sum())
        record.told[j] += float(released.sum())

    def _null_reading(
        self, record: _TrackRecord, j: int, plain: Array, outcome: Array, scale: Array
    ) -> Array:
        """What the null reader makes of forecasts [n, Q], [n, Q], before it learns from their outcomes."""
        away = plain - plain[:, self._median : self._median + 1]
        factor = float(exact.exp(record.bell[j : j + 1])[0])
        loud = plain + (factor - 1.0) * away
        slope = self._cells * ((outcome[:, None] < loud) - self._levels)
        gradient = float(((slope * away).sum(axis=1) / scale).sum()) * factor / math.sqrt(len(plain))
        record.square[j] += gradient * gradient
        bell = record.bell[j] - _NULL_STEP * gradient / math.sqrt(record.square[j])
        record.bell[j] = min(max(bell, -_MAX_NULL_STRETCH), _MAX_NULL_STRETCH)
        return loud

    def rows(self) -> list[TrackRecordRow]:
        """By narrator and horizon, those that have a score."""
        return [
            TrackRecordRow(
                name,
                horizon,
                int(record.num[j]),
                float(record.plain[j] / record.num[j]),
                float(record.told[j] / record.num[j]),
                self.weight(name)[j],
            )
            for name, record in self._records.items()
            for j, horizon in enumerate(self._horizons)
            if record.num[j]
        ]

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next_serial,
            "standings": [
                {"name": name, "serial": one.serial, **{key: getattr(one, key).copy() for key in _STATE}}
                for name, one in self._records.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved under other horizons."""
        self._next_serial = state["next"]
        self._records.clear()
        for saved in state["standings"]:
            record = self._records[saved["name"]] = _TrackRecord(saved["serial"], len(self._horizons))
            for key in _STATE:
                kept = getattr(record, key)
                found = np.array(saved.get(key, ()), kept.dtype)
                if found.shape != kept.shape:
                    raise IntegrityError("saved weights of narrators are of another form: start again")
                setattr(record, key, found)


def _in_units(weight: float) -> float:
    return round(weight * _UNITS) / _UNITS
