"""Results of narrators as table rows, metrics, notes and charts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.news_view import NewsView
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import coverage, pit
from htfi.library.charts.specs import (
    BarChart,
    Chart,
    Curve,
    CurveChart,
    DotChart,
    DotGroup,
    HistogramChart,
    TimeLines,
)
from htfi.narrative.question import shown_items
from htfi_eval.eval.narrative.moments import PRICE_ONLY, NarratorForecasts, NewsMoments
from htfi_eval.eval.narrative.real_text import RealTextResults
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
from htfi_eval.results import Card

Row = dict[str, Any]

NUM_EXAMPLES = 6
_FELL, _ROSE = -0.005, 0.0055  # what StockNet counts as a move of a day: Xu and Cohen (2018)


def market_rows(market: NarratorResults, config: ForecastConfig, seed: int) -> list[Row]:
    """By window and narrator."""
    everything = np.ones(len(market.moments), np.bool_)
    windows = {"events": market.events, "other news": ~market.events, "all news": everything}
    return [
        row
        for window, inside in windows.items()
        for row in _rows(f"simulated, {window}", market.forecasts, market.moments, inside, config, seed)
    ]


def real_rows(found: RealTextResults, config: ForecastConfig, seed: int) -> list[Row]:
    """By narrator, over all sampled moments."""
    everything = np.ones(len(found.moments), np.bool_)
    return _rows(found.title, found.forecasts, found.moments, everything, config, seed)


def _rows(
    where: str,
    forecasts: Mapping[str, NarratorForecasts],
    moments: NewsMoments,
    inside: NDArray[np.bool_],
    config: ForecastConfig,
    seed: int,
) -> list[Row]:
    """Gain by horizon with its interval, p of no gain, the final weight, coverage at the central horizon."""
    plain, central = forecasts[PRICE_ONLY], config.horizons[CENTRAL]
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    rows: list[Row] = []
    for name, one in forecasts.items():
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
        quantiles = one.quantiles[inside, CENTRAL]
        row["coverage 90"] = coverage(
            quantiles[:, low], quantiles[:, high], moments.outcomes[inside, CENTRAL]
        )
        rows.append(row)
    return rows


def market_metrics(market: NarratorResults, seed: int) -> dict[str, float]:
    """Ids of the goals, at 5 bars in event windows, and figures to compare them with."""
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
    """The gain at 5 bars with its interval, of the right news and of swapped news."""
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
        f"{found.title}: {found.num_kept:,} of {found.num_texts:,} texts are not repeats; "
        f"{len(found.moments):,} symbol-sessions drawn; text is read at the close of its session",
        f"{found.title}: where a move is predicted and one of StockNet's size follows ({right.num:,} cases), "
        f"{100 * right.accuracy:.1f}% of directions are correct, F1 {right.f1:.3f}, MCC {right.mcc:+.3f}",
    ]


def market_notes(market: NarratorResults, config: ForecastConfig) -> list[str]:
    """The windows, and a few stories: the news, its view, the outcome."""
    horizon = config.horizons[CENTRAL]
    notes = [
        f"event windows: {int(market.events.sum()):,} forecasts made right after news whose effect is still ahead, "
        f"whether or not it is realised; the metrics are at {horizon} bars, by when 86% of an effect is realised "
        "(27% within the first bar); intervals by resampling worlds",
        "price only: the fused forecaster of htfi run on the worlds' closes; CRPS in units of its sigma. A "
        "weight learns from "
        "a forecast once its outcome is known; arrival of news only: a stretch without reading; "
        "a gain beyond it comes from the words",
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
    direction = "up" if view.direction > 0.0 else "down"
    cause = view.cause.replace("_", " ")
    return f"{direction} {view.size_sigmas:g}σ, volatility ×{view.volatility_multiplier:g} ({cause})"


_NUM_BINS = 10
_POINTS = 120  # of a curve of weights
_FIGURES = (
    ("sim_event_crps_gain", "lower CRPS after news, simulated"),
    ("sim_shuffled_gain", "with other words"),
    ("sim_bell_gain", "knowing only that news arrived"),
    ("sim_ceiling_gain", "with perfect understanding"),
    ("stocknet_crps_gain", "on StockNet tweets"),
    ("reuters_crps_gain", "on Reuters headlines"),
)


def cards(metrics: Mapping[str, float]) -> list[Card]:
    return [Card(f"{metrics[name]:+.1%}", called) for name, called in _FIGURES if name in metrics]


def lead(metrics: Mapping[str, float]) -> str:
    """The main result in one sentence."""
    text = (
        f"On simulated markets reading news lowers the CRPS of the forecasts after it by "
        f"{metrics['sim_event_crps_gain']:.1%}; other words lower it by {metrics['sim_shuffled_gain']:+.1%}"
    )
    if "stocknet_crps_gain" in metrics:
        text += f", and StockNet tweets by {metrics['stocknet_crps_gain']:+.1%}"
    return text + "."


def market_charts(market: NarratorResults, config: ForecastConfig, seed: int) -> list[Chart]:
    """Of the simulated market."""
    moments, plain = market.moments, market.forecasts[PRICE_ONLY]
    groups: list[DotGroup] = []
    for name, narrator in market.forecasts.items():
        if name == PRICE_ONLY:
            continue
        found = [gain(narrator, plain, moments, market.events, j, seed) for j in range(len(config.horizons))]
        groups.append(
            DotGroup(
                name, [one.value for one in found], [one.low for one in found], [one.high for one in found]
            )
        )
    gains = DotChart(
        "Gains of narrators over prices alone",
        "Unseen simulated worlds, forecasts right after news whose effect is still ahead; reduction of CRPS with "
        "95% intervals by world.",
        [f"{horizon} bars" for horizon in config.horizons],
        groups,
        zero=0.0,
        unit="%",
    )
    return [gains, _weights(market, config), *_pits(market, config)]


def real_charts(found: RealTextResults, config: ForecastConfig, seed: int) -> list[Chart]:
    """Of one set of real text."""
    plain, everything = found.forecasts[PRICE_ONLY], np.ones(len(found.moments), np.bool_)
    names = [name for name in found.forecasts if name != PRICE_ONLY]
    gains = [gain(found.forecasts[name], plain, found.moments, everything, CENTRAL, seed) for name in names]
    horizon = config.horizons[CENTRAL]
    bars = BarChart(
        f"{found.title}: gains over prices alone, {horizon} bars",
        "Reduction of CRPS with 95% intervals by month. Full weight: as if every view were true.",
        names,
        [one.value for one in gains],
        [one.low for one in gains],
        [one.high for one in gains],
        unit="%",
    )
    at = _places(len(found.moments))
    ends_ns = np.array([question.as_of_ns for question in found.moments.questions], np.int64)
    times = np.datetime_as_string(ends_ns[at].astype("datetime64[ns]"), unit="D")
    weighted = [name for name in names if found.forecasts[name].has_track_record]
    lines = TimeLines(
        f"{found.title}: weights of narrators",
        f"The weight by track record at {horizon} bars, 0–1.",
        [str(time) for time in times],
        [_curve(name, found.forecasts[name], at) for name in weighted],
    )
    return [bars, lines]


def _weights(market: NarratorResults, config: ForecastConfig) -> CurveChart:
    at = _places(len(market.moments))
    names = [name for name, narrator in market.forecasts.items() if narrator.has_track_record]
    return CurveChart(
        "Weights of narrators",
        f"The weight by track record at {config.horizons[CENTRAL]} bars, over simulated worlds in sequence.",
        at.astype(np.float64).tolist(),
        [_curve(name, market.forecasts[name], at) for name in names],
        "moments with news so far",
        "weight",
    )


def _pits(market: NarratorResults, config: ForecastConfig) -> list[Chart]:
    return [
        _pit(
            f"PIT of outcomes: {name}",
            "In event windows; an even histogram is calibrated.",
            market.forecasts[name],
            market.moments,
            market.events,
            config,
        )
        for name in (PRICE_ONLY, NEWS, CEILING)
    ]


def _pit(
    title: str,
    note: str,
    narrator: NarratorForecasts,
    moments: NewsMoments,
    inside: NDArray[np.bool_],
    config: ForecastConfig,
) -> HistogramChart:
    values = pit(
        narrator.quantiles[inside, CENTRAL], moments.outcomes[inside, CENTRAL], np.array(config.levels)
    )
    counts = np.histogram(values, bins=_NUM_BINS, range=(0.0, 1.0))[0]
    return HistogramChart(title, note, (counts / max(len(values), 1)).tolist(), num=len(values))


def _places(num: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, num - 1, min(num, _POINTS)).astype(np.intp))


def _curve(name: str, narrator: NarratorForecasts, at: NDArray[np.intp]) -> Curve:
    values: Sequence[float] = narrator.weight[at, CENTRAL].tolist()
    return Curve(name, values)
