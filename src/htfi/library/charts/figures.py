"""Every chart of `specs` as HTML with SVG in it."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import assert_never

from htfi.library.charts.frame import (
    MAX_DOTTED_POINTS,
    NUM_COLOURS,
    SIDE,
    AxisScale,
    PlotFrame,
    colour_of,
    dot,
    finite,
    known,
    log_ticks,
    number,
    path,
    spread,
    thinned,
    ticks,
)
from htfi.library.charts.specs import (
    BarChart,
    Chart,
    Curve,
    CurveChart,
    DotChart,
    FanChart,
    HeatMap,
    HistogramChart,
    StackChart,
    TimeLines,
)
from htfi.library.charts.times import fan_plot, lines_plot

WriteValue = Callable[[float], str]

_TEXT_COLUMNS = 14  # a heat map with more columns shows its values only under the pointer


def bar_rows(chart: BarChart, write: WriteValue | None = None) -> str:
    """A bar from `zero` to the value, its interval as a whisker; solid where the interval excludes `zero`."""
    if not finite(chart.values):
        return ""
    x = _scale([*chart.values, *chart.lows, *chart.highs, chart.zero])
    rows: list[str] = []
    for place, name in enumerate(chart.names):
        value, low, high = (_at(of, place) for of in (chart.values, chart.lows, chart.highs))
        shapes = [_across(x, chart.zero, 28)]
        sure = low is None or high is None or not low <= chart.zero <= high
        text = number(value, chart.unit) if write is None or value is None else write(value)
        if value is not None:
            left, right = sorted((x(chart.zero), x(value)))
            style = ("down" if value < chart.zero else "up") + ("" if sure else " unsure")
            shapes.append(f'<path class="bar {style}" d="M{left:.1f} 14H{max(right, left + 0.8):.1f}"/>')
            if low is not None and high is not None:
                shapes.append(f'<path class="whisker" d="M{x(low):.1f} 14H{x(high):.1f}"/>')
                text += f" <i>{number(low, chart.unit)} … {number(high, chart.unit)}</i>"
            shapes.append(f'<path class="dot ink" style="stroke-width:6px" d="M{x(value):.1f} 14h0"/>')
        rows.append(row_html(name, shapes, 28, text))
    return rows_html(rows, x, chart.unit, write)


def dot_rows(chart: DotChart) -> str:
    """A dot for each group, on its own line within the row, so that none hides another."""
    known = [
        value
        for group in chart.groups
        for of in (group.values, group.lows, group.highs)
        for value in finite(of)
    ]
    if not known:
        return ""
    x = _scale([*known, *finite(chart.best), *([] if chart.zero is None else [chart.zero])])
    height = 10 + 9 * len(chart.groups)
    rows: list[str] = []
    for place, name in enumerate(chart.names):
        shapes = [] if chart.zero is None else [_across(x, chart.zero, height)]
        best = _at(chart.best, place)
        if best is not None:
            shapes.append(f'<path class="best" d="M{x(best):.1f} 3V{height - 3}"/>')
        for one, group in enumerate(chart.groups):
            value, low, high = (_at(of, place) for of in (group.values, group.lows, group.highs))
            if value is None:
                continue
            y, colour = 9.5 + 9 * one, f"c{one % NUM_COLOURS}"
            span = ""
            if low is not None and high is not None:
                shapes.append(f'<path class="line thin {colour}" d="M{x(low):.1f} {y}H{x(high):.1f}"/>')
                span = f" ({number(low, chart.unit)} … {number(high, chart.unit)})"
            text = escape(f"{group.name}, {name}: {number(value, chart.unit)}{span}")
            place_px = f'style="stroke-width:8px" d="M{x(value):.1f} {y}h0"'
            shapes.append(f'<path class="dot {colour}" {place_px}><title>{text}</title></path>')
        rows.append(row_html(name, shapes, height, ""))
    return rows_html(rows, x, chart.unit)


def stack_rows(chart: StackChart) -> str:
    totals = [
        sum(_at(group.values, place) or 0.0 for group in chart.groups) for place in range(len(chart.names))
    ]
    if not any(totals):
        return ""
    x = AxisScale(0.0, 1.02 * max(totals))
    rows: list[str] = []
    for place, name in enumerate(chart.names):
        shapes: list[str] = []
        begin = 0.0
        for one, group in enumerate(chart.groups):
            value = _at(group.values, place) or 0.0
            text = escape(f"{group.name}, {name}: {number(value, chart.unit)}")
            shapes.append(
                f'<rect class="part c{one % NUM_COLOURS}" x="{x(begin):.1f}" y="4" '
                f'width="{x(value):.1f}" height="20"><title>{text}</title></rect>'
            )
            begin += value
        rows.append(row_html(name, shapes, 28, number(totals[place], chart.unit)))
    return rows_html(rows, x, chart.unit)


def heat_table(chart: HeatMap, scales: Sequence[float] = (), write: WriteValue | None = None) -> str:
    """Colour is the distance from `centre` over the column's scale or the greatest; an unknown value stays blank."""
    apart = [abs(value - chart.centre) for row in chart.values for value in finite(row)]
    if not apart:
        return ""
    full = scales or [max(apart)] * len(chart.columns)
    plain = len(chart.columns) <= _TEXT_COLUMNS
    head = "".join(f"<th>{escape(column)}</th>" for column in chart.columns)
    lines: list[str] = []
    for name, row in zip(chart.rows, chart.values, strict=False):
        cells: list[str] = []
        for column, value, most in zip(chart.columns, row, full, strict=False):
            text = number(value, chart.unit) if write is None or value is None else write(value)
            if not finite([value]) or value is None:
                cells.append("<td></td>")
                continue
            side = "warm" if value > chart.centre else "cool"
            share = min(abs(value - chart.centre) / (most or 1.0), 1.0)
            title = escape(f"{name}, {column}: {text}")
            cells.append(
                f'<td class="{side}" data-label="{escape(column)}" style="--share:{80 * share:.0f}%" '
                f'title="{title}">{text if plain else ""}</td>'
            )
        lines.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    style = "heat" if plain else "heat dense"
    return (
        f'<div class="scroll"><table class="{style}"><tr><th></th>{head}</tr>{"".join(lines)}</table></div>'
    )


