"""Data of `htfi eval warning`: an index, a VIX, a panel and rates by session, and features of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.forecasting.warning import features
from htfi.market.series import FEATURES, Series
from htfi_eval.eval.prices import Prices, data_folder, load_prices, read_rows

Array = NDArray[np.float64]
Dated = Mapping[str, tuple[NDArray[np.datetime64], Array]]  # days and values by name

INDEX, VIX, TEN_YEARS, THREE_MONTHS, OIL = "index", "VIX", "10 years", "3 months", "oil"
# Rates of a day are published in the evening, the oil price a week later.
_MACRO = {TEN_YEARS: ("UST_10Yr", 1), THREE_MONTHS: ("UST_3Mo", 1), OIL: ("WTI", 7)}


@dataclass(frozen=True, slots=True, eq=False)
class WarningMarket:
    """Closes [T, K] by column: `names` has INDEX, VIX and rates where known; the rest are the panel.

    Every number of session t was known at its close.
    """

    days: NDArray[np.datetime64]
    names: tuple[str, ...]
    closes: Array
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> Array:
        """NaN everywhere if there is no such series."""
        if name in self.names:
            return self.closes[:, self.names.index(name)]
        return np.full(len(self.days), np.nan)

    @property
    def panel(self) -> Array:
        known = (INDEX, VIX, *_MACRO)
        return self.closes[:, [place for place, name in enumerate(self.names) if name not in known]]

    @property
    def years(self) -> NDArray[np.int64]:
        return self.days.astype("datetime64[Y]").astype(np.int64) + 1970


def load_market(data: Path | None, index: Path | None, vix: Path | None) -> WarningMarket:
    """The given files, else the staged data, else the embedded sample.

    Raises: InvalidInput, DependencyUnavailable, MissingExtra.
    """
    if index is not None or vix is not None:
        parts = [(name, load_prices(path)) for name, path in ((INDEX, index), (VIX, vix)) if path is not None]
        columns = {name: _first(prices) for name, prices in parts}
        notes = tuple(note for _, prices in parts for note in prices.notes)
        return _joined(columns, notes)
    if data_folder(data) is not None:
        return _staged(data)
    if data is not None:
        raise InvalidInput(
            f"{data} has no folder 'panels': name the folder of staged data, or use --index FILE"
        )
    prices = load_prices("sample", None)
    columns = {
        ours: (_days(prices), prices.close[:, prices.symbols.index(name)])
        for ours, name in ((INDEX, "SPX"), (VIX, "VIX"))
    }
    note = "staged data were not found: these figures are of the small embedded sample, four years"
    return _joined(columns, (note,))


def features_of(market: WarningMarket) -> dict[str, Array]:
    """All columns with any values, [T] each."""
    index, vix, panel = market.column(INDEX), market.column(VIX), market.panel
    found = features.index_features(index) | features.implied_volatility_features(vix, index)
    if panel.shape[1] >= 3:
        stressed, score = regimes(panel)
        found |= features.panel_features(panel, stressed, score)
    found |= features.macro_features(*(market.column(name) for name in _MACRO))
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def regimes(closes: Array) -> tuple[Array, Array]:
    """Of each series, as in `run`: 1 where stressed or in shock, and fast over slow volatility; [T, N] each."""
    stressed, score = np.full(closes.shape, np.nan), np.full(closes.shape, np.nan)
    for place, column in enumerate(closes.T):
        series = Series(is_intraday=False, gap_ns=0)
        for t in np.flatnonzero(np.isfinite(column)).tolist():
            close = float(column[t])
            values = np.full(len(FEATURES), np.nan)
            series.add(Bar(t, t, "panel", t, "", "1d", t, t, close, close, close, close))
            series.fill(values, 0)
            if np.isfinite(ratio := values[FEATURES.index("vol_ratio")]):
                stressed[t, place] = float(series.regime() in (Regime.STRESSED, Regime.SHOCK))
                score[t, place] = ratio
    return stressed, score


def with_changed_future(market: WarningMarket, closes: Array) -> WarningMarket:
    return replace(market, closes=closes)


def _staged(data: Path | None) -> WarningMarket:
    etf, vix = load_prices("etf", data), load_prices("vix", data)
    columns = {INDEX: (_days(etf), etf.close[:, etf.symbols.index("SPY")]), VIX: _first(vix)}
    columns |= {
        name: (_days(etf), etf.close[:, place]) for place, name in enumerate(etf.symbols) if name != "SPY"
    }
    folder = data_folder(data)
    macro: Dated = _macro(folder) if folder else {}
    market = _joined(columns, (*etf.notes, *vix.notes))
    lagged: dict[str, Array] = {}
    for name, (series, lag_days) in _MACRO.items():
        if series in macro:
            dated, values = macro[series]
            lagged[name] = _as_known(market.days, dated, values, lag_days)
    note = "rates and oil are final values by date: rates count from the next day on, oil from a week later"
    return replace(
        market,
        names=(*market.names, *lagged),
        closes=np.column_stack([market.closes, *lagged.values()]),
        notes=(*market.notes, note),
    )


def _joined(
    columns: dict[str, tuple[NDArray[np.datetime64], Array]], notes: tuple[str, ...]
) -> WarningMarket:
    """All sessions of the index and the VIX."""
    days = np.unique(np.concatenate([columns[name][0] for name in (INDEX, VIX) if name in columns]))
    closes = np.full((len(days), len(columns)), np.nan)
    for place, (own, values) in enumerate(columns.values()):
        there = np.isin(own, days)
        closes[np.searchsorted(days, own[there]), place] = values[there]
    return WarningMarket(days, tuple(columns), closes, notes)


def _as_known(
    days: NDArray[np.datetime64], dated: NDArray[np.datetime64], values: Array, lag_days: int
) -> Array:
    """The last value published at least `lag_days` ago, at most ten days older than that."""
    place = np.searchsorted(dated, days - np.timedelta64(lag_days, "D"), side="right") - 1
    found = np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    age = (days - dated[np.maximum(place, 0)]).astype(np.int64)
    return np.where((place >= 0) & (age <= lag_days + 10), found, np.nan)


def _macro(folder: Path) -> Dated:
    rows = read_rows(folder / "macro" / "macro_daily_monthly.parquet")
    series, values = rows["series"], rows["value"]
    dates = rows["date"].astype("datetime64[D]")
    found: dict[str, tuple[NDArray[np.datetime64], Array]] = {}
    for name, _ in _MACRO.values():
        mine = np.flatnonzero((series == name) & np.isfinite(values))
        mine = mine[np.argsort(dates[mine], kind="stable")]
        if len(mine):
            found[name] = dates[mine], values[mine]
    return found


def _first(prices: Prices) -> tuple[NDArray[np.datetime64], Array]:
    """The one series of a file; of several, the one with most closes."""
    if not prices.interval.endswith("d"):
        raise InvalidInput(f"{prices.name} has bars of {prices.interval}; daily closes are needed")
    place = int(np.isfinite(prices.close).sum(axis=0).argmax())
    return _days(prices), prices.close[:, place]


def _days(prices: Prices) -> NDArray[np.datetime64]:
    return prices.ends_ns.astype("datetime64[ns]").astype("datetime64[D]")
