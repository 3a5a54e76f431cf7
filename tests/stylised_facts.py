"""Stylised facts of returns (Cont, 2001) as pure functions. Tests hold the simulated market to them, eval reports them.

Shapes: T bars, N series; returns are log returns per bar, one column per series; each fact is an array [N].
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htfi.domain.errors import InvalidInput, ShapeMismatch

Floats = NDArray[np.float64]

MIN_BARS = 100
TAIL_SHARE = 0.05  # of the largest absolute returns, for the Hill estimator
LEVERAGE_LAGS = range(1, 11)


@dataclass(frozen=True, slots=True)
class StylisedFacts:
    """Each [N]. Leverage uses |r| where the literature often has r^2, as r^2 of such tails has no finite variance;
    negative means that falls are followed by more volatility. Kurtosis is excess: 0 is Gaussian."""

    deviation: Floats
    skewness: Floats
    kurtosis: Floats
    kurtosis_of_5: Floats
    kurtosis_of_20: Floats
    hill_index: Floats
    return_acf_1: Floats
    return_acf_2_to_10: Floats
    abs_acf_1: Floats
    abs_acf_5: Floats
    abs_acf_20: Floats
    abs_acf_50: Floats
    leverage: Floats

    def median(self) -> dict[str, float]:
        return {field.name: float(np.median(getattr(self, field.name))) for field in fields(self)}

    def between(self, low: float, high: float) -> dict[str, tuple[float, float]]:
        """Two quantiles (0–1) of each fact over the series."""
        return {
            field.name: (
                float(np.quantile(getattr(self, field.name), low)),
                float(np.quantile(getattr(self, field.name), high)),
            )
            for field in fields(self)
        }


@dataclass(frozen=True, slots=True)
class Comovement:
    """Mean pairwise correlation: over all bars, and over the fifth of bars before which volatility was lowest and
    highest. The fifths are chosen by earlier bars: choosing by the bar's own size would raise correlation by itself."""

    overall: float
    in_calm: float
    in_stress: float


def stylised_facts(returns: ArrayLike) -> StylisedFacts:
    """Facts of each column of returns [T, N] (or of one series [T]).

    Raises ShapeMismatch, and InvalidInput where there are fewer than 100 bars, a gap (nan), or no movement.
    """
    r = _columns(returns)
    size = np.abs(r)
    deviation = r.std(axis=0)
    scores = (r - r.mean(axis=0)) / deviation
    return StylisedFacts(
        deviation=deviation,
        skewness=np.mean(scores**3, axis=0),
        kurtosis=_excess_kurtosis(r),
        kurtosis_of_5=_excess_kurtosis(_summed(r, 5)),
        kurtosis_of_20=_excess_kurtosis(_summed(r, 20)),
        hill_index=hill_index(size, TAIL_SHARE),
        return_acf_1=correlation(r[1:], r[:-1]),
        return_acf_2_to_10=np.mean([correlation(r[k:], r[:-k]) for k in range(2, 11)], axis=0),
        abs_acf_1=correlation(size[1:], size[:-1]),
        abs_acf_5=correlation(size[5:], size[:-5]),
        abs_acf_20=correlation(size[20:], size[:-20]),
        abs_acf_50=correlation(size[50:], size[:-50]),
        leverage=np.mean([correlation(r[:-k], size[k:]) for k in LEVERAGE_LAGS], axis=0),
    )


def comovement(returns: ArrayLike, window: int = 20) -> Comovement:
    """Cross-correlation of returns [T, N], N >= 2, and how it differs between calm and stress.

    Stress is high volatility of the average absolute return over the `window` bars before.
    """
    r = _columns(returns)
    if r.shape[1] < 2:
        raise ShapeMismatch(f"co-movement needs two series or more; there is {r.shape[1]}")
    size = np.mean(np.abs(r) / r.std(axis=0), axis=1)
    upto = np.concatenate([[0.0], np.cumsum(size)])
    earlier = upto[window : len(size)] - upto[: len(size) - window]  # the sum over t - window .. t - 1
    later = r[window:]
    order = np.argsort(earlier, kind="stable")
    fifth = len(order) // 5
    return Comovement(
        _mean_pairwise(r), _mean_pairwise(later[order[:fifth]]), _mean_pairwise(later[order[-fifth:]])
    )


def volume_volatility(returns: ArrayLike, volumes: ArrayLike, window: int = 60) -> Floats:
    """Correlation [N] of |r| with log volume less its mean over the `window` bars before, which takes the trend out."""
    r, volume = _columns(returns), np.asarray(volumes, dtype=np.float64).reshape(len(np.asarray(returns)), -1)
    if volume.shape != r.shape:
        raise ShapeMismatch(f"volumes have shape {volume.shape}; returns have {r.shape}")
    level = np.log(np.maximum(volume, 1e-12))
    upto = np.concatenate([np.zeros((1, r.shape[1])), np.cumsum(level, axis=0)])
    usual = (upto[window : len(r)] - upto[: len(r) - window]) / window
    return correlation(np.abs(r[window:]), level[window:] - usual)


def hill_index(size: Floats, share: float) -> Floats:
    """Tail index [N] of positive values [T, N] from the largest `share` of them (Hill, 1975). Lower is fatter."""
    num_tail = max(int(share * len(size)), 5)
    ordered = np.sort(size, axis=0)[-num_tail - 1 :]
    return 1.0 / np.mean(np.log(ordered[1:] / np.maximum(ordered[0], 1e-300)), axis=0)


def correlation(a: Floats, b: Floats) -> Floats:
    """Pearson correlation of each column of a with the same column of b, both [T, N]."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    return np.sum(a * b, axis=0) / np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0))


def _columns(returns: ArrayLike) -> Floats:
    r = np.asarray(returns, dtype=np.float64)
    r = r[:, None] if r.ndim == 1 else r
    if r.ndim != 2 or r.shape[1] == 0:
        raise ShapeMismatch(f"returns have shape {r.shape}; [T] or [T, N] is needed")
    if len(r) < MIN_BARS:
        raise InvalidInput(f"{len(r)} bars are too few for stylised facts; at least {MIN_BARS} are needed")
    if not np.isfinite(r).all():
        raise InvalidInput("returns have gaps or infinities; drop those bars first")
    if (r.std(axis=0) == 0.0).any():
        raise InvalidInput("a series of returns does not move; it has no stylised facts")
    return r


def _summed(r: Floats, num_bars: int) -> Floats:
    whole = len(r) // num_bars
    return r[: whole * num_bars].reshape(whole, num_bars, -1).sum(axis=1)


def _excess_kurtosis(r: Floats) -> Floats:
    centred = r - r.mean(axis=0)
    return np.mean(centred**4, axis=0) / np.square(np.mean(centred**2, axis=0)) - 3.0


def _mean_pairwise(r: Floats) -> float:
    table, count = np.corrcoef(r, rowvar=False), r.shape[1]
    return float((np.sum(table) - count) / (count * (count - 1)))