def _scale(values: Sequence[float | None]) -> AxisScale:
    return AxisScale(*spread(values, 0.05))


def _at(values: Sequence[float | None], place: int) -> float | None:
    return next(iter(finite(values[place : place + 1])), None)


def _across(x: AxisScale, at: float, height: int) -> str:
    return f'<path class="level" d="M{x(at):.1f} 0V{height}"/>'


def row_html(name: str, shapes: Sequence[str], height: int, text: str) -> str:
    """A name, shapes in a box of 1000 × `height`, and a value as HTML."""
    value = f'<span class="value">{text}</span>'
    return (
        f'<span class="name">{escape(name)}</span><svg style="min-height:{height}px" viewBox="0 0 1000 {height}" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(shapes)}</svg>{value}'
    )


def rows_html(rows: Sequence[str], x: AxisScale, unit: str, write: WriteValue | None = None) -> str:
    """Rows of `row_html` above their common axis."""
    marks = "".join(
        f'<span class="x{" minor" if tick.minor else ""}" style="left:{x.percent(tick.at):.2f}%">{tick.label}</span>'
        for tick in thinned(ticks(x.low, x.high, unit, 5, write), most=3)
    )
    text = "" if unit in ("", "%", "×") else escape(unit)
    return (
        f'<div class="rows">{"".join(rows)}<span></span><div class="axis">{marks}</div>'
        f'<span class="value">{text}</span></div>'
    )


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
        case StackChart():
            body, legend, wide = stack_rows(chart), _dots_legend(chart), False
        case HeatMap():
            body, legend, wide = heat_table(chart), "", len(chart.columns) > 8
        case _:
            assert_never(chart)
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    text = f'<p class="legend">{legend}</p>' if legend and body else ""
    plot = body or '<p class="empty">nothing to draw: no value is known</p>'
    style = "chart wide" if wide else "chart"
    return f'<figure class="{style}"><h3>{escape(chart.title)}</h3>{note}{text}{plot}</figure>'


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
    if chart.log:
        low_x, high_x, low_y, high_y = min(xs) / 1.08, max(xs) * 1.08, min(ys) / 1.15, max(ys) * 1.15
    x, y = AxisScale(low_x, high_x, log=chart.log), AxisScale(low_y, high_y, up=True, log=chart.log)
    style = "square" if chart.diagonal else ""
    across = log_ticks(low_x, high_x) if chart.log else ticks(low_x, high_x, most=5)
    up = log_ticks(low_y, high_y) if chart.log else ticks(low_y, high_y)
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
            text = f"{curve.name}: {number(at)} → {number(value)}" + (f" of {num:,.0f}" if most else "")
            plot.shapes.append(dot(x(at), y(value), width_px, f"{colour} soft", text))
    return plot.html(chart.title)


def _points(curve: Curve, chart: CurveChart) -> list[tuple[float, float, float]]:
    """x, y and count of the known points; count 0 where counts are not given."""
    counts = curve.counts or [0.0] * len(curve.values)
    text = zip(curve.x or chart.x, curve.values, counts, strict=False)
    return [
        (at, value, max(known(num) or 0.0, 0.0))
        for at, value, num in ((known(at), known(value), num) for at, value, num in text)
        if at is not None and value is not None
    ]


def _shares_range(low: float, high: float, values: Sequence[float]) -> tuple[float, float]:
    """Ends at 0 and 1 where values are shares close to them."""
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
    names = [legend_entry(colour_of(place, curve), curve.name) for place, curve in enumerate(chart.curves)]
    if chart.diagonal:
        names.append(legend_entry("quiet dashed", chart.diagonal_label))
    return "".join(names)


def _lines_legend(chart: TimeLines) -> str:
    names = [legend_entry(colour_of(place, curve), curve.name) for place, curve in enumerate(chart.curves)]
    if chart.marks:
        names.append(legend_entry("marked", chart.mark_label or "alerts"))
    return "".join(names)


def _fan_legend(chart: FanChart) -> str:
    bands = [
        f'<span><i class="swatch" style="opacity:{(0.34 - 0.22 * band.share) * 1.8:.2f}"></i>{band.share:.0%}</span>'
        for band in sorted(chart.bands, key=lambda band: band.share)
    ]
    return "".join(
        [*bands, legend_entry("ink", "outcome"), legend_entry("outside", "outside the widest band")]
    )


def _dots_legend(chart: DotChart | StackChart) -> str:
    names = [legend_entry(f"c{place % NUM_COLOURS}", group.name) for place, group in enumerate(chart.groups)]
    if isinstance(chart, DotChart) and chart.best:
        names.append(legend_entry("ink", "ceiling"))
    return "".join(names)


def legend_entry(style: str, name: str) -> str:
    return f'<span class="{style}"><i class="swatch"></i><b>{escape(name)}</b></span>'
