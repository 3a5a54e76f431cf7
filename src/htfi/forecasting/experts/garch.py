"""GARCH(1,1) and GJR-GARCH with Student-t errors, refitted to each series by maximum likelihood on a rota."""

import math
from array import array
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.columns import Columns
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.garch_core import Fit
from htfi.forecasting.garch_fitting import parameters
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Rows
from htfi.forecasting.shapes import gaussian_quantiles, student_quantiles

Array = NDArray[np.float64]

_WINDOW_BARS = 1500
_FIRST_FIT_BARS = 250
_RENEWALS_A_FIT = 2  # a series is renewed at every tenth bar: refitted at every twentieth
_MOST_PASSES = 40
_TOLERANCE = 1e-3  # of log-likelihood: no forecast shows less
# Long-run variance, persistence, share of news, share of falls, 1/ν: typical of daily equities, indices, currencies.
_TYPICAL = {False: (1.0, 0.98, 0.06, 0.5, 1.0 / 6.0), True: (1.0, 0.98, 0.06, 0.8, 1.0 / 6.0)}
_FREE = (0.0, 0.0, 0.0, 0.0, 0.0)
_TAIL_NODES = 49
_HEAVIEST_SUM = 1.0 / 4.5  # 1/ν of one bar beyond which a sum's tails are held to thin no slower


class Garch:
    """σ² ← ω + (α + γ·1{r<0}) r² + β σ²; over h bars the sum of what the recursion expects, without drift.

    Until 250 bars are in, typical parameters about the mean square. The excess kurtosis of h independent returns
    is that of one over h: a Student-t of ν degrees of freedom gives one of 4 + (ν−4)h.
    """

    name: str
    version = "1"
    _leverage: bool

    def __init__(self, config: ForecastConfig) -> None:
        self._horizons = np.array(config.horizons, np.float64)
        self._min_bars = config.history_bars
        self._table = _tail_table(config.levels)
        typical = np.array(_TYPICAL[self._leverage])
        self._prior, self._precision = array("d", _FREE), array("d", _FREE)
        _, alpha, gamma, beta, _ = parameters(typical)
        self._columns = Columns()
        self._columns.declare("window", np.zeros(_WINDOW_BARS), np.float32)
        self._columns.declare("climbed", typical)
        self._columns.declare("omega", np.nan)  # unknown until fitted
        self._columns.declare("alpha", alpha)
        self._columns.declare("gamma", gamma)
        self._columns.declare("beta", beta)
        self._columns.declare("mean", 0.0)
        self._columns.declare("var", 0.0)
        self._columns.declare("num", 0, np.int64)
        self._columns.declare("renewals", _RENEWALS_A_FIT, np.int64)

    def grow(self, num_series: int) -> None:
        self._columns.grow(num_series)

    def update(self, bars: BarBatch) -> None:
        columns, rows = self._columns, bars.rows
        square = bars.returns * bars.returns
        mean = columns["mean"][rows]
        mean = mean + (square - mean) / np.minimum(bars.age + 1.0, _WINDOW_BARS)
        alpha, gamma, beta = columns["alpha"][rows], columns["gamma"][rows], columns["beta"][rows]
        omega = columns["omega"][rows]
        omega = np.where(np.isnan(omega), mean * (1.0 - (alpha + 0.5 * gamma + beta)), omega)
        before = np.where(bars.age > 0, columns["var"][rows], mean)
        columns["var"][rows] = omega + (alpha + gamma * (bars.returns < 0.0)) * square + beta * before
        columns["mean"][rows] = mean
        columns["num"][rows] = bars.age + 1

    def learn(self, bars: BarBatch) -> None:
        columns = self._columns
        columns["window"][bars.index, bars.age % _WINDOW_BARS] = bars.returns
        for row in bars.index[bars.due & (bars.age + 1 >= _FIRST_FIT_BARS)].tolist():
            columns["renewals"][row] += 1
            if columns["renewals"][row] >= _RENEWALS_A_FIT:
                columns["renewals"][row] = 0
                self._refit(row)

    def _refit(self, row: int) -> None:
        columns = self._columns
        num, window = int(columns["num"][row]), columns["window"][row]
        past = np.roll(window, -num) if num > _WINDOW_BARS else window[:num]
        past = past.astype(np.float64)
        scale = float(np.sqrt((past * past).sum() / len(past)))
        if not scale > SIGMA_FLOOR:
            return
        fit = Fit(memoryview(past / scale), self._leverage, self._prior, self._precision)
        fit.start(array("d", _TYPICAL[self._leverage]))
        fit.start(array("d", columns["climbed"][row].tolist()))
        fit.climb(_MOST_PASSES, _TOLERANCE)
        climbed = np.array(fit.x)
        omega, alpha, gamma, beta, _ = parameters(climbed)
        columns["climbed"][row] = climbed
        columns["omega"][row] = omega * scale * scale
        columns["alpha"][row], columns["gamma"][row], columns["beta"][row] = alpha, gamma, beta
        columns["var"][row] = fit.variance * scale * scale

    def quantiles(self, rows: Rows) -> Array:
        columns = self._columns
        num = columns["num"][rows]
        persistence = (columns["alpha"][rows] + 0.5 * columns["gamma"][rows] + columns["beta"][rows])[:, None]
        omega = columns["omega"][rows]
        omega = np.where(np.isnan(omega), columns["mean"][rows] * (1.0 - persistence[:, 0]), omega)[:, None]
        level = omega / (1.0 - persistence)
        faded = (1.0 - _power(persistence, self._horizons)) / (1.0 - persistence)  # Σ_{k<h} p^k
        total = self._horizons * level + faded * (columns["var"][rows][:, None] - level)
        sigma = np.maximum(np.sqrt(np.maximum(total, 0.0)), SIGMA_FLOOR)
        sigma = np.where(num[:, None] >= self._min_bars, sigma, np.nan)
        return sigma[:, :, None] * self._shape(columns["climbed"][rows][:, 4])

    def _shape(self, tail: Array) -> Array:
        """Quantiles [n, H, Q] of unit variance: one bar's tail [n] is 1/ν."""
        sums = 1.0 / np.minimum(tail, _HEAVIEST_SUM)[:, None]
        tails = np.where(self._horizons == 1.0, tail[:, None], 1.0 / (4.0 + (sums - 4.0) * self._horizons))
        place = np.minimum(tails * (2.0 * (_TAIL_NODES - 1)), _TAIL_NODES - 1.001)
        low = place.astype(np.int64)
        share = (place - low)[..., None]
        raw = self._table[low] + share * (self._table[low + 1] - self._table[low])
        return raw * np.sqrt(1.0 - 2.0 * tails)[..., None]

    def state(self) -> dict[str, Any]:
        return self._columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._columns.restore(state)


