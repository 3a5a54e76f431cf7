"""`htfi.forecast`: the newest forecast of each series of a table or file, by the main path, in memory.

`htfi forecast` prints the same answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.baseline import make_baseline
from htfi.forecasting.scenarios.requests import require_series
from htfi.forecasting.scores import ScoreRow
from htfi.library.arguments import (
    ORIGIN,
    Models,
    bar_interval,
    symbol_text,
    whole_number,
    with_experts,
    with_horizons,
    with_models,
)
from htfi.library.charts.fan import Fan, make_fan
from htfi.library.frames import Frame, FrameKind, instants, make_frame
from htfi.library.gluonts import quantile_forecasts
from htfi.library.html import band_table, block, fan_block, first_shown, marked, shown, table_html
from htfi.library.plots import fan_panel, plot
from htfi.library.progress import loop_progress, progress_bar
from htfi.library.results import ForecastState, rows_set_aside, set_aside_frame, warn_of_rows, why_none
from htfi.library.set_aside import SetAsideRow
from htfi.library.tables import TableSource, read_news, read_prices
from htfi.narrative.ports import NewsReader
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.wiring.in_memory_run import InMemoryRun, run_sources
from htfi.wiring.settings import Settings, load_settings, override

_NAMED_SERIES = 8
_DRAWN_BARS = 120  # of the past, in a chart
_USUAL_SLOTS = frozenset(
    {
        "series",
        "state",
        "bar",
        "low",
        "high",
        "low_price",
        "high_price",
        "coverage",
        "width",
        "previous_width",
    }
    | {"expert", "expert_weight"}
)  # of every rationale; the others say what moved this one


@dataclass(frozen=True, slots=True)
class SeriesForecast:
    """The newest decision on one series, and the prices that it was made from."""

    decision: Decision
    prices: tuple[float, ...]
    ends_ns: tuple[int, ...]

    @property
    def is_withheld(self) -> bool:
        """Whether policy keeps the forecast back."""
        return self.decision.verdict.outcome is PolicyOutcome.WITHHOLD

    @property
    def fan(self) -> Fan:
        """The last prices and the bands ahead, to draw."""
        decision, forecast = self.decision, self.decision.forecast
        return make_fan(
            decision.series,
            self.ends_ns[-_DRAWN_BARS:],
            self.prices[-_DRAWN_BARS:],
            forecast.horizons,
            forecast.levels,
            forecast.quantiles,
        )

    def html(self) -> str:
        """For a notebook: fan, table and why, the figures and the news that counted marked."""
        decision, forecast = self.decision, self.decision.forecast
        if self.is_withheld:
            reasons = "; ".join(decision.verdict.reasons)
            return block(decision.series, f"<p>Policy withholds this forecast: {escape(reasons)}.</p>")
        bands = band_table(decision.last_price, forecast.horizons, forecast.levels, forecast.quantiles)
        slots = decision.rationale.slots
        words = marked(decision.rationale.text, [slots[name] for name in slots if name not in _USUAL_SLOTS])
        return fan_block(self.fan, decision.as_of_ns, bands, words)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a forecast is what it is, in words, and what policy made of it.

    `drivers` are the features that moved it (name, value, what is usual); `weights` the share of each expert.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> why = htfi.forecast(prices, symbol="SPX").explain()
        >>> why.verdict
        'release'
        >>> round(sum(why.weights.values()), 6)
        1.0
        >>> print(why)                                        # doctest: +ELLIPSIS
        SPX/1d is ... With a probability of 90%, ...
    """

    text: str
    drivers: tuple[tuple[str, float, float], ...]
    weights: Mapping[str, float]
    verdict: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        figures = [(name, f"{value:.4g}", f"{usual:.4g}") for name, value, usual in self.drivers]
        shares = sorted(self.weights.items(), key=lambda item: -item[1])
        return block(
            self.verdict,
            f"<p>{escape(self.text)}</p>",
            table_html(("unusual", "is", "usually"), figures) if figures else "",
            table_html(("expert", "weight"), [(name, f"{share:.1%}") for name, share in shares])
            if shares
            else "",
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForecastResult:
    """Forecasts of one or more series: where each price may be after some bars, and why.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> forecast = htfi.forecast(prices, symbol="SPX")
        >>> band = forecast.quantiles.query("measure == 'price' and horizon == 1").iloc[0]
        >>> bool(band["0.05"] < band["0.5"] < band["0.95"])
        True
        >>> forecast.sample(100, seed=1)["horizon"].value_counts().to_dict()
        {1: 100, 5: 100, 22: 100}
    """

    series: tuple[SeriesForecast, ...]
    score_rows: tuple[ScoreRow, ...]
    rows_set_aside: tuple[SetAsideRow, ...]
    kind: FrameKind
    surprises: NDArray[
        np.float32
    ]  # [T, n] of past forecasts, as scores, from which series are drawn together
    state: ForecastState

    @property
    def quantiles(self) -> Frame:
        """A row for each symbol, measure (`price`, `log_return`) and horizon: a column for each quantile level."""
        rows = [
            (one.decision, measure, horizon, values)
            for one in self.released
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
                "measure": [measure for _, measure, *_ in rows],
                "horizon": [horizon for *_, horizon, _ in rows],
                **{f"{level:g}": [values[place] for values in table] for place, level in enumerate(levels)},
            },
            self.kind,
        )

    @property
    def set_aside(self) -> Frame:
        """The rows that were not used, each with its reason."""
        return set_aside_frame(self.rows_set_aside, self.kind)

    @property
    def scores(self) -> Frame:
        """How good the earlier forecasts on these prices were: a row for each name and horizon."""
        return score_frame(self.score_rows, self.kind)

    @property
    def released(self) -> tuple[SeriesForecast, ...]:
        """Those that policy does not keep back."""
        return tuple(one for one in self.series if not one.is_withheld)

    def plot(self, backend: str = "plotly") -> Any:
        """A figure of 'plotly' or 'matplotlib' with a fan for each series. Raises: InvalidInput, MissingExtra."""
        if not self.released:
            raise InvalidInput("policy withholds every forecast: there is nothing to draw")
        return plot([fan_panel(one.fan) for one in self.released], backend)

    def to_gluonts(self, freq: str | None = None) -> list[Any]:
        """The prices ahead as GluonTS has them: a QuantileForecast for each series that policy does not keep back.

        It needs a forecast of every bar ahead (`horizons=range(1, 6)`). `freq` is a frequency of pandas; without it, it
        is the length of the bars, 'B' for daily bars on weekdays alone. Raises: InvalidInput, MissingExtra.
        """
        return quantile_forecasts([(one.decision, one.ends_ns) for one in self.released], freq)

    def __repr__(self) -> str:
        names = [one.decision.series for one in self.series]
        return f"forecast of {', '.join(names[:_NAMED_SERIES])}{' …' if len(names) > _NAMED_SERIES else ''}"

    def _repr_html_(self) -> str:
        drawn = self.series[: first_shown(len(self.series))]
        aside = f"<p>{len(self.rows_set_aside):,} set aside: see set_aside</p>" if self.rows_set_aside else ""
        return shown([one.html() for one in drawn], len(self.series), "series") + aside

    def one(self, symbol: str | None = None) -> SeriesForecast:
        """The forecast of a symbol; without one, of the first series. Raises: InvalidInput."""
        if symbol is None:
            return self.series[0]
        return self.series[require_series(symbol, [one.decision.series for one in self.series], "explain")]

    def explain(self, symbol: str | None = None) -> Explanation:
        """Why the forecast of a symbol is what it is. Raises: InvalidInput for a symbol that has none."""
        decision = self.one(symbol).decision
        verdict = decision.verdict
        reasons = tuple(verdict.reasons)
        if verdict.outcome is PolicyOutcome.WITHHOLD:
            return Explanation(
                f"Policy withholds this forecast: {'; '.join(reasons)}.",
                (),
                {},
                verdict.outcome.value,
                reasons,
            )
        drivers = tuple((one.feature, one.value, one.usual) for one in decision.rationale.drivers)
        weights = decision.forecast.first_shares
        return Explanation(decision.rationale.text, drivers, weights, verdict.outcome.value, reasons)

    def sample(self, n: int = 1_000, seed: int = 0) -> Frame:
        """`n` draws of the prices of all series together, at each horizon, by how they have moved together.

        A row for each draw, symbol and horizon. The same seed gives the same draws.
        """
        n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0)
        held = [place for place, one in enumerate(self.series) if not one.is_withheld]
        decisions = [self.series[place].decision for place in held]
        if not decisions:
            raise InvalidInput("policy withholds every forecast: there is nothing to draw from")
        prices = np.array([one.last_price for one in decisions])
        horizons, levels = decisions[0].forecast.horizons, decisions[0].forecast.levels
        moves = np.stack([
            make_baseline(
                [one.series for one in decisions],
                prices,
                np.array([one.forecast.quantiles[place] for one in decisions]),
                levels,
                horizon,
                self.surprises[:, held],
                seed=seed,
                num_draws=n,
            ).returns
            for place, horizon in enumerate(horizons)
        ], axis=-1)  # [n, series, H]  # fmt: skip
        symbols = np.array([one.symbol for one in decisions])
        draws, series, horizon = np.indices(moves.shape)
        return make_frame(
            {
                "draw": draws.ravel(),
                "symbol": symbols[series.ravel()].tolist(),
                "horizon": np.array(horizons)[horizon.ravel()],
                "price": (prices[:, None] * np.exp(moves)).ravel(),
                "log_return": moves.ravel(),
            },
            self.kind,
        )


