"""The plots of `htfi scenario --html`: densities, strips, bars, and the batch compared.

Shapes are SVG stretched to the width there is; every word and figure stands beside them as text of the page, so that
it is as legible on a telephone as on a wide screen. Places are shares of the width in percent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.scenarios.measures import LEVELS, PortfolioFigures, kernel_density, padded_range

Array = NDArray[np.float64]
FormatValue = Callable[[float], str]

_Q01, _Q05, _Q25, _Q50, _Q75, _Q95, _Q99 = range(len(LEVELS))
_MIN_DENSITY_WIDTH = 1e-6  # of the plot's width: narrower than this a distribution is drawn as a line
_MAX_RELATIVE_PEAK = 3.0  # how much taller than today's peak another may stand before it is cut
_NUM_TICKS, _FEW_TICKS = 6, 4  # steps whose labels stand side by side on 340 and on 240 pixels
_MARGIN = 7.0  # percent on either side, for half a label


@dataclass(frozen=True, slots=True)
class PlotRange:
    """The values at the left and right edges of a plot."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """0–100."""
        held = min(max(value, self.low), self.high)
        return _MARGIN + (held - self.low) / (self.high - self.low) * (100.0 - 2.0 * _MARGIN)


def book_plot(before: PortfolioFigures, after: PortfolioFigures, write: FormatValue) -> str:
    """The book's profit today and then, with VaR and shortfall of each; losses to the left."""
    frame = PlotRange(
        *padded_range(
            np.quantile(before.profits, [0.002, 0.998]).tolist(),
            np.quantile(after.profits, [0.002, 0.998]).tolist(),
            [-before.es975, 0.0],
        )
    )
    today, then = (_density_curve(figures.profits, frame) for figures in (before, after))
    peak = _peak(today, then)
    shapes = _grid(frame)
    shapes += _density_shape(
        frame, today, peak, before.quantiles[_Q50], "today", f"today: {write(before.mean)} in the mean"
    )
    shapes += _density_shape(
        frame, then, peak, after.quantiles[_Q50], "then", f"then: {write(after.mean)} in the mean"
    )
    labels: list[str] = []
    for figures, style in ((before, "today"), (after, "then")):
        for value, extra in ((-figures.var99, ""), (-figures.es975, " soft")):
            if frame.low < value < frame.high:
                shapes.append(_line(f"{style} mark{extra}", frame.x(value), 0.0, frame.x(value), 100.0))
        labels.append(_value_label(frame, -figures.var99, f"VaR 99% {write(-figures.var99)}", style))
    return _plot(
        "profit of the book, today and in the scenario", shapes, frame, write, "tall", "".join(labels)
    )


def position_plot(before: Array, after: Array, write: FormatValue) -> str:
    """Densities of one position's simple return today and then, from draws [S]."""
    frame = PlotRange(
        *padded_range(
            np.quantile(before, [0.003, 0.997]).tolist(), np.quantile(after, [0.003, 0.997]).tolist()
        )
    )
    today, then = _density_curve(before, frame), _density_curve(after, frame)
    peak, middle, moved = _peak(today, then), float(np.median(before)), float(np.median(after))
    shapes = _grid(frame, _FEW_TICKS)
    shapes += _density_shape(frame, today, peak, middle, "today", f"today: median {write(middle)}")
    shapes += _density_shape(frame, then, peak, moved, "then", f"then: median {write(moved)}")
    return _plot(
        "return of the position, today and in the scenario", shapes, frame, write, "low", num=_FEW_TICKS
    )


def bars(rows: Sequence[tuple[str, float]], write: FormatValue) -> str:
    """A bar for each name about zero: what each position adds to the change of the book's mean."""
    down, up = max(0.0, *(-value for _, value in rows)), max(0.0, *(value for _, value in rows))
    unit = 100.0 / max(down + up, 1e-300)
    lines: list[str] = []
    for name, value in rows:
        left = (down + min(value, 0.0)) * unit
        style = "up" if value >= 0.0 else "down"
        bar = f'<i class="{style}" style="left:{left:.2f}%;width:{abs(value) * unit:.2f}%"></i>'
        zero = f'<i class="zero" style="left:{down * unit:.2f}%"></i>'
        lines.append(
            f'<div><span class="name">{escape(name)}</span><span class="track">{zero}{bar}</span>'
            f"<b>{escape(write(value))}</b></div>"
        )
    return f'<div class="bars" role="img" aria-label="what each position adds">{"".join(lines)}</div>'


