"""A probabilistic forecaster of sktime over the live forecaster (extra [sktime], imported with this module).

It passes sktime's check_estimator.
"""

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput, require_extra
from htfi.forecasting.scaled_returns import interpolate_levels
from htfi.library.arguments import ORIGIN, bar_interval
from htfi.library.forecast import chosen_settings
from htfi.library.results import RowsSetAside
from htfi.library.tables import read_prices
from htfi.wiring.settings import Settings, override
from htfi.wiring.stepped_run import SteppedRun

require_extra("htfi.library.sktime", "sktime", "sktime", "skpro", "pandas")
pd: Any = import_module("pandas")
_Base: Any = import_module("sktime.forecasting.base").BaseForecaster

Array = NDArray[np.float64]

_HORIZONS_AT_ONCE = 16  # of one forecaster
_ORIGIN = pd.Timestamp("1970-01-01")  # of an index of integers
_MAX_COUNTED = 100_000


class HtfiForecaster(_Base):
    """Forecasts the prices of one series, as `htfi.forecast` does from the same bars.

    Parameters: `history_bars`, the bars before the first forecast (20 without it); `interval`, how long a bar is, such
    as '5m', where the index does not say it; `experts`, as for `htfi.forecast`. An index of integers counts days.
    Prices that are not positive are set aside, with a warning. `predict` gives the median. `update` takes in the new
    bars alone. Several series, as a panel, are forecast each by itself; policy has no say, for nothing is published.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from htfi.library.sktime import HtfiForecaster
    >>> moves = 0.01 * np.random.default_rng(0).standard_normal(60)
    >>> y = pd.Series(100 * np.exp(np.cumsum(moves)), pd.bdate_range("2020-01-01", periods=60))
    >>> forecaster = HtfiForecaster().fit(y, fh=[1, 5])
    >>> forecaster.predict_quantiles(alpha=[0.05, 0.95]).shape
    (2, 2)
    """

    _tags = {  # noqa: RUF012 - the name and form that sktime reads
        "authors": "htfi",
        "maintainers": "htfi",
        "python_dependencies": ["sktime", "skpro"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": False,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }

    _config = {"remember_data": False}  # noqa: RUF012 - `_closes` holds what an update needs
    _y = _X = None  # sktime's own, where a person turns remembering on

    def __init__(
        self,
        history_bars: int | None = None,
        interval: str | None = None,
        experts: str | Sequence[str] | None = None,
    ) -> None:
        self.history_bars = history_bars
        self.interval = interval
        self.experts = experts
        super().__init__()  # pyright: ignore[reportUnknownMemberType]

    def _fit(self, y: Any, X: Any = None, fh: Any = None) -> "HtfiForecaster":  # noqa: N803 - sktime's names
        del X
        self._closes = _usable(y)
        if not len(self._closes):
            raise InvalidInput("y holds no positive price: there is nothing to forecast by")
        self._runs: dict[tuple[int, ...], SteppedRun] = {}
        if fh is not None and fh.is_all_out_of_sample(self.cutoff):
            for horizons in self._groups(fh):
                self._run(horizons)
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> "HtfiForecaster":  # noqa: N803
        del X, update_params  # there are no others than the state
        new = _usable(y[y.index > self._closes.index[-1]])
        if len(new):
            self._closes = pd.concat([self._closes, new])
            self._runs = {horizons: run for horizons, run in self._runs.items() if run.series}
            for run in self._runs.values():
                self._take(run, new)
        return self

    def _predict(self, fh: Any, X: Any = None) -> Any:  # noqa: N803
        del X
        values = self._quantiles(fh, [0.5])[:, 0]
        return pd.Series(values, index=fh.to_absolute_index(self.cutoff), name=self._closes.name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: Sequence[float]) -> Any:  # noqa: N803
        del X
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return pd.DataFrame(self._quantiles(fh, alpha), fh.to_absolute_index(self.cutoff), columns)

    def _predict_proba(self, fh: Any, X: Any, marginal: bool = True) -> Any:  # noqa: N803
        """The quantiles at the forecaster's levels as a distribution of skpro, each bar ahead by itself."""
        del X, marginal
        levels = self._settings((1,)).forecasting.levels
        index, columns = fh.to_absolute_index(self.cutoff), self._get_varnames()
        points = pd.MultiIndex.from_product([levels, index])
        values = self._quantiles(fh, levels).T.reshape(-1, 1)
        kind: Any = import_module("skpro.distributions").QPD_Empirical
        return kind(pd.DataFrame(values, points, columns), index=index, columns=columns)

    def _quantiles(self, fh: Any, levels: Sequence[float]) -> Array:
        """Prices [fh, levels]."""
        by_horizon: dict[int, Array] = {}
        rising, places = np.unique(np.asarray(levels, np.float64), return_inverse=True)
        for horizons in self._groups(fh):
            run, config = self._run(horizons), self._settings(horizons).forecasting
            if not run.newest:
                raise InvalidInput(
                    f"y holds {len(self._closes)} prices: a forecast needs {config.history_bars} bars from the first "
                    "that moves; give more, or a lower history_bars"
                )
            (decided,) = run.newest.values()
            stated = config.levels
            returns = interpolate_levels(decided.quantiles, stated, rising.tolist())
            by_horizon |= dict(zip(horizons, decided.last_price * np.exp(returns), strict=True))
        return np.array([by_horizon[bars][places] for bars in self._bars_ahead(fh)])

    def _bars_ahead(self, fh: Any) -> list[int]:
        return [int(bars) for bars in fh.to_relative(self.cutoff)]

    def _groups(self, fh: Any) -> list[tuple[int, ...]]:
        """The horizons in parts that one forecaster can have."""
        bars = sorted(set(self._bars_ahead(fh)))
        return [tuple(bars[at : at + _HORIZONS_AT_ONCE]) for at in range(0, len(bars), _HORIZONS_AT_ONCE)]

    def _settings(self, horizons: tuple[int, ...]) -> Settings:
        settings = chosen_settings(horizons, self.experts)
        if self.history_bars is not None:
            settings = override(settings, "forecasting", ORIGIN, history_bars=self.history_bars)
        interval = bar_interval(self.interval)
        return settings if interval is None else override(settings, "market", ORIGIN, bar=interval)

    def _run(self, horizons: tuple[int, ...]) -> SteppedRun:
        """The forecaster of these horizons at the end of what is known."""
        if horizons not in self._runs:
            run = SteppedRun(self._settings(horizons))
            self._take(run, self._closes)
            self._runs[horizons] = run
        return self._runs[horizons]

    def _take(self, run: SteppedRun, closes: Any) -> None:
        """Take in closes that follow those before; the length of bars is that of the first."""
        interval = run.series[0].rpartition("/")[2] if run.series else bar_interval(self.interval)
        if closes.index.dtype.kind in "iu":
            closes, interval = _counting_days(closes, int(self._closes.index[0])), "1d"
        elif hasattr(closes.index, "to_timestamp"):
            closes = closes.set_axis(closes.index.to_timestamp())
        symbol = None if self._closes.name is None else str(self._closes.name)
        source = read_prices(closes.rename("close"), symbol=symbol, interval=interval)
        before = run.quarantine.counts()
        run.take_table(source.spec, dict(source.tables))
        for reason, num in run.quarantine.counts().items():
            if num > before.get(reason, 0):
                detail = run.quarantine.by_reason[reason][-1].detail
                what = f"set aside: {num - before.get(reason, 0):,} of {len(closes):,} prices: {reason}: {detail}"
                warnings.warn(what, RowsSetAside, stacklevel=3)

    def __getstate__(self) -> dict[str, Any]:
        """Without the forecasters, which are made again from the prices when they are next asked for."""
        state = self.__dict__.copy()
        return state | {"_runs": {}} if "_runs" in state else state

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters with which sktime's checks make instances: their series are as short as 15."""
        del parameter_set
        return [{"history_bars": 5}, {"history_bars": 10, "experts": ("ewma", "garch_t")}]


def _usable(y: Any) -> Any:
    """The prices that are positive, with a warning about the others."""
    values = y.to_numpy(np.float64)
    good = np.isfinite(values) & (values > 0.0)
    if not good.all():
        warnings.warn(
            f"set aside: {int((~good).sum()):,} of {len(values):,} prices, which are not positive",
            RowsSetAside,
            stacklevel=4,
        )
    return y[good]


def _counting_days(closes: Any, first: int) -> Any:
    """Closes whose index of integers counts days from the `first` on."""
    days = closes.index.to_numpy(np.int64) - first
    if days[-1] > _MAX_COUNTED:
        raise InvalidInput(f"an index of integers may span {_MAX_COUNTED:,}: give times")
    return closes.set_axis(_ORIGIN + pd.to_timedelta(days, unit="D"))
