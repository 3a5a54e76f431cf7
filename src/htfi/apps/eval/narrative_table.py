"""Narrators as rows of a table, as metrics with ids, and as charts. `narrative` reports them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.apps.eval.narrative_market import CENTRAL, ELSEWHERE, MISLABELLED, NEWS, Market
from htfi.apps.eval.narrative_scores import Gain, chance, gain
from htfi.apps.eval.narrative_tilts import PLAIN, Told
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import coverage

Row = dict[str, Any]


def market_rows(market: Market, config: ForecastConfig, seed: int) -> list[Row]:
    """By window and narrator: gain by horizon with its interval, p, the weight earned last, coverage."""
    rows: list[Row] = []
    everything = np.ones(len(market.moments), np.bool_)
    for window, inside in (
        ("events", market.events),
        ("other news", ~market.events),
        ("all news", everything),
    ):
        for name, told in market.told.items():
            rows.append({"window": window, "narrator": name} | _row(told, market, inside, config, seed))
    return rows


def _row(told: Told, market: Market, inside: NDArray[np.bool_], config: ForecastConfig, seed: int) -> Row:
    plain, moments = market.told[PLAIN], market.moments
    row: Row = {"n": int(inside.sum())}
    for j, horizon in enumerate(config.horizons):
        if told is plain:
            row[f"CRPS gain, {horizon} bars, %"] = f"({told.losses[inside, j].mean():.3f} σ)"
        else:
            row[f"CRPS gain, {horizon} bars, %"] = gain(told, plain, moments, inside, j, seed).told
    if told is not plain:
        row["p, 5 bars"] = chance(told, plain, moments, inside, CENTRAL, config.horizons[CENTRAL])
        row["weight, last"] = float(told.weight[-1, CENTRAL])
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    said = told.quantiles[inside, CENTRAL]
    row["cover 90, %"] = 100 * coverage(said[:, low], said[:, high], moments.outcomes[inside, CENTRAL])
    return row


def market_gain(market: Market, name: str, seed: int, j: int = CENTRAL) -> Gain:
    """In event windows."""
    return gain(market.told[name], market.told[PLAIN], market.moments, market.events, j, seed)


def market_metrics(market: Market, seed: int) -> dict[str, float]:
    """Ids of what is to be reached."""
    return {
        "sim_event_crps_gain": market_gain(market, NEWS, seed).value,
        "sim_shuffled_gain": market_gain(market, MISLABELLED, seed).value,
        "sim_elsewhere_gain": market_gain(market, ELSEWHERE, seed).value,
    }
