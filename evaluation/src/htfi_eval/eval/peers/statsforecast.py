"""AutoARIMA, AutoETS and GARCH of statsforecast on a few series, as peers of `htfi eval returns`.

They are slow: one fit a year on the last bars, a forecast every month from the newest ones, a handful of series.
"""

import hashlib
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import MissingExtra
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.panel import BarBatch
from htfi.forecasting.shapes import gaussian_quantiles
from htfi_eval.eval.peers.garch import CACHE
from htfi_eval.eval.walk import Places, Tell

Array = NDArray[np.float64]

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
    tell: Tell | None = None,
) -> tuple[list[PrecomputedPeer], str]:  # fmt: skip
    """The peers and a note on how they were run. Raises: MissingExtra."""
    try:
        library = import_module("statsforecast")
        models = import_module("statsforecast.models")
    except ImportError as error:
        raise MissingExtra("statsforecast is not installed (pip install 'htfi[bench]')") from error
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
        if tell is not None:
            tell(number + 1, len(makers))
        whole = np.full((len(returns), returns.shape[1], *made.shape[2:]), np.nan, np.float32)
        whole[:, chosen] = made
        peers.append(PrecomputedPeer(name, whole))
    note = (
        f"statsforecast {library.__version__}: slow, so {len(chosen)} series, a fit of {_WINDOW_BARS} bars every "
        f"{_REFIT_BARS}, a forecast every {EVERY_BARS}; compared on these alone"
    )
    return peers, note


def _one_series(
    make: Callable[[], Any], ask: "Ask", returns: Array, begin: int, config: ForecastConfig
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
            ):  # the peer cannot fit: it says nothing
                model = None
    return made


Ask = Callable[[Callable[[], Any], Any, Array, ForecastConfig], tuple[Any, Array]]


def _of_path(make: Callable[[], Any], model: Any, window: Array, config: ForecastConfig) -> tuple[Any, Array]:
    """A model of the log price: quantiles from its own intervals, made anew from the newest bars without a refit."""
    path = np.cumsum(window)
    if model is None:
        model = make().fit(path)
    centrals = {level: round(100.0 * abs(2.0 * level - 1.0), 6) for level in config.levels}
    said = model.forward(
        path, config.horizons[-1], level=sorted({share for share in centrals.values() if share > 0.0})
    )
    quantiles = np.empty((len(config.horizons), len(config.levels)))
    for q, (level, share) in enumerate(centrals.items()):
        column = "mean" if share == 0.0 else f"{'lo' if level < 0.5 else 'hi'}-{share}"
        steps = np.asarray(said[column], np.float64)
        quantiles[:, q] = [(steps[h - 1] - path[-1]) / _PERCENT for h in config.horizons]
    return model, np.maximum.accumulate(quantiles, axis=1)


def _of_variance(make: Callable[[], Any], _: Any, window: Array, config: ForecastConfig) -> tuple[Any, Array]:
    """A model of the variance, fitted anew: Gaussian, its variances summed. (Its `mean` is a random draw.)"""
    said = make().fit(window).predict(config.horizons[-1])
    total = np.cumsum(np.asarray(said["sigma2"], np.float64))
    scale = np.sqrt([total[h - 1] for h in config.horizons]) / _PERCENT
    return None, scale[:, None] * gaussian_quantiles(config.levels)


def _longest_series(returns: Array, begin: int) -> list[int]:
    """A few series with most bars from `begin` on, spread evenly over those that have the most."""
    num = np.isfinite(returns[begin:]).sum(axis=0)
    full = np.flatnonzero(num >= 0.95 * num.max())
    picked = full[np.linspace(0, len(full) - 1, min(NUM_SERIES, len(full))).round().astype(np.intp)]
    return np.unique(picked).tolist()
