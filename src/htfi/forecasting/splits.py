"""Prices that are not adjusted for a split: found by the bar alone, so that they enter no volatility as a move.

A split moves the open by a whole ratio against the last close, overnight, while the bar itself is an ordinary one and
the market stands still. A fall by a third after results looks like a split of 3 for 2, but for its volume, so that one
needs a volume that grew as a split makes it. Other ratios below two are left out. Some vendors adjust volumes and not
prices, so a volume that did not grow says nothing against a split; one far beyond it does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.events import Bar
from htfi.domain.new_york import closing_day

Array = NDArray[np.float64]

RATIOS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 15.0, 20.0, 25.0, 30.0, 50.0, 100.0)
MIN_BARS = 20
MAX_LISTED = 1_000
_TINY = 1e-300
_CANDIDATE = 0.34  # log move of the open below which nothing is looked at
CANDIDATE_BY_FAR = 0.339  # the same of a logarithm whose last bits differ
_HALF_MORE = 1.5  # the ratio that needs volume
_HALF_MORE_APART = 0.03  # from it in log
_MIN_VOLUME, _MAX_VOLUME = 0.5, 2.0  # of the ratio times usual, for it
_EXTREME_VOLUME = 20.0  # of the ratio times usual: news, or another company under the symbol, and no split
VOLUME_GAIN, MAX_SPIKE = 0.1, 4.0  # of usual volume, which a bar moves by no more than as so many times it
_MIN_APART, _MAX_APART = 0.02, 0.06  # from a ratio in log, or two usual deviations between
_MIN_RANGE, _MAX_RANGE = 0.04, 0.15  # of the bar itself in log, or three usual deviations between
_MARKET_MOVE = 0.05  # median of the other series' moves at the instant; more is a crash, not a split
_MIN_OTHERS = 3
_LOG_RATIOS = exact.log(np.array(RATIOS))
_LOG_HALF_MORE = float(exact.log(np.array([_HALF_MORE]))[0])


@dataclass(frozen=True, slots=True)
class SplitFound:
    """A bar whose prices are `ratio` times smaller than those before it; below 1 for a reverse split."""

    symbol: str
    interval: str
    end_ns: int
    ratio: float

    def line(self, day: str, *, may_be_closes: bool = False) -> str:
        """What is wrong and what to do; `day` is the bar's own. The times of its series may be of closes that were
        taken for starts."""
        kind = "split" if self.ratio > 1.0 else "reverse split"
        times, in_new_york = max(self.ratio, 1.0 / self.ratio), closing_day(self.end_ns)
        whose = "" if day == in_new_york else ", the day of its end in New York"
        if may_be_closes:
            whose += f', or, if its times are closes, state bar_stamp = "end" and set {{"{day}" = {self.ratio:.12g}}}'
        return (
            f"{self.symbol}/{self.interval} {day}: prices are not adjusted for a {kind} of {times:g} to 1, whose jump "
            f'counts as no move; adjust them, or set market.splits = {{"{self.symbol}" = {{"{in_new_york}" = '
            f"{self.ratio:.12g}}}}}{whose}"
        )


def find_splits(
    bars: Sequence[Bar],
    last_log_close: Array,
    usual_variance: Array,
    usual_volume: Array,
    age: NDArray[np.int64],
) -> list[tuple[int, float]]:
    """The places of bars that open after a split, and its log ratio; `last_log_close`, `usual_variance` of a return,
    `usual_volume`, 0 where there is none, and `age` are [n].

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
        ratio = _nearest_ratio(float(jumps[place]), usual, _volume_beside(bars[place], usual_volume[place]))
        others = np.delete(np.abs(moves), candidates)
        is_crash = len(others) >= _MIN_OTHERS and float(np.median(others)) > _MARKET_MOVE
        if ratio and not is_crash and _is_ordinary(bars[place], usual):
            found.append((place, ratio))
    return found


def follow_volume(usual: Array, volume: Array) -> Array:
    """Usual volumes [n] after bars with these; a bar without volume changes none, the first with one sets it."""
    is_first = usual <= 0.0
    moved = usual + VOLUME_GAIN * (np.minimum(volume, MAX_SPIKE * usual) - usual)
    return np.where(volume > 0.0, np.where(is_first, volume, moved), usual)


def _volume_beside(bar: Bar, usual: float) -> float:
    """The bar's volume over the usual one; 0 where either is unknown."""
    return bar.volume / usual if usual > 0.0 and 0.0 < bar.volume < math.inf else 0.0


def _nearest_ratio(jump: float, usual: float, volume: float) -> float:
    """The log ratio of the split that a jump of the log open is as good as equal to; 0 for none."""
    limit = min(max(2.0 * usual, _MIN_APART), _MAX_APART)
    if abs(-jump - _LOG_HALF_MORE) <= min(limit, _HALF_MORE_APART):
        return _LOG_HALF_MORE if _MIN_VOLUME <= volume / _HALF_MORE <= _MAX_VOLUME else 0.0
    apart = np.abs(_LOG_RATIOS - abs(jump))
    nearest = int(apart.argmin())
    if float(apart[nearest]) > limit:
        return 0.0
    ratio = RATIOS[nearest] if jump < 0.0 else 1.0 / RATIOS[nearest]
    if volume > _EXTREME_VOLUME * ratio:
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
    known = (_HALF_MORE, *RATIOS)
    apart = [abs(float(one) - abs(log_ratio)) for one in (_LOG_HALF_MORE, *_LOG_RATIOS.tolist())]
    ratio = known[apart.index(min(apart))]
    return SplitFound(bar.symbol, bar.interval, bar.end_ns, ratio if log_ratio > 0.0 else 1.0 / ratio)
