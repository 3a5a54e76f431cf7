"""Every chart of `chart.py` as HTML with SVG in it; `gallery` puts them on its page."""

import json
import math
from collections.abc import Sequence
from html import escape
from typing import assert_never

from htfi.apps.eval.chart import Bars, Chart, Curve, Curves, DotRows, Dots, Fan, Heat, Histogram, Lines
from htfi.apps.eval.gallery_frame import (
    SIDE,
    Plot,
    Scale,
    Tick,
    date_ticks,
    finite,
    number,
    places,
    spread,
    ticks,
    when,
)
from htfi.apps.eval.gallery_rows import bar_rows, dot_rows, heat_table

NUM_COLOURS = 8
MOST_POINTS = 1_600  # of a curve: finer than a screen's pixels
FEW_POINTS = 25  # up to which each has a dot
_MOST_RADIUS_PX = 11.0


def chart_html(chart: Chart) -> str:
    """One figure with title, note, legend and plot; a chart without a finite value says so."""
    match chart:
        case Fan():
            body, legend, wide = _fan(chart), _fan_legend(chart), True
        case Lines():
            body, legend, wide = _lines(chart), _lines_legend(chart), True
        case Curves():
            body, legend, wide = _curves(chart), _legend(chart.curves, chart.diagonal), False
        case Histogram():
            body, legend, wide = _histogram(chart), "", False
        case Bars():
            body, legend, wide = bar_rows(chart), "", False
        case DotRows():
            body, legend, wide = dot_rows(chart), _dots_legend(chart), False
        case Heat():
            body, legend, wide = heat_table(chart), "", len(chart.columns) > 8
        case _:
            assert_never(chart)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    told = f'<p class="legend">{legend}</p>' if legend and body else ""
    plot = body or '<p class="empty">nothing to draw: no value is known</p>'
    style = "chart wide" if wide else "chart"
    return f'<figure class="{style}"><h3>{escape(chart.title)}</h3>{note}{told}{plot}</figure>'


def _fan(chart: Fan) -> str:
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
    y = Scale(low, high, up=True)
    plot = Plot(x, y, x_ticks, ticks(low, high, chart.unit), y_label=_told_unit(chart.unit))
    plot.readout = {"x": [round(x(one)) for one in at], "told": times, "curves": []}
    for band in bands:
        lows, highs = _take(band.low, kept), _take(band.high, kept)
        opacity = 0.34 - 0.22 * band.share
        plot.shapes.append(
            f'<path class="band" style="fill-opacity:{opacity:.2f}" d="{_area(x, y, at, lows, highs)}"/>'
        )
        plot.readout["curves"].append(
            [f"{band.share:.0%}", [_between(a, b, chart.unit) for a, b in zip(lows, highs, strict=False)]]
        )
    actual = _take(chart.actual, kept)
    plot.shapes.append(f'<path class="actual" d="{_path(x, y, at, actual)}"/>')
    plot.readout["curves"].append(["actual", [number(value, chart.unit) for value in actual]])
    outer = bands[0] if bands else None
    if outer is not None:
        lows, highs = _take(outer.low, kept), _take(outer.high, kept)
        for place, low_at, high_at, value in zip(at, lows, highs, actual, strict=False):
            if value is None or low_at is None or high_at is None or low_at <= value <= high_at:
                continue
            if math.isfinite(value):  # also where a bound is NaN: no comparison holds
                plot.shapes.append(_dot(x(place), y(value), 5.0, "outside", ""))
    return plot.html(chart.title) + _readout(plot)


