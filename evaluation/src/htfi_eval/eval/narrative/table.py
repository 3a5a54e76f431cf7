"""Narrators as rows of a table, as metrics with ids, and in notes. `narrative` reports them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import coverage
from htfi.narrative.question import shown_items
from htfi_eval.eval.narrative.moments import NewsMoments
from htfi_eval.eval.narrative.scores import DirectionCalls, gain, no_gain_p_value, score_calls
from htfi_eval.eval.narrative.simulated import (
    CEILING,
    CENTRAL,
    ELSEWHERE,
    MISLABELLED,
    NEWS,
    NEWS_ARRIVAL,
    NarratorResults,
)
from htfi_eval.eval.narrative.stocknet import RealTextResults
from htfi_eval.eval.narrative.tilts import PRICE_ONLY, NarratorForecasts

Row = dict[str, Any]

NUM_EXAMPLES = 6
_FELL, _ROSE = -0.005, 0.0055  # what StockNet counts as a move of a day: Xu and Cohen (2018)


def market_rows(market: NarratorResults, config: ForecastConfig, seed: int) -> list[Row]:
    """By window and narrator."""
    everything = np.ones(len(market.moments), np.bool_)
    windows = {
        "events": market.events,
        "other news": ~market.events,
        "all news": everything,
    }
    return [
        row
        for window, inside in windows.items()
        for row in _rows(f"simulated, {window}", market.forecasts, market.moments, inside, config, seed)
    ]


def real_rows(found: RealTextResults, config: ForecastConfig, seed: int) -> list[Row]:
    """By narrator, over all moments that were drawn."""
    everything = np.ones(len(found.moments), np.bool_)
    return _rows(found.title, found.forecasts, found.moments, everything, config, seed)


def _rows(
    where: str,
    told: Mapping[str, NarratorForecasts],
    moments: NewsMoments,
    inside: NDArray[np.bool_],
    config: ForecastConfig,
    seed: int,
) -> list[Row]:
    """Gain by horizon with its interval, p of no gain, the weight earned last, coverage at the central horizon."""
    plain, central = told[PRICE_ONLY], config.horizons[CENTRAL]
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    rows: list[Row] = []
    for name, one in told.items():
        row: Row = {"where": where, "narrator": name, "n": int(inside.sum())}
        for j, horizon in enumerate(config.horizons):
            column = f"gain, {horizon} bars, %"
            if name == PRICE_ONLY:
                row[column] = f"CRPS {one.losses[inside, j].mean():.3f} σ"
            else:
                row[column] = gain(one, plain, moments, inside, j, seed).percent_text
        if name != PRICE_ONLY:
            row[f"p, {central} bars"] = no_gain_p_value(one, plain, moments, inside, CENTRAL, central)
        if one.has_track_record:
            row["weight"] = float(one.weight[-1, CENTRAL])
        said = one.quantiles[inside, CENTRAL]
        row["cover 90"] = coverage(said[:, low], said[:, high], moments.outcomes[inside, CENTRAL])
        rows.append(row)
    return rows


def market_metrics(market: NarratorResults, seed: int) -> dict[str, float]:
    """Ids of what is to be reached, at 5 bars in event windows; and what puts them in proportion."""
    found: dict[str, float] = {}
    for metric, name in (
        ("sim_event_crps_gain", NEWS),
        ("sim_shuffled_gain", MISLABELLED),
        ("sim_elsewhere_gain", ELSEWHERE),
        ("sim_bell_gain", NEWS_ARRIVAL),
        ("sim_ceiling_gain", CEILING),
    ):
        one = gain(
            market.forecasts[name], market.forecasts[PRICE_ONLY], market.moments, market.events, CENTRAL, seed
        )
        found[metric] = one.value
        if name in (NEWS, MISLABELLED):
            found |= {f"{metric}_low": one.low, f"{metric}_high": one.high}
    return found


def real_metrics(found: RealTextResults, seed: int) -> dict[str, float]:
    """The gain at 5 bars with its interval, of the news and of others'."""
    everything = np.ones(len(found.moments), np.bool_)
    metrics: dict[str, float] = {}
    for metric, name in (("crps_gain", NEWS), ("shuffled_gain", ELSEWHERE)):
        one = gain(
            found.forecasts[name], found.forecasts[PRICE_ONLY], found.moments, everything, CENTRAL, seed
        )
        metrics[f"{found.name}_{metric}"] = one.value
        metrics |= {f"{found.name}_{metric}_low": one.low, f"{found.name}_{metric}_high": one.high}
    right = real_calls(found)
    metrics |= {f"{found.name}_direction_accuracy": right.accuracy, f"{found.name}_mcc": right.mcc}
    return {key: value for key, value in metrics.items() if np.isfinite(value)}


def real_calls(found: RealTextResults) -> DirectionCalls:
    """Directions of the views against the next bar, where it moved as StockNet counts moves."""
    outcome = np.expm1(found.moments.outcomes[:, 0])
    moved = np.where((outcome <= _FELL) | (outcome > _ROSE), outcome, 0.0)
    return score_calls(np.array([view.direction for view in found.views]), moved)


def real_notes(found: RealTextResults) -> list[str]:
    right = real_calls(found)
    return [
        f"{found.title}: {found.num_kept:,} of {found.num_texts:,} texts are told for the first time; "
        f"{len(found.moments):,} symbol-sessions drawn; text is heard at the close of the session it falls into",
        f"{found.title}: where a move is called and one of StockNet's size comes ({right.num:,} of them), "
        f"{100 * right.accuracy:.1f}% of directions are right, F1 {right.f1:.3f}, MCC {right.mcc:+.3f}",
    ]


def market_notes(market: NarratorResults, config: ForecastConfig) -> list[str]:
    """What the windows are, and a few stories: what was said, how it was understood, what came."""
    horizon = config.horizons[CENTRAL]
    notes = [
        f"event windows: {int(market.events.sum()):,} forecasts made right after news whose effect is still to come, "
        f"whether or not dice let it come; the metrics are of {horizon} bars, within which 86% of an effect lands "
        "(27% within the first); intervals by resampling worlds",
        "price only: the fused forecaster of htfi run on the worlds' closes; CRPS in its sigmas. A weight learns from "
        "a forecast once its outcome is known; a bell knows that there are news and reads none: "
        "what a narrator gains beyond it is in the words",
    ]
    events = np.flatnonzero(market.events)
    places: list[int] = events[
        np.linspace(0, len(events) - 1, min(NUM_EXAMPLES, len(events))).astype(int)
    ].tolist()
    for place in places:
        question = market.moments.questions[place]
        sigmas = market.moments.outcomes[place, CENTRAL] / market.moments.scales[place, CENTRAL]
        items = shown_items(question)
        headline = items[0].headline if items else "no headline"
        notes.append(f"{question.symbol}: {headline} → {_view(market.views[place])} → {sigmas:+.1f}σ")
    return notes


def _view(view: NewsView) -> str:
    if not view.direction:
        return "flat"
    way = "up" if view.direction > 0.0 else "down"
    return f"{way} {view.size_sigmas:g}σ, volatility ×{view.volatility_multiplier:g} ({view.cause.replace('_', ' ')})"
