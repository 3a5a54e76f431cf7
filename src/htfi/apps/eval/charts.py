"""Two charts as inline SVG, for the page of `htfi eval mini`: accuracy by kind of event, and reliability."""

import math
from collections import Counter
from collections.abc import Sequence
from html import escape

from htfi.apps.eval import scores
from htfi.apps.eval.baselines import Features
from htfi.apps.eval.cases import Case
from htfi.apps.eval.evaluation import CEILING, DRAFT, TARGET, Views
from htfi.apps.eval.scores import Mean, mean

SHOWN = (Features.WORDS.value, Features.ALL.value, DRAFT, TARGET)  # the target last: on top
_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 560, 150, 18, 12, 34
_SIDE, _MARGIN = 340, 40
_MOST_RADIUS = 11.0
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def accuracy_svg(views: Views, cases: Sequence[Case]) -> str:
    """Share of right directions by cause: a dot a reader with one standard error, a stroke for the ceiling."""
    groups = [("all", list(range(len(cases))))]
    for cause, _ in Counter(case.truth.cause for case in cases).most_common():
        groups.append((cause, [place for place, case in enumerate(cases) if case.truth.cause == cause]))
    height = _TOP + _ROW * len(groups) + 30
    bottom = height - 30
    parts = [_open(_WIDTH, height, "accuracy of direction by cause")]
    for share in _GRID:
        x = _x(share)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(
            f'<text class="axis" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{share:.0%}</text>'
        )
    for row, (name, places) in enumerate(groups):
        y = _TOP + _ROW * (row + 0.5)
        label = f"{name.replace('_', ' ')} <tspan class='quiet'>{len(places):,}</tspan>"
        parts.append(f'<text x="{_LEFT - 14}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        top = _accuracy(views, CEILING, places)
        x = _x(top.value)
        parts.append(
            f'<line class="ceiling" x1="{x:.1f}" y1="{y - 12:.1f}" x2="{x:.1f}" y2="{y + 12:.1f}">'
            f"<title>ceiling {top.value:.1%}</title></line>"
        )
        shown = [reader for reader in SHOWN if reader in views.readers]
        for place, reader in enumerate(shown):
            found = _accuracy(views, reader, places)
            at = y + 5.0 * (place - (len(shown) - 1) / 2)  # apart, so that none hides another
            low, high = _x(max(found.value - found.error, 0.0)), _x(min(found.value + found.error, 1.0))
            style = _style(reader)
            parts.append(
                f'<line class="{style}" x1="{low:.1f}" y1="{at:.1f}" x2="{high:.1f}" y2="{at:.1f}"/>'
            )
            parts.append(
                f'<circle class="{style}" cx="{_x(found.value):.1f}" cy="{at:.1f}" r="4">'
                f"<title>{escape(reader)}: {found.value:.1%} ± {found.error:.1%}</title></circle>"
            )
    return "".join([*parts, "</svg>"])


def reliability_svg(views: Views) -> str:
    """Stated confidence against the share that was right; areas are numbers of calls, the diagonal is right."""
    size = _SIDE + 2 * _MARGIN
    parts = [_open(size, size, "reliability of confidence")]
    for share in _GRID:
        x, y = _at(share, share)
        edge = _MARGIN + _SIDE
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_MARGIN}" x2="{x:.1f}" y2="{edge}"/>')
        parts.append(f'<line class="grid" x1="{_MARGIN}" y1="{y:.1f}" x2="{edge}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="axis" x="{x:.1f}" y="{edge + 18}" text-anchor="middle">{share:.0%}</text>'
        )
        parts.append(
            f'<text class="axis" x="{_MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        )
    (x1, y1), (x2, y2) = _at(0.0, 0.0), _at(1.0, 1.0)
    parts.append(f'<line class="diagonal" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
    for reader in SHOWN:
        if reader not in views.readers:
            continue
        bins = [one for one in scores.reliability(views.readers[reader], views.truth) if one.num]
        most = max((one.num for one in bins), default=1)
        points = [_at(one.stated, one.right) for one in bins]
        style = _style(reader)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="{style}" points="{path}"/>')
        for one, (x, y) in zip(bins, points, strict=True):
            radius = max(_MOST_RADIUS * math.sqrt(one.num / most), 1.5)
            parts.append(
                f'<circle class="{style} soft" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(reader)}: '
                f"stated {one.stated:.0%}, right {one.right:.0%} of {one.num:,}</title></circle>"
            )
    return "".join([*parts, "</svg>"])


def legend_html(views: Views) -> str:
    dots = [
        f'<span class="{_style(reader)}">●</span> {escape(reader)}'
        for reader in SHOWN
        if reader in views.readers
    ]
    return " &nbsp; ".join([*reversed(dots), '<span class="top">▏</span>ceiling'])


def _accuracy(views: Views, reader: str, places: Sequence[int]) -> Mean:
    return mean(scores.right_direction(views.readers[reader].at(places), views.truth.at(places)))


def _style(reader: str) -> str:
    return f"r{SHOWN.index(reader)}"


def _open(width: int, height: int, label: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _at(stated: float, right: float) -> tuple[float, float]:
    return _MARGIN + stated * _SIDE, _MARGIN + (1.0 - right) * _SIDE
