"""Charts that are rows of a table: bars with intervals, dots by reader, and heat; `gallery_charts` calls them."""

from collections.abc import Sequence
from html import escape

from htfi_eval.eval.charts.chart import BarChart, DotChart, HeatMap
from htfi_eval.eval.charts.frame import AxisScale, finite, number, spread, thinned, ticks
from htfi_eval.eval.charts.paths import NUM_COLOURS

_TEXT_COLUMNS = 14  # a heat map with more columns tells its values only under the pointer


def bar_rows(chart: BarChart) -> str:
    """A bar from `zero` to the value, its interval as a whisker; strong where the interval leaves `zero` out."""
    if not finite(chart.values):
        return ""
    x = _scale([*chart.values, *chart.lows, *chart.highs, chart.zero])
    rows: list[str] = []
    for place, name in enumerate(chart.names):
        value, low, high = (_at(of, place) for of in (chart.values, chart.lows, chart.highs))
        shapes = [_across(x, chart.zero, 28)]
        sure = low is None or high is None or not low <= chart.zero <= high
        told = number(value, chart.unit)
        if value is not None:
            left, right = sorted((x(chart.zero), x(value)))
            style = ("down" if value < chart.zero else "up") + ("" if sure else " unsure")
            shapes.append(f'<path class="bar {style}" d="M{left:.1f} 14H{max(right, left + 0.8):.1f}"/>')
            if low is not None and high is not None:
                shapes.append(f'<path class="whisker" d="M{x(low):.1f} 14H{x(high):.1f}"/>')
                told += f" <i>{number(low, chart.unit)} … {number(high, chart.unit)}</i>"
            shapes.append(f'<path class="dot ink" style="stroke-width:6px" d="M{x(value):.1f} 14h0"/>')
        rows.append(_row(name, shapes, 28, told))
    return _rows(rows, x, chart.unit)


def dot_rows(chart: DotChart) -> str:
    """A dot a reader, each on a line of its own within the row, so that none hides another."""
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
            told = escape(f"{group.name}, {name}: {number(value, chart.unit)}{span}")
            place_px = f'style="stroke-width:8px" d="M{x(value):.1f} {y}h0"'
            shapes.append(f'<path class="dot {colour}" {place_px}><title>{told}</title></path>')
        rows.append(_row(name, shapes, height, ""))
    return _rows(rows, x, chart.unit)


def heat_table(chart: HeatMap) -> str:
    """Colour is the distance from `centre` over the greatest; a value that is not known stays blank."""
    apart = [abs(value - chart.centre) for row in chart.values for value in finite(row)]
    if not apart:
        return ""
    most = max(apart) or 1.0
    plain = len(chart.columns) <= _TEXT_COLUMNS
    head = "".join(f"<th>{escape(column)}</th>" for column in chart.columns)
    lines: list[str] = []
    for name, row in zip(chart.rows, chart.values, strict=False):
        cells: list[str] = []
        for column, value in zip(chart.columns, row, strict=False):
            told = number(value, chart.unit)
            if not finite([value]) or value is None:
                cells.append("<td></td>")
                continue
            side = "warm" if value > chart.centre else "cool"
            share = abs(value - chart.centre) / most
            title = escape(f"{name}, {column}: {told}")
            cells.append(
                f'<td class="{side}" style="--share:{80 * share:.0f}%" title="{title}">{told if plain else ""}</td>'
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


def _row(name: str, shapes: Sequence[str], height: int, told: str) -> str:
    value = f'<span class="value">{told}</span>'
    return (
        f'<span class="name">{escape(name)}</span><svg style="min-height:{height}px" viewBox="0 0 1000 {height}" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(shapes)}</svg>{value}'
    )


def _rows(rows: Sequence[str], x: AxisScale, unit: str) -> str:
    marks = "".join(
        f'<span class="x{" minor" if tick.minor else ""}" style="left:{x.percent(tick.at):.2f}%">{tick.label}</span>'
        for tick in thinned(ticks(x.low, x.high, unit, 5), most=3)
    )
    told = "" if unit in ("", "%", "×") else escape(unit)
    return (
        f'<div class="rows">{"".join(rows)}<span></span><div class="axis">{marks}</div>'
        f'<span class="value">{told}</span></div>'
    )
