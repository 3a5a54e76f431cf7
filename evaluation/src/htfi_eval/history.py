"""Figures of earlier commits: lines of a history, and what the figures of now are beside them.

A line is one run of one benchmark, as JSON. Figures are compared only where benchmark, machine, seed and workload are
the same. Everything here is pure; `history_file` reads and appends.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Annotated, Any

import msgspec

from htfi_eval.better import BETTER, Better

MAX_WORSE = 0.15  # share by which a figure may be worse than the usual one before a warning says so
NUM_USUAL = 5  # earlier figures whose median is the usual one


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run of `htfi bench BENCH`. `workload`: data and options that are not the default, '' for the usual ones.

    `commit` ends in '+' where files differed from it.
    """

    date: Annotated[datetime, msgspec.Meta(tz=True)]
    commit: str
    bench: str
    machine: str
    seed: int
    workload: str = ""
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used: its number, counted from 1, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A metric now, the newest earlier figure with its line, and the median of the last few.

    The last three are None where there is no earlier figure.
    """

    metric: str
    now: float
    before: float | None = None
    line: HistoryLine | None = None
    usual: float | None = None

    @property
    def ratio(self) -> float | None:
        """Now over before; None without an earlier figure, or where it was 0."""
        return self.now / self.before if self.before else None


def parse_history(content: bytes) -> tuple[list[HistoryLine], list[BadLine]]:
    """The lines of a history in the order of the file; blank ones are passed over."""
    lines: list[HistoryLine] = []
    bad: list[BadLine] = []
    for number, text in enumerate(content.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            lines.append(msgspec.json.decode(text, type=HistoryLine))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            bad.append(BadLine(number, str(error)))
    return lines, bad


def encode_line(line: HistoryLine) -> bytes:
    """One line of the file, with its end."""
    return msgspec.json.encode(line) + b"\n"


def finite_metrics(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Those that have a value: JSON knows no NaN."""
    return {
        name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)
    }


def comparable(now: HistoryLine, lines: Sequence[HistoryLine]) -> list[HistoryLine]:
    """Earlier lines of the same benchmark, machine, seed and workload, oldest first."""
    key = _conditions(now)
    return sorted((line for line in lines if _conditions(line) == key), key=lambda line: line.date)


def _conditions(line: HistoryLine) -> tuple[str, str, int, str]:
    return line.bench, line.machine, line.seed, line.workload


def compare(now: HistoryLine, earlier: Sequence[HistoryLine]) -> list[MetricChange]:
    """Each metric of `now` beside `earlier`, which are comparable and oldest first."""
    changes: list[MetricChange] = []
    for metric, value in now.metrics.items():
        having = [line for line in earlier if metric in line.metrics]
        if not having:
            changes.append(MetricChange(metric, value))
            continue
        usual = median(line.metrics[metric] for line in having[-NUM_USUAL:])
        changes.append(MetricChange(metric, value, having[-1].metrics[metric], having[-1], usual))
    return changes


def share_worse(better: Better, now: float, usual: float) -> float:
    """By which share `now` is worse than `usual`, below 0 where it is better; infinite for anything worse than 0."""
    loss = now - usual if better is Better.LOWER else usual - now
    if usual == 0:
        return math.copysign(math.inf, loss) if loss else 0.0
    return loss / abs(usual)


def is_regression(bench: str, change: MetricChange) -> bool:
    """Whether a metric is worse than usual by more than MAX_WORSE; not for one whose better side is not listed."""
    better = BETTER.get(bench, {}).get(change.metric)
    return (
        better is not None
        and change.usual is not None
        and share_worse(better, change.now, change.usual) > MAX_WORSE
    )


def change_rows(changes: Sequence[MetricChange]) -> list[dict[str, Any]]:
    """Rows of a table; the ratio is now over the newest earlier figure."""
    return [
        {
            "metric": change.metric,
            "now": change.now,
            "before": change.before,
            "now ÷ before": change.ratio,
            f"median of the last {NUM_USUAL}": change.usual,
            "at commit": None if change.line is None else change.line.commit,
            "of": None if change.line is None else f"{change.line.date:%Y-%m-%d %H:%M}",
        }
        for change in changes
    ]
