"""Charts over time: fans and lines, with spans, marks and the values under the pointer."""

import json
import math
from collections.abc import Sequence
from html import escape

from htfi.library.charts.frame import (
    MAX_DOTTED_POINTS,
    MAX_POINTS,
    AxisScale,
    AxisTick,
    PlotFrame,
    area,
    colour_of,
    date_ticks,
    dense,
    dot,
    finite,
    known,
    number,
    path,
    places,
    spread,
    ticks,
    values_at,
    when,
)
from htfi.library.charts.specs import FanChart, TimeLines

_LABEL_PERCENT = 9.0  # of the width: space for the beginning of any label


def fan_plot(chart: FanChart) -> str:
    kept = _kept(len(chart.times))
    times = [chart.times[k] for k in kept]
    bands = sorted(chart.bands, key=lambda band: -band.share)
    values = finite(chart.actual) + [
        value for band in bands for value in finite(band.low) + finite(band.high)
    ]
    if not values or not times:
        return ""
    x, at, x_ticks = _time_axis(times)
    low, high = spread(values)
    y = AxisScale(low, high, up=True)
    plot = PlotFrame(x, y, x_ticks, ticks(low, high, chart.unit), y_label=_unit_label(chart.unit))
    plot.readout = {"x": [round(x(one)) for one in at], "told": times, "curves": []}
    for band in bands:
        lows, highs = values_at(band.low, kept), values_at(band.high, kept)
        opacity = 0.34 - 0.22 * band.share
        plot.shapes.append(
            f'<path class="band" style="fill-opacity:{opacity:.2f}" d="{area(x, y, at, lows, highs)}"/>'
        )
        plot.readout["curves"].append(
            [f"{band.share:.0%}", [_between(a, b, chart.unit) for a, b in zip(lows, highs, strict=False)]]
        )
    actual = values_at(chart.actual, kept)
    plot.shapes.append(f'<path class="actual" d="{path(x, y, at, actual)}"/>')
    plot.readout["curves"].append(["actual", [number(value, chart.unit) for value in actual]])
    outer = bands[0] if bands else None
    if outer is not None:
        lows, highs = values_at(outer.low, kept), values_at(outer.high, kept)
        for place, low_at, high_at, value in zip(at, lows, highs, actual, strict=False):
            if value is None or low_at is None or high_at is None or low_at <= value <= high_at:
                continue
            if math.isfinite(value):  # also where a bound is NaN: no comparison holds
                plot.shapes.append(dot(x(place), y(value), 5.0, "outside", ""))
    return plot.html(chart.title) + _readout(plot)


def lines_plot(chart: TimeLines) -> str:
    if not chart.times or not finite(value for curve in chart.curves for value in curve.values):
        return ""
    full, is_date = places(chart.times)
    x, _, x_ticks = _time_axis(chart.times)
    kept = _kept(len(chart.times))
    at, times = [full[k] for k in kept], [chart.times[k] for k in kept]
    if chart.stacked:
        low, high = 0.0, max(1.0, *(sum(finite(column)) for column in _columns(chart)))
    else:
        level = [] if chart.level is None else [chart.level]
        low, high = spread([*level, *(value for curve in chart.curves for value in curve.values)], pad=0.06)
    y = AxisScale(low, high, up=True)
    unit = chart.unit or ("%" if chart.stacked else "")
    plot = PlotFrame(x, y, x_ticks, ticks(low, high, unit), y_label=_unit_label(unit))
    if is_date and not chart.stacked:
        _shade(plot, chart)
    plot.readout = {"x": [round(x(one)) for one in at], "told": times, "curves": []}
    base = [0.0] * len(at)
    for place, curve in enumerate(chart.curves):
        values = values_at(curve.values, kept)
        colour = colour_of(place, curve)
        if chart.stacked:
            top = [low_at + (known(value) or 0.0) for low_at, value in zip(base, values, strict=False)]
            plot.shapes.append(f'<path class="share {colour}" d="{area(x, y, at, base, top)}"/>')
            base = top
        elif len(full) > MAX_POINTS:
            plot.shapes.append(f'<path class="{colour}" d="{dense(x, y, full, curve.values)}"/>')
        else:
            plot.shapes.append(f'<path class="{colour}" d="{path(x, y, at, values)}"/>')
            plot.shapes += [dot(x(place), y(value), 5.5, colour, "") for place, value in _alone(at, values)]
        plot.readout["curves"].append([curve.name, [number(value, unit) for value in values]])
    if is_date and chart.stacked:
        _shade(plot, chart)
    if chart.level is not None and not chart.stacked:
        plot.shapes.append(f'<path class="level" d="M0 {y(chart.level):.1f}H1000"/>')
    if is_date:
        for mark in chart.marks:
            day = when(mark)
            if day is not None and x.low <= day <= x.high:
                plot.shapes.append(
                    f'<path class="mark" d="M{x(day):.1f} 1000v-45"><title>{escape(mark)}</title></path>'
                )
    return plot.html(chart.title) + _readout(plot)


