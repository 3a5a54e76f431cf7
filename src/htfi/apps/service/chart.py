"""What a chart of a series draws: its prices, the bands that were forecast for them, and the fan ahead."""

import math
from collections.abc import Sequence

from htfi.client.bodies import ChartBody
from htfi.domain.decision import Decision
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.library.charts.fan import BAND_LEVELS, make_fan

_S_PER_DAY = NS_PER_DAY // NS_PER_S


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
