"""The plots of `htfi scenario --html` as inline SVG: densities, strips, bars, and the batch compared."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.scenarios.measures import LEVELS, BookFigures, density, spans

Array = NDArray[np.float64]
Write = Callable[[float], str]

_Q01, _Q05, _Q25, _Q50, _Q75, _Q95, _Q99 = range(len(LEVELS))
_CERTAIN = 1e-6  # of the plot's width: narrower than this a distribution is drawn as a line
_TRAILING = re.compile(r"(?<=\d)\.0+(?=%|$)|(?<=\.\d)0+(?=%|$)")  # '+2.00%' → '+2%', '0.50%' → '0.5%'
_PEAK = 3.0  # how much taller than today's peak another may stand before it is cut


@dataclass(frozen=True, slots=True)
class Frame:
    """A plot's inner box, and the values that its left and right edges stand for."""

    left: float
    right: float
    top: float
    bottom: float
    low: float
    high: float

    def x(self, value: float) -> float:
        held = min(max(value, self.low), self.high)
        return self.left + (held - self.low) / (self.high - self.low) * (self.right - self.left)


def book_svg(
    before: BookFigures, after: BookFigures, write: Write, width: int = 640, height: int = 270
) -> str:
    """The book's profit today and then, with VaR and shortfall of each; losses to the left."""
    low, high = spans(
        np.quantile(before.profits, [0.002, 0.998]).tolist(),
        np.quantile(after.profits, [0.002, 0.998]).tolist(),
        [-before.es975, 0.0],
    )
    frame = Frame(16.0, width - 16.0, 46.0, height - 30.0, low, high)
    today, then = (_curve(figures.profits, frame) for figures in (before, after))
    peak = max(max(today or then or [1.0]), min(max(then or [0.0]), _PEAK * max(today or [1.0])))
    parts = [_open(width, height, "profit of the book, today and in the scenario"), *_axis(frame, write)]
    parts += _hill(
        frame, today, peak, before.quantiles[_Q50], "today", f"today: {write(before.mean)} in the mean"
    )
    parts += _hill(frame, then, peak, after.quantiles[_Q50], "then", f"then: {write(after.mean)} in the mean")
    parts += _mark(frame, -before.var99, f"VaR 99% {write(-before.var99)}", "today", 12.0)
    parts += _mark(frame, -before.es975, "", "today soft", 12.0)
    parts += _mark(frame, -after.var99, f"VaR 99% {write(-after.var99)}", "then", 28.0)
    parts += _mark(frame, -after.es975, "", "then soft", 28.0)
    return "".join([*parts, "</svg>"])


def position_svg(before: Array, after: Array, write: Write, width: int = 300, height: int = 120) -> str:
    """Densities of one position's simple return today and then, from draws [S]."""
    low, high = spans(
        np.quantile(before, [0.003, 0.997]).tolist(), np.quantile(after, [0.003, 0.997]).tolist()
    )
    frame = Frame(8.0, width - 8.0, 8.0, height - 22.0, low, high)
    today, then = _curve(before, frame), _curve(after, frame)
    peak = max(max(today or then or [1.0]), min(max(then or [0.0]), _PEAK * max(today or [1.0])))
    middle, moved = float(np.median(before)), float(np.median(after))
    parts = [
        _open(width, height, "return of the position, today and in the scenario"),
        *_axis(frame, write, 4),
    ]
    parts += _hill(frame, today, peak, middle, "today", f"today: median {write(middle)}")
    parts += _hill(frame, then, peak, moved, "then", f"then: median {write(moved)}")
    return "".join([*parts, "</svg>"])


