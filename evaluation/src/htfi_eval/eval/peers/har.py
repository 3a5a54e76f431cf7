"""HAR of log ranges, the peer that volatility forecasts are held to: `htfi eval volatility` reads its variances."""

import numpy as np
from numpy.typing import NDArray

from htfi_eval.eval.walk import RealisedOutcomes

Array = NDArray[np.float64]

WINDOW_BARS, REFIT_BARS, MIN_BARS = 1_000, 22, 250
_WEEK, _MONTH = 5, 22


def har_variance(
    measured: RealisedOutcomes, horizons: tuple[int, ...], window: int | None = WINDOW_BARS
) -> Array:
    """The sum of `variance` over the next h bars as forecast after each instant, [T, N, H]; NaN before 250 bars.

    log RV̄(t+1..t+h) = β₀ + β_d log RV_t + β_w mean₅ log RV + β_m mean₂₂ log RV (after Corsi 2009; means of logs did
    better here than logs of means), per series and horizon, by least squares over the last `window` bars or all,
    refitted every 22; exp(· + s²/2) undoes the log.
    """
    forecast = np.full((*measured.variance.shape, len(horizons)), np.nan)
    for n in range(measured.variance.shape[1]):
        when = np.flatnonzero(np.isfinite(measured.variance[:, n]))
        if len(when) > MIN_BARS:
            for j, h in enumerate(horizons):
                forecast[when, n, j] = _one(measured.variance[when, n], h, window or len(when))
    return forecast


def _one(variance: Array, horizon: int, window: int) -> Array:
    """The forecasts [t] of one series at one horizon."""
    num = len(variance)
    logs = np.log(variance)
    total = np.concatenate([[0.0], np.cumsum(variance)])
    design = np.stack([np.ones(num), logs, *(_trailing(logs, span) for span in (_WEEK, _MONTH))])
    target = np.full(num, np.nan)
    target[:-horizon] = np.log((total[horizon + 1 :] - total[1:-horizon]) / horizon)
    columns = np.concatenate([design, target[None]])  # [5, t]
    known = np.isfinite(target)
    products = np.where(known, columns[:, None] * columns[None], 0.0)  # [5, 5, t]
    sums = np.concatenate([np.zeros((5, 5, 1)), np.cumsum(products, axis=2)], axis=2)
    forecast = np.full(num, np.nan)
    for at in range(MIN_BARS, num, REFIT_BARS):
        last = at + 1 - horizon  # labels that are complete once bar `at` is in
        first = max(last - window, _MONTH)
        gram = sums[:, :, last] - sums[:, :, first]
        try:
            beta = _solve(gram[:4, :4], gram[:4, 4])
        except np.linalg.LinAlgError:
            continue
        left = float(gram[4, 4] - 2.0 * beta @ gram[:4, 4] + beta @ gram[:4, :4] @ beta)
        spread = max(left, 0.0) / max(last - first - 4, 1)
        span = slice(at, min(at + REFIT_BARS, num))
        level = (beta[:, None] * design[:, span]).sum(
            axis=0
        )  # a matrix product's bits depend on the span's length
        forecast[span] = horizon * np.exp(level + 0.5 * spread)
    return forecast


def _solve(gram: Array, right: Array) -> Array:
    """Least squares by the normal equations, with a ridge too small to matter where they can be solved at all."""
    return np.asarray(np.linalg.solve(gram + 1e-9 * gram[0, 0] * np.eye(len(gram)), right), np.float64)


def _trailing(values: Array, span: int) -> Array:
    """Means over the last `span` values, over those there are at first."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    after = np.arange(1, len(total))
    first = np.maximum(after - span, 0)
    return (total[after] - total[first]) / (after - first)
