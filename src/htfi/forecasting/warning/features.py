"""Features of coming stress at the close of a session; every figure is of that session or before."""

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]

_YEAR = 252


def returns(close: Array) -> Array:
    """Log returns [T] over the sessions that are known; NaN at the first and where there is no close."""
    return _apply_to_known(close, lambda values: np.append(np.nan, np.diff(np.log(values))))


def index_features(close: Array) -> dict[str, Array]:
    """Of the closes of an index [T]: volatilities, its drawdown from the high, and its return of a month."""
    return {
        "volatility 22": _apply_to_known(close, lambda c: np.log(_volatility(c, 22))),
        "volatility 5 / 66": _apply_to_known(close, lambda c: np.log(_volatility(c, 5) / _volatility(c, 66))),
        "below its high of a year": _apply_to_known(
            close, lambda c: np.log(c / _rolling(c, _YEAR, np.nanmax, 22))
        ),
        "return of 22": _apply_to_known(close, lambda c: np.log(c) - _lag(np.log(c), 22)),
    }


def implied_volatility_features(vix: Array, close: Array) -> dict[str, Array]:
    """Of an index of implied volatility in percent a year, and what it adds to the realised one of `close`."""
    realised = _apply_to_known(close, lambda c: np.log(_volatility(c, 22) * np.sqrt(_YEAR)))
    return {
        "VIX": np.log(vix),
        "VIX, change of 5": _apply_to_known(vix, lambda v: np.log(v) - _lag(np.log(v), 5)),
        "VIX / its mean of 66": _apply_to_known(vix, lambda v: np.log(v / _rolling(v, 66, np.nanmean, 22))),
        "VIX / volatility": np.log(vix / 100) - realised,
    }


def panel_features(closes: Array, stressed: Array, score: Array) -> dict[str, Array]:
    """Of many series [T, N]: how much they go together, how many rise, and how many have left their usual volatility.

    stressed and score [T, N] are the judgement of each series' regime: 1 where stressed or in shock, and fast over slow
    volatility; NaN where there is none. Source of the shift: Kritzman, Li, Page and Rigobon (2011).
    """
    moves = np.column_stack([returns(column) for column in closes.T])
    together = mean_correlation(moves, 66)
    usual, spread = _rolling(together, _YEAR, np.nanmean, 66), _rolling(together, _YEAR, np.nanstd, 66)
    recent = _rolling(together, 15, np.nanmean, 5)
    above = np.column_stack(
        [
            _apply_to_known(column, lambda c: (c > _rolling(c, 50, np.nanmean, 20)).astype(float))
            for column in closes.T
        ]
    )
    return {
        "correlation": together,
        "correlation, shift": (recent - usual) / np.where(spread > 1e-9, spread, np.nan),
        "share above the mean of 50": _mean_over_known(above),
        "share stressed": _mean_over_known(stressed),
        "fast / slow volatility": _mean_over_known(np.log(np.where(score > 0, score, np.nan))),
    }


def macro_features(ten_years: Array, three_months: Array, oil: Array) -> dict[str, Array]:
    """Of yields in percent and the price of oil, each as known at the session: the caller has lagged them."""
    return {
        "10 years − 3 months": ten_years - three_months,
        "10 years, change of 22": _apply_to_known(ten_years, lambda y: y - _lag(y, 22)),
        "oil, return of 22": _apply_to_known(
            np.where(oil > 0, oil, np.nan), lambda p: np.log(p) - _lag(np.log(p), 22)
        ),
    }


def mean_correlation(moves: Array, window: int) -> Array:
    """The mean correlation of pairs of series over the last `window` sessions, [T]; at least three series.

    A series counts where it is known in three quarters of the window.
    """
    found = np.full(len(moves), np.nan)
    for t in range(window, len(moves)):
        block = moves[t - window + 1 : t + 1]
        there = np.isfinite(block).sum(axis=0) >= 0.75 * window
        block = np.where(np.isfinite(block), block, 0.0)[:, there]
        deviation = block.std(axis=0)
        block = (block - block.mean(axis=0))[:, deviation > 1e-12] / deviation[deviation > 1e-12]
        num = block.shape[1]
        if num >= 3:
            of_sum = np.square(block.sum(axis=1)).mean()  # num + num(num − 1) × mean correlation
            found[t] = (of_sum - num) / (num * (num - 1))
    return found


def _volatility(close: Array, window: int) -> Array:
    """Root mean square of the last returns, per session; never zero, for its logarithm."""
    squares = np.square(np.append(np.nan, np.diff(np.log(close))))
    return np.sqrt(np.maximum(_rolling(squares, window, np.nanmean, max(window // 2, 2)), 1e-12))


def _rolling(values: Array, window: int, summary: Callable[..., Array], least: int) -> Array:
    """`summary` of the last `window` values with at least `least` known ones, else NaN."""
    windows = sliding_window_view(np.concatenate([np.full(window - 1, np.nan), values]), window)
    enough = np.isfinite(windows).sum(axis=1) >= least
    found = np.full(len(values), np.nan)
    if enough.any():
        found[enough] = summary(windows[enough], axis=1)
    return found


def _lag(values: Array, by: int) -> Array:
    return np.concatenate([np.full(min(by, len(values)), np.nan), values[:-by]])


def _apply_to_known(values: Array, of: Callable[[Array], Array]) -> Array:
    """Apply to the known values as if they followed one another, and return the results to their places."""
    known = np.isfinite(values)
    found = np.full(len(values), np.nan)
    if known.any():
        found[known] = of(values[known])
    return found


def _mean_over_known(values: Array) -> Array:
    """Over the series that are known, [T]."""
    known = np.isfinite(values)
    num = known.sum(axis=1)
    return np.where(num > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(num, 1), np.nan)
