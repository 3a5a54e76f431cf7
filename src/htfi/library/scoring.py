"""`htfi.scoring`: how good forecasts were. The scores of every run and evaluation, for any arrays.

They agree with scoringrules and properscoring where these have the same score; a NaN outcome has a NaN score.

Examples:
    >>> import htfi
    >>> htfi.scoring.crps_of_samples([[1.0, 2.0, 4.0]], [2.0]).round(3).tolist()
    [0.333]
    >>> htfi.scoring.interval_score([-1.0], [1.0], [1.5], coverage=0.9).round(6).tolist()
    [12.0]
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting import scores

Array = NDArray[np.float64]


def pinball(quantiles: ArrayLike, outcome: ArrayLike, levels: ArrayLike) -> Array:
    """Pinball loss ρ_τ(y − q) [..., Q] of quantiles [..., Q] at `levels` [Q], 0–1, and outcomes [...].

    quantile_score of scoringrules. Raises: InvalidInput.
    """
    return scores.pinball(*_checked(quantiles, outcome, levels))


def crps(quantiles: ArrayLike, outcome: ArrayLike, levels: ArrayLike) -> Array:
    """CRPS [...] of quantiles [..., Q]: twice the pinball loss, each level weighted by the part of (0, 1) nearest it.

    As `htfi.forecast` scores itself. At the middles of equal parts of (0, 1) the weights are equal, and it is
    crps_quantile of scoringrules. Raises: InvalidInput.
    """
    return scores.crps(*_checked(quantiles, outcome, levels))


def crps_of_samples(samples: ArrayLike, outcome: ArrayLike) -> Array:
    """CRPS [...] of the empirical distribution of equally likely samples [..., S], in any order.

    E|X − y| − ½E|X − X′|, exactly: crps_ensemble of scoringrules and of properscoring. Raises: InvalidInput.
    """
    drawn = _numbers(samples, "samples")
    if not drawn.ndim or not drawn.shape[-1]:
        raise InvalidInput(
            f"samples of shape {drawn.shape}: the last axis holds one or more for each outcome"
        )
    # The sorted samples are its quantiles, each over an equal part of (0, 1), on which the loss is linear.
    middles: Array = (np.arange(drawn.shape[-1], dtype=np.float64) + 0.5) / drawn.shape[-1]
    return scores.crps(*_checked(np.sort(drawn, axis=-1), outcome, middles))


def interval_score(
    low: ArrayLike, high: ArrayLike, outcome: ArrayLike, *, coverage: float = 0.9
) -> NDArray[np.float64]:
    """Interval (Winkler) score [...] of the central band [low, high] that holds an outcome with chance `coverage`.

    Its width, and 2/(1 − coverage) times how far the outcome lies outside: interval_score of scoringrules.
    Raises: InvalidInput.
    """
    if not 0.0 < coverage < 1.0:
        raise InvalidInput(f"coverage={coverage}: give a share between 0 and 1, such as 0.9")
    tail = (1.0 - coverage) / 2.0
    ends = np.stack(np.broadcast_arrays(_numbers(low, "low"), _numbers(high, "high")), axis=-1)
    # The ends are quantiles at tail and 1 − tail: their pinball losses add up to the score.
    losses = scores.pinball(*_checked(ends, outcome, [tail, 1.0 - tail]))
    return losses.sum(axis=-1) / tail


def _checked(quantiles: ArrayLike, outcome: ArrayLike, levels: ArrayLike) -> tuple[Array, Array, Array]:
    given, came, at = (
        _numbers(quantiles, "quantiles"),
        _numbers(outcome, "outcome"),
        _numbers(levels, "levels"),
    )
    if at.ndim != 1 or not len(at) or not (np.diff(at) > 0.0).all() or not (0.0 < at[0] <= at[-1] < 1.0):
        raise InvalidInput("levels: give one or more, rising, between 0 and 1")
    if not given.ndim or given.shape[-1] != len(at):
        raise InvalidInput(f"{given.shape} quantiles for {len(at)} levels: the last axis holds one for each")
    try:
        shape = np.broadcast_shapes(given.shape[:-1], came.shape)
    except ValueError as error:
        raise InvalidInput(
            f"{given.shape[:-1]} forecasts and {came.shape} outcomes: give one outcome for each forecast"
        ) from error
    return np.broadcast_to(given, (*shape, len(at))), np.broadcast_to(came, shape), at


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: give numbers, as an array or lists of equal lengths") from error
