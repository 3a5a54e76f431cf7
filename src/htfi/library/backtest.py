"""`htfi.backtest`: the live forecaster walked forward over a table of prices, and news, as a run would have decided."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.counts import counted
from htfi.domain.decision import PolicyOutcome
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_US, parse_timestamp, to_ns
from htfi.forecasting.scenarios.requests import require_series
from htfi.forecasting.scores import ScoreRow
from htfi.library.arguments import ORIGIN, Models, bar_interval, symbol_text, with_models
from htfi.library.bar_stamps import bar_stamps
from htfi.library.forecast import chosen_settings, open_news_readers, score_frame
from htfi.library.frames import Frame, FrameKind, instants, make_frame
from htfi.library.html import block, table_html
from htfi.library.plots import PlotPanel, plot
from htfi.library.progress import loop_progress, progress_bar
from htfi.library.results import ForecastState, rows_set_aside, set_aside_frame, warn_of_rows, why_none
from htfi.library.set_aside import SetAsideRow
from htfi.library.tables import read_news, read_prices
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.wiring.in_memory_run import run_sources
from htfi.wiring.settings import override

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Backtest:
    """Every forecast of a walk forward, made when its bar closed, from what was known then.

    Shapes: series, as_of_ns, last_price, is_withheld [N], in the order of decision; log_returns [N, H, Q] at
    `horizons` and `levels`. `series` are places in `names`.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> walk = htfi.backtest(prices, symbol="SPX", horizons=[1, 5])
        >>> walk.outcomes().shape == (len(walk), 2)
        True
        >>> sorted(walk.scores["name"].unique())[:2]
        ['ewma', 'fused']
    """

    names: tuple[str, ...]
    symbols: tuple[str, ...]
    series: NDArray[np.int32]
    as_of_ns: NDArray[np.int64]
    last_price: Array
    is_withheld: NDArray[np.bool_]
    log_returns: Array
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    score_rows: tuple[ScoreRow, ...]
    rows_set_aside: tuple[SetAsideRow, ...]
    kind: FrameKind
    state: ForecastState

    def __len__(self) -> int:
        """How many forecasts were made, each of all horizons."""
        return len(self.as_of_ns)

    @property
    def forecasts(self) -> Frame:
        """A row for each forecast and horizon: the quantiles of the log return, and the one that came (`outcome`).

        Forecasts that policy withheld are not in it; an outcome that has not come yet is NaN.
        """
        kept = np.flatnonzero(~self.is_withheld)
        num = len(self.horizons)
        places = np.repeat(kept, num)
        symbols = np.array(self.symbols)[self.series[places]]
        return make_frame(
            {
                "symbol": symbols.tolist(),
                "as_of": instants(self.as_of_ns[places]),
                "horizon": np.tile(np.array(self.horizons), len(kept)),
                "last_price": self.last_price[places],
                "outcome": self.outcomes()[kept].ravel(),
                **{
                    f"{level:g}": self.log_returns[kept, :, place].ravel()
                    for place, level in enumerate(self.levels)
                },
            },
            self.kind,
        )

    def outcomes(self) -> Array:
        """The log return [N, H] over each horizon, NaN where it has not come."""
        found = np.full((len(self), len(self.horizons)), np.nan)
        for place in range(len(self.names)):
            rows = np.flatnonzero(self.series == place)
            logs = np.log(self.last_price[rows])
            for j, horizon in enumerate(self.horizons):
                found[rows[:-horizon], j] = logs[horizon:] - logs[:-horizon]
        return found

    def cross_validation(self) -> Frame:
        """Prices in the form of Nixtla's cross-validation: unique_id, ds, cutoff, y, HTFI, HTFI-lo-90, HTFI-hi-90, …

        A row for each forecast and horizon whose outcome has come: `cutoff` names the bar that it was made from, `ds`
        the bar that it is of, both by their start (UTC, without zone), `y` is the close that came, HTFI the median.
        There is a band for each two levels that lie evenly about the median. Withheld forecasts are not in it.
        """
        made: list[NDArray[np.intp]] = []
        later: list[NDArray[np.intp]] = []
        of: list[NDArray[np.intp]] = []
        stamps = np.empty(len(self), "datetime64[ns]")
        for place, name in enumerate(self.names):
            rows = np.flatnonzero(self.series == place)
            stamps[rows] = bar_stamps(name.rpartition("/")[2], self.as_of_ns[rows])
            for j, horizon in enumerate(self.horizons):
                made.append(rows[:-horizon])
                later.append(rows[horizon:])
                of.append(np.full(len(made[-1]), j))
        at, came, j = (np.concatenate(parts) for parts in (made, later, of))
        kept = np.flatnonzero(~self.is_withheld[at])
        symbols = np.array(self.symbols)
        kept = kept[np.lexsort((j[kept], stamps[at[kept]], symbols[self.series[at[kept]]]))]
        at, came, j = at[kept], came[kept], j[kept]
        prices = self.last_price[at, None] * np.exp(self.log_returns[at, j])  # [n, Q]
        return make_frame(
            {
                "unique_id": symbols[self.series[at]].tolist(),
                "ds": stamps[came],
                "cutoff": stamps[at],
                "y": self.last_price[came],
                "HTFI": prices[:, self.levels.index(0.5)],
                **{name: prices[:, place] for name, place in _band_columns(self.levels)},
            },
            self.kind,
        )

    @property
    def scores(self) -> Frame:
        """How good the forecasts since `start` were, beside those of each expert: a row for each name and horizon."""
        return score_frame(self.score_rows, self.kind)

    def plot(self, symbol: str | None = None, horizon: int | None = None, backend: str = "plotly") -> Any:
        """The bands forecast for each bar, and what came, as a figure of 'plotly' or 'matplotlib'.

        Of one symbol, the first without one, at one horizon, the nearest without one; as log returns, at the time that
        they were made. Raises: InvalidInput, MissingExtra.
        """
        place = 0 if symbol is None else require_series(symbol, self.names, "plot")
        chosen = self.horizons[0] if horizon is None else horizon
        if chosen not in self.horizons:
            raise InvalidInput(f"horizon={chosen}: the backtest has {', '.join(map(str, self.horizons))}")
        j = self.horizons.index(chosen)
        rows = np.flatnonzero((self.series == place) & ~self.is_withheld)
        low, median, high = (
            self.log_returns[rows, j, self.levels.index(level)] for level in (0.05, 0.5, 0.95)
        )
        days = (self.as_of_ns[rows] / NS_PER_DAY).tolist()
        title = f"{self.names[place]}, {counted(chosen, 'bar')} ahead"
        outcomes = self.outcomes()[rows, j].tolist()
        bands = [("90%", low.tolist(), high.tolist())]
        return plot([PlotPanel(title, days, bands, median.tolist(), days, outcomes, "outcome")], backend)

    def __repr__(self) -> str:
        return f"{counted(len(self), 'forecast')} of {counted(len(self.names), 'series', 'series')}"

    def _repr_html_(self) -> str:
        rows = [
            (row.name, str(row.horizon), f"{row.num:,}", f"{row.crps:.5g}", f"{row.coverage90:.1%}")
            for row in self.score_rows
        ]
        heads = ("forecaster", "bars ahead", "scored", "CRPS", "within 90% band")
        aside = f"<p>{len(self.rows_set_aside):,} set aside: see set_aside</p>" if self.rows_set_aside else ""
        return block(repr(self), table_html(heads, rows), aside)

    @property
    def set_aside(self) -> Frame:
        """The rows that were not used, each with its reason."""
        return set_aside_frame(self.rows_set_aside, self.kind)


def backtest(
    prices: Any,
    *,
    start: str | date | None = None,
    news: Any = None,
    symbol: str | None = None,
    horizons: int | Sequence[int] | None = None,
    interval: str | timedelta | None = None,
    models: Models | None = "default",
    experts: str | Sequence[str] | None = None,
    progress: bool = False,
) -> Backtest:
    """Walk the live forecaster forward over `prices`, deciding at each bar as a run would have.

    What came before `start` is learnt from and not reported. `news` is a table with times, headlines and symbols;
    `models` reads it: 'default' the shipped pair, a pair of folders (target, draft), or None for no language model.
    `progress` shows a bar on standard error, or in the notebook. The other arguments are those of `htfi.forecast`.
    Raises: InvalidInput, in one line.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> walk = htfi.backtest(prices, symbol="SPX", horizons=[1])
        >>> walk
        41 forecasts of 1 series
        >>> walk.forecasts.columns.tolist()[:5]
        ['symbol', 'as_of', 'horizon', 'last_price', 'outcome']
    """
    settings, interval = with_models(chosen_settings(horizons, experts), models), bar_interval(interval)
    start_ns = _start_ns(start)
    sources = [read_prices(prices, symbol=symbol_text(symbol), interval=interval), *read_news(news)]
    readers = open_news_readers(settings, models) if len(sources) > 1 else None
    if interval is not None:
        settings = override(settings, "market", ORIGIN, bar=interval)
    with progress_bar("backtest", is_shown=progress) as advance:
        walk = _Walk(start_ns, loop_progress(advance))
        done = run_sources(
            settings,
            [source.spec for source in sources],
            walk.record,
            readers=readers,
            tables={name: table for source in sources for name, table in source.tables.items()},
            after_item=walk.after_item,
        )
    if not walk.names:
        raise InvalidInput(why_none(sources[0], done))
    rows = rows_set_aside(sources, done, walk.names)
    warn_of_rows(rows, done.loop.num_events)
    return walk.result(done.loop, rows, sources[0].kind, ForecastState.of(done, *walk.history()))


def _band_columns(levels: Sequence[float]) -> list[tuple[str, int]]:
    """Names as Nixtla's of the ends of central bands, each with the place of its level, the widest band outside."""
    places = {round(level, 9): place for place, level in enumerate(levels)}
    lows = [level for level in places if level < 0.5 and round(1.0 - level, 9) in places]
    widths = {level: f"{round(100.0 * (1.0 - 2.0 * level), 6):g}" for level in lows}
    low_ends = [(f"HTFI-lo-{widths[level]}", places[level]) for level in lows]
    high_ends = [(f"HTFI-hi-{widths[level]}", places[round(1.0 - level, 9)]) for level in reversed(lows)]
    return low_ends + high_ends


