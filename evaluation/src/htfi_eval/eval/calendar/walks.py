"""The forecaster's next-bar forecasts of hourly bars, with the calendar and without it, as scores by instant."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Walk, measure_outcomes

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NextBarScores:
    """Of the fused forecast of the next bar after each instant, [T, N]; NaN where there is none.

    `crps` in units of log return; held and the two shares below are 1 where the outcome was within the 90% band, below
    the 1% and below the 5% quantile, else 0. `width` is that of the 90% band.
    """

    crps: Array
    held90: Array
    below01: Array
    below05: Array
    width: Array


def score_next_bars(
    prices: Prices,
    config: ForecastConfig,
    events: Sequence[ScheduledEvent] = (),
    progress: ProgressCallback | None = None,
) -> NextBarScores:
    """Walk all bars, with the events of a calendar or without any.

    Only the shortest horizon is walked: forecasts of one horizon do not depend on longer ones.
    """
    config = replace(config, horizons=config.horizons[:1])
    walk = Walk(prices, config, events=events)
    outcomes = measure_outcomes(prices, config).outcomes[:, :, 0]
    levels = np.array(config.levels)
    low, high, first = (config.levels.index(level) for level in (0.05, 0.95, 0.01))
    empty = [np.full(outcomes.shape, np.nan) for _ in range(5)]
    scores = NextBarScores(*empty)
    for instant in walk.instants(progress=progress):
        row, quantiles = (instant.t, instant.places), instant.quantiles[0, :, 0]
        outcome = outcomes[row]
        known = np.isfinite(quantiles[:, 0]) & np.isfinite(outcome)
        y = np.where(known, outcome, 0.0)
        bottom, top = quantiles[:, low], quantiles[:, high]
        for field, values in (
            (scores.crps, crps(quantiles, y, levels)),
            (scores.held90, (bottom <= y) & (y <= top)),
            (scores.below01, y < quantiles[:, first]),
            (scores.below05, y < bottom),
            (scores.width, top - bottom),
        ):
            field[row] = np.where(known, values, np.nan)
    return scores
