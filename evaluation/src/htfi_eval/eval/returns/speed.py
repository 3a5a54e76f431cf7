"""The cost of a refresh of forecasts, compared with arch fitting each series. `htfi eval returns` runs it."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import series_id
from htfi.domain.errors import MissingExtra
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.wiring.experts import open_experts
from htfi_eval.eval.garch import arch_module, fit_one

Array = NDArray[np.float64]

NUM_SERIES, HORIZONS = 500, (1, 2, 5, 10, 22)
_WARM_BARS, _HISTORY_BARS = 300, 1_000
_NUM_RUNS, _REFRESHES, _NUM_FITTED = 5, 10, 10
_SIZES = (250, 500, 1_000, 2_000)
_SIZE_BARS = 40
_SINGLE_UPDATES = 300


def measure_speed(
    config: ForecastConfig, seed: int
) -> tuple[list[dict[str, Any]], dict[str, float], list[str]]:
    """Rows, metrics and notes. Simulated prices: GARCH-like returns with ranges, the same on every machine."""
    config = replace(config, horizons=HORIZONS)
    rng = np.random.Generator(np.random.PCG64(seed))
    closes = _simulated(rng, _HISTORY_BARS, NUM_SERIES)
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float] = {}
    notes: list[str] = []
    click.echo("speed: warming up", err=True)
    series = _TimedForecaster(config, closes, rng)
    series.warm(_WARM_BARS)
    ours_s: list[float] = []
    arch_s: list[float] = []
    try:
        arch = arch_module()
        fit_one(arch, np.diff(closes[:, 0]))  # the first fit compiles
    except MissingExtra as error:
        arch = None
        notes.append(f"speed of arch: {error}")
    for run in range(_NUM_RUNS):
        began_s = time.perf_counter()
        series.refresh(_REFRESHES)
        ours_s.append((time.perf_counter() - began_s) / _REFRESHES)
        if arch is not None:
            began_s = time.perf_counter()
            for n in range(_NUM_FITTED):
                _fit_and_forecast(arch, np.diff(closes[:, run * _NUM_FITTED + n]))
            arch_s.append((time.perf_counter() - began_s) / _NUM_FITTED * NUM_SERIES)
    refresh_s = statistics.median(ours_s)
    rows.append(_row("refresh", NUM_SERIES, refresh_s))
    if arch_s:
        ratios = [other / mine for mine, other in zip(ours_s, arch_s, strict=True)]
        metrics["speed_vs_arch"] = statistics.median(ratios)
        rows.append(_row("fits by arch", NUM_SERIES, statistics.median(arch_s)))
        notes.append(
            f"speed: {NUM_SERIES} simulated series × {len(HORIZONS)} horizons, medians of {_NUM_RUNS} paired runs. A "
            f"refresh is observe, forecast and learn, the mean over {_REFRESHES} bars, which includes the "
            "scheduled fits; "
            f"arch fits GARCH(1,1)-t to {_HISTORY_BARS:,} bars and forecasts, {_NUM_FITTED} series timed per run and "
            f"scaled. Pairs from {min(ratios):,.0f}× to {max(ratios):,.0f}×"
        )
    notes.append("speed: one symbol's update and the cost by number of series are in processor time")
    metrics["one_symbol_update_ms"] = _one_symbol_ms(config, closes[:, :1], rng)
    rows.append(
        {"data": "simulated", "forecaster": "one symbol's update", "ms": metrics["one_symbol_update_ms"]}
    )
    metrics["cost_exponent"] = _exponent(config, rng, rows)
    return rows, metrics, notes


class _TimedForecaster:
    """A forecaster and its bars."""

    def __init__(self, config: ForecastConfig, closes: Array, rng: np.random.Generator) -> None:
        self._forecaster = Forecaster(config, open_experts(config, config.foundation))
        self._closes = np.exp(closes)
        self._ranges = np.exp(0.01 * np.abs(rng.standard_normal(closes.shape)))
        self._symbols = [f"S{n:05d}" for n in range(closes.shape[1])]
        self._names = [series_id(symbol, "1d") for symbol in self._symbols]
        self._at = 0

    def warm(self, num_bars: int) -> None:
        for _ in range(num_bars):
            self._forecaster.observe(self._next())
        self._forecaster.learn()

    def refresh(self, num: int) -> None:
        for bars in [self._next() for _ in range(num)]:
            self._take(bars)

    def time_each(self, num: int) -> list[float]:
        """Seconds of processor time of each of `num` updates: time of other programs does not count."""
        spent_s: list[float] = []
        for _ in range(num):
            bars, began_s = self._next(), time.process_time()
            self._take(bars)
            spent_s.append(time.process_time() - began_s)
        return spent_s

    def _take(self, bars: Sequence[Bar]) -> None:
        self._forecaster.observe(bars)
        self._forecaster.forecast(self._names)
        self._forecaster.learn()

    def _next(self) -> list[Bar]:
        t = self._at % len(self._closes)
        start_ns, end_ns = self._at * NS_PER_DAY, (self._at + 1) * NS_PER_DAY
        self._at += 1
        closes = self._closes[t]
        columns = ((closes * self._ranges[t]).tolist(), (closes / self._ranges[t]).tolist(), closes.tolist())
        return [
            Bar(end_ns, end_ns, "simulated", t, symbol, "1d", start_ns, end_ns, close, high, low, close)
            for symbol, high, low, close in zip(self._symbols, *columns, strict=True)
        ]


def _row(what: str, num_series: int, spent_s: float) -> dict[str, Any]:
    return {"data": "simulated", "forecaster": what, "n": num_series, "found": f"{1e3 * spent_s:,.1f} ms"}


def _fit_and_forecast(arch: Any, returns: Array) -> None:
    model = arch.arch_model(100.0 * returns, mean="Constant", vol="GARCH", p=1, q=1, dist="t", rescale=False)
    model.fit(disp="off", show_warning=False).forecast(horizon=HORIZONS[-1])


def _one_symbol_ms(config: ForecastConfig, closes: Array, rng: np.random.Generator) -> float:
    series = _TimedForecaster(config, closes, rng)
    series.warm(_WARM_BARS)
    return 1e3 * statistics.median(series.time_each(_SINGLE_UPDATES))


def _exponent(config: ForecastConfig, rng: np.random.Generator, rows: list[dict[str, Any]]) -> float:
    """The slope of log processor time on log number of series: 1 is linear, less means a fixed part."""
    costs: list[float] = []
    for num in _SIZES:
        series = _TimedForecaster(config, _simulated(rng, _SIZE_BARS + 2 * _REFRESHES, num), rng)
        series.warm(_SIZE_BARS)
        costs.append(statistics.fmean(series.time_each(2 * _REFRESHES)))
        rows.append(_row(f"refresh, {_SIZE_BARS} bars in", num, costs[-1]))
    return slope(np.log(np.array(_SIZES, np.float64)), np.log(np.array(costs)))


def slope(x: Array, y: Array) -> float:
    """Of the least-squares line."""
    away = x - x.mean()
    return float((away * y).sum() / (away * away).sum())


def _simulated(rng: np.random.Generator, num_bars: int, num_series: int) -> Array:
    """Log closes [T, N] of a GARCH(1,1) with Student tails, one percent a bar."""
    variance0 = 1e-4
    variance = np.full(num_series, variance0)
    moves = np.empty((num_bars, num_series))
    for t in range(num_bars):
        moves[t] = np.sqrt(variance * 0.6) * rng.standard_t(5, num_series)
        variance = 0.05 * variance0 + 0.08 * moves[t] ** 2 + 0.87 * variance
    return np.log(100.0) + np.cumsum(moves, axis=0)
