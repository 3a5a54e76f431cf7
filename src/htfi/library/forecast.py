"""`htfi.forecast`: the newest forecast of each series of a table or file, by the main path, in memory.

`htfi forecast` prints the same answer.
"""

import math
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from htfi.domain.counts import counted
from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scores import ScoreRow
from htfi.library.frames import Frame, FrameKind, instants, make_frame
from htfi.library.tables import PriceSource, SetAsideRow, read_prices
from htfi.pipeline.decided import DecidedSeries
from htfi.wiring.in_memory_run import InMemoryRun, run_sources
from htfi.wiring.settings import Settings, load_settings, override


class RowsSetAside(UserWarning):
    """Rows of a table were not used; `set_aside` of the result lists them."""


@dataclass(frozen=True, slots=True)
class SeriesForecast:
    """The newest decision on one series, and the prices that it was made from."""

    decision: Decision
    prices: tuple[float, ...]

    @property
    def symbol(self) -> str:
        return self.decision.symbol

    @property
    def is_withheld(self) -> bool:
        """Whether policy keeps the forecast back."""
        return self.decision.verdict.outcome is PolicyOutcome.WITHHOLD


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecasts of one or more series: where each price may be after some bars, and why."""

    series: tuple[SeriesForecast, ...]
    score_rows: tuple[ScoreRow, ...]
    rows_set_aside: tuple[SetAsideRow, ...]
    kind: FrameKind

    @property
    def quantiles(self) -> Frame:
        """A row for each symbol, horizon and measure (`price`, `log_return`): a column for each quantile level."""
        rows = [
            (one.decision, measure, horizon, values)
            for one in self.series
            if not one.is_withheld
            for measure in ("price", "log_return")
            for horizon, values in zip(
                one.decision.forecast.horizons, one.decision.forecast.quantiles, strict=True
            )
        ]
        levels = self.series[0].decision.forecast.levels
        table = [
            [decision.last_price * math.exp(value) for value in values] if measure == "price" else values
            for decision, measure, _, values in rows
        ]
        return make_frame(
            {
                "symbol": [decision.symbol for decision, *_ in rows],
                "as_of": instants([decision.as_of_ns for decision, *_ in rows]),
                "horizon": [horizon for *_, horizon, _ in rows],
                "measure": [measure for _, measure, *_ in rows],
                **{f"{level:g}": [values[place] for values in table] for place, level in enumerate(levels)},
            },
            self.kind,
        )

    @property
    def set_aside(self) -> Frame:
        """The rows that were not used, each with its reason."""
        return set_aside_frame(self.rows_set_aside, self.kind)


def set_aside_frame(rows: Sequence[SetAsideRow], kind: FrameKind) -> Frame:
    names = ("source", "row", "reason", "detail", "raw")
    return make_frame({name: [getattr(row, name) for row in rows] for name in names}, kind)


def forecast(
    prices: Any,
    *,
    symbol: str | None = None,
    horizons: Sequence[int] | None = None,
    interval: str | None = None,
) -> Forecast:
    """Forecast each series of `prices` from its newest bar.

    `prices` is a frame of pandas, polars or pyarrow, a DuckDB relation, or the path of a file (docs/library.md);
    `symbol` the one wanted of several, or the name of a table that names none; `horizons` are in bars; `interval` is
    the length of a bar, such as '1d' or '5m', where the times do not say it.
    Raises: InvalidInput where nothing can be forecast, in one line.
    """
    settings = load_settings()
    if horizons is not None:
        settings = override(settings, "forecasting", horizons=sorted(set(horizons)))
    source = read_prices(prices, symbol=symbol, interval=interval)
    newest = newest_decisions(settings, source, interval)
    rows = rows_set_aside(source, newest.done, newest.decided)
    warn_of_rows(rows, newest.done.num_bars)
    series = tuple(
        SeriesForecast(decided.worded(), tuple(newest.prices.get(name, ())))
        for name, decided in newest.decided.items()
    )
    return Forecast(series, tuple(newest.done.loop.components.forecaster.scores()), rows, source.kind)


@dataclass(frozen=True, slots=True)
class NewestDecisions:
    """The newest decision and the prices of each series, at the end of a source."""

    done: InMemoryRun
    decided: Mapping[str, DecidedSeries]
    prices: Mapping[str, Sequence[float]]


def newest_decisions(settings: Settings, source: PriceSource, interval: str | None) -> NewestDecisions:
    """Run the main path over a source in memory. Raises: InvalidInput where the history is too short."""
    if interval is not None:
        settings = override(settings, "market", bar=interval)
    seen = _Newest()
    done = run_sources(settings, [source.spec], seen.record, tables=source.tables)
    if not seen.decided:
        raise InvalidInput(_why_none(source, done))
    return NewestDecisions(done, seen.decided, seen.prices)


def _why_none(source: PriceSource, done: InMemoryRun) -> str:
    """Why there is no forecast of any series, in one line."""
    if source.table is not None and done.quarantine and not done.num_bars + done.num_ticks:
        rows = max(done.quarantine.values(), key=len)
        return f"no row of {source.name} can be used, as {len(rows):,} of them show: {rows[0].detail}"
    still = [name for name in done.loop.components.forecaster.series if _never_moves(done, name)]
    if still and len(still) == len(done.loop.components.forecaster.series):
        return f"{source.name}: the price of {still[0]} never moves: there is nothing to forecast by"
    return done.refusal_text(source.name, "".join(source.spec.only))


def _never_moves(done: InMemoryRun, series: str) -> bool:
    return done.loop.components.forecaster.age(series) < 0


def series_set_aside(done: InMemoryRun, decided: Collection[str], source: str) -> list[SetAsideRow]:
    """The series that have no forecast, each with its reason, as rows without a number."""
    forecaster, needed = done.loop.components.forecaster, done.settings.forecasting.history_bars
    rows: list[SetAsideRow] = []
    for name in forecaster.series:
        if name not in decided:
            reason, detail = "too_short", f"{name}: fewer than {needed} bars from its first move"
            if _never_moves(done, name):
                reason, detail = "unmoved", f"{name}: its price never moves"
            rows.append(SetAsideRow(source, 0, reason, detail))
    return rows


@dataclass(slots=True)
class _Newest:
    """Filled by the loop."""

    decided: dict[str, DecidedSeries] = field(default_factory=dict[str, DecidedSeries])
    prices: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def record(self, decided: DecidedSeries) -> None:
        self.decided[decided.series] = decided
        if not decided.is_between_bars:
            self.prices.setdefault(decided.series, []).append(decided.last_price)


def rows_set_aside(
    source: PriceSource, done: InMemoryRun, decided: Collection[str]
) -> tuple[SetAsideRow, ...]:
    """What reading and intake set aside, in order of their rows in what was given; first whole series."""
    found = [
        SetAsideRow(row.source, source.row_number(row.row), row.reason, row.detail, row.raw)
        for rows in done.quarantine.values()
        for row in rows
    ]
    found += series_set_aside(done, decided, source.spec.name)
    return tuple(sorted((*source.set_aside, *found), key=lambda row: row.row))


def warn_of_rows(rows: Sequence[SetAsideRow], num_used: int) -> None:
    """One line, where rows or series were set aside."""
    if not rows:
        return
    counts = Counter(row.reason for row in rows)
    reasons = ", ".join(f"{reason} ({num:,})" for reason, num in counts.items())
    num = sum(row.row > 0 for row in rows)
    what = f"{num:,} of {num + num_used:,} rows" if num else counted(len(rows), "series", "series")
    warnings.warn(f"set aside: {what}: {reasons}; `set_aside` lists them", RowsSetAside, stacklevel=3)