def strip(before: Sequence[float], after: Sequence[float], low: float, high: float) -> str:
    """One position's 90% and 50% bands today above those then, on the scale of all rows."""
    frame = PlotRange(low, high)
    shapes = [_line("grid", frame.x(0.0), 0.0, frame.x(0.0), 100.0)]
    for row, y, style in ((before, 12.0, "today"), (after, 54.0, "then")):
        shapes += _bands(frame, row, style, y, 34.0)
        shapes.append(_line(f"{style} middle", frame.x(row[_Q50]), y - 4.0, frame.x(row[_Q50]), y + 38.0))
    return f'<div class="strip" aria-hidden="true">{_svg(shapes)}</div>'


def batch_rows(
    rows: Sequence[tuple[str, PortfolioFigures]], today: PortfolioFigures, write: FormatValue
) -> str:
    """The book in every scenario as bands, the first row today's; its VaR as a line across all."""
    everyone = [("today", today), *rows]
    frame = PlotRange(*padded_range(*[figures.quantiles for _, figures in everyone], [-today.var99, 0.0]))
    lines: list[str] = []
    for place, (name, figures) in enumerate(everyone):
        row = figures.quantiles
        style = "today" if place == 0 else "down" if figures.mean < today.mean else "up"
        at = frame.x(-today.var99)
        shapes = [*_grid(frame), _line("limit", at, 0.0, at, 100.0)]
        shapes.append(_line(f"{style} whisker", frame.x(row[_Q01]), 50.0, frame.x(row[_Q99]), 50.0))
        shapes += _bands(frame, row, style, 20.0, 60.0)
        shapes.append(_line(f"{style} middle", frame.x(figures.mean), 8.0, frame.x(figures.mean), 92.0))
        mean = escape(write(figures.mean))
        lines.append(
            f'<div><span class="name">{escape(name)}</span><span class="track">{_svg(shapes)}</span>'
            f"<b>{mean}</b></div>"
        )
    scale = f'<div class="scale"><span></span><span class="axis">{_ticked(frame, write)}</span><b></b></div>'
    return f'<div class="bars batch" role="img" aria-label="the book in every scenario">{"".join(lines)}{scale}</div>'


