"""Coverage, CRPS and the left tail of a run's forecasts by cell, summed as outcomes come, and the page's section.

Cells are those of the time at which a forecast was made (UTC; of bars of a day or longer the day that closed in New
York, and no hour), its market regime, the width of its band among those
before it in its own series and, one bar ahead, the event that this bar held by the run's calendar. Memory is bounded:
sums by cell and stretch of the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

import numpy as np
from numpy.typing import NDArray

from htfi.apps.cli.report.event_bars import EVENT_CELLS
from htfi.domain.decision import Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.new_york import closing_ns
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_duration
from htfi.forecasting.evaluation.cells import block_length
from htfi.forecasting.evaluation.coverage_tables import (
    RULE,
    THIRDS,
    WEEKDAYS,
    CellRow,
    CellSums,
    tabulate,
    tail_loss,
)
from htfi.library.charts.figures import heat_table
from htfi.library.charts.specs import HeatMap

Array = NDArray[np.float64]
Places = NDArray[np.intp]

NUM_STRETCHES = 240
_YEARS = 64  # from the first year of a run; what comes later counts for the last
_HOURS = tuple(f"{hour:02d}h" for hour in range(24))
_EVENT = "event"  # in the bar that was forecast
_DIMENSIONS = (
    ("all", ("all",)),
    ("regime", tuple(regime.value for regime in Regime)),
    ("volatility", THIRDS),
    ("weekday", WEEKDAYS),
    ("hour", _HOURS),
    (_EVENT, EVENT_CELLS),
)
_NUM_FIXED = sum(len(labels) for _, labels in _DIMENSIONS)
_EVENTS = slice(_NUM_FIXED - len(EVENT_CELLS), _NUM_FIXED - 1)  # cells of bars that held one
_NUM_CELLS = _NUM_FIXED + _YEARS
_NUM_SUMS = 12
_MIN_IN_HEAT = 20
_MIN_HOURS = 3  # below which a heat map says less than the table
_STEP = 0.02  # of log width, by which the ends of a series' thirds move at each forecast
_NS_PER_HOUR = 3_600 * NS_PER_S
_THURSDAY = 3  # 1 January 1970, days from Monday
_EVENT_RULE = (
    "Cells of events are of the bar that was forecast, by the run's calendar: one of high impact of a currency of the "
    "pair, of anything else of the dollar; a company's results of its own symbol, which count before these. Vendors "
    "state impact in hindsight; no forecast reads it."
)


@dataclass(slots=True)
class _SeriesPast:
    """Of one series at one horizon: ends of its thirds in log width, and which of its last h forecasts missed."""

    low: float
    high: float
    missed: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])


@dataclass(slots=True)
class CoverageCells:
    """Sums by horizon, cell, stretch and kind of sum; counts by weekday and hour of the shortest horizon."""

    num_horizons: int
    first_year: int = 0
    last_year: int = 0
    num_instants: int = 0
    last_instant_ns: int = -1
    sums: Array = field(init=False)
    by_hour: Array = field(init=False)  # [2, 7, 24]: forecasts, and those that held
    past: dict[tuple[str, int], _SeriesPast] = field(default_factory=dict[tuple[str, int], _SeriesPast])

    def __post_init__(self) -> None:
        self.sums = np.zeros((_NUM_SUMS, self.num_horizons, _NUM_CELLS, NUM_STRETCHES))
        self.by_hour = np.zeros((2, 7, 24))

    def count_instant(self, at_ns: int) -> None:
        """Count an instant at which bars closed, in order of time."""
        self.num_instants += at_ns != self.last_instant_ns
        self.last_instant_ns = at_ns

    def add(self, batch: "MaturedBatch") -> None:
        """Add forecasts whose outcomes are known, in order of their outcomes."""
        levels, fused, y = batch.levels, batch.quantiles[:, 0], batch.outcome
        low, high = (_at(fused, levels, level) for level in (0.05, 0.95))
        held, below05 = (low <= y) & (y <= high), y < low
        below01 = y < _at(fused, levels, 0.01) if levels[0] <= 0.01 else np.full(len(y), np.nan)
        third, after05, after01 = self._compare_with_past(batch, high - low, below05, below01)
        tails = tail_loss(batch.quantiles[:, [0, batch.baseline]], y[:, None], levels)
        values = (
            np.ones(len(y)), held, below05, below01, after05, after05 * below05, after01, after01 * below01,
            batch.crps[:, 0], batch.crps[:, batch.baseline], tails[:, 0], tails[:, 1],
        )  # fmt: skip
        is_day = np.array([_has_days(series) for series in batch.series], np.bool_)
        at_ns = np.where(is_day, closing_ns(batch.made_ns), batch.made_ns)
        weekday = (at_ns // NS_PER_DAY + _THURSDAY) % 7
        hour = np.where(is_day, -1, at_ns // _NS_PER_HOUR % 24)
        year = at_ns.astype("datetime64[ns]").astype("datetime64[Y]").astype(np.int64) + 1970
        self.first_year = self.first_year or int(year.min())
        self.last_year = max(self.last_year, int(year.max()))
        begin = 0
        places = (
            0,
            batch.regime,
            third,
            weekday,
            hour,
            batch.event,
            np.clip(year - self.first_year, 0, _YEARS - 1),
        )
        labels_each = (*(labels for _, labels in _DIMENSIONS), range(_YEARS))
        for labels, place in zip(labels_each, places, strict=True):
            cell = np.broadcast_to(place, y.shape).astype(np.intp)
            known = cell >= 0
            at = ((batch.horizon * _NUM_CELLS + begin + cell) * NUM_STRETCHES + batch.stretch)[known]
            for total, each in zip(self.sums, values, strict=True):
                np.add.at(total.reshape(-1), at, np.asarray(each, np.float64)[known])
            begin += len(labels)
        shortest = (batch.horizon == 0) & ~is_day
        np.add.at(self.by_hour[0], (weekday[shortest], hour[shortest]), 1.0)
        np.add.at(self.by_hour[1], (weekday[shortest], hour[shortest]), held[shortest].astype(np.float64))

    def _compare_with_past(
        self,
        batch: "MaturedBatch",
        width: Array,
        below05: NDArray[np.bool_],
        below01: Array | NDArray[np.bool_],
    ) -> tuple[Places, Array, Array]:
        """The third of each band among those before it, and whether the forecast h bars before missed, at 5 and 1%."""
        logs = np.log(np.maximum(width, 1e-300)).tolist()
        third, after = np.ones(len(width), np.intp), np.zeros((2, len(width)))
        places: list[int] = batch.horizon.tolist()
        for n, (name, horizon, ordinal, size) in enumerate(
            zip(batch.series, places, batch.ordinal, logs, strict=True)
        ):
            past = self.past.get((name, horizon))
            if past is None:
                past = self.past[name, horizon] = _SeriesPast(size, size)
            third[n] = int(size > past.low) + int(size > past.high)
            past.low += _STEP * (1.0 / 3.0 - (size < past.low))
            past.high += _STEP * (2.0 / 3.0 - (size < past.high))
            after[:, n] = past.missed.pop(ordinal - batch.horizons[horizon], (0.0, 0.0))
            past.missed[ordinal] = float(below05[n]), float(below01[n])
            if len(past.missed) > batch.horizons[horizon]:  # some lack an outcome, as withheld ones do
                past.missed.pop(next(iter(past.missed)))
        return third, after[0], np.nan_to_num(after[1])

    @property
    def has_events(self) -> bool:
        """Whether the calendar says of any forecast which event its bar held, and there was one."""
        return bool(self.sums[0, :, _EVENTS].any())

    def rows(self, h: int, horizon: int) -> list[CellRow]:
        """The rows of the horizon at place `h`, cells without forecasts left out."""
        blocks = max(min(NUM_STRETCHES, self.num_instants // block_length(horizon, self.num_instants)), 1)
        edges = np.arange(NUM_STRETCHES) * blocks // NUM_STRETCHES
        merged = np.zeros((_NUM_SUMS, _NUM_CELLS, blocks))
        for stretch, block in enumerate(edges.tolist()):
            merged[:, :, block] += self.sums[:, h, :, stretch]
        names = [(name, label) for name, labels in _DIMENSIONS for label in labels]
        names += [("year", str(self.first_year + k)) for k in range(_YEARS)]
        return tabulate(names, CellSums(*merged))


@dataclass(frozen=True, slots=True, eq=False)
class MaturedBatch:
    """N forecasts with their outcomes. Shapes: quantiles [N, K, Q], fused first, crps [N, K]; the others [N].

    `horizon` is the place among `horizons`; `ordinal` the number of the bar in its series; `event` the place among
    `event_bars.EVENT_CELLS` of the one bar that was forecast, −1 for more bars and where nothing is known of it;
    `baseline` the place of the forecaster to compare with.
    """

    series: Sequence[str]
    ordinal: Sequence[int]
    made_ns: NDArray[np.int64]
    horizon: Places
    regime: Places
    event: Places
    stretch: Places
    quantiles: Array
    outcome: Array
    crps: Array
    levels: Array
    horizons: tuple[int, ...]
    baseline: int


@lru_cache(maxsize=4096)
def _has_days(series: str) -> bool:
    """Whether the bars of a series ('SYMBOL/interval') are of a day or longer."""
    try:
        return parse_duration(series.rpartition("/")[2]) >= NS_PER_DAY
    except InvalidInput:  # of volume or of dollars
        return False


def cells_html(cells: CoverageCells, horizons: Sequence[int], baseline: str) -> str:
    """Tables by horizon, the shortest open, and coverage by weekday and hour where a run has several hours."""
    parts: list[str] = []
    for h, horizon in enumerate(horizons):
        rows = cells.rows(h, horizon)
        several = [row for row in rows if _has_several(rows, row.dimension)]
        if not several:
            continue
        num_off = sum(bool(row.off) for row in several)
        title = f"{'1 bar' if horizon == 1 else f'{horizon} bars'} ahead: {num_off or 'no'} of {len(several)} cells off"
        opened = "" if parts else " open"
        parts.append(f"<details{opened}><summary>{title}</summary>{_table(several, baseline)}</details>")
    if not parts:
        return '<p class="note">No outcome is known yet.</p>'
    notes = [RULE, _EVENT_RULE] if cells.has_events else [RULE]
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    return f"{said}{''.join(parts)}{_heat(cells)}"


def _has_several(rows: Sequence[CellRow], dimension: str) -> bool:
    """Whether a table has more than one cell of a dimension, or is of all."""
    return dimension == "all" or sum(row.dimension == dimension for row in rows) > 1


def _table(rows: Sequence[CellRow], baseline: str) -> str:
    head = (
        "<th></th><th>n</th><th>worth</th><th>coverage</th><th>95%</th><th>below 5%</th><th>below 1%</th>"
        "<th>off</th>"
        f"<th>CRPS vs {baseline}</th><th>left tail vs {baseline}</th><th>Kupiec 5%, 1%</th>"
        "<th>Christoffersen 5%</th>"
    )
    lines: list[str] = []
    dimension = ""
    for row in rows:
        if row.dimension != dimension:
            dimension = row.dimension
            if dimension != "all":
                lines.append(f'<tr><th colspan="12" class="quiet">{escape(dimension)}</th></tr>')
        cells = [
            f"{row.num:,}", f"{row.num_effective:,.0f}", _percent(row.coverage90), _ends(row.coverage90_ends),
            _percent(row.below05), _percent(row.below01), escape(", ".join(row.off)), _number(row.crps_ratio),
            _number(row.tail_ratio), f"{_chance(row.kupiec05)}, {_chance(row.kupiec01)}",
            _chance(row.christoffersen05),
        ]  # fmt: skip
        style = ' class="off"' if row.off else ""
        lines.append(
            f"<tr{style}><th>{escape(row.cell)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _heat(cells: CoverageCells) -> str:
    num, held = cells.by_hour
    hours = [h for h in range(24) if (num[:, h] >= _MIN_IN_HEAT).any()]
    if len(hours) < _MIN_HOURS:
        return ""
    days = [d for d in range(7) if (num[d] >= _MIN_IN_HEAT).any()]
    values = [
        [round(float(held[d, h] / num[d, h]), 3) if num[d, h] >= _MIN_IN_HEAT else None for h in hours]
        for d in days
    ]
    chart = HeatMap("", "", [WEEKDAYS[d] for d in days], [_HOURS[h][:2] for h in hours], values, 0.9, "%")
    return (
        "<h3>Coverage by weekday and hour at which the forecast was made, the shortest horizon</h3>"
        '<p class="note">90% is right; warm holds more, cool less. Point at a square for its share.</p>'
        f"{heat_table(chart)}"
    )


def _at(quantiles: Array, levels: Array, level: float) -> Array:
    upper = int(np.searchsorted(levels, level).clip(1, len(levels) - 1))
    share = (level - levels[upper - 1]) / (levels[upper] - levels[upper - 1])
    return quantiles[:, upper - 1] + share * (quantiles[:, upper] - quantiles[:, upper - 1])


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "–"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"


def _chance(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "–"


def _ends(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.1%}–{pair[1]:.1%}" if math.isfinite(pair[0]) else "few"
