"""Detects look-ahead: whether a forecast used what was not known yet. Run on forecasters and a planted cheat.

The future is changed and all is run again: a forecast made before the change must not differ by a bit.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]
Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]

_CHANGE_SIZE = 0.1  # of the change, in log price: large enough to move anything that looks


def find_leaks(
    run: Run, prices: Mapping[str, Array], cuts: Sequence[int], rng: np.random.Generator
) -> dict[str, int]:
    """Which forecasters saw the future, and the first instant at which one did.

    `run` takes prices {field: [T, N]} and gives {forecaster: [T, …]}, its forecast after instant t. It is run once as
    is, and once for each of `cuts` with all prices after that instant changed; up to it all must be equal bit for bit
    (NaN to NaN). Raises: InvalidInput for a cut outside the data, or after which nothing is left to change.
    """
    num = len(next(iter(prices.values())))
    if not cuts or not all(0 <= cut < num - 1 for cut in cuts):
        raise InvalidInput(f"cuts {list(cuts)}: give one or more, from 0 to {num - 2}")
    honest = run(prices)
    found: dict[str, int] = {}
    for cut in cuts:
        other = run(disturb_after(prices, cut, rng))
        for name, values in honest.items():
            differs = _first_differences(values[: cut + 1], other[name][: cut + 1])
            if len(differs):
                found[name] = min(found.get(name, num), int(differs[0]))
    return found


def disturb_after(prices: Mapping[str, Array], cut: int, rng: np.random.Generator) -> dict[str, Array]:
    """The same prices up to and with instant `cut`; after it every bar is moved, its fields by one factor."""
    first = next(iter(prices.values()))
    factor = np.exp(_CHANGE_SIZE * rng.standard_normal(first[cut + 1 :].shape))
    changed: dict[str, Array] = {}
    for field, values in prices.items():
        changed[field] = values.copy()
        changed[field][cut + 1 :] *= factor
    return changed


def _first_differences(one: Array, other: Array) -> NDArray[np.intp]:
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.flatnonzero(~same.reshape(len(same), -1).all(axis=1))