class GarchT(Garch):
    """Bad news and good news of one size count the same (Bollerslev 1986, 1987)."""

    name = "garch_t"
    _leverage = False


class GjrT(Garch):
    """Falls raise volatility more than rises (Glosten, Jagannathan and Runkle 1993)."""

    name = "gjr_t"
    _leverage = True


@lru_cache(maxsize=4)
def _tail_table(levels: tuple[float, ...]) -> Array:
    """Quantiles [nodes, Q] of a plain Student-t at 1/ν = 0 … ½, evenly."""
    nodes = np.linspace(0.0, 0.5, _TAIL_NODES)
    inner = [
        student_quantiles(levels, 1.0 / tail) / math.sqrt(1.0 - 2.0 * tail) for tail in nodes[1:-1].tolist()
    ]
    heaviest = [(2.0 * level - 1.0) / math.sqrt(2.0 * level * (1.0 - level)) for level in levels]
    return np.array([gaussian_quantiles(levels), *inner, heaviest])


def _power(base: Array, exponents: Array) -> Array:
    """base [n, 1] to whole exponents [H], by squaring: np.power's bits depend on the processor."""
    total, bits = np.ones((len(base), len(exponents))), exponents.astype(np.int64)
    while bits.any():
        total = np.where(bits & 1, total * base, total)
        base, bits = base * base, bits >> 1
    return total
