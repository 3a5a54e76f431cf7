"""Whether 90% bands hold alike for large and small companies, and by sector, country and exchange.

Fifty shares of KDD17, all listed in New York. The live forecaster walks through all years, and the newest are scored.
Size is the median value traded in a day before the first scored one.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps
from htfi.governance.fairness.findings import NOT_REPORTED, Correction, GapVerdict
from htfi.governance.fairness.forecasts import (
    COVERAGE,
    ERROR,
    MEASURES,
    WIDTH,
    ForecastAudit,
    ScoredForecasts,
    audit_forecasts,
)
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.price_grid import FIELDS, Prices, on_grid
from htfi_eval.eval.prices import read_rows
from htfi_eval.eval.walk import Walk, measure_outcomes

FIRST_SCORED = "2014-07-01"
_QUICK_FIRST, _QUICK_LAST = "2013-01-01", "2014-12-31"
# Symbols by country of the company and sector. SPY, a fund, is left out.
_COMPANIES = {
    ("US", "technology"): "AAPL GOOGL INTC MSFT ORCL",
    ("US", "consumer"): "AMZN CMCSA DIS HD KO MO PEP PG WMT",
    ("US", "industry"): "BA GE MMM UPS DOW",
    ("US", "finance"): "BAC BRK-B JPM MA WFC",
    ("US", "health"): "JNJ MRK PFE UNH",
    ("US", "energy and utilities"): "CVX D DUK EXC SO XOM",
    ("US", "telecommunications"): "T VZ",
    ("other", "telecommunications"): "CHL DCM NTT",
    ("other", "industry"): "BHP RIO SYT VALE",
    ("other", "energy and utilities"): "NGG PTR RDS-B TOT",
    ("other", "health"): "NVS",
    ("other", "consumer"): "TM",
}
_NASDAQ = frozenset({"AAPL", "AMZN", "CMCSA", "GOOGL", "INTC", "MSFT"})


class GroupCoverage(NamedTuple):
    """The audit, and the number of forecasts scored."""

    audit: ForecastAudit
    num_forecasts: int

    @property
    def rows(self) -> list[dict[str, object]]:
        return [
            {
                "attribute": one.attribute,
                "group": one.group,
                "forecasts": one.num,
                "90% coverage": one.value,
                "95% interval": f"{one.low:.3f}–{one.high:.3f}",
            }
            for one in self.audit.figures
            if one.measure == COVERAGE
        ]

    @property
    def note(self) -> str:
        gaps = [one for one in self.audit.gaps if one.measure == COVERAGE]
        num = sum(one.verdict is GapVerdict.DIFFERENT for one in gaps)
        noise = sum(one.verdict is GapVerdict.NOISE for one in gaps)
        return (
            f"90% coverage of {self.num_forecasts:,} forecasts: of {len(gaps)} pairs of groups {num} differ by more "
            f"than 3 points, {noise} do by chance; the widest gap is {max(abs(one.gap) for one in gaps):.3f}"
        )


def measure_coverage(data: Path, *, quick: bool) -> GroupCoverage:
    """Raises: InvalidInput where the staged prices are missing."""
    prices, groups = load_companies(data)
    if quick:
        prices = prices.cut(first=_QUICK_FIRST, last=_QUICK_LAST)
    return score_groups(prices, groups)


def load_companies(data: Path) -> tuple[Prices, dict[str, dict[str, str]]]:
    """Adjusted daily prices, and each attribute's group of each symbol. Raises: InvalidInput."""
    file = data / "text_price" / "kdd17_prices_daily.parquet"
    if not file.is_file():
        raise InvalidInput(f"{file} is missing")
    rows = read_rows(file)
    known = {symbol: key for key, symbols in _COMPANIES.items() for symbol in symbols.split()}
    inside = np.isin(rows["symbol"].astype(str), list(known))
    rows = {name: column[inside] for name, column in rows.items()}
    close = rows["close"].astype(np.float64)
    factor = rows["adj_close"].astype(np.float64) / close
    ends_ns = rows["ts_close"].astype("datetime64[ns]").astype(np.int64)
    fields = {name: rows[name].astype(np.float64) * factor for name in FIELDS}
    prices = on_grid("kdd17", rows["symbol"], ends_ns, ends_ns, fields, ())
    early = rows["date"].astype(str) < FIRST_SCORED
    traded = close * rows["volume"]
    symbols = rows["symbol"].astype(str)
    size = {one: float(np.median(traded[early & (symbols == one)])) for one in prices.symbols}
    low, high = np.quantile(list(size.values()), (1 / 3, 2 / 3))
    groups = {
        "size": {
            one: "small" if value <= low else "large" if value > high else "middle"
            for one, value in size.items()
        },
        "country": {one: known[one][0] for one in prices.symbols},
        "sector": {one: known[one][1] for one in prices.symbols},
        "exchange": {one: "NASDAQ" if one in _NASDAQ else "NYSE" for one in prices.symbols},
    }
    return prices, groups


def score_groups(prices: Prices, groups: dict[str, dict[str, str]]) -> GroupCoverage:
    """Walk through the prices, score one bar ahead from `FIRST_SCORED` on and compare the groups."""
    config = ForecastConfig()
    levels = np.array(config.levels)
    outcomes = measure_outcomes(prices, config).outcomes[:, :, 0]  # [T, N]
    begin = int(np.searchsorted(np.array(prices.dates()), FIRST_SCORED))
    symbols: list[str] = []
    instants: list[int] = []
    found: dict[str, list[float]] = {COVERAGE: [], WIDTH: [], ERROR: []}
    usual: NDArray[np.float64] = np.nanmean(np.abs(outcomes[begin:]), axis=0)  # [N]
    for instant in Walk(prices, config).instants(begin, ProgressLine("group coverage")):
        places: list[int] = instant.places.tolist()
        for at, place in enumerate(places):
            outcome, unit = float(outcomes[instant.t, place]), float(usual[place])
            quantiles = instant.quantiles[0, at, 0]
            if not (np.isfinite(outcome) and np.isfinite(quantiles).all()):
                continue
            low, high = (_quantile(quantiles, levels, level) for level in (0.05, 0.95))
            symbols.append(prices.symbols[place])
            instants.append(instant.t - begin)
            found[COVERAGE].append(float(low <= outcome <= high))
            found[WIDTH].append((high - low) / unit)
            found[ERROR].append(float(crps(quantiles, np.asarray(outcome), levels)) / unit)
    values = {name: np.array(found.get(name, [np.nan] * len(symbols))) for name in MEASURES}
    scored = ScoredForecasts(symbols, np.array(instants, np.int64), values)
    labels = {name: [of.get(symbol, NOT_REPORTED) for symbol in symbols] for name, of in groups.items()}
    return GroupCoverage(audit_forecasts(scored, labels, Correction.HOLM), len(symbols))


def _quantile(quantiles: NDArray[np.float64], levels: NDArray[np.float64], level: float) -> float:
    return float(np.interp(np.float64(level), levels, quantiles))