def _lines(chart: Lines) -> str:
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
        low, high = spread(
            [*level, *(value for curve in chart.curves for value in curve.values)],
            pad=0.06,
        )
    y = Scale(low, high, up=True)
    unit = chart.unit or ("%" if chart.stacked else "")
    plot = Plot(x, y, x_ticks, ticks(low, high, unit), y_label=_told_unit(unit))
    if is_date:
        _shade(plot, chart)
    plot.readout = {"x": [round(x(one)) for one in at], "told": times, "curves": []}
    base = [0.0] * len(at)
    for place, curve in enumerate(chart.curves):
        values = _take(curve.values, kept)
        colour = _colour(place, curve)
        if chart.stacked:
            top = [low_at + (_known(value) or 0.0) for low_at, value in zip(base, values, strict=False)]
            plot.shapes.append(f'<path class="share {colour}" d="{_area(x, y, at, base, top)}"/>')
            base = top
        elif len(full) > MOST_POINTS:
            plot.shapes.append(f'<path class="{colour}" d="{_dense(x, y, full, curve.values)}"/>')
        else:
            plot.shapes.append(f'<path class="{colour}" d="{_path(x, y, at, values)}"/>')
            plot.shapes += [
                _dot(x(place), y(value), 6.0, colour, "")
                for place, value in zip(at, values, strict=False)
                if value is not None and len(at) <= FEW_POINTS
            ]
        plot.readout["curves"].append([curve.name, [number(value, unit) for value in values]])
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


def _shade(plot: Plot, chart: Lines) -> None:
    """Spans behind the curves; a label has the room until the next span begins."""
    drawn: list[tuple[float, float, str]] = []
    for span in chart.spans:
        first, last = when(span.first), when(span.last)
        if first is None or last is None or last < plot.x.low or first > plot.x.high:
            continue
        drawn.append((max(first, plot.x.low), min(last, plot.x.high), span.label))
    drawn.sort()
    for place, (first, last, label) in enumerate(drawn):
        width = max(plot.x(last) - plot.x(first), 1.5)
        plot.shapes.append(
            f'<rect class="span" x="{plot.x(first):.1f}" y="0" width="{width:.1f}" height="1000">'
            f"<title>{escape(label)}</title></rect>"
        )
        until = drawn[place + 1][0] if place + 1 < len(drawn) else plot.x.high
        room = plot.x.percent(until) - plot.x.percent(first)
        if label and room > 2.5:
            plot.labels.append(
                f'<span class="span-label" style="left:{plot.x.percent(first):.2f}%;max-width:{room:.2f}%">'
                f"{escape(label)}</span>"
            )


def _curves(chart: Curves) -> str:
    drawn = [
        (place, curve, *_pairs(curve.x or chart.x, curve.values)) for place, curve in enumerate(chart.curves)
    ]
    xs = [one for _, _, at, _ in drawn for one in at]
    ys = [one for _, _, _, values in drawn for one in values]
    if not xs:
        return ""
    if chart.diagonal:
        least, most = min(*xs, *ys), max(*xs, *ys)
        low, high = spread((least, most))
        if 0 <= least <= 0.4 * most:
            low = 0.0
        if 0.5 < most <= 1 + 1e-9:
            high = 1.0
        (low_x, high_x) = (low_y, high_y) = low, high
    else:
        (low_x, high_x), (low_y, high_y) = spread(xs, 0.02), spread(ys, 0.06)
        if min(xs) >= 0 and 0.5 < max(xs) <= 1 + 1e-9:
            low_x, high_x = 0.0, 1.0
        if min(ys) >= 0 and 0.5 < max(ys) <= 1 + 1e-9:
            low_y, high_y = 0.0, 1.0
    x, y = Scale(low_x, high_x), Scale(low_y, high_y, up=True)
    style = "square" if chart.diagonal else ""
    plot = Plot(
        x, y, ticks(low_x, high_x, most=5), ticks(low_y, high_y), chart.x_label, chart.y_label, style=style
    )
    if chart.diagonal:
        first, last = max(low_x, low_y), min(high_x, high_y)
        plot.shapes.append(
            f'<path class="diagonal" d="M{x(first):.1f} {y(first):.1f}L{x(last):.1f} {y(last):.1f}"/>'
        )
    for place, curve, at, values in drawn:
        colour = _colour(place, curve)
        plot.shapes.append(f'<path class="{colour}" d="{_path(x, y, at, values)}"/>')
        counts = curve.counts if len(curve.counts) == len(curve.values) else []
        if counts:
            _, counts = _pairs(curve.values, counts)
        elif len(at) > FEW_POINTS:
            continue
        most = max(counts, default=1.0) or 1.0
        for one, (across, value) in enumerate(zip(at, values, strict=True)):
            width = 2 * max(_MOST_RADIUS_PX * math.sqrt(max(counts[one], 0) / most), 3.0) if counts else 7.0
            of = f" of {counts[one]:,.0f}" if counts else ""
            told = f"{curve.name}: {number(across)} → {number(value)}{of}"
            plot.shapes.append(_dot(x(across), y(value), width, f"{colour} soft", told))
    return plot.html(chart.title)


