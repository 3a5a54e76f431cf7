"""Charts in characters: fan chart, sparkline, band, stacked bar; `run`, `forecast` and `scenario` print them."""

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.text import Text

from htfi.domain.decision import Regime
from htfi.library.charts.fan import format_price, levels_ahead

REGIME_STYLE = {
    Regime.CALM: "#4c9be8",
    Regime.NORMAL: "#46b17b",
    Regime.STRESSED: "#e0a030",
    Regime.SHOCK: "#ef5350",
}
EXPERT_STYLES = ("#6ea8fe", "#63c7b2", "#f2b84b", "#c792ea", "#f2777a", "#9aa5b1")
MUTED = "grey50"
LOG_FROM = 4.0  # highest over lowest price from which a scale is logarithmic
OUTER, INNER, MIDDLE, PRICE = "#2f5a86", "#5b93cc", "#e8f1fb", "#d7dee6"
_GAP = "   "  # between facts
_BRAILLE = 0x2800
# Dots of a braille cell from the top down, left column and right
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class FanSeries(Protocol):
    """Prices so far and, per horizon, log returns at the levels 5, 25, 50, 75 and 95%."""

    @property
    def last_price(self) -> float: ...
    @property
    def history(self) -> tuple[float, ...]: ...
    @property
    def horizons(self) -> tuple[int, ...]: ...
    @property
    def bands(self) -> tuple[tuple[float, ...], ...]: ...


def printable(text: str) -> str:
    """Text from outside, safe for a terminal: escape codes and line breaks become blanks."""
    return "".join(char if char.isprintable() else " " for char in text)


def truncate_end(text: str, width: int) -> str:
    """One line of at most `width` characters, with an ellipsis where something is missing."""
    text = " ".join(printable(text).split())
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def truncate_middle(text: str, width: int) -> str:
    """One line of at most `width` characters that keeps both ends: names and paths that begin alike stay apart."""
    text = " ".join(printable(text).split())
    if len(text) <= width:
        return text
    head = max(0, width - 1) // 2
    tail = max(0, width - 1) - head
    return text[:head] + "…" + text[len(text) - tail :]


def flow_facts(facts: Sequence[tuple[str, str, str]], width: int, before: Text | None = None) -> list[Text]:
    """Facts (name, value, what stands beside it) after each other on as many lines as they need; none is broken.

    `before` stands at the first line's beginning.
    """
    lines = [before] if before is not None else []
    for name, value, aside in facts:
        fact = Text(f"{name} ", MUTED).append(value, "").append(f" {aside}" if aside else "", MUTED)
        if lines and len(lines[-1]) + len(_GAP) + len(fact) <= width:
            lines[-1].append(_GAP).append_text(fact)
        else:
            lines.append(Text(" ").append_text(fact))
    return lines


def format_percent(fraction: float, signed: bool = True) -> str:
    """A fraction as per cent with two decimals and a true minus sign."""
    return f"{fraction * 100:{'+' if signed else ''}.2f}%".replace("-", "−")


def sparkline(values: Sequence[float], width: int) -> str:
    """The last `width` × 2 values as dots of one braille row, between their own least and greatest."""
    recent = values[-2 * width :]
    if not recent:
        return ""
    low, high = min(recent), max(recent)
    scale = 3 / (high - low) if high > low else 0.0
    rows = [3 - round((value - low) * scale) for value in recent]
    pairs = [rows[k : k + 2] for k in range(len(rows) % 2, len(rows), 2)]
    cells = [_DOTS[0][left] | _DOTS[1][right] for left, right in pairs]
    return "".join(chr(_BRAILLE + dots) for dots in cells)


def band(levels: Sequence[float], reach: float, width: int) -> Text:
    """A line from q05 to q95, thick from q25 to q75, with the median; `reach` is half the scale."""
    half = width / 2

    def column(value: float) -> int:
        return min(width - 1, max(0, int(half + value / reach * half))) if reach > 0 else width // 2

    q05, q25, q50, q75, q95 = (column(value) for value in levels)
    text = Text(" " * q05)
    text.append("─" * (q25 - q05), OUTER)
    text.append("━" * (q50 - q25), INNER)
    text.append("│", MIDDLE)
    text.append("━" * (q75 - q50), INNER)
    text.append("─" * (q95 - q75), OUTER)
    text.append(" " * (width - len(text)))
    return text


def stacked_bar(shares: Mapping[str, float], styles: Mapping[str, str], width: int) -> Text:
    """Shares that sum to 1 as one bar of `width` cells."""
    text = Text()
    reached, filled = 0.0, 0
    for name, share in shares.items():
        reached += share
        cells = round(reached * width) - filled
        text.append("━" * cells, styles.get(name, MUTED))
        filled += cells
    return text


