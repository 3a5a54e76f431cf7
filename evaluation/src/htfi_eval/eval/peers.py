"""Forecasters to compare with: EWMA, random walks, HAR of log ranges, and statsforecast's models.

statsforecast is slow: one fit a year on the last bars, a forecast every month from the newest ones, five series.
"""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch
from htfi.forecasting.ports import Expert
from htfi.forecasting.shapes import gaussian_quantiles, scale_shape, student_quantiles
from htfi_eval.commands import ProgressCallback, load_library
from htfi_eval.eval.garch import CACHE
from htfi_eval.eval.walk import PeerForecaster, Places, RealisedOutcomes

Array = NDArray[np.float64]

RISKMETRICS_DECAY = 0.94
HISTVOL, EWMA, HAR_FHS, CONSTANT = "histvol20", "ewma_gaussian", "har_fhs", "constant_walk"
_MIN_BARS = 20

Ask = Callable[[Callable[[], Any], Any, Array, ForecastConfig], tuple[Any, Array]]


class EwmaPeer:
    """var ← 0.94·var + 0.06·r², σ√h, Gaussian (RiskMetrics 1996), or Student's t with `freedom` at every horizon."""

    def __init__(
        self, name: str, num_series: int, config: ForecastConfig, freedom: float | None = None
    ) -> None:
        self.name = name
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = (
            gaussian_quantiles(config.levels)
            if freedom is None
            else student_quantiles(config.levels, freedom)
        )
        self._var, self._num = np.zeros(num_series), np.zeros(num_series)

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        squares = batch.returns * batch.returns
        gain = np.maximum(1.0 / (self._num[places] + 1.0), 1.0 - RISKMETRICS_DECAY)
        self._var[places] += gain * (squares - self._var[places])
        self._num[places] += 1
        sigma = np.maximum(np.sqrt(self._var[places]), SIGMA_FLOOR)
        sigma = np.where(self._num[places] >= _MIN_BARS, sigma, np.nan)
        return scale_shape(sigma[:, None] * self._root_h, self._shape)


class ConstantWalk:
    """A random walk whose Gaussian steps have the volatility of all bars before `until`, and then stays the same."""

    def __init__(self, name: str, num_series: int, config: ForecastConfig, until: int) -> None:
        self.name = name
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._sum, self._num = np.zeros(num_series), np.zeros(num_series)
        self._until = until

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:
        if t < self._until:
            self._sum[places] += batch.returns * batch.returns
            self._num[places] += 1
        known = self._num[places] >= _MIN_BARS
        sigma = np.where(known, np.sqrt(self._sum[places] / np.maximum(self._num[places], 1.0)), np.nan)
        return scale_shape(np.maximum(sigma, SIGMA_FLOOR)[:, None] * self._root_h, self._shape)


class ExpertPeer:
    """One of our experts by itself, on prices alone: neither a calendar nor the week's pattern is known to it."""

    def __init__(self, name: str, expert: Expert) -> None:
        self.name = name
        self._expert = expert
        self._num = 0

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        last = int(batch.index.max()) + 1
        if last > self._num:
            self._num = last
            self._expert.grow(last)
        self._expert.update(batch)
        forecasts = self._expert.quantiles(batch.rows).copy()
        self._expert.learn(batch)
        return forecasts


def classical(num_series: int, config: ForecastConfig, first: int) -> Sequence[PeerForecaster]:
    """The peers of every run; scoring begins at `first`."""
    return (
        ExpertPeer(HISTVOL, EXPERTS["random_walk"](config)),
        ExpertPeer(HAR_FHS, EXPERTS["log_range_har"](config)),
        EwmaPeer(EWMA, num_series, config),
        EwmaPeer("ewma_student5", num_series, config, 5.0),
        ConstantWalk(CONSTANT, num_series, config, first),
    )


WINDOW_BARS, REFIT_BARS, MIN_BARS = 1_000, 22, 250
_WEEK, _MONTH = 5, 22


