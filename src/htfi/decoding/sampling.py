"""Choosing a token: argmax of logits over temperature plus the shared noise, among what is admitted.

Authors, path samplers and the measure of agreement call it; equal logits and keys give equal tokens anywhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.noise import Doubles, Keys, counters, gumbel_bounds, gumbel_of, hashes
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import InvalidInput

_GROUP = 8192  # scores worked on at once: more would leave the processor's nearest memory


@dataclass(frozen=True, slots=True)
class Admitted:
    """Token ids to choose among, rising, and their counters in the noise."""

    ids: Ids
    counters: Keys

    @classmethod
    def of(cls, ids: Ids) -> "Admitted":
        return cls(ids, counters(ids))


def check_temperature(temperature: float) -> None:
    """Raises InvalidInput unless 0 or between 0.001 and 1000."""
    if not (temperature == 0.0 or 1e-3 <= temperature <= 1e3):
        raise InvalidInput(f"temperature {temperature}: take 0, or a number between 0.001 and 1000")


def choose(logits: Floats, admitted: Admitted, temperature: float, row_keys: Keys) -> Ids:
    """One token a row: logits [N, V], C admitted ids, keys [N] → tokens [N]; −1 where a logit is not finite.

    At temperature 0 the keys change nothing. Ties go to the lowest id.
    """
    step = max(_GROUP // max(len(admitted.ids), 1), 1)
    if len(logits) > step:
        groups = [slice(begin, begin + step) for begin in range(0, len(logits), step)]
        return np.concatenate([choose(logits[g], admitted, temperature, row_keys[g]) for g in groups])
    scores = logits.take(admitted.ids, axis=1)  # [N, C]
    if temperature == 0.0:
        best = scores.argmax(axis=1)
        top = scores[np.arange(len(scores)), best]
        return np.where(np.isfinite(top), admitted.ids[best], -1)
    scaled = scores.astype(np.float64)
    if temperature != 1.0:
        scaled /= temperature
    bits = hashes(row_keys, admitted.counters)
    low, high = gumbel_bounds(bits)
    low += scaled
    high += scaled
    floor = low.max(
        axis=1
    )  # the best score is at least this; rounding keeps the order, so no slack is needed
    rows, places = (high >= floor[:, None]).nonzero()  # by row, then by token; none where the floor is NaN
    if len(rows) == len(floor) and (len(rows) == 1 or np.isfinite(floor).all()):
        return admitted.ids[places]
    exact = scaled[rows, places] + gumbel_of(bits[rows, places])
    return _settle(rows, exact, admitted.ids[places], np.isfinite(floor))


def _settle(rows: Ids, scores: Doubles, tokens: Ids, finite: NDArray[np.bool_]) -> Ids:
    """For each row the token of its greatest score, the first of equals; −1 where it is not finite."""
    best = np.full(len(finite), -1, np.int64)
    for row in finite.nonzero()[0]:
        here = slice(*rows.searchsorted([row, row + 1]))
        best[row] = tokens[here][scores[here].argmax()]
    return best
