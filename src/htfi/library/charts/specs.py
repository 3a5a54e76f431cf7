"""The charts of a page as plain values: commands fill them, `figures` draws them, `--json` stores them."""

from collections.abc import Sequence

import msgspec


class IntervalBand(msgspec.Struct, frozen=True):
    """A central interval over time: `share` 0–1 of it, its ends at the chart's times."""

    share: float
    low: Sequence[float | None]  # None: a gap
    high: Sequence[float | None]


class TimeSpan(msgspec.Struct, frozen=True):
    """A stretch of time to shade, such as a crisis."""

    label: str
    first: str  # ISO date
    last: str


class Curve(msgspec.Struct, frozen=True):
    """`x` where a curve has its own positions, such as a ROC; `counts` draws dots with areas, `quiet` draws it grey."""

    name: str
    values: Sequence[float | None]  # None: a gap
    x: Sequence[float | None] = []
    counts: Sequence[float | None] = []
    quiet: bool = False


class FanChart(msgspec.Struct, frozen=True, tag="fan"):
    """Forecast intervals and outcomes."""

    title: str
    note: str
    times: Sequence[str]  # ISO dates
    bands: Sequence[IntervalBand]
    actual: Sequence[float | None]
    unit: str = ""


class TimeLines(msgspec.Struct, frozen=True, tag="lines"):
    """Curves over time; `stacked` fills shares of a whole, such as weights. `level` draws a line across."""

    title: str
    note: str
    times: Sequence[str]
    curves: Sequence[Curve]
    unit: str = ""
    stacked: bool = False
    level: float | None = None
    spans: Sequence[TimeSpan] = []
    marks: Sequence[str] = []  # ISO dates to mark at the foot, such as alerts
    mark_label: str = ""


class CurveChart(msgspec.Struct, frozen=True, tag="curves"):
    """Curves over a number: reliability, ROC, a loss by horizon. `diagonal` draws x = y with its own legend."""

    title: str
    note: str
    x: Sequence[float | None]
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    diagonal: bool = False
    diagonal_label: str = "exact"
    log: bool = False  # both axes logarithmic; only for positive numbers


class HistogramChart(msgspec.Struct, frozen=True, tag="histogram"):
    """Shares of n equal bins over low–high, such as PIT over 0–1; `even` draws the uniform level.

    With `num` independent values the 95% band of uniform shares is drawn.
    """

    title: str
    note: str
    shares: Sequence[float | None]
    even: bool = True
    low: float = 0.0
    high: float = 1.0
    x_label: str = ""
    num: int = 0


class BarChart(msgspec.Struct, frozen=True, tag="bars"):
    """A value and its 95% interval by name, about `zero` (1 for ratios). Names in reading order."""

    title: str
    note: str
    names: Sequence[str]
    values: Sequence[float | None]
    lows: Sequence[float | None] = []
    highs: Sequence[float | None] = []
    zero: float = 0.0
    unit: str = ""


class DotGroup(msgspec.Struct, frozen=True):
    """One group's values by the chart's names, with intervals where known."""

    name: str
    values: Sequence[float | None]
    lows: Sequence[float | None] = []
    highs: Sequence[float | None] = []


class DotChart(msgspec.Struct, frozen=True, tag="dots"):
    """Several groups for each name, such as CRPS ratios by regime; `best` marks a ceiling per name."""

    title: str
    note: str
    names: Sequence[str]
    groups: Sequence[DotGroup]
    zero: float | None = None  # where a line stands across
    best: Sequence[float | None] = []
    unit: str = ""


class StackChart(msgspec.Struct, frozen=True, tag="stack"):
    """A bar for each name, made of the groups' values end to end, such as time by stage."""

    title: str
    note: str
    names: Sequence[str]
    groups: Sequence[DotGroup]
    unit: str = ""


class HeatMap(msgspec.Struct, frozen=True, tag="heat"):
    """A table as colours: `values` [rows][columns]; below and above `centre` differ in hue."""

    title: str
    note: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    centre: float = 0.0
    unit: str = ""


Chart = FanChart | TimeLines | CurveChart | HistogramChart | BarChart | DotChart | StackChart | HeatMap
