"""Scores of 0–1 of bars and forecasts: 0 where all is well, 1 where it is as wrong as can be, NaN where unknown."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.governance.breakers.observations import PointObservation
from htfi.governance.breakers.wealth import NamedRows, Rows, ScoreBound

Array = NDArray[np.float64]

# Breakers that watch bars and forecasts of series, with the bounds of their scores.
BAR_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("bands_left", ScoreBound(slack=0.045)),
    ("frozen_feed", ScoreBound(slack=0.02, gain=2.0, prior=0.005, prior_weight=50.0)),
    ("price_unconfirmed", ScoreBound(slack=0.005)),
    ("clock", ScoreBound(slack=0.005)),
    ("market_crash", ScoreBound(slack=0.02)),
    ("experts_identical", ScoreBound(slack=0.02, gain=1.5, prior=0.01, prior_weight=20.0)),
)
# What scores of bars compare with, by series: the last forecast, the last bar, and what is usual.
BAR_MEMORY: dict[str, Any] = {
    "low": np.nan, "high": np.nan, "range": np.nan, "moved": 0.0, "usual": np.nan, "num": 0.0, "end_ns": np.int64(0),
    "lag_ns": np.nan,
}  # fmt: skip
# The breaker that watches one expert over the series of a point.
EXPERT_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("model_disagrees", ScoreBound(slack=0.1, gain=1.5, prior=0.05, prior_weight=20.0)),
)

FAR_SIGMAS = 6.0  # a return so far beyond the usual is a jump
CRASH_SIGMAS = 8.0  # and of many series at once a crash
_REVERTED_SHARE = 0.3  # a jump of which less is left after the next bar has come back
_MIN_BARS = 60.0  # before the usual size of returns is known
_SLOW_BARS = 250.0  # over which that is averaged
_MAX_TAUGHT = 4.0  # times the usual size: larger returns teach as much
_SIGMA_OF_SIZE = 1.2533141373155003  # a Gaussian's standard deviation over its mean size
_LAG_GAIN = 0.05
_MIN_LAG_NS = 30e9  # a later bar than this and half a bar is late
_MAX_LEAD_NS = -1e9
_SAME = 1e-6  # of the band: quantiles nearer than this are the same
_MIXED = (1.7320508075688772, 2.23606797749979)  # weights by which three quantiles make one number
_FAR_RATIO = 4.0  # a band so many times wider or narrower than the usual expert's, or so far away, is far


def bar_scores(memory: NamedRows, rows: Rows, point: PointObservation) -> Array:
    """Scores [n, B] of a point whose series have these rows, in the order of BAR_TESTS; the memory learns the point."""
    columns = memory.columns
    moved, last = point.log_return, point.range_last
    low, high, width = columns["low"][rows], columns["high"][rows], columns["range"][rows]
    is_known = np.isfinite(moved)
    scores = np.full((len(rows), len(BAR_TESTS)), np.nan)
    scores[:, 0] = np.where(is_known & np.isfinite(low), (moved < low) | (moved > high), np.nan)
    scores[:, 1] = np.where(is_known & np.isfinite(width), (moved == 0.0) & (last == width), np.nan)
    before, usual, num = columns["moved"][rows], columns["usual"][rows], columns["num"][rows]
    sigma = _SIGMA_OF_SIZE * usual
    is_warm = is_known & (num >= _MIN_BARS)
    size = np.abs(moved)
    has_reverted = (np.abs(before) > FAR_SIGMAS * sigma) & (
        np.abs(moved + before) < _REVERTED_SHARE * np.abs(before)
    )
    is_off = np.abs(point.quote_gap) > np.maximum(FAR_SIGMAS * sigma, 0.5 * size)  # False where unknown
    scores[:, 2] = np.where(is_warm, has_reverted | is_off, np.nan)
    scores[:, 3] = _clock_scores(columns, rows, point)
    scores[:, 4] = np.where(is_warm, size > CRASH_SIGMAS * sigma, np.nan)
    scores[:, 5] = _identical(point)
    columns["range"][rows], columns["moved"][rows] = last, np.where(is_known, moved, 0.0)
    taught = np.where(num >= _MIN_BARS, np.minimum(size, _MAX_TAUGHT * usual), size)
    gain = np.maximum(1.0 / (num + 1.0), 1.0 / _SLOW_BARS)
    start = np.where(num > 0.0, usual, 0.0)
    columns["usual"][rows] = np.where(is_known, start + gain * (taught - start), usual)
    columns["num"][rows] = num + is_known
    if point.horizons[0] == 1:
        columns["low"][rows], columns["high"][rows] = point.quantiles[:, 0, 0], point.quantiles[:, 0, -1]
    return scores


def _clock_scores(columns: dict[str, NDArray[Any]], rows: Rows, point: PointObservation) -> Array:
    """1 where a bar does not end after the one before, ends in the future, or comes later than usual."""
    end_ns, usual_ns = columns["end_ns"][rows], columns["lag_ns"][rows]
    lag_ns = (point.as_of_ns - point.bar_end_ns).astype(np.float64)
    length_ns = (point.bar_end_ns - point.bar_start_ns).astype(np.float64)
    is_first = end_ns == 0
    usual_ns = np.where(is_first, np.maximum(lag_ns, 0.0), usual_ns)
    allowed_ns = 0.5 * length_ns + _MIN_LAG_NS
    is_wrong = (
        (point.bar_end_ns <= end_ns) | (lag_ns < _MAX_LEAD_NS) | (np.abs(lag_ns - usual_ns) > allowed_ns)
    )
    columns["end_ns"][rows] = np.maximum(point.bar_end_ns, end_ns)
    step_ns = np.minimum(np.maximum(lag_ns - usual_ns, -allowed_ns), allowed_ns)
    columns["lag_ns"][rows] = usual_ns + np.where(is_wrong, 0.0, _LAG_GAIN * step_ns)
    return np.where(is_first, np.nan, is_wrong)


def _identical(point: PointObservation) -> Array:
    """1 where two experts' quantiles at the first horizon are the same, NaN where fewer than two have a forecast."""
    first = point.experts[:, :, 0]  # [n, K, Q]
    mixed = first[..., 0] + _MIXED[0] * first[..., first.shape[-1] // 2] + _MIXED[1] * first[..., -1]
    mixed.sort(axis=1)  # those without a forecast come last
    apart = mixed[:, 1:] - mixed[:, :-1]
    tolerance = _SAME * (point.quantiles[:, 0, -1] - point.quantiles[:, 0, 0])
    found = np.logical_or.reduce(apart <= tolerance[:, None], axis=1)
    return (
        np.where(np.isfinite(mixed[:, 1]), found, np.nan)
        if mixed.shape[1] > 1
        else np.full(len(mixed), np.nan)
    )


def expert_scores(point: PointObservation) -> Array:
    """Scores [n, K]: 1 where an expert's 90% band is far from the usual expert's, in width or in place."""
    low, high = point.levels.index(0.05), point.levels.index(0.95)
    first = point.experts[:, :, 0]
    width = first[..., high] - first[..., low]
    middle = 0.5 * (first[..., high] + first[..., low])
    ordered = np.sort(np.where(np.isfinite(width), width, np.inf), axis=1)
    num = np.add.reduce(np.isfinite(width), axis=1)  # an expert without a forecast changes nothing
    usual = ordered[np.arange(len(width)), np.maximum(num - 1, 0) // 2][:, None]
    ratio = width / usual
    centre = 0.5 * (point.quantiles[:, 0, high] + point.quantiles[:, 0, low])[:, None]
    is_far = (ratio > _FAR_RATIO) | (ratio < 1.0 / _FAR_RATIO) | (np.abs(middle - centre) > usual)
    return np.where(np.isfinite(width) & np.isfinite(usual), is_far, np.nan)
