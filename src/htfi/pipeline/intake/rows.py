"""One row of untrusted cells becomes one event or one rejection: every rule on values stands here. Readers call it.

`RowParser.parse` never raises on what a row holds. Fast column-wise paths hand it each row that they doubt.
"""

import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, Event, MacroRelease, News, Quote, Rejection, Trade
from htfi.domain.time import NS_PER_DAY, format_duration, parse_duration
from htfi.pipeline.intake.columns import ASK_SIDES, BID_SIDES, Layout, recognise
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.spec import KINDS, SourceSpec, read_interval
from htfi.pipeline.intake.stamps import DayRule, read_time

RAW_CHARS = 300
LONGEST_SYMBOL = 64
_MAX_LAYOUTS = 256
_DAY = format_duration(NS_PER_DAY)

Row = Mapping[str, Any]


class RowParser:
    """Reads rows of one source. `layout` fixes the columns; without it each row's own keys are recognised.

    `sample` (a few first rows) settles what one row alone cannot tell; `interval` is what was inferred for bars.
    """

    def __init__(
        self, spec: SourceSpec, symbol: str, layout: Layout | None = None, interval: str = "", sample: list[Row] | None = None
    ) -> None:
        self.spec = spec
        self.source = spec.name
        self.layout = layout
        self.symbol = spec.symbol or symbol
        self.interval = read_interval(spec.interval) if spec.interval else interval
        self._sample = sample or []
        self._zone = spec.zone_info
        self._days = DayRule.of(spec)
        self._delay_ns = spec.delay_ns
        self._only = frozenset(spec.only)
        self._layouts: dict[tuple[str, ...], Layout | None] = {}
        self._build: dict[str, Callable[[Row, Layout, int, int | None], Event | None]] = {
            "trade": self._trade,
            "quote": self._quote,
            "bar": self._bar,
            "news": self._news,
            "macro": self._macro,
        }

    def parse(self, row: Row, number: int, raw: str | bytes = "", arrival_ns: int | None = None) -> Event | Rejection | None:
        """The event of a row; its rejection; or None for a row of a symbol that is not wanted.

        `number` is the row's place in its source, `arrival_ns` when it reached a live feed.
        """
        try:
            layout = self.layout or self._layout_of(row)
            return self._build[layout.kind](row, layout, number, arrival_ns)
        except Refusal as refusal:
            return self.reject(number, refusal.reason, refusal.detail, raw or show_row(row))

    def reject(self, number: int, reason: Reason, detail: str, raw: str | bytes) -> Rejection:
        text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
        return Rejection(self.source, number, reason.value, detail[:RAW_CHARS], text[:RAW_CHARS])

    def _layout_of(self, row: Row) -> Layout:
        stated = "" if self.spec.kind else row.get("kind", row.get("type"))
        if stated is not None and stated != "":
            kind = stated.strip().lower() if isinstance(stated, str) else ""
            if kind not in KINDS and "kind" in row:
                raise Refusal(Reason.UNKNOWN_KIND, f"kind '{str(stated)[:40]}' is none of {', '.join(KINDS)}")
        else:
            kind = ""
        key = (kind if kind in KINDS else "", *row)
        layout = self._layouts.get(key)
        if layout is None and key not in self._layouts:
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = self._recognise(row, key[0])
        if layout is None:
            raise Refusal(Reason.UNKNOWN_KIND, f"no kind of event has the fields {', '.join(row) or '(none)'}")
        return layout

    def _recognise(self, row: Row, kind: str) -> Layout | None:
        from dataclasses import replace

        spec = replace(self.spec, kind=kind) if kind else self.spec
        alike = [other for other in self._sample if other.keys() == row.keys()]
        layout = recognise(list(row), spec, alike or [row])
        if layout is not None and (missing := layout.missing()):
            raise Refusal(Reason.MISSING_FIELD, f"a {layout.kind} needs {', '.join(missing)}")
        return layout