def expert_styles(names: Sequence[str]) -> dict[str, str]:
    """A colour for each expert, the same in every panel."""
    return {name: EXPERT_STYLES[k % len(EXPERT_STYLES)] for k, name in enumerate(names)}


def fan_chart(series: FanSeries, width: int, height: int) -> list[Text]:
    """Price so far and the forecast's fan, one column a bar, on one scale; labels stand at the right.

    Shading: outer 90%, inner 50%, line median. Between horizons the fan widens with the square root of time. The scale
    is logarithmic where prices differ by more than LOG_FROM times.
    """
    label_width = 18
    horizon = series.horizons[-1]
    ahead = min(horizon, max(4, (width - label_width) // 3))
    columns = width - label_width - ahead
    history = series.history[-columns:]
    # a far horizon is drawn on fewer columns than it has bars, so that the fan always ends there
    bars = [math.ceil(column * horizon / ahead) for column in range(1, ahead + 1)]
    fan = [levels_ahead(series.last_price, series.horizons, series.bands, bar) for bar in bars]
    low = min(min(history), min(levels[0] for levels in fan))
    high = max(max(history), max(levels[-1] for levels in fan))
    if high <= low:
        low, high = low * 0.999, high * 1.001
    ends = fan[-1]
    rises = 0 < low * LOG_FROM < high
    if rises:
        low, high = math.log(low), math.log(high)
        history = tuple(math.log(price) for price in history)
        fan = [[math.log(price) for price in levels] for levels in fan]
    lines = _price_line(history, columns, height, low, high)
    for levels in fan:
        for row, cell in enumerate(_fan_cells(levels, height, low, high)):
            lines[row].append(*cell)
    _label_fan(lines, ends, fan[-1], low, high)
    if rises:
        lines[-1].append(" log scale", MUTED)
    return lines


def _price_line(history: Sequence[float], columns: int, height: int, low: float, high: float) -> list[Text]:
    """A joined line in braille, four dots to a row, right-aligned in `columns`."""
    scale = (height * 4 - 1) / (high - low)
    cells = [[0] * columns for _ in range(height)]
    offset = columns - len(history)
    before = round((high - history[0]) * scale)
    for k, price in enumerate(history):
        now = round((high - price) * scale)
        middle = (before + now) // 2
        for side, (start, stop) in enumerate(((before, middle), (middle, now))):
            for dot in range(min(start, stop), max(start, stop) + 1):
                cells[dot // 4][offset + k] |= _DOTS[side][dot % 4]
        before = now
    return [Text("".join(chr(_BRAILLE + dots) for dots in row), PRICE) for row in cells]


def _fan_cells(levels: Sequence[float], height: int, low: float, high: float) -> list[tuple[str, str]]:
    """One column of the fan, as (character, style) from the top down; half blocks double the rows."""
    q05, q25, median, q75, q95 = levels
    step = (high - low) / (height * 2)
    shades: list[str] = []
    for half_row in range(height * 2):
        middle = high - (half_row + 0.5) * step
        shades.append(INNER if q25 <= middle <= q75 else OUTER if q05 <= middle <= q95 else "")
    cells = [_half_blocks(upper, lower) for upper, lower in zip(shades[::2], shades[1::2], strict=True)]
    row = min(height - 1, int((high - median) / (2 * step)))
    upper, lower = shades[2 * row : 2 * row + 2]
    ground = upper if upper == lower else OUTER if upper and lower else ""
    cells[row] = ("─", f"{MIDDLE} on {ground}" if ground else MIDDLE)
    return cells


def _half_blocks(upper: str, lower: str) -> tuple[str, str]:
    if upper == lower:
        return ("█", upper) if upper else (" ", "")
    if not upper:
        return "▄", lower
    return "▀", f"{upper} on {lower}" if lower else upper


def _label_fan(
    lines: list[Text], prices: Sequence[float], places: Sequence[float], low: float, high: float
) -> None:
    """Write the outer and middle prices beside the fan's end, at their places between `low` and `high`, where they do
    not collide.
    """
    height = len(lines)
    taken: set[int] = set()
    for k, name in ((2, "median"), (len(prices) - 1, "95%"), (0, "5%")):
        row = min(height - 1, max(0, int((high - places[k]) / (high - low) * height)))
        if row in taken:
            continue
        taken.add(row)
        lines[row].append(f" {format_price(prices[k])} ", MIDDLE if name == "median" else INNER)
        lines[row].append(name, MUTED)
