"""What a file's first rows tell: how long its bars are, whether its symbols are stacked. Readers call it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from htfi.domain.time import NS_PER_DAY, format_duration
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import Layout
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

SAMPLE_ROWS = 8192
SIDES_ROWS = 200  # enough to tell a quote's side from a trade's


@dataclass(frozen=True, slots=True)
class Findings:
    """`kind` is '' for a file without usable rows and 'mixed' for one with several kinds."""

    kind: str
    interval: str
    stacked: bool


def find_out(spec: SourceSpec, symbol: str, layout: Layout | None, sample: Sequence[Row]) -> Findings:
    """Judge a file by a sample of its first rows."""
    parser = RowParser(spec, symbol, layout, "", list(sample))
    kinds: set[str] = set()
    gaps: Counter[int] = Counter()
    latest: dict[str, int] = {}
    current, newest_ns = "", -(1 << 63)
    num_back = num_back_elsewhere = 0
    for row in sample:
        seen = parser.peek(row)
        if seen is None:
            continue
        kind, series, moment = seen
        kinds.add(kind)
        at_ns = moment.toordinal() * NS_PER_DAY if isinstance(moment, date) else moment
        if series in latest and at_ns > latest[series] and kind == "bar" and not isinstance(moment, date):
            gaps[at_ns - latest[series]] += 1
        if at_ns < newest_ns - spec.tolerance_ns:
            num_back += 1
            num_back_elsewhere += series == current or series in latest
        newest_ns = at_ns if series != current else max(newest_ns, at_ns)
        latest[series] = max(at_ns, latest.get(series, at_ns))
        current = series
    kind = layout.kind if layout else "mixed" if len(kinds) > 1 else next(iter(kinds), "")
    stacked = kind in ("bar", "macro") and num_back > 0 and num_back_elsewhere == 0
    return Findings(kind, format_duration(gaps.most_common(1)[0][0]) if gaps else "", stacked)
