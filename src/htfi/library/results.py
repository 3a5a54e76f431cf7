"""What results share: rows set aside as a table and a warning, and the state that scenarios begin from."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htfi.domain.counts import counted
from htfi.library.frames import Frame, FrameKind, make_frame
from htfi.library.set_aside import SetAsideRow, more_rows
from htfi.library.tables import TableSource
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.in_memory_run import InMemoryRun
from htfi.wiring.loop import build_components
from htfi.wiring.settings import Settings

if TYPE_CHECKING:  # most forecasts are no ground for scenarios
    from htfi.pipeline.scenarios.basis import ScenarioBasis


class RowsSetAside(UserWarning):
    """Rows of a table were not used; `set_aside` of the result lists them.

    Examples:
        >>> import warnings
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60).reset_index(drop=True)
        >>> prices.loc[3, "close"] = -1.0
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", htfi.RowsSetAside)
        ...     forecast = htfi.forecast(prices, symbol="SPX")
        >>> forecast.set_aside[["row", "reason"]].values.tolist()
        [[4, 'bad_price']]
    """


def set_aside_frame(rows: Sequence[SetAsideRow], kind: FrameKind) -> Frame:
    """Source, number, reason, detail and text of each row; a whole series has the number 0."""
    names = ("source", "row", "reason", "detail", "raw")
    return make_frame({name: [getattr(row, name) for row in rows] for name in names}, kind)


def rows_set_aside(
    sources: Sequence[TableSource], done: InMemoryRun, decided: Collection[str]
) -> tuple[SetAsideRow, ...]:
    """What reading and intake set aside, in order of their rows in what was given; first whole series."""
    by_name = {source.spec.name: source for source in sources}
    found = [
        SetAsideRow(row.source, by_name[row.source].row_number(row.row), row.reason, row.detail, row.raw)
        for rows in done.quarantine.values()
        for row in rows
    ]
    name = sources[0].spec.name
    unlisted = {reason: num - len(done.quarantine[reason]) for reason, num in done.num_quarantined.items()}
    found += [more_rows(name, reason, num) for reason, num in unlisted.items() if num]
    found += [row for source in sources for row in source.set_aside]
    found += series_set_aside(done, decided, name)
    return tuple(sorted(found, key=lambda row: row.row))


def series_set_aside(done: InMemoryRun, decided: Collection[str], source: str) -> list[SetAsideRow]:
    """The series that have no forecast, each with its reason, as rows without a number."""
    needed = done.settings.forecasting.history_bars
    rows: list[SetAsideRow] = []
    for name in done.loop.components.forecaster.series:
        if name not in decided:
            reason, detail = "too_short", f"{name}: fewer than {needed} bars from its first move"
            if never_moves(done, name):
                reason, detail = "unmoved", f"{name}: its price never moves"
            rows.append(SetAsideRow(source, 0, reason, detail, num=0))
    return rows


def never_moves(done: InMemoryRun, series: str) -> bool:
    """Whether all bars of a series have one price."""
    return done.loop.components.forecaster.age(series) < 0


def why_none(source: TableSource, done: InMemoryRun) -> str:
    """Why there is no forecast of any series, in one line."""
    if source.table is not None and done.quarantine and not done.num_bars + done.num_ticks:
        reason, num = max(done.num_quarantined.items(), key=lambda item: item[1])
        return f"no row of {source.name} can be used, as {num:,} of them show: {done.quarantine[reason][0].detail}"
    series = done.loop.components.forecaster.series
    if series and all(never_moves(done, name) for name in series):
        return f"{source.name}: the price of {series[0]} never moves: there is nothing to forecast by"
    return done.refusal_text(source.name, "".join(source.spec.only))


def warn_of_rows(rows: Sequence[SetAsideRow], num_used: int) -> None:
    """One line, where rows or series were set aside."""
    if not rows:
        return
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.reason] = counts.get(row.reason, 0) + max(row.num, 1)
    reasons = ", ".join(f"{reason} ({num:,})" for reason, num in counts.items())
    num = sum(row.num for row in rows)
    what = f"{num:,} of {num + num_used:,} rows" if num else counted(len(rows), "series", "series")
    warnings.warn(f"set aside: {what}: {reasons}; `set_aside` lists them", RowsSetAside, stacklevel=3)


@dataclass(frozen=True, slots=True)
class ForecastState:
    """The state of a forecaster at the end of its prices, from which scenarios begin: what a run saves, in bytes."""

    settings: Settings
    components: bytes
    ends_ns: Mapping[str, Sequence[int]]  # of the bars of each series
    closes: Mapping[str, Sequence[float]]

    @classmethod
    def of(
        cls, done: InMemoryRun, ends_ns: Mapping[str, Sequence[int]], closes: Mapping[str, Sequence[float]]
    ) -> "ForecastState":
        """The state of a run that has ended."""
        return cls(done.settings, encode_state(done.loop.components.state()), ends_ns, closes)

    def basis(self, interval: str | None) -> "ScenarioBasis | None":
        """What scenarios are answered on; None where no series of the interval has a forecast."""
        from htfi.pipeline.scenarios.basis import make_basis
        from htfi.pipeline.scenarios.history import RunHistory
        from htfi.wiring.scenario import scenario_source

        def history(until_ns: int) -> RunHistory:
            del until_ns  # no bar came after the state
            found = RunHistory()
            for series, closes in self.closes.items():
                found.add_closes(series, self.ends_ns[series], closes)
            return found

        components = build_components(self.settings)
        state: dict[str, Any] = decode_state(self.components)
        components.restore(state)
        return make_basis(scenario_source("the prices", self.settings, components, history), interval)
