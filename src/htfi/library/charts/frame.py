"""Axes, numbers, and shapes of a chart as SVG: scales, ticks, lines with gaps, areas, dots, and the frame of a plot.

A plot is an SVG of 1000 × 1000 units stretched to any width, with strokes of constant width and labels in HTML beside
it: text has the same size on a phone and on a wide screen.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from html import escape
from typing import Any

from htfi.library.charts.specs import Curve

SIDE = 1000.0  # of the SVG's own units, both ways
_MAX_DATE_TICKS = 11
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - times of a chart are drawn as written, without a zone


@dataclass(frozen=True, slots=True)
class AxisScale:
    """From values to 0–1000; `up` counts from the bottom; `log` spaces powers evenly."""

    low: float
    high: float
    up: bool = False
    log: bool = False

    def __call__(self, value: float) -> float:
        share = self.percent(value) / 100.0
        return SIDE * (1.0 - share if self.up else share)

    def percent(self, value: float) -> float:
        """From the left or the bottom edge."""
        if self.log:
            return 100.0 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100.0 * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class AxisTick:
    at: float
    label: str
    minor: bool = False  # left out where there is little space


@dataclass(slots=True)
class PlotFrame:
    """What one plot draws: `shapes` inside the SVG, `labels` over it as HTML; `readout` feeds the pointer's box."""

    x: AxisScale
    y: AxisScale
    x_ticks: Sequence[AxisTick]
    y_ticks: Sequence[AxisTick]
    x_label: str = ""
    y_label: str = ""
    style: str = ""
    shapes: list[str] = field(default_factory=list[str])
    labels: list[str] = field(default_factory=list[str])
    readout: dict[str, Any] = field(default_factory=dict[str, Any])

    def html(self, name: str) -> str:
        grid = [
            f'<path class="grid" d="M0 {self.y(tick.at):.1f}H1000"/>'
            for tick in self.y_ticks
            if 0 <= self.y.percent(tick.at) <= 100
        ]
        rises = [f'<path class="tick" d="M{self.x(tick.at):.1f} 1000v8"/>' for tick in self.x_ticks]
        words = [
            f'<span class="y" style="bottom:{self.y.percent(tick.at):.2f}%">{escape(tick.label)}</span>'
            for tick in self.y_ticks
        ]
        words += [
            f'<span class="x{" minor" if tick.minor else ""}" style="left:{self.x.percent(tick.at):.2f}%">'
            f"{escape(tick.label)}</span>"
            for tick in thinned(self.x_ticks)
        ]
        if self.x_label:
            words.append(f'<span class="x-label">{escape(self.x_label)}</span>')
        if self.y_label:
            words.append(f'<span class="y-label">{escape(self.y_label)}</span>')
        gutter = max((len(tick.label) for tick in self.y_ticks), default=2)
        return (
            f'<div class="plot {self.style}{" told" if self.y_label else ""}" style="--gutter:{gutter}">'
            f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" aria-label="{escape(name)}">'
            f"{''.join([*grid, *rises, *self.shapes])}</svg>{''.join([*words, *self.labels])}</div>"
        )


def finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def spread(values: Iterable[float | None], pad: float = 0.04) -> tuple[float, float]:
    """A range that holds all finite values with some margin; never empty."""
    known = finite(values)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    margin = pad * (high - low)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = 0.5 * abs(low) or 0.5
    return low - margin, high + margin


