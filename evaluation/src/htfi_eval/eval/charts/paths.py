"""Shapes as SVG: lines with gaps, areas between two lines, dots; `gallery_times` and `gallery_charts` call it."""

import math
from collections.abc import Sequence
from html import escape

from htfi_eval.eval.charts.chart import Curve
from htfi_eval.eval.charts.frame import AxisScale

NUM_COLOURS = 8
MAX_POINTS = 1_600  # of a curve: finer than a screen's pixels
MAX_DOTTED_POINTS = 25  # up to which each has a dot


def values_at(values: Sequence[float | None], kept: Sequence[int]) -> list[float | None]:
    """The kept ones; where values are too few, gaps."""
    return [known(values[k]) if k < len(values) else None for k in kept]


def known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def path(x: AxisScale, y: AxisScale, at: Sequence[float], values: Sequence[float | None]) -> str:
    parts: list[str] = []
    pen_down = False
    for across, value in zip(at, values, strict=False):
        if value is None or not math.isfinite(value):
            pen_down = False
            continue
        parts.append(f"{'L' if pen_down else 'M'}{x(across):.1f} {y(value):.1f}{'' if pen_down else 'h0'}")
        pen_down = True
    return "".join(parts)


def dense(x: AxisScale, y: AxisScale, at: Sequence[float], values: Sequence[float | None]) -> str:
    """Of each stretch its least and greatest value, in the order they came: no spike is lost."""
    stretch = math.ceil(len(at) / (MAX_POINTS / 2))
    kept_at: list[float] = []
    kept: list[float | None] = []
    for begin in range(0, len(at), stretch):
        here = [k for k in range(begin, min(begin + stretch, len(values))) if known(values[k]) is not None]
        if not here:
            kept_at.append(at[begin])
            kept.append(None)
            continue
        ends = {min(here, key=lambda k: values[k] or 0.0), max(here, key=lambda k: values[k] or 0.0)}
        for k in sorted(ends):
            kept_at.append(at[k])
            kept.append(values[k])
    return path(x, y, kept_at, kept)


def area(
    x: AxisScale,
    y: AxisScale,
    at: Sequence[float],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
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


def dot(x: float, y: float, width_px: float, style: str, told: str) -> str:
    """A stroke without length under a round cap: a circle, however the plot is stretched."""
    title = f"<title>{escape(told)}</title>" if told else ""
    return f'<path class="dot {style}" style="stroke-width:{width_px:.1f}px" d="M{x:.1f} {y:.1f}h0">{title}</path>'


def colour_of(place: int, curve: Curve) -> str:
    if curve.quiet:
        return "line quiet"
    return f"line c{place % NUM_COLOURS}" + (" dashed" if place >= NUM_COLOURS else "")