def heat_table(
    names: Sequence[str], columns: Sequence[str], values: Array, scales: Array, write: FormatValue
) -> str:
    """Medians [rows, columns] as a table, coloured by their size in today's standard deviations [columns]."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines: list[str] = []
    for name, row in zip(names, values.tolist(), strict=True):
        cells: list[str] = []
        for column, value, scale in zip(columns, row, scales.tolist(), strict=True):
            strength = min(abs(value) / (4.0 * scale), 1.0) if scale > 0.0 else 0.0
            style = ("up" if value > 0.0 else "down") + (" strong" if strength > 0.7 else "")
            cells.append(
                f'<td class="{style}" data-label="{escape(column)}" style="--s:{100.0 * strength:.0f}%">'
                f"{escape(write(value))}</td>"
            )
        lines.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    return f'<table class="heat cards"><tr><th></th>{head}</tr>{"".join(lines)}</table>'


def _plot(
    label: str,
    shapes: Sequence[str],
    frame: PlotRange,
    write: FormatValue,
    style: str,
    words: str = "",
    num: int = _NUM_TICKS,
) -> str:
    return (
        f'<div class="plot" role="img" aria-label="{escape(label)}"><div class="words">{words}</div>'
        f'<div class="shapes {style}">{_svg(shapes)}</div>'
        f'<div class="axis">{_ticked(frame, write, num)}</div></div>'
    )


def _svg(shapes: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 100 100" preserveAspectRatio="none">{"".join(shapes)}</svg>'


def _value_label(frame: PlotRange, value: float, label: str, style: str) -> str:
    """A label in a line of its own above the plot, on the side of its mark on which there is room."""
    x = frame.x(value)
    side = f"margin-left:{x:.2f}%" if x < 50.0 else f"margin-right:{100.0 - x:.2f}%;text-align:right"
    return f'<div class="{style}" style="{side}">{escape(label)}</div>'


def _bands(frame: PlotRange, row: Sequence[float], style: str, y: float, height: float) -> list[str]:
    """The 90% and the 50% band of quantiles at LEVELS; nothing for an outcome that is certain."""
    if frame.x(row[_Q95]) - frame.x(row[_Q05]) <= 0.5:
        return []
    return [
        _rect(f"{style} outer", frame.x(row[_Q05]), y, frame.x(row[_Q95]), height),
        _rect(f"{style} inner", frame.x(row[_Q25]), y, frame.x(row[_Q75]), height),
    ]


def _peak(today: list[float] | None, then: list[float] | None) -> float:
    return max(max(today or then or [1.0]), min(max(then or [0.0]), _MAX_RELATIVE_PEAK * max(today or [1.0])))


def _density_curve(values: Array, frame: PlotRange) -> list[float] | None:
    """Density along the frame; None where there is no width to draw."""
    width = float(np.quantile(values, 0.95) - np.quantile(values, 0.05))
    if width <= _MIN_DENSITY_WIDTH * (frame.high - frame.low):
        return None
    return kernel_density(values, frame.low, frame.high)


def _density_shape(
    frame: PlotRange, curve: list[float] | None, peak: float, at: float, style: str, title: str
) -> list[str]:
    """A filled density, or a line where the outcome is certain."""
    name = f"<title>{escape(title)}</title>"
    if curve is None:
        return [f"<g>{name}{_line(f'{style} certain', frame.x(at), 0.0, frame.x(at), 100.0)}</g>"]
    xs = np.linspace(frame.x(frame.low), frame.x(frame.high), len(curve)).tolist()
    points = [
        f"{x:.2f},{100.0 - 100.0 * min(value / peak, 1.0):.2f}" for x, value in zip(xs, curve, strict=True)
    ]
    outline = " L".join(points)
    area = f"M{xs[0]:.2f},100 L{outline} L{xs[-1]:.2f},100 Z"
    return [
        f'<path class="{style} hill" d="{area}">{name}</path>',
        f'<path class="{style} edge" d="M{outline}"/>',
    ]


def _grid(frame: PlotRange, num: int = _NUM_TICKS) -> list[str]:
    return [
        _line("base" if value == 0.0 else "grid", frame.x(value), 0.0, frame.x(value), 100.0)
        for value in _ticks(frame.low, frame.high, num)
    ]


def _ticked(frame: PlotRange, write: FormatValue, num: int = _NUM_TICKS) -> str:
    values = _ticks(frame.low, frame.high, num)
    return "".join(
        f'<span style="left:{frame.x(value):.2f}%">{escape(label)}</span>'
        for value, label in zip(values, tick_labels(values, write), strict=True)
    )


def tick_labels(values: Sequence[float], write: FormatValue) -> list[str]:
    """Labels that tell ticks apart: as `write` has them, with more decimals where two would be alike."""
    labels = [write(value) for value in values]
    if len(set(labels)) < len(labels) and labels[0].endswith("%"):
        step = 100.0 * min(b - a for a, b in pairwise(values))
        decimals = max(2, ceil(-log10(step)) + 1)
        labels = [f"{100.0 * value:+.{decimals}f}%".replace("-", "−") for value in values]
    return [_without_zeros(label) for label in labels]


def _without_zeros(label: str) -> str:
    """'+2.00%' → '+2%', '0.50%' → '0.5%'."""
    mark = "%" if label.endswith("%") else ""
    figure = label.removesuffix(mark)
    return (figure.rstrip("0").rstrip(".") if mark and "." in figure else figure) + mark


def _ticks(low: float, high: float, num: int) -> list[float]:
    """Round values within the range, at most `num` + 1 of them, zero among them where it is inside."""
    raw = (high - low) / num
    digit = 10.0 ** floor(log10(raw))
    step = digit * next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * digit >= raw)
    first, last = ceil(low / step), floor(high / step)
    return [place * step for place in range(first, last + 1)]


def _line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"/>'


def _rect(style: str, x1: float, y: float, x2: float, height: float) -> str:
    width = max(x2 - x1, 0.3)
    return f'<rect class="{style}" x="{x1:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}"/>'