def bars_svg(rows: Sequence[tuple[str, float]], write: Write, width: int = 460) -> str:
    """A bar for each name about zero: what each position adds to the change of the book's mean."""
    if not rows:
        return ""
    down, up = max(0.0, *(-value for _, value in rows)), max(0.0, *(value for _, value in rows))
    height, row_height, left, room = 26 * len(rows) + 8, 26.0, 130.0, 66.0  # room for a figure at either end
    unit = (width - left - 2.0 * room) / max(down + up, 1e-300)
    zero = left + room + down * unit
    parts = [_open(width, height, "what each position adds"), _line("grid", zero, 2.0, zero, height - 4.0)]
    for place, (name, value) in enumerate(rows):
        y, size = 4.0 + row_height * place, abs(value) * unit
        x = zero if value >= 0.0 else zero - size
        style = "up" if value >= 0.0 else "down"
        told = write(value)
        parts.append(
            f'<rect class="{style}" x="{x:.1f}" y="{y + 3:.1f}" width="{max(size, 0.8):.1f}" height="16" rx="2">'
            f"<title>{escape(name)}: {escape(told)}</title></rect>"
        )
        parts.append(_text(left - 12.0, y + 15.0, _short(name), "end"))
        at, anchor = (x + size + 6.0, "start") if value >= 0.0 else (x - 6.0, "end")
        parts.append(_text(at, y + 15.0, told, anchor, "figure"))
    return "".join([*parts, "</svg>"])


def strip_svg(before: Sequence[float], after: Sequence[float], low: float, high: float) -> str:
    """One position's 90% and 50% bands today above those then, on the scale of all rows."""
    width, height = 200, 26
    frame = Frame(2.0, width - 2.0, 0.0, height, low, high)
    parts = [f'<svg class="strip" viewBox="0 0 {width} {height}" aria-hidden="true">']
    parts.append(_line("grid", frame.x(0.0), 0.0, frame.x(0.0), height))
    for row, y, style in ((before, 4.0, "today"), (after, 14.0, "then")):
        if frame.x(row[_Q95]) - frame.x(row[_Q05]) > 1.5:
            parts.append(_rect(f"{style} outer", frame.x(row[_Q05]), y, frame.x(row[_Q95]), 8.0))
            parts.append(_rect(f"{style} inner", frame.x(row[_Q25]), y, frame.x(row[_Q75]), 8.0))
        middle = frame.x(row[_Q50])
        parts.append(_rect(f"{style} middle", middle - 1.2, y - 1.0, middle + 1.2, 10.0))
    return "".join([*parts, "</svg>"])


def batch_svg(
    rows: Sequence[tuple[str, BookFigures]], today: BookFigures, write: Write, width: int = 1180
) -> str:
    """The book in every scenario as bands, the first row today's; its VaR as a line across all."""
    left, row_height, top = 330.0, 26.0, 26.0
    height = int(top + row_height * (len(rows) + 1) + 28.0)
    everyone = [("today", today), *rows]
    low, high = spans(*[figures.quantiles for _, figures in everyone], [-today.var99, 0.0])
    frame = Frame(left, width - 90.0, top, height - 26.0, low, high)
    parts = [_open(width, height, "the book in every scenario"), *_axis(frame, write)]
    at = frame.x(-today.var99)
    parts += [
        _line("limit", at, top - 6.0, at, frame.bottom),
        _text(at, top - 10.0, "today's VaR 99%", "middle", "axis"),
    ]
    for place, (name, figures) in enumerate(everyone):
        y, row = top + row_height * place, figures.quantiles
        style = "today" if place == 0 else "down" if figures.mean < today.mean else "up"
        parts.append(f"<g><title>{escape(name)}: mean {escape(write(figures.mean))}</title>")
        parts.append(_text(left - 14.0, y + 17.0, _short(name, 46), "end", "" if place else "axis"))
        if frame.x(row[_Q99]) - frame.x(row[_Q01]) > 2.0:
            parts.append(
                _line(f"{style} whisker", frame.x(row[_Q01]), y + 13.0, frame.x(row[_Q99]), y + 13.0)
            )
            parts.append(_rect(f"{style} outer", frame.x(row[_Q05]), y + 6.0, frame.x(row[_Q95]), 14.0))
            parts.append(_rect(f"{style} inner", frame.x(row[_Q25]), y + 6.0, frame.x(row[_Q75]), 14.0))
        parts.append(
            f'<circle class="{style} dot" cx="{frame.x(figures.mean):.1f}" cy="{y + 13:.1f}" r="4"/>'
        )
        parts.append(_text(width - 80.0, y + 17.0, write(figures.mean), "start", "figure"))
        parts.append("</g>")
    return "".join([*parts, "</svg>"])


