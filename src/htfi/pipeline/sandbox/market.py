"""A small simulated market for trials: volatility that clusters, fat tails, moves shared by all, and crises.

It is no part of what models are trained on: the simulation of htfi-train is another.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DAILY, _ALPHA, _BETA, _LEVERAGE = 0.01, 0.05, 0.90, 0.05  # GJR-GARCH(1, 1)
_FREEDOM = 5.0
_SHARED = 0.6  # correlation of two series
_CALM_BARS = 60  # before the first crisis
_CRISIS_BARS, _CRISIS_EVERY, _CRISIS_SCALE = 45, 160, 2.5
_CRASH, _REBOUND = -0.09, 0.05


def simulate_market(rng: np.random.Generator, num_series: int, num_bars: int, *, is_crisis: bool) -> Array:
    """Moves [T, N, 4]: log open, high, low and close against the close before.

    In a crisis the variance is several times as high for some weeks, it begins with a crash of all series, the next
    bar takes back a part, and correlations are near one.
    """
    shared = _fat(rng, (num_bars, 1))
    own = _fat(rng, (num_bars, num_series))
    variance = np.full(num_series, _DAILY**2)
    moves = np.empty((num_bars, num_series, 4))
    for t in range(num_bars):
        since = (t - _CALM_BARS) % _CRISIS_EVERY if is_crisis and t >= _CALM_BARS else -1
        stressed = 0 <= since < _CRISIS_BARS
        weight = 0.95 if stressed else _SHARED
        z = np.sqrt(weight) * shared[t] + np.sqrt(1.0 - weight) * own[t]
        scale = 1.0 + (_CRISIS_SCALE - 1.0) * (1.0 - since / _CRISIS_BARS) if stressed else 1.0
        sigma = np.sqrt(variance) * scale
        close = sigma * z
        if since == 0:
            close += _CRASH * np.exp(0.2 * rng.normal(size=num_series))
        elif since == 1:
            close += _REBOUND
        steps = sigma[:, None] / np.sqrt(16.0) * rng.normal(size=(num_series, 16))
        path = np.cumsum(steps, axis=1)
        path += (close - path[:, -1])[:, None] * np.linspace(1.0 / 16.0, 1.0, 16)  # a bridge to the close
        opening = path[:, 0]
        moves[t] = np.stack(
            [
                opening,
                np.maximum(path.max(axis=1), opening),
                np.minimum(path.min(axis=1), opening),
                path[:, -1],
            ],
            axis=1,
        )
        bounded = np.clip(close, -0.12, 0.12)
        news = _ALPHA + _LEVERAGE * (bounded < 0.0)
        base = (1.0 - _ALPHA - _BETA - 0.5 * _LEVERAGE) * _DAILY**2
        variance = base + news * bounded**2 + _BETA * variance
    return moves


def _fat(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Student's t at unit variance."""
    return rng.standard_t(_FREEDOM, shape) * np.sqrt((_FREEDOM - 2.0) / _FREEDOM)
