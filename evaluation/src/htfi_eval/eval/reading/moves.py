"""Abnormal moves of each symbol around its sessions, in units of its usual day.

Abnormal: minus the median of all series in the same session, where there are many. Usual: the standard deviation of the
60 abnormal daily moves before the session. A window is NaN where a price is missing.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from htfi_eval.eval.price_grid import Prices

Array = NDArray[np.float64]

_USUAL_DAYS, _MIN_DAYS, _WEEK = 60, 40, 5
_MIN_SERIES = 20  # from which the median of a session is the market


class Window(StrEnum):
    """A stretch of time around a session, named as a table shows it."""

    DAY = "close to close"
    GAP = "opening gap"
    REST = "open to close"
    NEXT = "next session"
    WEEK = "the five sessions after"
    EARLIER = "twenty sessions before"  # a control: nothing of the item can be in it


@dataclass(frozen=True, slots=True)
class Moves:
    """By window an array [T, N] of abnormal moves in usual days; `raw_day` [T, N] log returns, `usual` [T, N]."""

    by_window: dict[Window, Array]
    usual: Array
    raw_day: Array


def measure_moves(prices: Prices) -> Moves:
    """All windows of all sessions of each series, by its own sessions."""
    opens, closes = np.log(prices.open), np.log(prices.close)
    shape = closes.shape
    day, gap, rest = (np.full(shape, np.nan) for _ in range(3))
    for n in range(shape[1]):
        own = np.flatnonzero(np.isfinite(closes[:, n]))
        day[own[1:], n] = np.diff(closes[own, n])
        gap[own[1:], n] = opens[own[1:], n] - closes[own[:-1], n]
        rest[own, n] = closes[own, n] - opens[own, n]
    raw_day = day.copy()
    day, gap, rest = (_abnormal(moves) for moves in (day, gap, rest))
    usual, after, week, earlier = (np.full(shape, np.nan) for _ in range(4))
    for n in range(shape[1]):
        own = np.flatnonzero(np.isfinite(day[:, n]))
        moves = day[own, n]
        total = np.concatenate([[0.0], np.cumsum(moves)])
        squares = np.concatenate([[0.0], np.cumsum(np.square(moves))])
        for place in range(_MIN_DAYS, len(own)):
            first = max(place - _USUAL_DAYS, 0)
            usual[own[place], n] = np.sqrt((squares[place] - squares[first]) / (place - first))
        after[own[:-1], n] = moves[1:]
        if len(own) > _WEEK:
            week[own[:-_WEEK], n] = total[_WEEK + 1 :] - total[1:-_WEEK]
        if len(own) > 20:
            earlier[own[20:], n] = moves[:-20]
    usual = np.where(usual > 0.0, usual, np.nan)
    found = {
        Window.DAY: day, Window.GAP: gap, Window.REST: rest, Window.NEXT: after,
        Window.WEEK: week / np.sqrt(_WEEK), Window.EARLIER: earlier,
    }  # fmt: skip
    return Moves({window: moves / usual for window, moves in found.items()}, usual, raw_day)


def _abnormal(moves: Array) -> Array:
    """Minus the session's median over the series, where there are enough of them."""
    num = np.isfinite(moves).sum(axis=1)
    market = np.zeros(len(moves))
    many = num >= _MIN_SERIES
    market[many] = np.nanmedian(moves[many], axis=1)
    return moves - market[:, None]
