"""The plots of `htfi scenario --html` on the chart kit: densities of book and positions, bands, the batch compared."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.scenarios.measures import LEVELS, PortfolioFigures, kernel_density, padded_range
from htfi.library.charts.figures import WriteValue, row_html, rows_html
from htfi.library.charts.frame import AxisScale, PlotFrame, area, path, ticks

Array = NDArray[np.float64]

_Q01, _Q05, _Q25, _Q50, _Q75, _Q95, _Q99 = range(len(LEVELS))
_MIN_DENSITY_WIDTH = 1e-6  # of the plot's width: narrower than this a distribution is drawn as a line
_MAX_RELATIVE_PEAK = 3.0  # how much taller than today's peak another may stand before it is cut
_NUM_TICKS, _FEW_TICKS = 6, 3  # steps whose labels stand side by side on 340 and on 240 pixels


def book_plot(before: PortfolioFigures, after: PortfolioFigures, unit: str, write: WriteValue) -> str:
    """The book's profit today and then, with VaR and shortfall of each; losses to the left."""
    tails = [np.quantile(figures.profits, [0.002, 0.998]).tolist() for figures in (before, after)]
    x = AxisScale(*padded_range(*tails, [-before.es975, 0.0]))
    plot = _densities(x, before.profits, after.profits, write)
    plot.style, plot.x_ticks = "book", ticks(x.low, x.high, unit, _NUM_TICKS, write)
    for figures, style in ((before, "today"), (after, "then")):
        for value, extra in ((-figures.var99, ""), (-figures.es975, " soft")):
            if x.low < value < x.high:
                plot.shapes.append(_upright(f"limit {style}{extra}", x(value)))
        plot.labels.append(_value_label(x, -figures.var99, f"VaR 99% {write(-figures.var99)}", style))
    return plot.html("profit of the book, today and in the scenario")


def position_plot(before: Array, after: Array, write: WriteValue) -> str:
    """Densities of one position's simple return today and then, from draws [S]."""
    tails = [np.quantile(draws, [0.003, 0.997]).tolist() for draws in (before, after)]
    x = AxisScale(*padded_range(*tails))
    plot = _densities(x, before, after, write)
    plot.style, plot.x_ticks = "low", ticks(x.low, x.high, "%", _FEW_TICKS)
    return plot.html("return of the position, today and in the scenario")


def strip(before: Sequence[float], after: Sequence[float], low: float, high: float) -> str:
    """One position's 90% and 50% bands today above those then, on the scale of all rows."""
    x = AxisScale(low, high)
    shapes = [_upright("grid", x(0.0))]
    for row, y, style in ((before, 120.0, "today"), (after, 540.0, "then")):
        shapes += [*_bands(x, row, style, y, 340.0), _upright(f"middle {style}", x(row[_Q50]), y - 40, 420)]
    svg = f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none">{"".join(shapes)}</svg>'
    return f'<figure class="strip" aria-hidden="true">{svg}</figure>'


def batch_rows(
    rows: Sequence[tuple[str, PortfolioFigures]], today: PortfolioFigures, unit: str, write: WriteValue
) -> str:
    """The book in every scenario as bands, the first row today's; its VaR as a line across all."""
    everyone = [("today", today), *rows]
    x = AxisScale(*padded_range(*[figures.quantiles for _, figures in everyone], [-today.var99, 0.0]))
    lines: list[str] = []
    for place, (name, figures) in enumerate(everyone):
        row = figures.quantiles
        style = "today" if place == 0 else "down" if figures.mean < today.mean else "up"
        shapes = [_upright("level", x(0.0), 0, 28), _upright("limit down", x(-today.var99), 0, 28)]
        shapes.append(f'<path class="whisker {style}" d="M{x(row[_Q01]):.1f} 14H{x(row[_Q99]):.1f}"/>')
        shapes += [*_bands(x, row, style, 6, 16), _upright(f"middle {style}", x(figures.mean), 3, 22)]
        lines.append(row_html(name, shapes, 28, escape(write(figures.mean))))
    return f'<figure aria-label="the book in every scenario">{rows_html(lines, x, unit, write)}</figure>'


def _densities(x: AxisScale, before: Array, after: Array, write: WriteValue) -> PlotFrame:
    """Both distributions as filled curves on one scale; a line where an outcome is certain."""
    today, then = _density_curve(before, x), _density_curve(after, x)
    most = max(today or then or [1.0])
    y = AxisScale(0.0, max(most, min(max(then or [0.0]), _MAX_RELATIVE_PEAK * most)), up=True)
    plot = PlotFrame(x, y, (), ())
    for curve, draws, style in ((today, before, "today"), (then, after, "then")):
        middle = float(np.median(draws))
        title = f"<title>{style}: median {escape(write(middle))}</title>"
        if curve is None:
            plot.shapes.append(f"<g>{title}{_upright(f'certain {style}', x(middle))}</g>")
            continue
        at = np.linspace(x.low, x.high, len(curve)).tolist()
        heights = [min(value, y.high) for value in curve]
        hill = area(x, y, at, [0.0] * len(at), heights)
        plot.shapes.append(f'<path class="hill {style}" d="{hill}">{title}</path>')
        plot.shapes.append(f'<path class="line {style}" d="{path(x, y, at, heights)}"/>')
    return plot


def _density_curve(values: Array, x: AxisScale) -> list[float] | None:
    """Density along the axis; None where there is no width to draw."""
    width = float(np.quantile(values, 0.95) - np.quantile(values, 0.05))
    return kernel_density(values, x.low, x.high) if width > _MIN_DENSITY_WIDTH * (x.high - x.low) else None


def _bands(x: AxisScale, row: Sequence[float], style: str, y: float, height: float) -> list[str]:
    """The 90% and the 50% band of quantiles at LEVELS; nothing for an outcome that is certain."""
    if x(row[_Q95]) - x(row[_Q05]) <= 5.0:
        return []
    return [
        f'<rect class="{share} {style}" x="{x(low):.1f}" y="{y:g}" '
        f'width="{max(x(high) - x(low), 3.0):.1f}" height="{height:g}"/>'
        for share, low, high in (("outer", row[_Q05], row[_Q95]), ("inner", row[_Q25], row[_Q75]))
    ]


def _upright(style: str, x: float, y: float = 0.0, height: float = 1000.0) -> str:
    return f'<path class="{style}" d="M{x:.1f} {y:g}v{height:g}"/>'


def _value_label(x: AxisScale, value: float, label: str, style: str) -> str:
    """A label in a line of its own above the plot, on the side of its mark on which there is room."""
    left = min(max(x.percent(value), 0.0), 100.0)
    side = f"left:{left:.2f}%" if left < 50.0 else f"right:{100.0 - left:.2f}%"
    return f'<span class="limit-label {style}" style="{side}">{escape(label)}</span>'
