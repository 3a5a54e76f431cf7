"""Choosing a token: argmax of logits over temperature plus the shared noise, among what is admitted.

Authors, path samplers and the measure of agreement call it; equal logits and keys give equal tokens anywhere.
"""

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.noise import Doubles, Keys, gumbel, rough_gumbel
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import InvalidInput

_MARGIN = 1e-9  # far above what two logarithms can differ by, far below what tells most tokens apart


def check_temperature(temperature: float) -> None:
    """Raises InvalidInput unless 0 or between 0.001 and 1000."""
    if not (temperature == 0.0 or 1e-3 <= temperature <= 1e3):
        raise InvalidInput(f"temperature {temperature}: take 0, or a number between 0.001 and 1000")


def choose(logits: Floats, ids: Ids, temperature: float, row_keys: Keys) -> Ids:
    """One token a row: logits [N, V], the admitted ids [C] rising, keys [N] → tokens [N]; −1 where a logit is NaN.

    At temperature 0 the keys change nothing. Ties go to the lowest id.
    """
    scores = logits[:, ids]  # [N, C]
    if temperature == 0.0:
        best = np.argmax(scores, axis=1)
        top: Doubles | Floats = scores[np.arange(len(scores)), best]
        return np.where(np.isfinite(top), ids[best], -1)
    scaled = scores.astype(np.float64)
    scaled /= temperature
    noisy = rough_gumbel(row_keys, ids)
    noisy += scaled
    best = np.argmax(noisy, axis=1)
    rows = np.arange(len(noisy))
    top = noisy[rows, best]
    close: NDArray[np.bool_] = noisy >= (top - _MARGIN * (1.0 + np.abs(top)))[:, None]
    if np.count_nonzero(close) > len(noisy):
        _settle(best, close, scaled, ids, row_keys)
    return np.where(np.isfinite(top), ids[best], -1)


def _settle(best: Ids, close: NDArray[np.bool_], scaled: Doubles, ids: Ids, row_keys: Keys) -> None:
    """Where the machine's logarithm cannot tell the first from the second, ask the exact one."""
    for row in np.flatnonzero(np.count_nonzero(close, axis=1) > 1):
        places = np.flatnonzero(close[row])
        exact = scaled[row, places] + gumbel(row_keys[row : row + 1], ids[places])[0]
        best[row] = places[np.argmax(exact)]