def ticks(
    low: float, high: float, unit: str = "", most: int = 6, write: Callable[[float], str] | None = None
) -> list[AxisTick]:
    """Round numbers within low–high; `write` labels amounts, such as money, whose unit is not a share."""
    step = _round_step((high - low) / most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    if write is not None and unit != "%":
        return [AxisTick(value, write(value)) for value in values]
    return [AxisTick(value, number(value, unit, step)) for value in values]


def log_ticks(low: float, high: float) -> list[AxisTick]:
    """1, 2 and 5 times the powers of ten within low–high."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [k * 10.0**power for power in powers for k in (1.0, 2.0, 5.0)]
    return [AxisTick(value, number(value)) for value in values if low <= value <= high]


def thinned(of: Sequence[AxisTick], most: int = 6) -> list[AxisTick]:
    """Every second tick is minor if there are more than `most` and none is minor yet."""
    if len(of) <= most or any(tick.minor for tick in of):
        return list(of)
    return [AxisTick(tick.at, tick.label, place % 2 == 1) for place, tick in enumerate(of)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next((k * power for k in (1.0, 2.0, 2.5, 5.0) if k * power >= rough * 0.999), 10.0 * power)


def number(value: float | None, unit: str = "", step: float | None = None) -> str:
    """A number for people; `step` between neighbours decides the number of digits."""
    if value is None or not math.isfinite(value):
        return "–"
    scaled, by = (value * 100.0, 100.0) if unit == "%" else (value, 1.0)
    if step is not None:
        digits = max(0, -math.floor(math.log10(step * by) + 1e-9))
        digits += round(step * by * 10**digits, 6) % 1 > 0  # 2.5 needs a digit more than 2
        large = digits > 7 or abs(scaled) >= 1e7
        text = f"{scaled:.2g}" if large else f"{scaled:,.{digits}f}"
    elif scaled == int(scaled) and abs(scaled) < 1e7 and not unit:
        text = f"{scaled:,.0f}"
    elif abs(scaled) >= 1e7 or 0 < abs(scaled) < 1e-4:
        text = f"{scaled:.3g}"
    else:
        digits = 0 if abs(scaled) >= 1000 else 1 if abs(scaled) >= 100 else 2 if abs(scaled) >= 10 else 3
        text = f"{scaled:,.{min(digits, 1) if unit == '%' else digits}f}"
    text = text.replace("-", "−")
    if text.strip("−0.,") == "":
        text = text.replace("−", "")
    return text + (unit if unit in ("%", "×") else f" {unit}" if unit and step is None else "")


def when(text: str) -> float | None:
    """Days since 1970 of an ISO date or instant; None where it is neither."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment.replace(tzinfo=None) - _EPOCH) / timedelta(days=1)


def places(times: Sequence[str]) -> tuple[list[float], bool]:
    """Positions of the times of a chart, and whether they are dates; other texts are evenly spaced."""
    days = [when(text) for text in times]
    known = [day for day in days if day is not None]
    if len(known) == len(days):
        return known, True
    return [float(k) for k in range(len(times))], False


def date_ticks(low: float, high: float) -> list[AxisTick]:
    """Starts of years, quarters, months or days, as many as fit."""
    try:
        first, last = _day(low), _day(high)
    except (OverflowError, ValueError):
        return []
    years = last.year - first.year + 1
    for months in (1, 3, 6):
        if (last.year - first.year) * 12 + last.month - first.month + 1 <= _MAX_DATE_TICKS * months:
            if high - low < 45:
                return _day_ticks(low, high)
            return _month_ticks(first, last, months, low, high)
    step = next(k for k in (1, 2, 5, 10, 20, 50, 100, 1000) if years <= _MAX_DATE_TICKS * k)
    starts = range(-(-first.year // step) * step, last.year + 1, step)
    return _within(((date(max(year, 1), 1, 1), str(year)) for year in starts), low, high)


def _month_ticks(first: date, last: date, months: int, low: float, high: float) -> list[AxisTick]:
    names: list[tuple[date, str]] = []
    for count in range(first.year * 12, last.year * 12 + 12, months):
        year, month = divmod(count, 12)
        start = date(year, month + 1, 1)
        names.append((start, str(year) if month == 0 else start.strftime("%b")))
    found = _within(names, low, high)
    if found and not found[0].label.isdigit():  # the first label carries its year
        year = (_EPOCH + timedelta(days=found[0].at)).year
        found[0] = AxisTick(found[0].at, f"{found[0].label} {year}")
    years = sum(tick.label.isdigit() for tick in found)
    return [AxisTick(tick.at, tick.label, years > 1 and not tick.label.isdigit()) for tick in found]


def _day_ticks(low: float, high: float) -> list[AxisTick]:
    if high - low <= 2.0:
        hours = next(k for k in (1, 3, 6, 12) if (high - low) * 24 <= _MAX_DATE_TICKS * k)
        first = math.ceil(low * 24 / hours)
        return [
            AxisTick(k * hours / 24, (_EPOCH + timedelta(hours=k * hours)).strftime("%H:%M"))
            for k in range(first, math.floor(high * 24 / hours) + 1)
        ]
    step = next(k for k in (1, 2, 5, 7, 14) if (high - low) <= _MAX_DATE_TICKS * k)
    starts = [_day(low) + timedelta(days=k) for k in range(0, int(high - low) + 2, step)]
    return _within(((start, f"{start.day} {start.strftime('%b')}") for start in starts), low, high)


def _within(starts: Iterable[tuple[date, str]], low: float, high: float) -> list[AxisTick]:
    found = [
        AxisTick(float((datetime(start.year, start.month, start.day) - _EPOCH).days), label)  # noqa: DTZ001
        for start, label in starts
    ]
    return [tick for tick in found if low <= tick.at <= high]


def _day(days: float) -> date:
    return (_EPOCH + timedelta(days=days)).date()


NUM_COLOURS = 8
MAX_POINTS = 1_600  # of a curve: finer than a screen's pixels
MAX_DOTTED_POINTS = 25  # up to which each has a dot


def values_at(values: Sequence[float | None], kept: Sequence[int]) -> list[float | None]:
    """The values at these places; gaps where there are too few."""
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
    """The lowest and highest value of each stretch, in order, so that no spike is lost."""
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


def dot(x: float, y: float, width_px: float, style: str, found: str) -> str:
    """A stroke without length under a round cap: a circle, however the plot is stretched."""
    title = f"<title>{escape(found)}</title>" if found else ""
    return f'<path class="dot {style}" style="stroke-width:{width_px:.1f}px" d="M{x:.1f} {y:.1f}h0">{title}</path>'


def colour_of(place: int, curve: Curve) -> str:
    if curve.quiet:
        return "line quiet"
    return f"line c{place % NUM_COLOURS}" + (" dashed" if place >= NUM_COLOURS else "")