def score_frame(rows: Sequence[ScoreRow], kind: FrameKind) -> Frame:
    """Name, horizon, number of forecasts, mean CRPS and coverage of the 90% band."""
    names = ("name", "horizon", "num", "crps", "coverage90")
    return make_frame({name: [getattr(row, name) for row in rows] for name in names}, kind)


def forecast(
    prices: Any,
    *,
    symbol: str | None = None,
    horizons: int | Sequence[int] | None = None,
    interval: str | timedelta | None = None,
    news: Any = None,
    models: Models | None = "default",
    experts: str | Sequence[str] | None = None,
    progress: bool = False,
) -> ForecastResult:
    """Forecast each series of `prices` from its newest bar.

    `prices` is a frame of pandas, polars or Arrow, a DuckDB relation, or the path of a file (docs/library.md);
    `symbol` the one wanted of several, or the name of a table that names none; `horizons` are in bars; `interval` is
    the length of a bar, such as '1d' or '5m', where the times do not say it. `news` is a table with times, headlines
    and symbols; `models` reads it: 'default' the shipped pair, a pair of folders (target, draft), or None for no
    language model. `experts` are those that are combined, by name: 'market_har', 'arch:garch_t', 'chronos:FOLDER', …
    (docs/forecasting.md). `progress` shows a bar on standard error, or in the notebook. Raises: InvalidInput where
    nothing can be forecast, in one line.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> forecast = htfi.forecast(prices, symbol="SPX", horizons=[1, 5])
        >>> forecast
        forecast of SPX/1d
        >>> forecast.quantiles.columns.tolist()[:5]
        ['symbol', 'as_of', 'measure', 'horizon', '0.01']
    """
    settings, interval = with_models(chosen_settings(horizons, experts), models), bar_interval(interval)
    sources = [read_prices(prices, symbol=symbol_text(symbol), interval=interval), *read_news(news)]
    readers = open_news_readers(settings, models) if len(sources) > 1 else None
    with progress_bar("forecast", is_shown=progress) as advance:
        newest = newest_decisions(settings, sources, interval, readers, loop_progress(advance))
    rows = rows_set_aside(sources, newest.done, newest.decided)
    warn_of_rows(rows, newest.done.num_bars + newest.done.num_ticks)
    series = tuple(
        SeriesForecast(decided.worded(), tuple(newest.prices[name]), tuple(newest.ends_ns[name]))
        for name, decided in newest.decided.items()
    )
    forecaster = newest.done.loop.components.forecaster
    return ForecastResult(
        series,
        tuple(forecaster.scores()),
        rows,
        sources[0].kind,
        forecaster.surprises([one.decision.series for one in series]).scores,
        ForecastState.of(newest.done, newest.ends_ns, newest.prices),
    )


