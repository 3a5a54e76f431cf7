"""The leak check of `htfi eval returns`: our forecasts must not change with the future; those of a planted leak must.

The planted leak is an expert with a centred volatility, as if a feature were computed over the whole file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import MissingExtra
from htfi.domain.time import format_ns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.leak import find_leaks
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows
from htfi.forecasting.shapes import gaussian_quantiles, scale_shape
from htfi.wiring.experts import open_experts
from htfi_eval.eval.garch import GARCH_MIN_BARS, GarchPeer, fit_yearly
from htfi_eval.eval.peers import classical
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import FUSED, PeerForecaster, Walk, WalkInstant, measure_outcomes

Array = NDArray[np.float64]

PLANTED_LEAK = "centred_volatility"
_NUM_SERIES, _NUM_INSTANTS = 6, 340
_HALF_WIDTH = 2


@dataclass(frozen=True, slots=True)
class LeakReport:
    """Forecasters that changed with the future (name → ISO date), without and with the planted leak."""

    honest: dict[str, str]
    planted: dict[str, str]
    num_checked: int

    @property
    def found_planted_leak(self) -> bool:
        """Whether the planted leak was detected, and the mix that uses it as well."""
        return PLANTED_LEAK in self.planted and FUSED in self.planted

    def rows(self, data: str) -> list[dict[str, Any]]:
        ours = ", ".join(f"{name} from {day}" for name, day in self.honest.items()) or "none"
        return [
            {"data": data, "forecaster": "leak check", "n": self.num_checked, "found": f"leaks: {ours}"},
            {
                "data": data,
                "forecaster": f"planted {PLANTED_LEAK}",
                "found": "detected" if self.found_planted_leak else "NOT DETECTED",
            },
        ]


def check_leaks(prices: Prices, config: ForecastConfig, seed: int, *, with_arch: bool = True) -> LeakReport:
    """Run a small part of the data, its future changed at two places, without and with the planted leak."""
    part = _part(prices)
    num = len(part.ends_ns)
    cuts = (num // 2, num - 30) if num > 60 else (num // 2,)
    rng = np.random.Generator(np.random.PCG64(seed))
    fields = {key: getattr(part, key) for key in ("open", "high", "low", "close")}
    days = part.dates()

    def honest(changed: Mapping[str, Array]) -> dict[str, Array]:
        return _all_forecasts(_walk(replace(part, **changed), config, with_arch=with_arch, planted=False))

    def cheated(changed: Mapping[str, Array]) -> dict[str, Array]:
        return _all_forecasts(_walk(replace(part, **changed), config, with_arch=False, planted=True))

    found = find_leaks(honest, fields, cuts, rng)
    planted = find_leaks(cheated, fields, cuts, rng)
    names = _walk(part, config, with_arch=with_arch, planted=False).names
    return LeakReport(
        {name: days[t] for name, t in found.items()},
        {name: days[t] for name, t in planted.items()},
        len(names),
    )


class CentredVolatility:
    """The planted leak: its scale is the mean size of returns up to two bars before *and after* the current bar."""

    name = PLANTED_LEAK
    version = "0"

    def __init__(self, prices: Prices, config: ForecastConfig) -> None:
        returns = measure_outcomes(prices, config).returns
        first = [
            int(np.flatnonzero(np.isfinite(column))[0]) if np.isfinite(column).any() else -1
            for column in returns.T
        ]
        order = sorted((t, n) for n, t in enumerate(first) if t >= 0)  # rows are given by first bars
        self._sizes: list[Array] = [np.abs(returns[:, n][np.isfinite(returns[:, n])]) for _, n in order]
        self._root_h = np.sqrt(np.array(config.horizons, np.float64))
        self._shape = gaussian_quantiles(config.levels)
        self._sigma = np.full(len(self._sizes), np.nan)
        self._seen = np.zeros(len(self._sizes), np.int64)

    def grow(self, num_series: int) -> None:
        """Does nothing: all rows are known from the start."""

    def update(self, bars: BarBatch) -> None:
        for row in bars.index.tolist():
            at = int(self._seen[row])
            sizes = np.asarray(self._sizes[row], np.float64)
            self._sigma[row] = max(_mean(sizes[max(at - _HALF_WIDTH, 0) : at + _HALF_WIDTH + 1]), SIGMA_FLOOR)
            self._seen[row] += 1

    def learn(self, bars: BarBatch) -> None:
        """Does nothing: it has nothing to learn."""

    def quantiles(self, rows: Rows) -> Array:
        return scale_shape(self._sigma[rows][:, None] * self._root_h, self._shape)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing: it is never saved."""


def _mean(values: Array) -> float:
    return float(values.mean())


def _walk(prices: Prices, config: ForecastConfig, *, with_arch: bool, planted: bool) -> Walk:
    begin = min(GARCH_MIN_BARS + 10, len(prices.ends_ns) // 2)
    peers: list[PeerForecaster] = list(classical(len(prices.symbols), config, begin))
    if with_arch and begin >= GARCH_MIN_BARS:
        try:
            returns = measure_outcomes(prices, config).returns
            fits = fit_yearly(returns, prices.ends_ns, begin, cache=None)
            peers.append(GarchPeer("arch_t", returns, fits, config, tails="t"))
        except MissingExtra:
            pass  # the run itself reports it
    experts = list(open_experts(config, config.foundation))
    if planted:
        experts.append(CentredVolatility(prices, config))
    return Walk(prices, config, peers, experts)


def _all_forecasts(walk: Walk) -> dict[str, Array]:
    """Every forecast after each instant, {name: [T, N·H·Q]}; NaN where there is none."""
    num, width = len(walk.prices.ends_ns), len(walk.prices.symbols)
    shape = (num, width, len(walk.config.horizons), len(walk.config.levels))
    forecasts = {name: np.full(shape, np.nan) for name in walk.names}
    for instant in walk.instants():
        _store(forecasts, instant, walk.names)
    return forecasts


def _store(forecasts: dict[str, Array], instant: WalkInstant, names: tuple[str, ...]) -> None:
    for place, name in enumerate(names):
        forecasts[name][instant.t, instant.places] = instant.quantiles[place]


def _part(prices: Prices) -> Prices:
    """The fullest series over the first instants: enough for the check."""
    first = int(np.flatnonzero(np.isfinite(prices.close).any(axis=1))[0])
    last = min(first + _NUM_INSTANTS, len(prices.ends_ns))
    known = np.isfinite(prices.close[first:last]).sum(axis=0)
    fullest = np.argsort(-known, kind="stable")[:_NUM_SERIES]
    names = [prices.symbols[int(n)] for n in fullest if known[n] > 0]
    return prices.cut(names, *(format_ns(int(prices.ends_ns[t])) for t in (first, last - 1)))
