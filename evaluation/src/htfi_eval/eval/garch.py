"""GARCH(1,1)-t of the `arch` package, one fit per series and year, as a peer of `htfi eval returns`.

Between fits its variance is filtered bar by bar with the parameters of the last fit; it uses no later data.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch
from htfi.forecasting.shapes import student_quantiles
from htfi_eval.commands import ProgressCallback, load_library
from htfi_eval.eval.walk import Places

Array = NDArray[np.float64]
Instants = NDArray[np.int64]

CACHE = Path("build/eval-cache")
WINDOW_YEARS = 6
GARCH_MIN_BARS = 250
_VERSION = "1"  # of what is cached
_PERCENT = 100.0  # arch is fitted on returns in percent: its optimiser starts well there
_RATIOS = np.array([0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0])  # next variance over unconditional variance
_NUM_PATHS = 2_000
_MAX_FREEDOM = 200.0
MU, OMEGA, ALPHA, BETA, NU = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class GarchFits:
    """Shapes: at [Y], the instants after which the fits were made; parameters [Y, N, 5], NaN where too few bars."""

    fitted_after: Instants
    window_begins: Instants  # [Y], where the window of each starts
    parameters: Array
    num_fitted: int
    was_cached: bool


def fit_yearly(
    returns: Array, ends_ns: Instants, first: int, *, constant_mean: bool = False, fresh: bool = False,
    cache: Path | None = CACHE, progress: ProgressCallback | None = None,
) -> GarchFits:  # fmt: skip
    """Fit every series of returns [T, N] at `first` and at the first instant of each year after it.

    Fits are kept in the folder `cache`, if any, under a digest of all inputs. Raises: MissingExtra.
    """
    arch = arch_module()
    at, begin = _fit_instants(ends_ns, first)
    digest = hashlib.sha256(np.ascontiguousarray(returns).tobytes() + at.tobytes() + begin.tobytes())
    digest.update(f"{_VERSION} {arch.__version__} {constant_mean} {GARCH_MIN_BARS}".encode())
    file = None if cache is None else cache / f"garch-{digest.hexdigest()[:24]}.npy"
    if file is not None and file.is_file() and not fresh:
        parameters = np.load(file)
        return GarchFits(at, begin, parameters, int(np.isfinite(parameters[:, :, OMEGA]).sum()), True)
    parameters = np.full((len(at), returns.shape[1], 5), np.nan)
    for y in range(len(at)):
        for n in range(returns.shape[1]):
            if progress is not None:
                progress(y * returns.shape[1] + n, len(at) * returns.shape[1])
            window = returns[begin[y] : at[y] + 1, n]
            parameters[y, n] = fit_one(arch, window[np.isfinite(window)], constant_mean)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, parameters)
    return GarchFits(at, begin, parameters, int(np.isfinite(parameters[:, :, OMEGA]).sum()), False)


def fit_one(arch: Any, returns: Array, constant_mean: bool = False) -> Array:
    """[μ, ω, α, β, ν] of one series, in units of the returns; NaN where it has too few bars or no variance."""
    if len(returns) < GARCH_MIN_BARS or not returns.std() > SIGMA_FLOOR:
        return np.full(5, np.nan)
    scale = _PERCENT
    model = arch.arch_model(
        returns * scale,
        mean="Constant" if constant_mean else "Zero",
        vol="GARCH",
        p=1,
        q=1,
        dist="t",
        rescale=False,
    )
    found = model.fit(disp="off", show_warning=False).params
    mean = float(found["mu"]) / scale if constant_mean else 0.0
    omega, alpha, beta, nu = (float(found[key]) for key in ("omega", "alpha[1]", "beta[1]", "nu"))
    return np.array([mean, omega / scale**2, alpha, beta, min(max(nu, 2.05), _MAX_FREEDOM)])


def arch_module() -> Any:
    """Raises: MissingExtra."""
    return load_library("arch")


def _fit_instants(ends_ns: Instants, first: int) -> tuple[Instants, Instants]:
    """The instants after which fits are made, and the starts of their windows."""
    years = ends_ns.astype("datetime64[ns]").astype("datetime64[Y]").astype(np.int64)
    turns = np.flatnonzero(np.diff(years)) + 1
    at = np.unique(np.concatenate([[max(first, 0)], turns[turns > first]])).astype(np.int64)
    longest_ns = WINDOW_YEARS * 365.25 * 86_400e9
    return at, np.searchsorted(ends_ns, ends_ns[at] - int(longest_ns)).astype(np.int64)


def next_variance(returns: Array, fits: GarchFits) -> Array:
    """The variance [T, N] of the next bar as known after each instant; NaN before the first fit of a series."""
    variance = np.full(returns.shape, np.nan)
    ends = [*(fits.fitted_after[1:]).tolist(), len(returns)]
    for y, (at, begin) in enumerate(
        zip(fits.fitted_after.tolist(), fits.window_begins.tolist(), strict=True)
    ):
        mean, omega, alpha, beta = (fits.parameters[y, :, place] for place in (MU, OMEGA, ALPHA, BETA))
        window = returns[begin : at + 1]
        known = np.isfinite(window)
        squares = np.where(known, window * window, 0.0).sum(axis=0)
        sigma2: Array = squares / np.maximum(
            known.sum(axis=0), 1
        )  # the influence of the start value fades in 6 years
        for t in range(begin, ends[y]):
            known = np.isfinite(returns[t])
            surprise = np.where(known, returns[t] - mean, 0.0)
            sigma2 = np.where(known, omega + alpha * surprise * surprise + beta * sigma2, sigma2)
            if t >= at:
                variance[t] = sigma2
    return variance


class GarchPeer:
    """Quantiles from fits: Student's t one bar ahead; for longer horizons, the shape of simulated paths."""

    def __init__(
        self,
        name: str,
        returns: Array,
        fits: GarchFits,
        config: ForecastConfig,
        *,
        tails: str = "simulated",
        seed: int = 0,
    ) -> None:
        """`tails` beyond one bar: 'simulated'; 't', that of one bar; 'thinning', whose excess kurtosis falls as 1/h."""
        self.name = name
        self._fits = fits
        self._horizons = np.array(config.horizons)
        self._variance = next_variance(returns, fits)
        self._year = np.searchsorted(fits.fitted_after, np.arange(len(returns)), side="right") - 1
        self._shapes = self._make_shapes(config, tails, np.random.Generator(np.random.PCG64(seed)))

    def quantiles(self, t: int, places: Places, batch: BarBatch) -> Array:  # noqa: ARG002 (the port's)
        year, num_levels = int(self._year[t]), self._shapes.shape[-1]
        if year < 0:
            return np.full((len(places), len(self._horizons), num_levels), np.nan)
        mean, unconditional, persistence = self._unconditional(self._fits.parameters[year, places])
        now = self._variance[t, places]
        h = self._horizons[None, :]
        faded = np.where(
            persistence[:, None] < 1.0 - 1e-6,
            (1.0 - persistence[:, None] ** h) / np.maximum(1.0 - persistence[:, None], 1e-12),
            h,
        )
        total = unconditional[:, None] * h + (now - unconditional)[:, None] * faded  # Σ E σ²
        ratio = now / unconditional
        ratio = np.where(np.isfinite(ratio), ratio, 1.0)
        place = np.interp(np.log(np.maximum(ratio, _RATIOS[0])), np.log(_RATIOS), np.arange(len(_RATIOS)))
        low = np.minimum(place.astype(np.intp), len(_RATIOS) - 2)
        share = (place - low)[:, None, None]
        shapes = self._shapes[year]
        shape = (1.0 - share) * shapes[places, low] + share * shapes[places, low + 1]
        return (
            mean[:, None, None] * h[..., None] + np.sqrt(np.maximum(total, SIGMA_FLOOR**2))[..., None] * shape
        )

    def _unconditional(self, parameters: Array) -> tuple[Array, Array, Array]:
        """Mean, unconditional variance and persistence [n]; a fit close to non-stationarity gets a long horizon."""
        persistence = np.minimum(parameters[:, ALPHA] + parameters[:, BETA], 0.9999)
        return parameters[:, MU], parameters[:, OMEGA] / (1.0 - persistence), persistence

    def _make_shapes(self, config: ForecastConfig, tails: str, rng: np.random.Generator) -> Array:
        """Quantiles at unit variance [Y, N, ratios, H, Q]."""
        num_years, num_series, _ = self._fits.parameters.shape
        shapes = np.full(
            (num_years, num_series, len(_RATIOS), len(self._horizons), len(config.levels)), np.nan
        )
        tables = _StudentTable(config.levels)
        for y in range(num_years):
            for n in np.flatnonzero(np.isfinite(self._fits.parameters[y, :, OMEGA])).tolist():
                nu = float(self._fits.parameters[y, n, NU])
                shapes[y, n, :, :] = tables.at(nu)
                if tails == "thinning":
                    for j, h in enumerate(config.horizons):
                        shapes[y, n, :, j] = tables.at(4.0 + h * max(nu - 4.0, 0.2))
                elif tails == "simulated":
                    paths = _simulate(self._fits.parameters[y, n], config, rng)
                    beyond = self._horizons > 1
                    shapes[y, n][:, beyond] = paths[:, beyond]
        return shapes


