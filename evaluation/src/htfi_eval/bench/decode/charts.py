"""Three charts of `htfi bench decode` as inline SVG: gain by kind and cost, acceptance by depth, where time goes."""

import math
from collections.abc import Callable, Sequence
from html import escape

from htfi_eval.bench.decode.measurements import (
    ALL,
    DecodeRuns,
    acceptance_by_depth,
    speedup,
    time_shares,
    total_of,
)
from htfi_eval.bench.decode.methods import PLAIN

WIDTHS = {"wide": 560, "narrow": 390}  # of a chart's own units: type keeps its size on a screen of each kind
_LEFT, _RIGHT, _TOP, _ROW, _FOOT = 170, 20, 12, 34, 30
_SIDE, _MARGIN = 302, 44
_DEPTHS = 8
_MIN_TICK_GAP = 34  # between ticks


def responsive_svg(draw: Callable[[int, str], str]) -> str:
    """A chart for wide screens and one for narrow ones, by `draw(width, style)`; the page shows one of them."""
    return "".join(draw(width, style) for style, width in WIDTHS.items())


def gain_svg(all_runs: Sequence[DecodeRuns], way: str, size: int, style: str) -> str:
    """Tokens a second over plain decoding, by kind: a dot for each target, on a logarithmic scale."""
    groups = [ALL, *all_runs[0].kinds]
    gains = {(group, of.label): speedup(of, group, way, PLAIN) for group in groups for of in all_runs}
    most = max(2.0, *gains.values())
    least = min(0.8, *gains.values())
    bottom = _TOP + _ROW * len(groups)
    span = math.log(most / least)

    def x(gain: float) -> float:
        return _LEFT + math.log(gain / least) / span * (size - _LEFT - _RIGHT)

    parts = [_open(size, bottom + _FOOT, "gain by kind of prompt and cost of the target", style)]
    ticks = [gain for gain in (0.5, 1, 1.5, 2, 3, 4, 6, 8, 12) if least <= gain <= most]
    told = -math.inf
    for gain in ticks:
        if x(gain) - told >= _MIN_TICK_GAP or gain == 1:
            told = x(gain)
            line = "base" if gain == 1 else "grid"
            parts.append(f'<line class="{line}" x1="{told:.1f}" y1="{_TOP}" x2="{told:.1f}" y2="{bottom}"/>')
            parts.append(_label(told, bottom + 18, f"{gain:g}×", "middle", "axis"))
    for row, group in enumerate(groups):
        y = _TOP + _ROW * (row + 0.5)
        parts.append(_label(_LEFT - 14, y + 4, group, "end"))
        for place, of in enumerate(all_runs):
            gain = gains[group, of.label]
            title = f"{of.label}, {group}: {gain:.2f}×"
            parts.append(_dot(x(gain), y + 6.0 * (place - (len(all_runs) - 1) / 2), place, title))
    return "".join([*parts, "</svg>"])


def acceptance_svg(runs: DecodeRuns, way: str, style: str = "") -> str:
    """The share of drafts that stand to a depth, by kind."""
    edge = _MARGIN + _SIDE
    parts = [_open(edge + _MARGIN, edge + _MARGIN, "drafts that stand, by depth", style)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = edge - share * _SIDE
        parts.append(f'<line class="grid" x1="{_MARGIN}" y1="{y:.1f}" x2="{edge}" y2="{y:.1f}"/>')
        parts.append(_label(_MARGIN - 8, y + 4, f"{share:.0%}", "end", "axis"))
    parts += [
        _label(_depth(depth), edge + 18, str(depth), "middle", "axis") for depth in range(1, _DEPTHS + 1)
    ]
    for place, kind in enumerate(runs.kinds):
        shares = acceptance_by_depth(runs, kind, way)[:_DEPTHS]
        points = [(_depth(depth), edge - share * _SIDE) for depth, share in enumerate(shares, 1)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="r{place}" points="{path}"/>')
        parts += [
            _dot(x, y, place, f"{kind}: {share:.0%} to depth {depth}")
            for depth, ((x, y), share) in enumerate(zip(points, shares, strict=True), 1)
        ]
    return "".join([*parts, "</svg>"])


def time_shares_svg(runs: DecodeRuns, size: int, style: str) -> str:
    """A bar a way: its time for a token over all kinds, in parts."""
    answers = {way: [answer for run in runs.of(ALL, way) for answer in run] for way in runs.ways}
    token_ms = {way: total_of(of, "write_ms") / total_of(of, "num_tokens") for way, of in answers.items()}
    longest = max(token_ms.values())
    bottom = _TOP + _ROW * len(answers)
    parts = [_open(size, bottom + _FOOT, "where the time goes", style)]
    for place, (way, of) in enumerate(answers.items()):
        y, x = _TOP + _ROW * place + 6, float(_LEFT)
        parts.append(_label(_LEFT - 14, y + 16, way, "end"))
        spent = time_shares(of)
        spent["rest"] = max(100.0 - sum(spent.values()), 0.0)
        for colour, (name, share) in enumerate(spent.items()):
            width = share / 100 * token_ms[way] / longest * (size - _LEFT - _RIGHT - 60)
            parts.append(
                f'<rect class="r{colour}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="22">'
                f"<title>{name}: {share:.0f}%</title></rect>"
            )
            x += width
        parts.append(_label(x + 8, y + 16, f"{token_ms[way]:.2f} ms", "start", "axis"))
    return "".join([*parts, "</svg>"])


def legend(names: Sequence[str]) -> str:
    return " &nbsp; ".join(
        f'<span class="r{place}">●</span> {escape(name)}' for place, name in enumerate(names)
    )


def _depth(depth: int) -> float:
    return _MARGIN + (depth - 0.5) / _DEPTHS * _SIDE


def _dot(x: float, y: float, colour: int, title: str) -> str:
    return (
        f'<circle class="r{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{escape(title)}</title></circle>'
    )


def _label(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _open(width: int, height: int, label: str, style: str) -> str:
    return f'<svg class="{style}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
