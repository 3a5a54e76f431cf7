"""The lowest coverage that a forecaster which is right everywhere would show over so many cells.

`python -m htfi_eval.eval.returns.lowest_cell` takes the series, days, regimes and crises of the staged sets of daily
bars as they are and draws what forecasts meet: normal moves that overlap as horizons do and share a part, times
volatility that the forecaster misses, which lasts. Its 90% bands hold 90% by construction; the lowest of its cells does
not.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi_eval.eval.price_grid import Prices
from htfi_eval.eval.prices import STAGED, load_prices
from htfi_eval.eval.returns.command import spread_sample
from htfi_eval.eval.returns.judging import MIN_IN_REGIME, first_scored
from htfi_eval.eval.walk import CRISES, REGIMES, within

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SETS = ("us_equities", "fx_daily", "vix", "etf")
MAX_SYMBOLS = 64  # of a set, evenly spread: more series of one market hardly make its cells worth more
SHARED_MOVES = 0.4  # correlation of the moves of a set's series
_SHARED_MISSES = 0.7  # share of the variance of missed log volatility that is common to a set's series
_WIDTH_DRAWS = 400_000


@dataclass(frozen=True, slots=True)
class MissedVolatility:
    """How far log volatility differs from what is forecast: its deviation, and the bars in which half of it is gone."""

    sigma: float
    half_life: float


CASES = (MissedVolatility(0.0, 1.0), MissedVolatility(0.25, 10.0), MissedVolatility(0.35, 22.0))


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Which forecasts [T, N] of a set there are, and which of them are in each cell of its regimes and crises."""

    name: str
    there: Mask
    cells: list[tuple[str, Mask]]


def cells_of(prices: Prices, share_of_series: float = 1.0) -> Cells:
    """The cells that `coverage90_worst_regime` looks at, of which the sample holds a share of the series."""
    early, begin = first_scored(prices, None)
    regimes = _regimes(prices)
    there, since = np.isfinite(prices.close), np.arange(len(prices.ends_ns))[:, None]
    cells = [
        (regime.value, there & (regimes == place) & (since >= begin)) for place, regime in enumerate(REGIMES)
    ]
    cells += [
        (f"crisis {span.label}", there & within(prices, span)[:, None] & (since >= early)) for span in CRISES
    ]
    enough = MIN_IN_REGIME * share_of_series
    return Cells(prices.name, there, [(name, cell) for name, cell in cells if cell.sum() >= enough])


def lowest_of_calibrated(
    layout: list[Cells], horizons: tuple[int, ...], missed: MissedVolatility, rng: np.random.Generator
) -> tuple[float, str]:
    """The lowest coverage over all cells and horizons in one draw, and where it is."""
    found: list[tuple[float, str]] = []
    for one in layout:
        for horizon in horizons:
            held = draw_held(one.there, horizon, missed, rng)
            for name, cell in one.cells:
                known = held[cell & np.isfinite(held)]
                if known.size:
                    found.append((float(known.mean()), f"{name}, {one.name}, {horizon} bars"))
    return min(found)


def draw_held(there: Mask, horizon: int, missed: MissedVolatility, rng: np.random.Generator) -> Array:
    """Whether the band held [T, N], 1 or 0, NaN where there is no forecast or its outcome is not in."""
    num, width = there.shape
    shared = np.sqrt(SHARED_MOVES) * rng.standard_normal((num, 1))
    moves = shared + np.sqrt(1.0 - SHARED_MOVES) * rng.standard_normal((num, width))
    path = np.cumsum(moves, axis=0)
    outcome = np.full((num, width), np.nan)
    outcome[:-horizon] = np.abs(path[horizon:] - path[:-horizon]) / np.sqrt(horizon)
    volatility = np.sqrt(_SHARED_MISSES) * _lasting((num, 1), missed, rng)
    volatility = volatility + np.sqrt(1.0 - _SHARED_MISSES) * _lasting((num, width), missed, rng)
    drawn = np.abs(rng.standard_normal(_WIDTH_DRAWS)) * np.exp(
        missed.sigma * rng.standard_normal(_WIDTH_DRAWS)
    )
    outcome = np.where(there, outcome * np.exp(volatility), np.nan)
    return np.where(np.isfinite(outcome), outcome <= np.quantile(drawn, 0.9), np.nan)


def _lasting(shape: tuple[int, int], missed: MissedVolatility, rng: np.random.Generator) -> Array:
    """Missed log volatility [T, N] that halves in so many bars."""
    keep = 0.5 ** (1.0 / missed.half_life)
    shocks = rng.standard_normal(shape) * missed.sigma
    shocks[1:] *= np.sqrt(1.0 - keep * keep)
    for t in range(1, len(shocks)):
        shocks[t] += keep * shocks[t - 1]
    return shocks


def _regimes(prices: Prices) -> NDArray[np.int8]:
    """The market's regime when each forecast was made [T, N], by its place in REGIMES; −1 for no bar."""
    market, levels = MarketState(MarketConfig()), {regime: place for place, regime in enumerate(REGIMES)}
    found = np.full(prices.close.shape, -1, np.int8)
    for t in range(len(prices.ends_ns)):
        bars = prices.bars(t)
        if bars:
            market.close_bars(bars)
            there = np.flatnonzero(np.isfinite(prices.close[t]))
            found[t, there] = [levels[market.regime(bar.symbol, prices.interval)] for bar in bars]
    return found


def _layout(data: Path) -> Iterator[Cells]:
    for name in SETS:
        prices = load_prices(name, data)
        sample = spread_sample(prices, MAX_SYMBOLS)
        yield cells_of(sample, len(sample.symbols) / len(prices.symbols))


def main(num_draws: int, data: Path = STAGED) -> None:
    layout, horizons = list(_layout(data)), ForecastConfig().horizons
    num_cells = len(horizons) * sum(len(one.cells) for one in layout)
    click.echo(
        f"{num_cells} cells; lowest coverage of a forecaster that is right everywhere, {num_draws} draws:"
    )
    for missed in CASES:
        rng = np.random.default_rng(0)
        lowest = np.array([lowest_of_calibrated(layout, horizons, missed, rng)[0] for _ in range(num_draws)])
        low, median, high = np.quantile(lowest, (0.05, 0.5, 0.95))
        click.echo(
            f"volatility missed by {missed.sigma:.2f} in logs, half-life {missed.half_life:g} bars: "
            f"median {median:.3f}, 90% of draws {low:.3f} to {high:.3f}, .86 or more in {(lowest >= 0.86).mean():.1%}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
