"""From a model's own quantiles, bar by bar, to those of sums of bars at our levels. Pure; adapters call it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.shapes import student_quantiles

Array = NDArray[np.float64]

_FREEDOM = 5.0  # of the tails beyond what a model states


def summed(by_bar: Array, median: int, horizons: Sequence[int]) -> Array:
    """Quantiles [n, K, P] of the sum of the next h returns from those of each bar [n, H, P]; `median` is the place of
    the level .5.

    Returns hardly remember each other, so distances from the median add up in squares: exact for Gaussian bars.
    """
    middle = by_bar[:, :, median]  # [n, H]
    away = by_bar - middle[:, :, None]
    reach = np.sqrt(np.cumsum(away * away, axis=1))
    signs: Array = np.sign(np.arange(by_bar.shape[2], dtype=np.float64) - median)
    last = np.array(horizons) - 1
    return np.cumsum(middle, axis=1)[:, last, None] + signs * reach[:, last]


def at_levels(quantiles: Array, stated: Sequence[float], levels: Sequence[float]) -> Array:
    """Quantiles [..., Q] at `levels` from those [..., P] at the `stated` ones, which are rising and hold .5.

    Linear in the quantiles of a Student-t between them; beyond them its tails, in proportion to the outermost. What
    crosses is put in order. Raises: InvalidInput where the stated levels do not serve.
    """
    if len(stated) < 3 or list(stated) != sorted(set(stated)) or not 0.0 < stated[0] < 0.5 < stated[-1] < 1.0:
        raise InvalidInput(f"quantile levels {list(stated)}: three or more, rising, about .5, are needed")
    ranked = np.sort(quantiles, axis=-1)
    at, to = student_quantiles(stated, _FREEDOM), student_quantiles(levels, _FREEDOM)
    high = np.minimum(np.maximum(np.searchsorted(at, to), 1), len(at) - 1)
    share = np.minimum(np.maximum((to - at[high - 1]) / (at[high] - at[high - 1]), 0.0), 1.0)
    inner = (1.0 - share) * ranked[..., high - 1] + share * ranked[..., high]
    place = int(np.searchsorted(at, 0.0))
    middle = ranked[..., place] if at[place] == 0.0 else 0.5 * (ranked[..., place - 1] + ranked[..., place])
    below = to < at[0]
    ends = np.where(below, ranked[..., :1], ranked[..., -1:])
    edge = np.full(len(to), at[-1])
    edge[below] = at[0]
    beyond = middle[..., None] + (ends - middle[..., None]) * (to / edge)
    outside = below | (to > at[-1])
    return np.maximum.accumulate(np.where(outside, beyond, inner), axis=-1)