def _simulate(parameters: Array, config: ForecastConfig, rng: np.random.Generator) -> Array:
    """Quantiles [ratios, H, Q] of summed simulated returns at unit variance, for `_RATIOS`; symmetric about 0."""
    _, omega, alpha, beta, nu = parameters.tolist()
    persistence = min(alpha + beta, 0.9999)
    unconditional = omega / (1.0 - persistence)
    longest = config.horizons[-1]
    z = rng.standard_t(nu, (longest, _NUM_PATHS)) * np.sqrt((nu - 2.0) / nu)
    sigma2 = np.repeat((unconditional * _RATIOS)[:, None], _NUM_PATHS, axis=1)
    expected = unconditional * _RATIOS
    total, variance = np.zeros_like(sigma2), np.zeros(len(_RATIOS))
    levels = np.array(config.levels)
    away = np.abs(levels - 0.5) * 2.0
    shapes = np.zeros((len(_RATIOS), len(config.horizons), len(levels)))
    for step in range(longest):
        moves = np.sqrt(sigma2) * z[step]
        total += moves
        variance += expected
        sigma2 = omega + alpha * moves * moves + beta * sigma2
        expected = unconditional + persistence * (expected - unconditional)
        if step + 1 in config.horizons:
            sizes = np.quantile(np.abs(total), away, axis=1).T  # [ratios, Q]
            shapes[:, config.horizons.index(step + 1)] = (
                np.sign(levels - 0.5) * sizes / np.sqrt(variance)[:, None]
            )
    return shapes


class _StudentTable:
    """Student quantiles by degrees of freedom, computed once on a fine grid of 1/ν."""

    def __init__(self, levels: Sequence[float]) -> None:
        self._grid = np.linspace(1.0 / _MAX_FREEDOM, 1.0 / 2.05, 100)
        self._rows = np.array([student_quantiles(levels, 1.0 / inverse) for inverse in self._grid])

    def at(self, freedom: float) -> Array:
        inverse = 1.0 / min(max(freedom, 2.05), _MAX_FREEDOM)
        place = float(np.interp(inverse, self._grid, np.arange(len(self._grid))))
        low = min(int(place), len(self._grid) - 2)
        return self._rows[low] + (place - low) * (self._rows[low + 1] - self._rows[low])