def _shade(plot: PlotFrame, chart: TimeLines) -> None:
    """Spans behind curves, outlined over shares; a label may extend to the next span."""
    over = " over" if chart.stacked else ""
    drawn: list[tuple[float, float, str]] = []
    for span in chart.spans:
        first, last = when(span.first), when(span.last)
        if first is None or last is None or last < plot.x.low or first > plot.x.high:
            continue
        drawn.append((max(first, plot.x.low), min(last, plot.x.high), span.label))
    drawn.sort()
    last_label = ""
    for place, (first, last, label) in enumerate(drawn):
        width = max(plot.x(last) - plot.x(first), 1.5)
        plot.shapes.append(
            f'<rect class="span{over}" x="{plot.x(first):.1f}" y="0" width="{width:.1f}" height="1000">'
            f"<title>{escape(label)}</title></rect>"
        )
        until = drawn[place + 1][0] if place + 1 < len(drawn) else plot.x.high
        space = plot.x.percent(until) - plot.x.percent(first)
        if label and label != last_label and (space > _LABEL_PERCENT or space > 0.7 * len(label) + 0.6):
            last_label = label
            plot.labels.append(
                f'<span class="span-label{over}" style="left:{plot.x.percent(first):.2f}%;max-width:{space:.2f}%">'
                f"{escape(label)}</span>"
            )


def _time_axis(times: Sequence[str]) -> tuple[AxisScale, list[float], list[AxisTick]]:
    at, is_date = places(times)
    low, high = (min(at), max(at)) if len(at) > 1 else (at[0] - 15, at[0] + 15)
    if high <= low:
        low, high = low - 1, high + 1
    if is_date:
        return AxisScale(low, high), at, date_ticks(low, high)
    step = max(1, math.ceil(len(times) / 10))
    named = [AxisTick(at[k], times[k]) for k in range(0, len(times), step)]
    return AxisScale(low, high), at, named


def _kept(num: int) -> list[int]:
    step = max(1, math.ceil(num / MAX_POINTS))
    return list(range(0, num, step))


def _alone(at: Sequence[float], values: Sequence[float | None]) -> list[tuple[float, float]]:
    """Points that need a dot: those without a neighbour, and all if there are few."""
    beside = [None, *values, None]
    return [
        (place, value)
        for k, (place, value) in enumerate(zip(at, values, strict=False))
        if value is not None
        and (len(at) <= MAX_DOTTED_POINTS or (beside[k] is None and beside[k + 2] is None))
    ]


def _columns(chart: TimeLines) -> Sequence[tuple[float | None, ...]]:
    return list(zip(*(curve.values for curve in chart.curves), strict=False)) or [(0.0,)]


def _between(low: float | None, high: float | None, unit: str) -> str:
    return f"{number(low, unit)} … {number(high, unit)}"


def _unit_label(unit: str) -> str:
    return "" if unit in ("%", "×") else unit


def _readout(plot: PlotFrame) -> str:
    data = json.dumps(plot.readout, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'