def har_variance(
    measured: RealisedOutcomes, horizons: tuple[int, ...], window: int | None = WINDOW_BARS
) -> Array:
    """The sum of `variance` over the next h bars as forecast after each instant, [T, N, H]; NaN before 250 bars.

    log RV̄(t+1..t+h) = β₀ + β_d log RV_t + β_w mean₅ log RV + β_m mean₂₂ log RV (after Corsi 2009; means of logs did
    better here than logs of means), per series and horizon, by least squares over the last `window` bars or all,
    refitted every 22; exp(· + s²/2) undoes the log.
    """
    forecast = np.full((*measured.variance.shape, len(horizons)), np.nan)
    for n in range(measured.variance.shape[1]):
        when = np.flatnonzero(np.isfinite(measured.variance[:, n]))
        if len(when) > MIN_BARS:
            for j, h in enumerate(horizons):
                forecast[when, n, j] = _one(measured.variance[when, n], h, window or len(when))
    return forecast


def _one(variance: Array, horizon: int, window: int) -> Array:
    """The forecasts [t] of one series at one horizon."""
    num = len(variance)
    logs = np.log(variance)
    total = np.concatenate([[0.0], np.cumsum(variance)])
    design = np.stack([np.ones(num), logs, *(_trailing(logs, span) for span in (_WEEK, _MONTH))])
    target = np.full(num, np.nan)
    target[:-horizon] = np.log((total[horizon + 1 :] - total[1:-horizon]) / horizon)
    columns = np.concatenate([design, target[None]])  # [5, t]
    known = np.isfinite(target)
    products = np.where(known, columns[:, None] * columns[None], 0.0)  # [5, 5, t]
    sums = np.concatenate([np.zeros((5, 5, 1)), np.cumsum(products, axis=2)], axis=2)
    forecast = np.full(num, np.nan)
    for at in range(MIN_BARS, num, REFIT_BARS):
        last = at + 1 - horizon  # labels that are complete once bar `at` is known
        first = max(last - window, _MONTH)
        gram = sums[:, :, last] - sums[:, :, first]
        try:
            beta = _solve(gram[:4, :4], gram[:4, 4])
        except np.linalg.LinAlgError:
            continue
        left = float(gram[4, 4] - 2.0 * beta @ gram[:4, 4] + beta @ gram[:4, :4] @ beta)
        spread = max(left, 0.0) / max(last - first - 4, 1)
        span = slice(at, min(at + REFIT_BARS, num))
        level = (beta[:, None] * design[:, span]).sum(
            axis=0
        )  # the bits of a matrix product depend on the span's length
        forecast[span] = horizon * np.exp(level + 0.5 * spread)
    return forecast


def _solve(gram: Array, right: Array) -> Array:
    """Least squares by the normal equations, with a negligible ridge for singular ones."""
    return np.asarray(np.linalg.solve(gram + 1e-9 * gram[0, 0] * np.eye(len(gram)), right), np.float64)


