"""What a chart of a series draws: its prices, the bands that were forecast for them, and the fan ahead."""

import math
from collections.abc import Sequence

import msgspec

from htfi.domain.decision import Decision
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.library.charts.fan import BAND_LEVELS, make_fan

_S_PER_DAY = NS_PER_DAY // NS_PER_S


class ChartBody(msgspec.Struct, frozen=True):
    """Columns of n released decisions, oldest first, and of m points ahead of the newest. Prices in units of the feed.

    Shapes: times_s, prices, low, high, indexes [n]; fan_times_s [m]; fan_levels [5]; fan [m][5]. `low` and `high` are
    the ends of the 90% band that the decision before had forecast for a price; None where there is none.
    """

    series: str
    indexes: list[int]
    times_s: list[int]
    prices: list[float]
    low: list[float | None]
    high: list[float | None]
    fan_times_s: list[int]
    fan_levels: list[float]
    fan: list[list[float]]


def chart_of(series: str, recorded: Sequence[tuple[int, Decision]]) -> ChartBody:
    """The chart of released decisions, oldest first, each with its index in the ledger. Raises: ValueError for none."""
    latest = {one.as_of_ns // NS_PER_S: (index, one) for index, one in recorded if not one.is_between_bars}
    if not latest:
        raise ValueError("there is no decision on a bar")
    times_s, placed = list(latest), list(latest.values())
    low: list[float | None] = [None]
    high: list[float | None] = [None]
    for _, before in placed[:-1]:
        nearest, levels = before.forecast.quantiles[0], before.forecast.levels
        ends = (nearest[levels.index(BAND_LEVELS[0])], nearest[levels.index(BAND_LEVELS[-1])])
        low.append(before.last_price * math.exp(ends[0]))
        high.append(before.last_price * math.exp(ends[1]))
    newest, prices = placed[-1][1], [one.last_price for _, one in placed]
    forecast = newest.forecast
    ends_ns = [one.as_of_ns for _, one in placed]
    fan = make_fan(series, ends_ns, prices, forecast.horizons, forecast.levels, forecast.quantiles)
    return ChartBody(
        series,
        [index for index, _ in placed],
        times_s,
        prices,
        low,
        high,
        [round(days * _S_PER_DAY) for days in fan.ahead_days],
        list(BAND_LEVELS),
        [list(levels) for levels in fan.ahead],
    )
