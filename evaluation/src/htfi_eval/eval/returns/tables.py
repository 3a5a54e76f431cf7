"""Tables and charts of coverage, CRPS and the left tail by regime, hour, weekday, event, volatility and year."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.new_york import closing_ns
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.evaluation.coverage_tables import (
    WEEKDAYS,
    CellRow,
    Dimension,
    ForecastOutcomes,
    calendar_dimensions,
    names_of,
    sum_cells,
    tabulate,
    tercile_dimension,
)
from htfi.library.charts.specs import Chart, DotChart, DotGroup, HeatMap
from htfi_eval.eval.prices import Prices, data_folder
from htfi_eval.eval.returns.scores import WalkScores
from htfi_eval.eval.scheduled_events import earnings_events, holds_event, next_bars_ns, staged_events
from htfi_eval.eval.walk import CRISES, REGIMES, within

Array = NDArray[np.float64]

MIN_IN_HEAT = 50  # forecasts below which a square of the heat map stays blank
_CHARTED = ("regime", "crisis", "volatility", "next bar", "weekday", "hour", "year")


@dataclass(frozen=True, slots=True)
class HorizonTable:
    """The rows of one data set and horizon."""

    data: str
    horizon: int
    rows: list[CellRow]


def coverage_tables(scores: WalkScores, data: Path | None = None) -> list[HorizonTable]:
    """One table for each horizon; `data` is the folder of staged data, with whose calendars bars are divided."""
    first = _dimensions(scores, data)
    tables: list[HorizonTable] = []
    for j, horizon in enumerate(scores.horizons):
        # Over several bars nearly every forecast spans an event.
        dimensions = [one for one in first if horizon == 1 or one.name != "next bar"]
        dimensions.append(tercile_dimension(scores.width[:, :, j].astype(np.float64)))
        rows = tabulate(names_of(dimensions), sum_cells(_outcomes(scores, j), dimensions, horizon))
        tables.append(HorizonTable(scores.prices.name, horizon, rows))
    return tables


def table_rows(tables: Sequence[HorizonTable], *, only_off: bool = False) -> list[dict[str, Any]]:
    """Rows for the terminal, the page and the JSON."""
    return [
        {
            "data": table.data,
            "bars": table.horizon,
            "by": row.dimension,
            "cell": row.cell,
            "n": row.num,
            "worth": round(row.num_effective),
            "coverage 90": round(row.coverage90, 4),
            "95%": _ends(row.coverage90_ends),
            "below q05": round(row.below05, 4),
            "below q01": round(row.below01, 4),
            "95% of q01": _ends(row.below01_ends),
            "CRPS/EWMA": _plain(row.crps_ratio),
            "left tail/EWMA": _plain(row.tail_ratio),
            "Kupiec 5%": _plain(row.kupiec05, 2),
            "Kupiec 1%": _plain(row.kupiec01, 2),
            "again 5%": _plain(row.again05, 2),
            "Christoffersen 5%": _plain(row.christoffersen05, 2),
            "Christoffersen 1%": _plain(row.christoffersen01, 2),
            "off": ", ".join(row.off),
        }
        for table in tables
        for row in table.rows
        if row.off or not only_off
    ]


def left_tail_1pct(tables: Sequence[HorizonTable]) -> tuple[float, int] | None:
    """The largest share below the 1% quantile over horizons, and the horizon."""
    found = [
        (row.below01, table.horizon)
        for table in tables
        for row in table.rows
        if row.dimension == "all" and math.isfinite(row.below01)
    ]
    return max(found, default=None)


def coverage_charts(scores: WalkScores, tables: Sequence[HorizonTable]) -> list[Chart]:
    """Coverage by cell with intervals for each horizon; by hour and weekday where bars are shorter than a day."""
    drawn: list[Chart] = []
    rows = {(row.dimension, row.cell): None for table in tables for row in table.rows}
    shown = [key for dimension in _CHARTED for key in rows if key[0] == dimension]
    by_key = [{(row.dimension, row.cell): row for row in table.rows} for table in tables]
    groups = [
        DotGroup(
            "1 bar" if table.horizon == 1 else f"{table.horizon} bars",
            [_of(found, key, "share") for key in shown],
            [_of(found, key, "low") for key in shown],
            [_of(found, key, "high") for key in shown],
        )
        for table, found in zip(tables, by_key, strict=True)
    ]
    if shown:
        drawn.append(
            DotChart(
                f"{scores.prices.name}: coverage of the 90% band by what one looks at",
                "Share of outcomes within the band with 95% intervals that allow for series of one date and for "
                "overlap; × marks cells that are off at some horizon.",
                [f"{label}{_mark(by_key, (dimension, label))}" for dimension, label in shown],
                groups,
                zero=0.9,
                unit="%",
            )
        )
    if _is_intraday(scores.prices):
        drawn.append(_heat(scores))
    return drawn


def _of(found: dict[tuple[str, str], CellRow], key: tuple[str, str], what: str) -> float | None:
    row = found.get(key)
    if row is None:
        return None
    value = {"share": row.coverage90, "low": row.coverage90_ends[0], "high": row.coverage90_ends[1]}[what]
    return round(value, 4) if math.isfinite(value) else None


def _mark(by_key: Sequence[dict[tuple[str, str], CellRow]], key: tuple[str, str]) -> str:
    return " ×" if any(key in found and "coverage 90" in found[key].off for found in by_key) else ""


def _heat(scores: WalkScores) -> HeatMap:
    """Coverage one bar ahead by the weekday and hour at which that bar begins."""
    weekday, hour = (
        next(one for one in _calendar(scores) if one.name == name).cells for name in ("weekday", "hour")
    )
    held = scores.held[:, :, 0]
    known = held >= 0
    place = (np.broadcast_to(weekday, held.shape) * 24 + np.broadcast_to(hour, held.shape))[known]
    num = np.bincount(place, minlength=7 * 24).reshape(7, 24)
    inside = np.bincount(place, weights=held[known].astype(np.float64), minlength=7 * 24).reshape(7, 24)
    values = [
        [round(float(inside[d, h] / num[d, h]), 3) if num[d, h] >= MIN_IN_HEAT else None for h in range(24)]
        for d in range(7)
    ]
    there = [d for d in range(7) if any(value is not None for value in values[d])]
    return HeatMap(
        f"{scores.prices.name}: coverage of the 90% band by weekday and hour, 1 bar ahead",
        "By the start of the bar that is forecast, UTC. 90% is right; warm holds more, cool less.",
        [WEEKDAYS[d] for d in there],
        [f"{hour:02d}" for hour in range(24)],
        [values[d] for d in there],
        centre=0.9,
        unit="%",
    )


def _dimensions(scores: WalkScores, data: Path | None) -> list[Dimension]:
    shape = scores.regimes.shape
    found = [Dimension("all", ("all",), np.zeros((shape[0], 1), np.int64))]
    since = np.where(scores.since_begin(), scores.regimes, -1)
    found.append(Dimension("regime", tuple(regime.value for regime in REGIMES), since))
    for span in CRISES:
        inside = within(scores.prices, span, scores.first)
        if inside.any():
            cells = (inside.astype(np.int64) - 1).reshape(-1, 1)
            found.append(Dimension("crisis", (f"crisis {span.label}",), cells))
    return [*found, *_calendar(scores), *_event_dimension(scores, data)]


def _calendar(scores: WalkScores) -> list[Dimension]:
    """By the start of an intraday bar, by the day in New York that a longer one ends: a session's own day."""
    starts, ends = next_bars_ns(scores.prices)
    intraday = _is_intraday(scores.prices)
    at = (starts if intraday else ends)[scores.first :]
    made = scores.prices.ends_ns[scores.first :, None]
    known = np.where(at > 0, at, made)
    return calendar_dimensions(known if intraday else closing_ns(known), intraday=intraday)


