"""What the benchmark of the library times, each in its own process: `python -m htfi_eval.bench.library.tasks NAME`.

Each answers one line of JSON: its figures.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from htfi_eval.bench.processes import send_answer

SEED = 7
HORIZONS = (1, 5, 22)
_FREEDOM = 5.0
_DAILY_SIGMA = 0.01
_FIRST_FIT_BARS = 500
_YEAR_BARS = 252
_NUM_PER_BAR = 120  # bars that the peer is asked one by one


def make_closes(num_bars: int, num_symbols: int) -> Any:
    """A pandas frame of closes, a column for each symbol: returns of Student's t with clustered volatility, seeded."""
    import numpy as np
    import pandas

    pd: Any = pandas  # its types are partly unknown
    rng = np.random.default_rng(SEED)
    draws = rng.standard_t(_FREEDOM, (num_bars, num_symbols)) * np.sqrt((_FREEDOM - 2.0) / _FREEDOM)
    returns, variance = np.empty_like(draws), np.full(num_symbols, _DAILY_SIGMA**2)
    for bar in range(num_bars):
        returns[bar] = np.sqrt(variance) * draws[bar]
        variance = 0.04 * _DAILY_SIGMA**2 + 0.08 * returns[bar] ** 2 + 0.88 * variance
    days = pd.bdate_range("2010-01-04", periods=num_bars)
    names = [f"S{place:03}" for place in range(num_symbols)]
    return pd.DataFrame(100.0 * np.exp(np.cumsum(returns, axis=0)), index=days, columns=names)


def first_forecast(num_bars: int) -> dict[str, float]:
    """From a frame in memory to quantiles, the imports of the library included."""
    prices = make_closes(num_bars, 1)
    began_s, used_s = time.perf_counter(), time.process_time()
    import htfi

    table = htfi.forecast(prices).quantiles
    taken = {"wall_s": time.perf_counter() - began_s, "processor_s": time.process_time() - used_s}
    assert len(table) == 2 * len(HORIZONS), "a row for each measure and horizon"
    return taken


def backtest(num_bars: int, num_symbols: int) -> dict[str, float]:
    """A walk of the live forecaster over closes in memory: forecasts, each of all horizons, and processor seconds."""
    import htfi

    prices = make_closes(num_bars, num_symbols)
    htfi.forecast(prices.iloc[:30, :1])  # what is loaded once
    used_s = time.process_time()
    walked = htfi.backtest(prices, horizons=HORIZONS)
    return {"num": float(len(walked)), "processor_s": time.process_time() - used_s}


def arch(num_bars: int, num_symbols: int) -> dict[str, float]:
    """The same by GARCH(1,1)-t of `arch`, fitted once a year: all forecasts of a year in one call, and bar by bar."""
    import numpy as np
    from arch import arch_model
    from scipy.stats import t as student

    levels = np.array([0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
    prices = make_closes(num_bars, num_symbols)
    returns = 100.0 * np.diff(np.log(prices.to_numpy()), axis=0)
    num_yearly = num_one_by_one = 0
    yearly_s = one_by_one_s = 0.0
    for series in returns.T:
        for fitted in range(_FIRST_FIT_BARS, len(series), _YEAR_BARS):
            until = min(fitted + _YEAR_BARS, len(series))
            used_s = time.process_time()
            fit = _model(arch_model, series[:fitted]).fit(disp="off", show_warning=False)
            parameters = fit.params.to_numpy()
            fixed_s = time.process_time() - used_s
            model = _model(arch_model, series[:until])
            found = model.fix(parameters).forecast(horizon=HORIZONS[-1], start=fitted - 1, reindex=False)
            _quantiles(found.variance.to_numpy(), parameters[-1], levels, student)
            yearly_s += time.process_time() - used_s
            num_yearly += until - fitted + 1
            used_s = time.process_time()
            num = min(_NUM_PER_BAR, until - fitted)
            for bar in range(fitted, fitted + num):
                one = (
                    _model(arch_model, series[:bar])
                    .fix(parameters)
                    .forecast(horizon=HORIZONS[-1], reindex=False)
                )
                _quantiles(one.variance.to_numpy(), parameters[-1], levels, student)
            one_by_one_s += time.process_time() - used_s + fixed_s * num / _YEAR_BARS
            num_one_by_one += num
    return {
        "yearly_per_s": num_yearly / yearly_s,
        "one_by_one_per_s": num_one_by_one / one_by_one_s,
    }


def _model(arch_model: Callable[..., Any], returns: Any) -> Any:
    return arch_model(returns, mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False)


def _quantiles(variances: Any, freedom: float, levels: Any, student: Any) -> Any:
    """Quantiles [n, H, Q] of the returns over each horizon, from variances [n, bars ahead]."""
    import numpy as np

    spreads = np.sqrt(np.cumsum(variances, axis=1)[:, [horizon - 1 for horizon in HORIZONS]])
    return spreads[:, :, None] * student.ppf(levels, freedom) * np.sqrt((freedom - 2.0) / freedom)


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "first_forecast": first_forecast,
    "backtest": backtest,
    "arch": arch,
}


if __name__ == "__main__":
    send_answer(TASKS[sys.argv[1]](*map(int, sys.argv[2:])))
