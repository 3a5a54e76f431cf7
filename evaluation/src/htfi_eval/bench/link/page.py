"""The page of `htfi bench link`: time by round trip for each way and target, the metrics, the whole table."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path

from htfi_eval.bench.decode.charts import legend, responsive_svg
from htfi_eval.bench.link.figures import Row, RunsByKind, RunsByTarget, median_total_ms
from htfi_eval.bench.link.runs import FORCED_PLACEMENTS, PlacementChoice
from htfi_eval.bench.page import fill_page

_HEIGHT, _MARGIN, _FOOT = 380, 56, 40


def write_page(
    file: Path, runs: RunsByTarget, rows: Sequence[Row], metrics: Mapping[str, float], notes: Sequence[str]
) -> None:
    """Raises DependencyUnavailable where `file` cannot be written."""
    charts = "".join(
        f"<section><h2>{escape(target)} target</h2>{responsive_svg(partial(time_svg, by_rtt))}</section>"
        for target, by_rtt in runs.items()
    )
    pieces = {"ways": legend([manner.value for manner in FORCED_PLACEMENTS]), "charts": charts}
    fill_page(file, "link_page.html", pieces, rows, metrics, notes)


def time_svg(by_rtt: Mapping[float, RunsByKind], size: int, style: str) -> str:
    """A line a way, and a ring where the plan came out."""
    rtts = sorted(by_rtt)
    times = {
        manner: [median_total_ms(by_rtt[rtt], manner) for rtt in rtts]
        for manner in (*FORCED_PLACEMENTS, PlacementChoice.PLANNED)
    }
    least = min(min(of) for of in times.values())
    most = max(max(of) for of in times.values()) * 1.1
    right, bottom = size - 20, _HEIGHT - _FOOT

    def x(rtt_ms: float) -> float:
        whole = math.log1p(max(rtts[-1], 1.0))
        return _MARGIN + math.log1p(rtt_ms) / whole * (right - _MARGIN)

    def y(ms: float) -> float:
        return bottom - math.log(ms / least) / math.log(most / least) * (bottom - 12)

    parts = [
        f'<svg class="{style}" viewBox="0 0 {size} {_HEIGHT}" role="img" aria-label="time by round trip">'
    ]
    for tick in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000):
        if least <= tick <= most:
            parts.append(
                f'<line class="grid" x1="{_MARGIN}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}"/>'
            )
            parts.append(_label(_MARGIN - 8, y(tick) + 4, f"{tick:,}", "end"))
    parts += [_label(x(rtt), bottom + 18, f"{rtt:g}", "middle") for rtt in rtts]
    parts.append(_label((_MARGIN + right) / 2, bottom + 34, "round trip, ms", "middle"))
    for place, manner in enumerate(FORCED_PLACEMENTS):
        points = [(x(rtt), y(ms)) for rtt, ms in zip(rtts, times[manner], strict=True)]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline class="r{place}" points="{path}"/>')
        for (left, top), rtt, ms in zip(points, rtts, times[manner], strict=True):
            title = escape(f"{manner.value} at {rtt:g} ms: {ms:.0f} ms")
            parts.append(
                f'<circle class="r{place}" cx="{left:.1f}" cy="{top:.1f}" r="3.5"><title>{title}</title></circle>'
            )
    for rtt, ms in zip(rtts, times[PlacementChoice.PLANNED], strict=True):
        title = f"planned at {rtt:g} ms: {ms:.0f} ms"
        parts.append(
            f'<circle class="base" style="fill: none; stroke: var(--ink)" cx="{x(rtt):.1f}" cy="{y(ms):.1f}" r="7">'
            f"<title>{title}</title></circle>"
        )
    return "".join([*parts, "</svg>"])


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="axis" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
