"""Results as HTML for notebooks: fan chart, table, and words with what counted marked. Text from outside is escaped."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from htfi.domain.time import format_ns
from htfi.library.charts.fan import BAND_LEVELS, Fan, fan_svg, format_price, quantile_at

_NUM_SHOWN = 6  # series drawn; of the rest the number is given
_MARK = "background:#e0a03055;color:inherit"


def block(title: str, *parts: str) -> str:
    """One result: a title and what stands below it."""
    return f'<div style="max-width:760px"><b>{escape(title)}</b>{"".join(parts)}</div>'


def table_html(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, the first column to the left."""
    style = 'style="text-align:left"'
    head = "".join(
        f"<th {style if not place else ''}>{escape(name)}</th>" for place, name in enumerate(heads)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td {style if not k else ''}>{escape(cell)}</td>" for k, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def marked(text: str, parts: Iterable[str]) -> str:
    """A text with the first occurrence of each part marked; parts that overlap an earlier one are left."""
    spans: list[tuple[int, int]] = []
    for part in sorted({part for part in parts if part.strip()}, key=len, reverse=True):
        start = text.find(part)
        if start >= 0:
            spans.append((start, start + len(part)))
    return marked_spans(text, spans)


def marked_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with these stretches marked, without those that overlap one before."""
    found: list[str] = []
    at = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < at or end > len(text) or end <= start:
            continue
        found += [escape(text[at:start]), f'<mark style="{_MARK}">{escape(text[start:end])}</mark>']
        at = end
    return "".join([*found, escape(text[at:])])


def fan_block(fan: Fan, as_of_ns: int, bands: str, words: str) -> str:
    """One series: its fan, its table and why."""
    when = format_ns(as_of_ns).replace("T", " ").replace("Z", " UTC")
    title = f"{fan.title}  {format_price(fan.history[-1])}  {when}"
    return block(title, fan_svg(fan), bands, f"<p>{words}</p>")


def band_table(
    last_price: float, horizons: Sequence[int], levels: Sequence[float], quantiles: Sequence[Sequence[float]]
) -> str:
    """Prices at five levels for each horizon."""
    heads = ["bars ahead", *(f"{level:.0%}" for level in BAND_LEVELS)]
    rows = [
        [
            str(horizon),
            *(
                format_price(last_price * math.exp(quantile_at(level, tuple(levels), row)))
                for level in BAND_LEVELS
            ),
        ]
        for horizon, row in zip(horizons, quantiles, strict=True)
    ]
    return table_html(heads, rows)


def shown(blocks: Sequence[str], num: int, what: str) -> str:
    """The first blocks, and how many more there are."""
    more = f"<p>and {num - len(blocks):,} more {what}</p>" if num > len(blocks) else ""
    return "".join(blocks) + more


def first_shown(num: int) -> int:
    """How many of so many are drawn."""
    return min(num, _NUM_SHOWN)
