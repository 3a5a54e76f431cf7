"""The profile of a file before it is read: its kind, its bars, whether its rows need sorting. Readers call it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain

from htfi.pipeline.intake.bar_spacing import BarSurvey, begin_ns
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import ColumnLayout
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

HEAD_ROWS = 200  # enough to recognise the kind, and a quote's side from a trade's
LONG_HEAD_ROWS = 4096
NUM_PROBES = 64  # places in the rest of a file, each a few rows
PROBE_ROWS = 8
_STACKED_KINDS = ("bar", "macro")


@dataclass(frozen=True, slots=True)
class FileProfile:
    """`kind` is '' for a file without usable rows and 'mixed' for one with several kinds."""

    kind: str
    has_bars: bool
    stacked: bool
    newest_first: bool

    @property
    def may_be_stacked(self) -> bool:
        """Files of bars and of macro values often hold one symbol or series after the other."""
        return self.kind in _STACKED_KINDS


def profile_file(
    spec: SourceSpec,
    symbol: str,
    layout: ColumnLayout | None,
    head: Sequence[Row],
    probes: Iterable[Row] = (),
) -> FileProfile:
    """Judge a file by its first rows, and by some further ones in the file's order.

    It is stacked when time steps back only where a new symbol begins, and has the newest first where each symbol's
    time steps back and never forward.
    """
    parser = RowParser(spec, symbol, layout, None, list(head[:HEAD_ROWS]))
    kinds: set[str] = set()
    latest: dict[str, int] = {}
    current, newest_ns = "", -(1 << 63)
    num_back = num_back_elsewhere = num_before = num_after = 0
    last: dict[str, int] = {}
    for row in chain(head, probes):
        seen = parser.peek(row)
        if seen is None:
            continue
        kind, series, moment = seen
        kinds.add(kind)
        at_ns = begin_ns(moment)
        known = series in latest
        num_before += known and at_ns < last[series]
        num_after += known and at_ns > last[series]
        last[series] = at_ns
        if at_ns < newest_ns - spec.tolerance_ns:
            num_back += 1
            num_back_elsewhere += known
        newest_ns = max(newest_ns, at_ns) if series == current else at_ns
        latest[series] = max(at_ns, latest.get(series, at_ns))
        current = series
    kind = layout.kind if layout else "mixed" if len(kinds) > 1 else next(iter(kinds), "")
    stacked = kind in _STACKED_KINDS and num_back > 0 and num_back_elsewhere == 0
    return FileProfile(kind, "bar" in kinds, stacked, num_before > 0 and num_after == 0)


def survey_rows(parser: RowParser, rows: Iterable[Row], survey: BarSurvey) -> None:
    """Note when the bars among these rows begin, until the survey is full."""
    for row in rows:
        seen = parser.peek_bar(row)
        if seen is None:
            continue
        symbol, stated, moment = seen
        survey.add((symbol, stated, isinstance(moment, date)), begin_ns(moment))
        if survey.full:
            return