def heat_table(
    names: Sequence[str], columns: Sequence[str], values: Array, scales: Array, write: Write
) -> str:
    """Medians [rows, columns] as a table, coloured by their size in today's standard deviations [columns]."""
    head = "".join(f"<th>{escape(_short(column, 14))}</th>" for column in columns)
    lines: list[str] = []
    for name, row in zip(names, values.tolist(), strict=True):
        cells: list[str] = []
        for value, scale in zip(row, scales.tolist(), strict=True):
            strength = min(abs(value) / (4.0 * scale), 1.0) if scale > 0.0 else 0.0
            style = ("up" if value > 0.0 else "down") + (" strong" if strength > 0.7 else "")
            cells.append(
                f'<td class="{style}" style="--s:{100.0 * strength:.0f}%">{escape(write(value))}</td>'
            )
        lines.append(f"<tr><th>{escape(_short(name, 46))}</th>{''.join(cells)}</tr>")
    return f'<table class="heat"><tr><th></th>{head}</tr>{"".join(lines)}</table>'


def _curve(values: Array, frame: Frame) -> list[float] | None:
    """Density along the frame; None where there is no width to draw."""
    spread = float(np.quantile(values, 0.95) - np.quantile(values, 0.05))
    if spread <= _CERTAIN * (frame.high - frame.low):
        return None
    return density(values, frame.low, frame.high)


def _hill(
    frame: Frame, curve: list[float] | None, peak: float, at: float, style: str, title: str
) -> list[str]:
    """A filled density, or an arrow where the outcome is certain."""
    if curve is None:
        x = frame.x(at)
        tip = f"M{x - 5:.1f},{frame.top + 9:.1f} L{x:.1f},{frame.top:.1f} L{x + 5:.1f},{frame.top + 9:.1f} Z"
        return [
            f"<g><title>{escape(title)}</title>",
            _line(f"{style} certain", x, frame.bottom, x, frame.top + 6.0),
            f'<path class="{style} tip" d="{tip}"/></g>',
        ]
    step = (frame.right - frame.left) / (len(curve) - 1)
    tall = frame.bottom - frame.top
    points = [
        f"{frame.left + k * step:.1f},{frame.bottom - min(value / peak, 1.0) * tall:.1f}"
        for k, value in enumerate(curve)
    ]
    outline = " L".join(points)
    area = f"M{frame.left:.1f},{frame.bottom:.1f} L{outline} L{frame.right:.1f},{frame.bottom:.1f} Z"
    return [
        f'<path class="{style} hill" d="{area}"><title>{escape(title)}</title></path>',
        f'<path class="{style} edge" d="M{outline}"/>',
    ]


def _mark(frame: Frame, value: float, label: str, style: str, y: float) -> list[str]:
    if not frame.low < value < frame.high:
        return []
    x = frame.x(value)
    is_left = x < frame.left + 0.5 * (frame.right - frame.left)
    parts = [_line(f"{style} mark", x, y + 4.0 if label else y + 10.0, x, frame.bottom)]
    if label:
        at, anchor = (x + 4.0, "start") if is_left else (x - 4.0, "end")
        parts.append(_text(at, y + 6.0, label, anchor, f"{style} label"))
    return parts


def _axis(frame: Frame, write: Write, num: int = 7) -> list[str]:
    parts = [_line("grid", frame.left, frame.bottom, frame.right, frame.bottom)]
    for value in _ticks(frame.low, frame.high, num):
        x = frame.x(value)
        parts.append(_line("base" if value == 0.0 else "grid", x, frame.top, x, frame.bottom))
        parts.append(_text(x, frame.bottom + 16.0, _TRAILING.sub("", write(value)), "middle", "axis"))
    return parts


def _ticks(low: float, high: float, num: int) -> list[float]:
    """Round values within the range, about `num` of them, zero among them where it is inside."""
    raw = (high - low) / num
    digit = 10.0 ** floor(log10(raw))
    step = digit * next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * digit >= raw)
    first = int(np.ceil(low / step))
    last = int(np.floor(high / step))
    return [place * step for place in range(first, last + 1)]


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _open(width: int, height: float, label: str) -> str:
    return f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(label)}">'


def _line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _rect(style: str, x1: float, y: float, x2: float, height: float) -> str:
    width = max(x2 - x1, 0.6)
    return (
        f'<rect class="{style}" x="{x1:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="1.5"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
