"""What a page of an evaluation can draw, as plain values: evaluations fill them, `gallery` draws them as SVG.

They travel in the JSON that `--json` writes, so that one page can show several evaluations: `htfi eval report`.
"""

import msgspec


class Band(msgspec.Struct, frozen=True):
    """A central interval over time: `share` 0–1 of it, its ends beside the chart's times."""

    share: float
    low: list[float]
    high: list[float]


class Span(msgspec.Struct, frozen=True):
    """A stretch of time to shade, such as a crisis."""

    label: str
    first: str  # ISO date
    last: str


class Curve(msgspec.Struct, frozen=True):
    name: str
    values: list[float | None]  # None: a gap


class Fan(msgspec.Struct, frozen=True, tag="fan"):
    """Forecast intervals and what came."""

    title: str
    note: str
    times: list[str]  # ISO dates
    bands: list[Band]
    actual: list[float | None]
    unit: str = ""


class Lines(msgspec.Struct, frozen=True, tag="lines"):
    """Curves over time; `stacked` fills shares of a whole, such as weights. `level` draws a line across."""

    title: str
    note: str
    times: list[str]
    curves: list[Curve]
    unit: str = ""
    stacked: bool = False
    level: float | None = None
    spans: list[Span] = []


class Curves(msgspec.Struct, frozen=True, tag="curves"):
    """Curves over a number: reliability, ROC, a loss by horizon. `diagonal` draws what would be right."""

    title: str
    note: str
    x: list[float]
    curves: list[Curve]
    x_label: str
    y_label: str
    diagonal: bool = False


class Histogram(msgspec.Struct, frozen=True, tag="histogram"):
    """Shares of n bins over 0–1, such as PIT; even is right where `even`."""

    title: str
    note: str
    shares: list[float]
    even: bool = True


class Bars(msgspec.Struct, frozen=True, tag="bars"):
    """A value and its 95% interval by name, about `zero` (1 for ratios). Names in reading order."""

    title: str
    note: str
    names: list[str]
    values: list[float]
    lows: list[float] = []
    highs: list[float] = []
    zero: float = 0.0
    unit: str = ""


Chart = Fan | Lines | Curves | Histogram | Bars