def _start_ns(start: str | date | None) -> int:
    if start is None:
        return 0
    if isinstance(start, str):
        from zoneinfo import ZoneInfo

        try:
            return parse_timestamp(start, ZoneInfo("UTC"))
        except InvalidInput as error:
            raise InvalidInput(f"start='{start}': give a date, such as '2012-01-01'") from error
    if isinstance(start, np.datetime64):
        start = start.astype("datetime64[us]").item()
    if isinstance(start, datetime):
        return to_ns(start if start.tzinfo else start.replace(tzinfo=UTC))
    if not isinstance(start, date):  # pyright: ignore[reportUnnecessaryIsInstance] - whatever a notebook holds
        raise InvalidInput(f"start={start!r}: give a date, such as '2012-01-01'")
    return to_ns(datetime(start.year, start.month, start.day, tzinfo=UTC))


class _Walk:
    """Collects decisions on bars while the loop makes them."""

    def __init__(self, start_ns: int, report: Callable[[DecisionLoop], None]) -> None:
        self._start_ns = start_ns
        self._report = report
        self._before: list[ScoreRow] | None = None  # the scores when the walk came to its start
        self.names: dict[str, int] = {}
        self._series: list[int] = []
        self._as_of_ns: list[int] = []
        self._last_price: list[float] = []
        self._is_withheld: list[bool] = []
        self._quantiles: list[Array] = []

    def record(self, decided: DecidedSeries) -> None:
        if decided.is_between_bars or decided.amends:
            return
        self._series.append(self.names.setdefault(decided.series, len(self.names)))
        self._as_of_ns.append(decided.as_of_ns)
        self._last_price.append(decided.last_price)
        self._is_withheld.append(decided.verdict.outcome is PolicyOutcome.WITHHOLD)
        self._quantiles.append(decided.quantiles)

    def after_item(self, loop: DecisionLoop) -> None:
        if self._before is None and loop.now_ns >= self._start_ns:
            self._before = loop.components.forecaster.scores() if self._start_ns else []
        self._report(loop)

    def history(self) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
        """The ends and closes of each series' bars."""
        ends: dict[str, list[int]] = {name: [] for name in self.names}
        closes: dict[str, list[float]] = {name: [] for name in self.names}
        of_series = [(ends[name], closes[name]) for name in self.names]
        for place, end_ns, close in zip(self._series, self._as_of_ns, self._last_price, strict=True):
            of_series[place][0].append(end_ns)
            of_series[place][1].append(close)
        return ends, closes

    def result(
        self, loop: DecisionLoop, rows: tuple[SetAsideRow, ...], kind: FrameKind, state: ForecastState
    ) -> Backtest:
        as_of_ns = np.array(self._as_of_ns, np.int64)
        first = int(np.searchsorted(as_of_ns, self._start_ns))
        if first == len(as_of_ns):
            newest = datetime.fromtimestamp(as_of_ns[-1] // (NS_PER_US * 10**6), UTC).date()
            raise InvalidInput(f"no forecast was made from the start on: the prices end on {newest}")
        names, config = tuple(self.names), state.settings.forecasting
        return Backtest(
            names=names,
            symbols=tuple(name.rpartition("/")[0] for name in names),
            series=np.array(self._series[first:], np.int32),
            as_of_ns=as_of_ns[first:],
            last_price=np.array(self._last_price[first:]),
            is_withheld=np.array(self._is_withheld[first:], bool),
            log_returns=np.array(self._quantiles[first:]),
            horizons=config.horizons,
            levels=config.levels,
            score_rows=tuple(_since(loop.components.forecaster.scores(), self._before or [])),
            rows_set_aside=rows,
            kind=kind,
            state=state,
        )


def _since(now: Sequence[ScoreRow], before: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Mean scores of what was scored between two instants."""
    known = {(row.name, row.horizon): row for row in before}
    found: list[ScoreRow] = []
    for row in now:
        earlier = known.get((row.name, row.horizon))
        num = row.num - (earlier.num if earlier else 0)
        if not num:
            continue
        if earlier is not None:
            crps = (row.crps * row.num - earlier.crps * earlier.num) / num
            inside = (row.coverage90 * row.num - earlier.coverage90 * earlier.num) / num
            row = ScoreRow(row.name, row.horizon, num, crps, inside)
        found.append(row)
    return found
