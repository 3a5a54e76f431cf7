"""Every chart of `chart.py` as HTML with SVG in it; `gallery` puts them on its page."""

import math
from collections.abc import Sequence
from html import escape
from typing import assert_never

from htfi_eval.eval.charts.chart import (
    BarChart,
    Chart,
    Curve,
    CurveChart,
    DotChart,
    FanChart,
    HeatMap,
    HistogramChart,
    TimeLines,
)
from htfi_eval.eval.charts.frame import SIDE, AxisScale, PlotFrame, number, spread, ticks
from htfi_eval.eval.charts.paths import MAX_DOTTED_POINTS, NUM_COLOURS, colour_of, dot, known, path
from htfi_eval.eval.charts.rows import bar_rows, dot_rows, heat_table
from htfi_eval.eval.charts.times import fan_plot, lines_plot

_MAX_RADIUS_PX = 11.0


def chart_html(chart: Chart) -> str:
    """One figure with title, note, legend and plot; a chart without a finite value says so."""
    match chart:
        case FanChart():
            body, legend, wide = fan_plot(chart), _fan_legend(chart), True
        case TimeLines():
            body, legend, wide = lines_plot(chart), _lines_legend(chart), True
        case CurveChart():
            body, legend, wide = _curves(chart), _curves_legend(chart), False
        case HistogramChart():
            body, legend, wide = _histogram(chart), "", False
        case BarChart():
            body, legend, wide = bar_rows(chart), "", False
        case DotChart():
            body, legend, wide = dot_rows(chart), _dots_legend(chart), False
        case HeatMap():
            body, legend, wide = heat_table(chart), "", len(chart.columns) > 8
        case _:
            assert_never(chart)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    told = f'<p class="legend">{legend}</p>' if legend and body else ""
    plot = body or '<p class="empty">nothing to draw: no value is known</p>'
    style = "chart wide" if wide else "chart"
    return f'<figure class="{style}"><h3>{escape(chart.title)}</h3>{note}{told}{plot}</figure>'


def _curves(chart: CurveChart) -> str:
    drawn = [(place, curve, _points(curve, chart)) for place, curve in enumerate(chart.curves)]
    known_points = [point for _, _, points in drawn for point in points]
    if not known_points:
        return ""
    xs, ys, _ = zip(*known_points, strict=True)
    if chart.diagonal:
        (low_x, high_x) = (low_y, high_y) = _shares_range(*spread([*xs, *ys]), [*xs, *ys])
    else:
        low_x, high_x = _shares_range(*spread(xs, 0.02), xs)
        low_y, high_y = _shares_range(*spread(ys, 0.06), ys)
    x, y = AxisScale(low_x, high_x), AxisScale(low_y, high_y, up=True)
    style = "square" if chart.diagonal else ""
    across, up = ticks(low_x, high_x, most=5), ticks(low_y, high_y)
    plot = PlotFrame(x, y, across, up, chart.x_label, chart.y_label, style)
    if chart.diagonal:
        ends = path(x, y, (low_x, high_x), (low_y, high_y))
        plot.shapes.append(f'<path class="diagonal" d="{ends}"/>')
    for place, curve, points in drawn:
        colour = colour_of(place, curve)
        line = path(x, y, [point[0] for point in points], [point[1] for point in points])
        plot.shapes.append(f'<path class="{colour}" d="{line}"/>')
        most = max((num for _, _, num in points), default=0.0)
        if not most and (curve.quiet or len(points) > MAX_DOTTED_POINTS):
            continue
        for at, value, num in points:
            width_px = 2 * max(_MAX_RADIUS_PX * math.sqrt(num / most), 3.0) if most else 7.0
            told = f"{curve.name}: {number(at)} → {number(value)}" + (f" of {num:,.0f}" if most else "")
            plot.shapes.append(dot(x(at), y(value), width_px, f"{colour} soft", told))
    return plot.html(chart.title)


def _points(curve: Curve, chart: CurveChart) -> list[tuple[float, float, float]]:
    """x, y and number of what is known; 0 where numbers are not told."""
    counts = curve.counts or [0.0] * len(curve.values)
    told = zip(curve.x or chart.x, curve.values, counts, strict=False)
    return [
        (at, value, max(known(num) or 0.0, 0.0))
        for at, value, num in ((known(at), known(value), num) for at, value, num in told)
        if at is not None and value is not None
    ]


def _shares_range(low: float, high: float, values: Sequence[float]) -> tuple[float, float]:
    """Ends at 0 and 1 where values are shares that come near to them."""
    least, most = min(values), max(values)
    if 0 <= least <= 0.4 * most:
        low = 0.0
    if least >= 0 and 0.5 < most <= 1 + 1e-9:
        high = 1.0
    return low, high


def _histogram(chart: HistogramChart) -> str:
    shares = [known(share) or 0.0 for share in chart.shares]
    if not shares or not sum(shares):
        return ""
    num = len(shares)
    even = 1.0 / num
    band = _even_band(num, chart.num) if chart.even and chart.num else None
    high = max(*shares, even if chart.even else 0.0, band[1] if band else 0.0) * 1.08
    x, y = AxisScale(chart.low, chart.high), AxisScale(0.0, high, up=True)
    plot = PlotFrame(x, y, ticks(chart.low, chart.high, most=10), ticks(0.0, high, "%", 5), chart.x_label)
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


def _curves_legend(chart: CurveChart) -> str:
    names = [_entry(colour_of(place, curve), curve.name) for place, curve in enumerate(chart.curves)]
    if chart.diagonal:
        names.append(_entry("quiet dashed", chart.diagonal_label))
    return "".join(names)


def _lines_legend(chart: TimeLines) -> str:
    names = [_entry(colour_of(place, curve), curve.name) for place, curve in enumerate(chart.curves)]
    if chart.marks:
        names.append(_entry("marked", chart.mark_label or "alerts"))
    return "".join(names)


def _fan_legend(chart: FanChart) -> str:
    bands = [
        f'<span><i class="swatch" style="opacity:{(0.34 - 0.22 * band.share) * 1.8:.2f}"></i>{band.share:.0%}</span>'
        for band in sorted(chart.bands, key=lambda band: band.share)
    ]
    return "".join([*bands, _entry("ink", "what came"), _entry("outside", "outside the widest band")])


def _dots_legend(chart: DotChart) -> str:
    names = [_entry(f"c{place % NUM_COLOURS}", group.name) for place, group in enumerate(chart.groups)]
    if chart.best:
        names.append(_entry("ink", "ceiling"))
    return "".join(names)


def _entry(style: str, name: str) -> str:
    return f'<span class="{style}"><i class="swatch"></i><b>{escape(name)}</b></span>'
