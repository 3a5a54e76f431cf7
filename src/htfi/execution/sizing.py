"""How much to hold: predictive quantiles into target weights, within bounds on each position and on the book. Pure.

A distribution is given by its quantiles; between them the quantile function is linear, beyond the outermost it goes on
with the slope of the last step, so that expected shortfall looks past the 1% quantile. Weights are shares of the
capital, negative where short.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.execution.config import TradingConfig

Array = NDArray[np.float64]

_POINTS = (np.arange(200) + 0.5) / 200  # probabilities at which a distribution is represented
_MAX_KELLY = 100.0
_MIN_TAIL = 5  # joint outcomes
_STEPS = 40  # of the bisection for the growth-optimal weight: to a millionth of a millionth


@dataclass(frozen=True, slots=True)
class SizingInput:
    """One instrument as sizing sees it: returns [S] of equally likely outcomes over the horizon, simple not log.

    `held` is the weight that the book has now; `direction`, from −1 to 1, is a strategy's, None where the forecast
    decides.
    """

    symbol: str
    returns: Array
    horizon_years: float
    held: float = 0.0
    direction: float | None = None

    @property
    def sigma(self) -> float:
        """By the year."""
        return float(self.returns.std()) / math.sqrt(self.horizon_years)


def outcomes_of(levels: Sequence[float], log_quantiles: Sequence[float] | Array) -> Array:
    """Simple returns [200] that represent a forecast by its quantiles of the log return [Q].

    Raises: InvalidInput where the quantiles are no distribution.
    """
    at, values = np.asarray(levels, np.float64), np.asarray(log_quantiles, np.float64)
    if (
        at.shape != values.shape
        or len(at) < 3
        or not np.isfinite(values).all()
        or (np.diff(values) < 0).any()
    ):
        raise InvalidInput("a forecast needs three quantiles or more, finite and in rising order")
    points = np.interp(_POINTS, at, values)
    for beyond, edge, inner in ((at[0] > _POINTS, 0, 1), (at[-1] < _POINTS, -1, -2)):
        slope = (values[edge] - values[inner]) / (at[edge] - at[inner])
        points[beyond] = values[edge] + slope * (_POINTS[beyond] - at[edge])
    return np.expm1(points)


def expected_shortfall(returns: Array, level: float) -> float:
    """Mean loss in the worst (1 − level) of outcomes [S], as a share of what is held; a loss is positive."""
    losses = np.sort(-returns)
    share = np.clip(np.arange(1, len(losses) + 1) - level * len(losses), 0.0, 1.0)
    return float(share @ losses / share.sum())


def kelly_weight(returns: Array, cost: float = 0.0) -> float:
    """The weight w that makes E log(1 + w·r) largest, after a cost of |w|·cost; 0 where none pays.

    Source: Kelly (1956); the condition E[r / (1 + w·r)] = ± cost is solved by bisection.
    """
    mean = float(returns.mean())
    if abs(mean) <= cost or not np.isfinite(mean):
        return 0.0
    sign = 1.0 if mean > 0 else -1.0
    signed = sign * returns
    worst = float(-signed.min())
    high = _MAX_KELLY if worst <= 0 else min(_MAX_KELLY, 0.999 / worst)
    low = 0.0
    if float((signed / (1 + high * signed)).mean()) > cost:
        return sign * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float((signed / (1 + middle * signed)).mean()) > cost:
            low = middle
        else:
            high = middle
    return sign * low


def joint_outcomes(inputs: Sequence[SizingInput], scores: NDArray[np.floating], level: float) -> Array | None:
    """Simple returns [S, n] of n instruments together: their forecasts, joined as their past surprises were.

    `scores` [T, n] are those surprises, NaN where one had none; instants at which all had one count. Of each instrument
    the order of its surprises is kept, and their values are its forecast's. None where fewer than `_MIN_TAIL` such
    instants lie beyond the level: too few to know the tail by.
    """
    seen = np.asarray(scores)[np.isfinite(scores).all(axis=1)]
    num = len(seen)
    if num * (1.0 - level) < _MIN_TAIL:
        return None
    ranks = np.argsort(np.argsort(seen, axis=0, kind="stable"), axis=0)  # [S, n]
    at = (ranks + 0.5) / num
    columns = [np.interp(at[:, place], _POINTS, np.sort(one.returns)) for place, one in enumerate(inputs)]
    return np.column_stack(columns)


def target_weights(
    inputs: Sequence[SizingInput],
    config: TradingConfig,
    joint: Callable[[], Array | None] = lambda: None,
) -> Array:
    """Target weights [n] of the book.

    Where the shortfalls of the positions add up to more than the book may have, `joint` is asked for simple returns
    [S, n] over the horizon, by which the shortfall of the book is measured; without them the sum counts, which is
    never less. A position is moved only as far as trading pays: no further than the edge of a band of the cost around
    what would be ideal without costs.
    """
    cost = config.cost_bps / 1e4
    wanted = np.array([_wanted(one, config, cost) for one in inputs])
    if not len(wanted):
        return wanted
    if not config.allow_short:
        wanted = np.maximum(wanted, 0.0)
    wanted = np.clip(wanted, -config.max_weight, config.max_weight)
    gross = float(np.abs(wanted).sum())
    if gross > config.max_gross:
        wanted *= config.max_gross / gross
    shortfall = book_shortfall(wanted, inputs, config.shortfall_level)
    if shortfall > config.max_shortfall and (scenarios := joint()) is not None:
        shortfall = book_shortfall(wanted, inputs, config.shortfall_level, scenarios)
    if shortfall > config.max_shortfall:
        wanted *= config.max_shortfall / shortfall
    return wanted


def book_shortfall(
    weights: Array, inputs: Sequence[SizingInput], level: float, scenarios: Array | None = None
) -> float:
    """Expected shortfall of the book as a share of the capital; without joint scenarios the sum of the positions'."""
    if scenarios is not None:
        if scenarios.ndim != 2 or scenarios.shape[1] != len(weights):
            raise InvalidInput(f"a book of {len(weights)} positions needs scenarios of as many series")
        return max(0.0, expected_shortfall((scenarios * weights).sum(axis=1), level))
    return sum(
        max(0.0, expected_shortfall(weight * one.returns, level))
        for weight, one in zip(weights.tolist(), inputs, strict=True)
    )


def _wanted(one: SizingInput, config: TradingConfig, cost: float) -> float:
    """The weight of one instrument by itself."""
    if one.direction is not None or config.sizing == "volatility":
        direction = float(np.sign(one.returns.mean())) if one.direction is None else one.direction
        sigma = one.sigma
        return direction * config.target_volatility / sigma if sigma > 0.0 and math.isfinite(sigma) else 0.0
    ideal = config.kelly_fraction * kelly_weight(one.returns)
    # What a trade costs widens to a band of weights that are not worth leaving (Davis and Norman, 1990).
    toward_less = config.kelly_fraction * kelly_weight(one.returns - cost)
    toward_more = config.kelly_fraction * kelly_weight(one.returns + cost)
    low, high = min(ideal, toward_less), max(ideal, toward_more)
    return min(max(one.held, low), high)
