"""What the run would say next if a scenario had come true: its own models, shown a bar that never was."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.forecasting.scenarios.baseline import BaselineForecast
from htfi.pipeline.scenarios.basis import ScenarioBasis
from htfi.pipeline.scenarios.history import bar_length_ns

Array = NDArray[np.float64]

MAX_NEXT_FORECASTS = 100  # scenarios: each takes a copy of all models


@dataclass(frozen=True, slots=True)
class NextForecast:
    """The forecast of the bar after a scenario's, from its own prices: simple returns at 5% and 95% [n, 2], regimes."""

    bands: Array
    regimes: tuple[Regime, ...]


def forecast_next(
    basis: ScenarioBasis, today: BaselineForecast, moves: Sequence[Array]
) -> list[NextForecast]:
    """For each scenario, its series having moved by `moves` [n] (log return) in the next bar.

    The bar opens at the newest close and goes straight to its own. The models learn from it as from any other.
    Raises: InvalidInput for a horizon of several bars, which no one bar can stand for.
    """
    if today.horizon != 1:
        raise InvalidInput(
            f"--after shows what one bar would change: leave out --horizon {today.horizon} (in Python, horizon=)"
        )
    if len(moves) > MAX_NEXT_FORECASTS:
        raise InvalidInput(f"--after follows {MAX_NEXT_FORECASTS} scenarios at most, not {len(moves)}")
    forecaster, market = basis.components.forecaster.state(), basis.components.market.state()
    found: list[NextForecast] = []
    for move in moves:
        components = basis.source.fresh_components()
        components.forecaster.restore(forecaster)
        components.market.restore(market)
        bars = [_bar(basis, place, float(move[place])) for place in range(len(basis.series))]
        components.market.close_bars(bars)
        regimes = tuple(components.market.regime(bar.symbol, bar.interval) for bar in bars)
        components.forecaster.observe(bars, regimes)
        batch = components.forecaster.forecast(basis.series)
        ends = [batch.levels.index(0.05), batch.levels.index(0.95)]
        found.append(NextForecast(np.expm1(batch.quantiles[:, batch.horizons.index(1)][:, ends]), regimes))
    return found


def _bar(basis: ScenarioBasis, place: int, move: float) -> Bar:
    start, length_ns = float(basis.prices[place]), bar_length_ns(basis.interval)
    end = start * float(np.exp(move))
    end_ns = basis.as_of_ns + length_ns
    return Bar(
        available_at_ns=end_ns,
        event_time_ns=end_ns,
        source="hypothetical",
        row=1,
        symbol=basis.symbols[place],
        interval=basis.interval,
        start_ns=basis.as_of_ns,
        end_ns=end_ns,
        open=start,
        high=max(start, end),
        low=min(start, end),
        close=end,
    )
