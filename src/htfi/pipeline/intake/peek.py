"""What a file's first rows tell: how long its bars are, whether its symbols are stacked. Readers call it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from htfi.domain.time import NS_PER_DAY, format_duration
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import Layout
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

HEAD_ROWS = 200  # enough to tell the kind, and a quote's side from a trade's
LONG_HEAD_ROWS = 4096
NUM_PROBES = 64  # places in the rest of a file, each a few rows
PROBE_ROWS = 8


@dataclass(frozen=True, slots=True)
class Findings:
    """`kind` is '' for a file without usable rows and 'mixed' for one with several kinds."""

    kind: str
    interval: str
    stacked: bool

    @property
    def may_be_stacked(self) -> bool:
        """Files of bars and of macro values often hold one symbol or series after the other."""
        return self.kind in ("bar", "macro")


def find_out(
    spec: SourceSpec, symbol: str, layout: Layout | None, head: Sequence[Row], probes: Iterable[Row] = ()
) -> Findings:
    """Judge a file by its first rows, and by some further ones in the file's order.

    It is stacked when time steps back only where a new symbol begins.
    """
    parser = RowParser(spec, symbol, layout, "", list(head[:HEAD_ROWS]))
    kinds: set[str] = set()
    gaps: Counter[int] = Counter()
    latest: dict[str, int] = {}
    current, newest_ns = "", -(1 << 63)
    num_back = num_back_elsewhere = 0
    for place, row in enumerate(chain(head, probes)):
        seen = parser.peek(row)
        if seen is None:
            continue
        kind, series, moment = seen
        kinds.add(kind)
        at_ns = moment.toordinal() * NS_PER_DAY if isinstance(moment, date) else moment
        known = series in latest
        if (
            place < len(head)
            and known
            and at_ns > latest[series]
            and kind == "bar"
            and isinstance(moment, int)
        ):
            gaps[at_ns - latest[series]] += 1
        if at_ns < newest_ns - spec.tolerance_ns:
            num_back += 1
            num_back_elsewhere += known
        newest_ns = max(newest_ns, at_ns) if series == current else at_ns
        latest[series] = max(at_ns, latest.get(series, at_ns))
        current = series
    kind = layout.kind if layout else "mixed" if len(kinds) > 1 else next(iter(kinds), "")
    interval = format_duration(gaps.most_common(1)[0][0]) if gaps else ""
    found = Findings(kind, interval, stacked=False)
    return replace(found, stacked=found.may_be_stacked and num_back > 0 and num_back_elsewhere == 0)