def _trailing(values: Array, span: int) -> Array:
    """Means over the last `span` values, or over all while there are fewer."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    after = np.arange(1, len(total))
    first = np.maximum(after - span, 0)
    return (total[after] - total[first]) / (after - first)


NUM_SERIES = 5
EVERY_BARS = 22
_WINDOW_BARS, _REFIT_BARS = 500, 250
_PERCENT = 100.0
_VERSION = "1"


class PrecomputedPeer:
    """Quantiles made beforehand, each only from what was known at its instant: [T, N, H, Q], mostly NaN."""

    def __init__(self, name: str, made: NDArray[np.float32]) -> None:
        self.name = name
        self._made = made

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        return self._made[t, places].astype(np.float64)


def statsforecast_peers(
    returns: Array, begin: int, config: ForecastConfig, *, fresh: bool = False, cache: Path = CACHE,
    progress: ProgressCallback | None = None,
) -> tuple[list[PrecomputedPeer], str]:  # fmt: skip
    """The peers and a note on how they were run. Raises: MissingExtra."""
    library, models = load_library("statsforecast"), load_library("statsforecast.models")
    chosen = _longest_series(returns, begin)
    digest = hashlib.sha256(np.ascontiguousarray(returns[:, chosen]).tobytes())
    digest.update(
        f"{_VERSION} {library.__version__} {begin} {config.horizons} {config.levels} {chosen}".encode()
    )
    makers: dict[str, tuple[Callable[[], Any], Ask]] = {
        "sf_auto_arima": (lambda: models.AutoARIMA(seasonal=False, approximation=True), _of_path),
        "sf_auto_ets": (lambda: models.AutoETS(model="ZZN"), _of_path),
        "sf_garch": (lambda: models.GARCH(1, 1), _of_variance),
    }
    peers: list[PrecomputedPeer] = []
    for number, (name, (make, ask)) in enumerate(makers.items()):
        file = cache / f"statsforecast-{number}-{digest.hexdigest()[:24]}.npy"
        if file.is_file() and not fresh:
            made = np.load(file)
        else:
            made = np.stack([_one_series(make, ask, returns[:, n], begin, config) for n in chosen], axis=1)
            cache.mkdir(parents=True, exist_ok=True)
            np.save(file, made)
        if progress is not None:
            progress(number + 1, len(makers))
        whole = np.full((len(returns), returns.shape[1], *made.shape[2:]), np.nan, np.float32)
        whole[:, chosen] = made
        peers.append(PrecomputedPeer(name, whole))
    note = (
        f"statsforecast {library.__version__}: slow: {len(chosen)} series, a fit of {_WINDOW_BARS} bars every "
        f"{_REFIT_BARS}, a forecast every {EVERY_BARS}; compared on these only"
    )
    return peers, note


def _one_series(
    make: Callable[[], Any], ask: Ask, returns: Array, begin: int, config: ForecastConfig
) -> NDArray[np.float32]:
    """Quantiles [T, H, Q] of one series, in log return."""
    made = np.full((len(returns), len(config.horizons), len(config.levels)), np.nan, np.float32)
    when = np.flatnonzero(np.isfinite(returns))
    model: Any = None
    start = max(int(np.searchsorted(when, begin)), _WINDOW_BARS - 1)
    for step, at in enumerate(range(start, len(when), EVERY_BARS)):
        window = _PERCENT * returns[when[at + 1 - _WINDOW_BARS : at + 1]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if step % (_REFIT_BARS // EVERY_BARS) == 0:
                    model = None
                model, made[when[at]] = ask(make, model, window, config)
            except (
                ArithmeticError,
                ValueError,
                LookupError,
                TypeError,
            ):  # the peer cannot be fitted: no forecast
                model = None
    return made


def _of_path(make: Callable[[], Any], model: Any, window: Array, config: ForecastConfig) -> tuple[Any, Array]:
    """A model of the log price: quantiles from its own intervals, updated with the newest bars without a refit."""
    path = np.cumsum(window)
    if model is None:
        model = make().fit(path)
    centrals = {level: round(100.0 * abs(2.0 * level - 1.0), 6) for level in config.levels}
    forecasts = model.forward(
        path, config.horizons[-1], level=sorted({share for share in centrals.values() if share > 0.0})
    )
    quantiles = np.empty((len(config.horizons), len(config.levels)))
    for q, (level, share) in enumerate(centrals.items()):
        column = "mean" if share == 0.0 else f"{'lo' if level < 0.5 else 'hi'}-{share}"
        steps = np.asarray(forecasts[column], np.float64)
        quantiles[:, q] = [(steps[h - 1] - path[-1]) / _PERCENT for h in config.horizons]
    return model, np.maximum.accumulate(quantiles, axis=1)


def _of_variance(make: Callable[[], Any], _: Any, window: Array, config: ForecastConfig) -> tuple[Any, Array]:
    """A model of the variance, refitted: Gaussian, with summed variances. (Its `mean` is a random draw.)"""
    forecasts = make().fit(window).predict(config.horizons[-1])
    total = np.cumsum(np.asarray(forecasts["sigma2"], np.float64))
    scale = np.sqrt([total[h - 1] for h in config.horizons]) / _PERCENT
    return None, scale[:, None] * gaussian_quantiles(config.levels)


def _longest_series(returns: Array, begin: int) -> list[int]:
    """A few series with most bars from `begin` on, spread evenly over those that have the most."""
    num = np.isfinite(returns[begin:]).sum(axis=0)
    full = np.flatnonzero(num >= 0.95 * num.max())
    picked = full[np.linspace(0, len(full) - 1, min(NUM_SERIES, len(full))).round().astype(np.intp)]
    return np.unique(picked).tolist()