def _histogram(chart: Histogram) -> str:
    shares = [_known(share) or 0.0 for share in chart.shares]
    if not shares or not sum(shares):
        return ""
    num = len(shares)
    even = 1.0 / num
    band = _even_band(num, chart.num) if chart.even and chart.num else None
    high = max(*shares, even if chart.even else 0.0, band[1] if band else 0.0) * 1.08
    x, y = Scale(chart.low, chart.high), Scale(0.0, high, up=True)
    plot = Plot(x, y, ticks(chart.low, chart.high, most=10), ticks(0.0, high, "%", 5), chart.x_label)
    width = SIDE / num
    for place, share in enumerate(shares):
        outside = band is not None and not band[0] <= share <= band[1]
        begin, end = (chart.low + (chart.high - chart.low) * k / num for k in (place, place + 1))
        plot.shapes.append(
            f'<rect class="bin{" odd-one" if outside else ""}" x="{place * width + 1:.1f}" y="{y(share):.1f}" '
            f'width="{max(width - 2, 0.5):.1f}" height="{SIDE - y(share):.1f}">'
            f"<title>{number(begin)} to {number(end)}: {number(share, '%')}</title></rect>"
        )
    if band is not None:
        plot.shapes.append(
            f'<rect class="envelope" x="0" y="{y(band[1]):.1f}" width="1000" height="{y(band[0]) - y(band[1]):.1f}">'
            "<title>95% of bins lie within it where all are equally likely</title></rect>"
        )
    if chart.even:
        plot.shapes.append(f'<path class="level" d="M0 {y(even):.1f}H1000"/>')
    return plot.html(chart.title)


def _even_band(num_bins: int, num: int) -> tuple[float, float]:
    """2.5% and 97.5% points of one bin's share where `num` values fall evenly: binomial, exact up to 20,000."""
    share = 1.0 / num_bins
    middle, error = num * share, math.sqrt(num * share * (1 - share))
    if num > 20_000:
        return max(share - 1.96 * error / num, 0.0), share + 1.96 * error / num
    total, low = 0.0, -1
    for count in range(num + 1):
        total += math.exp(
            math.lgamma(num + 1) - math.lgamma(count + 1) - math.lgamma(num - count + 1)
            + count * math.log(share) + (num - count) * math.log1p(-share)
        ) if num_bins > 1 else float(count == num)  # fmt: skip
        if low < 0 and total >= 0.025:
            low = count
        if total >= 0.975:
            return low / num, count / num
    return max(middle - 1.96 * error, 0.0) / num, 1.0


def _legend(curves: Sequence[Curve], diagonal: bool) -> str:
    names = [_entry(_colour(place, curve), curve.name) for place, curve in enumerate(curves)]
    if diagonal:
        names.append(_entry("quiet dashed", "what would be right"))
    return "".join(names)


def _lines_legend(chart: Lines) -> str:
    names = [_entry(_colour(place, curve), curve.name) for place, curve in enumerate(chart.curves)]
    if chart.marks:
        names.append(_entry("marked", chart.mark_label or "alerts"))
    return "".join(names)


def _fan_legend(chart: Fan) -> str:
    bands = [
        f'<span><i class="swatch" style="opacity:{(0.34 - 0.22 * band.share) * 1.8:.2f}"></i>{band.share:.0%}</span>'
        for band in sorted(chart.bands, key=lambda band: band.share)
    ]
    return "".join([*bands, _entry("ink", "what came"), _entry("outside", "outside the widest band")])


def _dots_legend(chart: DotRows) -> str:
    names = [_entry(f"c{place % NUM_COLOURS}", group.name) for place, group in enumerate(chart.groups)]
    if chart.best:
        names.append(_entry("ink", "ceiling"))
    return "".join(names) if len(names) > 1 or _is_named(chart.groups) else ""


def _is_named(groups: Sequence[Dots]) -> bool:
    return any(group.name for group in groups)


def _entry(style: str, name: str) -> str:
    return f'<span class="{style}"><i class="swatch"></i><b>{escape(name)}</b></span>'