def chosen_settings(
    horizons: int | Sequence[int] | None, experts: str | Sequence[str] | None = None
) -> Settings:
    """The settings of this machine, with these horizons and experts. Raises: InvalidInput."""
    settings = load_settings()
    if horizons is not None:
        settings = with_horizons(settings, horizons)
    return settings if experts is None else with_experts(settings, experts)


def open_news_readers(settings: Settings, models: Models | None) -> Mapping[Rung, NewsReader] | None:
    """What reads news; None where no language model is wanted. Raises: InvalidInput, IntegrityError."""
    if models is None:
        return None
    from htfi.wiring.models.readers import open_readers  # late: prices alone need none

    return open_readers(settings.models, settings.narrative, settings.decoding)


@dataclass(frozen=True, slots=True)
class NewestDecisions:
    """The newest decision, the closes and the ends of the bars of each series, at the end of a source."""

    done: InMemoryRun
    decided: Mapping[str, DecidedSeries]
    prices: Mapping[str, list[float]]
    ends_ns: Mapping[str, list[int]]


def newest_decisions(
    settings: Settings,
    sources: Sequence[TableSource],
    interval: str | None,
    readers: Mapping[Rung, NewsReader] | None = None,
    after_item: Callable[[DecisionLoop], None] = lambda _: None,
) -> NewestDecisions:
    """Run the main path over prices, and news, in memory. Raises: InvalidInput where the history is too short."""
    if interval is not None:
        settings = override(settings, "market", ORIGIN, bar=interval)
    seen = _Newest()
    tables = {name: table for source in sources for name, table in source.tables.items()}
    done = run_sources(
        settings,
        [source.spec for source in sources],
        seen.record,
        readers=readers,
        tables=tables,
        after_item=after_item,
    )
    if not seen.decided:
        raise InvalidInput(why_none(sources[0], done))
    return NewestDecisions(done, seen.decided, seen.prices, seen.ends_ns)


@dataclass(slots=True)
class _Newest:
    """Filled by the loop."""

    decided: dict[str, DecidedSeries] = field(default_factory=dict[str, DecidedSeries])
    prices: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    ends_ns: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def record(self, decided: DecidedSeries) -> None:
        name = decided.series
        self.decided[name] = decided
        if not decided.is_between_bars:
            self.prices.setdefault(name, []).append(decided.last_price)
            self.ends_ns.setdefault(name, []).append(decided.as_of_ns)
