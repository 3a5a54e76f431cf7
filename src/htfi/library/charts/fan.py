"""A forecast as a fan: the price so far, and bands that widen from it; terminals, notebooks and plots draw it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from htfi.domain.time import NS_PER_DAY
from htfi.library.charts.frame import AxisScale, area, date_ticks, path, spread, ticks

BAND_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_FAN_POINTS = 60
_WIDTH, _HEIGHT, _LEFT, _FOOT, _TOP = 720, 260, 64, 24, 8


@dataclass(frozen=True, slots=True)
class Fan:
    """Prices at days since 1970: `history` so far; `ahead` [points][BAND_LEVELS] from the newest price on."""

    title: str
    past_days: tuple[float, ...]
    history: tuple[float, ...]
    ahead_days: tuple[float, ...]
    ahead: tuple[tuple[float, ...], ...]

    def band(self, level: float) -> tuple[float, ...]:
        """The price at a level of BAND_LEVELS, at each point ahead."""
        place = BAND_LEVELS.index(level)
        return tuple(prices[place] for prices in self.ahead)


def make_fan(
    title: str,
    ends_ns: Sequence[int],
    history: Sequence[float],
    horizons: Sequence[int],
    levels: Sequence[float],
    quantiles: Sequence[Sequence[float]],
) -> Fan:
    """The fan of log-return quantiles [H, Q] from the newest of `history`; bars ahead are as far apart as the last."""
    bands = [
        tuple(quantile_at(level, tuple(levels), list(row)) for level in BAND_LEVELS) for row in quantiles
    ]
    recent = ends_ns[-horizons[-1] - 1 :]
    step_ns = (recent[-1] - recent[0]) / (len(recent) - 1) if len(recent) > 1 else NS_PER_DAY
    num = min(horizons[-1], MAX_FAN_POINTS)
    bars = [round(point * horizons[-1] / num) for point in range(num + 1)]
    ahead = [levels_ahead(history[-1], horizons, bands, bar) for bar in bars]
    return Fan(
        title,
        tuple(end / NS_PER_DAY for end in ends_ns),
        tuple(history),
        tuple((ends_ns[-1] + bar * step_ns) / NS_PER_DAY for bar in bars),
        tuple(map(tuple, ahead)),
    )


def levels_ahead(
    last_price: float, horizons: Sequence[int], bands: Sequence[Sequence[float]], bar: int
) -> list[float]:
    """Prices `bar` bars ahead at the levels of `bands`: between horizons they spread with the square root of time."""
    before, band_before = 0, (0.0,) * len(bands[0])
    for horizon, at_horizon in zip(horizons, bands, strict=True):
        if bar <= horizon:
            share = (math.sqrt(bar) - math.sqrt(before)) / (math.sqrt(horizon) - math.sqrt(before))
            returns = [a + share * (b - a) for a, b in zip(band_before, at_horizon, strict=True)]
            return [last_price * math.exp(value) for value in returns]
        before, band_before = horizon, tuple(at_horizon)
    return [last_price * math.exp(value) for value in band_before]


def quantile_at(level: float, levels: tuple[float, ...], quantiles: Sequence[float]) -> float:
    """The quantile at a level between the stated ones, on a straight line; the outermost beyond them."""
    for k, upper in enumerate(levels):
        if level <= upper:
            if k == 0 or level == upper:
                return quantiles[k]
            share = (level - levels[k - 1]) / (upper - levels[k - 1])
            return quantiles[k - 1] + share * (quantiles[k] - quantiles[k - 1])
    return quantiles[-1]


def format_price(price: float) -> str:
    """Five significant digits or two decimals, whichever says more: 899.22, 0.012345, 15,421.10."""
    if price == 0 or not math.isfinite(price):
        return f"{price:g}"
    decimals = max(2, 4 - math.floor(math.log10(abs(price))))
    return f"{price:,.{min(decimals, 8)}f}"


def fan_svg(fan: Fan) -> str:
    """The fan as one SVG that needs no style of its page, for light and dark grounds."""
    x = AxisScale(fan.past_days[0], fan.ahead_days[-1])
    low, high = spread([*fan.history, *(price for prices in fan.ahead for price in prices)])
    y = AxisScale(low, high, up=True)
    line = 'fill="none" stroke-width="1.6" vector-effect="non-scaling-stroke"'
    shapes = [
        f'<path d="{area(x, y, fan.ahead_days, fan.band(one), fan.band(other))}" fill="#2b6cb0" '
        f'fill-opacity="{opacity}"/>'
        for one, other, opacity in ((0.05, 0.95, 0.18), (0.25, 0.75, 0.3))
    ]
    shapes.append(f'<path d="{path(x, y, fan.ahead_days, fan.band(0.5))}" stroke="#2b6cb0" {line}/>')
    shapes.append(f'<path d="{path(x, y, fan.past_days, fan.history)}" stroke="currentColor" {line}/>')
    width, height = _WIDTH - _LEFT, _HEIGHT - _FOOT - _TOP
    words: list[str] = []
    for tick in ticks(low, high, most=5):
        if 0.0 <= y.percent(tick.at) <= 100.0:
            down = _TOP + height * (1.0 - y.percent(tick.at) / 100.0)
            words.append(
                f'<path d="M{_LEFT} {down:.1f}h{width}" stroke="currentColor" stroke-opacity=".15"/>'
                f'<text x="{_LEFT - 8}" y="{down + 4:.1f}" text-anchor="end">{escape(tick.label)}</text>'
            )
    for tick in date_ticks(x.low, x.high):
        along = _LEFT + width * x.percent(tick.at) / 100.0
        if not tick.minor and along < _WIDTH - 24:
            words.append(f'<text x="{along:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{tick.label}</text>')
    name = f"{fan.title}: the price so far, and where half and nine in ten of outcomes are expected"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" style="max-width:{_WIDTH}px;font:12px sans-serif" '
        f'fill="currentColor" role="img" aria-label="{escape(name)}">{"".join(words)}'
        f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" viewBox="0 0 1000 1000" '
        f'preserveAspectRatio="none">{"".join(shapes)}</svg></svg>'
    )