def _colour(place: int, curve: Curve) -> str:
    if curve.quiet:
        return "line quiet"
    return f"line c{place % NUM_COLOURS}" + (" dashed" if place >= NUM_COLOURS else "")


def _time_axis(times: Sequence[str]) -> tuple[Scale, list[float], list[Tick]]:
    at, is_date = places(times)
    low, high = (min(at), max(at)) if len(at) > 1 else (at[0] - 15, at[0] + 15)
    if high <= low:
        low, high = low - 1, high + 1
    if is_date:
        return Scale(low, high), at, date_ticks(low, high)
    step = max(1, math.ceil(len(times) / 10))
    named = [Tick(at[k], times[k]) for k in range(0, len(times), step)]
    return Scale(low, high), at, named


def _kept(num: int) -> list[int]:
    step = max(1, math.ceil(num / MOST_POINTS))
    return list(range(0, num, step))


def _take(values: Sequence[float | None], kept: Sequence[int]) -> list[float | None]:
    """The kept ones; where values are too few, gaps."""
    return [_known(values[k]) if k < len(values) else None for k in kept]


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _columns(chart: Lines) -> Sequence[tuple[float | None, ...]]:
    return list(zip(*(curve.values for curve in chart.curves), strict=False)) or [(0.0,)]


def _pairs(at: Sequence[float | None], values: Sequence[float | None]) -> tuple[list[float], list[float]]:
    both = [
        (across, value)
        for across, value in zip(at, values, strict=False)
        if across is not None and value is not None and math.isfinite(across) and math.isfinite(value)
    ]
    return [across for across, _ in both], [value for _, value in both]


def _path(x: Scale, y: Scale, at: Sequence[float], values: Sequence[float | None]) -> str:
    parts: list[str] = []
    pen_down = False
    for across, value in zip(at, values, strict=False):
        if value is None or not math.isfinite(value):
            pen_down = False
            continue
        parts.append(f"{'L' if pen_down else 'M'}{x(across):.1f} {y(value):.1f}{'' if pen_down else 'h0'}")
        pen_down = True
    return "".join(parts)


def _dense(x: Scale, y: Scale, at: Sequence[float], values: Sequence[float | None]) -> str:
    """Of each stretch its least and greatest value, in the order they came: no spike is lost."""
    stretch = math.ceil(len(at) / (MOST_POINTS / 2))
    kept_at: list[float] = []
    kept: list[float | None] = []
    for begin in range(0, len(at), stretch):
        here = [k for k in range(begin, min(begin + stretch, len(values))) if _known(values[k]) is not None]
        if not here:
            kept_at.append(at[begin])
            kept.append(None)
            continue
        ends = {min(here, key=lambda k: values[k] or 0.0), max(here, key=lambda k: values[k] or 0.0)}
        for k in sorted(ends):
            kept_at.append(at[k])
            kept.append(values[k])
    return _path(x, y, kept_at, kept)


def _area(
    x: Scale, y: Scale, at: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> str:
    parts: list[str] = []
    run: list[tuple[float, float, float]] = []
    for across, low, high in [*zip(at, lows, highs, strict=False), (0.0, None, None)]:
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            run.append((across, low, high))
            continue
        if run:
            there = "L".join(f"{x(one):.1f} {y(top):.1f}" for one, _, top in run)
            back = "L".join(f"{x(one):.1f} {y(foot):.1f}" for one, foot, _ in reversed(run))
            parts.append(f"M{there}L{back}Z")
        run = []
    return "".join(parts)


def _dot(x: float, y: float, width_px: float, style: str, told: str) -> str:
    """A stroke without length under a round cap: a circle, however the plot is stretched."""
    title = f"<title>{escape(told)}</title>" if told else ""
    return f'<path class="dot {style}" style="stroke-width:{width_px:.1f}px" d="M{x:.1f} {y:.1f}h0">{title}</path>'


def _between(low: float | None, high: float | None, unit: str) -> str:
    return f"{number(low, unit)} … {number(high, unit)}"


def _told_unit(unit: str) -> str:
    return "" if unit in ("%", "×") else unit


def _readout(plot: Plot) -> str:
    told = json.dumps(plot.readout, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{told}</script>'