def _event_dimension(scores: WalkScores, data: Path | None) -> list[Dimension]:
    """Bars with and without an event, where a staged calendar has events of these series."""
    folder = data_folder(data)
    if folder is None:
        return []
    try:
        events = [*staged_events(folder), *earnings_events(folder)]
    except DependencyUnavailable:
        return []
    holds = holds_event(scores.prices, events, lambda event: event.impact == "high")
    has_any = holds.sum(axis=0) > 0
    if not holds.any():
        return []
    # Before the first and after the last event of any series the calendar says nothing.
    when = np.flatnonzero(holds.any(axis=1))
    cells = np.where(np.broadcast_to(has_any, holds.shape), holds.astype(np.int64), -1)
    cells[: when[0]] = cells[when[-1] + 1 :] = -1
    return [Dimension("next bar", ("no event", "event"), cells[scores.first :])]


def _is_intraday(prices: Prices) -> bool:
    try:
        return parse_duration(prices.interval) < NS_PER_DAY
    except InvalidInput:
        return False


def _outcomes(scores: WalkScores, j: int) -> ForecastOutcomes:
    def share(values: NDArray[np.int8]) -> Array:
        return np.where(values >= 0, values, np.nan).astype(np.float64)

    return ForecastOutcomes(
        share(scores.held[:, :, j]),
        share(scores.below[0, :, :, j]),
        share(scores.below[1, :, :, j]),
        scores.fused_loss[0, :, :, j].astype(np.float64),
        scores.fused_loss[1, :, :, j].astype(np.float64),
        scores.ewma_loss[0, :, :, j].astype(np.float64),
        scores.ewma_loss[1, :, :, j].astype(np.float64),
    )


def _ends(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.3f}–{pair[1]:.3f}" if math.isfinite(pair[0]) else ""


def _plain(value: float, digits: int = 4) -> float | None:
    if not math.isfinite(value):
        return None
    return round(value, digits) if digits > 2 else float(f"{value:.2g}")
