"""Prices that are not adjusted for a split: found by the bar alone, so that they enter no volatility as a move.

A split moves the open by a whole ratio against the last close, overnight, while the bar itself is an ordinary one and
the market stands still. Ratios below two are left out: falls by a third after results look the same, and a return
beyond ten usual deviations is cut before it reaches a volatility in any case.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.events import Bar
from htfi.domain.time import format_ns

Array = NDArray[np.float64]

RATIOS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 15.0, 20.0, 25.0, 30.0, 50.0, 100.0)
MIN_BARS = 20
MAX_LISTED = 1_000
_TINY = 1e-300
_CANDIDATE = 0.6  # log move of the open below which nothing is looked at
_MIN_APART, _MAX_APART = 0.02, 0.06  # from a ratio in log, or two usual deviations between
_MIN_RANGE, _MAX_RANGE = 0.04, 0.15  # of the bar itself in log, or three usual deviations between
_MARKET_MOVE = 0.05  # median of the other series' moves at the instant; more is a crash, not a split
_MIN_OTHERS = 3
_LOG_RATIOS = exact.log(np.array(RATIOS))


@dataclass(frozen=True, slots=True)
class SplitFound:
    """A bar whose prices are `ratio` times smaller than those before it; below 1 for a reverse split."""

    symbol: str
    interval: str
    end_ns: int
    ratio: float

    def __str__(self) -> str:
        where = f"{self.symbol}/{self.interval} {format_ns(self.end_ns)[:10]}"
        kind, act = ("split", "divide") if self.ratio > 1.0 else ("reverse split", "multiply")
        times = max(self.ratio, 1.0 / self.ratio)
        return (
            f"{where}: prices are not adjusted for a {kind} of {times:g} to 1, whose jump counts as no move; "
            f"{act} the prices before that day by {times:g}"
        )


def find_splits(
    bars: Sequence[Bar], last_log_close: Array, usual_variance: Array, age: NDArray[np.int64]
) -> list[tuple[int, float]]:
    """The places of bars that open after a split, and its log ratio; `last_log_close`, `usual_variance` of a return
    and `age` are [n].

    Bars before the 20th of a series are not looked at.
    """
    opens = np.array([bar.open for bar in bars], np.float64)
    rough = np.log(np.maximum(opens, _TINY)) - last_log_close  # NaN where there is no close or no open
    candidates = np.flatnonzero(np.abs(rough) > _CANDIDATE)
    if not len(candidates):
        return []
    candidates = candidates[(age[candidates] >= MIN_BARS) & np.isfinite(rough[candidates])]
    fine = opens > _TINY
    closes = np.array([bar.close for bar in bars], np.float64)
    moves = exact.log(closes) - np.where(np.isfinite(last_log_close), last_log_close, exact.log(closes))
    jumps = exact.log(np.where(fine, opens, 1.0)) - last_log_close
    found: list[tuple[int, float]] = []
    places: list[int] = candidates.tolist()
    for place in places:
        usual = math.sqrt(usual_variance[place])
        ratio = _nearest_ratio(float(jumps[place]), usual)
        others = np.delete(np.abs(moves), candidates)
        is_crash = len(others) >= _MIN_OTHERS and float(np.median(others)) > _MARKET_MOVE
        if ratio and not is_crash and _is_ordinary(bars[place], usual):
            found.append((place, ratio))
    return found


def _nearest_ratio(jump: float, usual: float) -> float:
    """The log ratio of the split that a jump of the log open is as good as equal to; 0 for none."""
    apart = np.abs(_LOG_RATIOS - abs(jump))
    nearest = int(apart.argmin())
    if float(apart[nearest]) > min(max(2.0 * usual, _MIN_APART), _MAX_APART):
        return 0.0
    return float(_LOG_RATIOS[nearest]) * (1.0 if jump < 0.0 else -1.0)


def _is_ordinary(bar: Bar, usual: float) -> bool:
    """Whether the bar itself moved no more than usual bars do."""
    high, low = max(bar.high, bar.open, bar.close), min(bar.low, bar.open, bar.close)
    if not 0.0 < low <= high:
        return False
    logs = exact.log(np.array([low, high]))
    return float(logs[1] - logs[0]) <= min(max(3.0 * usual, _MIN_RANGE), _MAX_RANGE)


def split_of(bar: Bar, log_ratio: float) -> SplitFound:
    ratio = RATIOS[int(np.abs(_LOG_RATIOS - abs(log_ratio)).argmin())]
    return SplitFound(bar.symbol, bar.interval, bar.end_ns, ratio if log_ratio > 0.0 else 1.0 / ratio)
