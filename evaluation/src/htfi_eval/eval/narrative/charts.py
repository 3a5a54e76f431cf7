"""What pages show of narrators: gains beside placebos, weights as they are earned, PIT in event windows."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import pit
from htfi_eval.eval.charts.chart import (
    BarChart,
    Chart,
    Curve,
    CurveChart,
    DotChart,
    DotGroup,
    HistogramChart,
    TimeLines,
)
from htfi_eval.eval.charts.page import Card
from htfi_eval.eval.narrative.moments import NewsMoments
from htfi_eval.eval.narrative.scores import gain
from htfi_eval.eval.narrative.simulated import CEILING, CENTRAL, NEWS, NarratorResults
from htfi_eval.eval.narrative.stocknet import RealTextResults
from htfi_eval.eval.narrative.tilts import PRICE_ONLY, NarratorForecasts

_NUM_BINS = 10
_POINTS = 120  # of a curve of weights
_FIGURES = (
    ("sim_event_crps_gain", "lower CRPS after news, simulated"),
    ("sim_shuffled_gain", "with others' words"),
    ("sim_bell_gain", "of a bell that reads nothing"),
    ("sim_ceiling_gain", "one who understands all"),
    ("stocknet_crps_gain", "on StockNet's tweets"),
    ("reuters_crps_gain", "on Reuters' headlines"),
)


def cards(metrics: Mapping[str, float]) -> list[Card]:
    return [Card(f"{metrics[name]:+.1%}", called) for name, called in _FIGURES if name in metrics]


def lead(metrics: Mapping[str, float]) -> str:
    """The finding in one sentence."""
    told = (
        f"On simulated markets reading the news lowers the CRPS of the forecasts after them by "
        f"{metrics['sim_event_crps_gain']:.1%}; others' words change it by {metrics['sim_shuffled_gain']:+.1%}"
    )
    if "stocknet_crps_gain" in metrics:
        told += f", and StockNet's tweets by {metrics['stocknet_crps_gain']:+.1%}"
    return told + "."


def market_charts(market: NarratorResults, config: ForecastConfig, seed: int) -> list[Chart]:
    """Of the simulated market."""
    moments, plain = market.moments, market.forecasts[PRICE_ONLY]
    groups: list[DotGroup] = []
    for name, told in market.forecasts.items():
        if name == PRICE_ONLY:
            continue
        found = [gain(told, plain, moments, market.events, j, seed) for j in range(len(config.horizons))]
        groups.append(
            DotGroup(
                name, [one.value for one in found], [one.low for one in found], [one.high for one in found]
            )
        )
    gains = DotChart(
        "What narrators gain over prices alone",
        "Simulated worlds never seen, forecasts made right after news with an effect still to come; lower CRPS, with "
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
        "Lower CRPS, with 95% intervals by month. In full: as if every view were true.",
        names,
        [one.value for one in gains],
        [one.low for one in gains],
        [one.high for one in gains],
        unit="%",
    )
    at = _places(len(found.moments))
    ends_ns = np.array([question.as_of_ns for question in found.moments.questions], np.int64)
    times = np.datetime_as_string(ends_ns[at].astype("datetime64[ns]"), unit="D")
    heeded = [name for name in names if found.forecasts[name].has_track_record]
    lines = TimeLines(
        f"{found.title}: how far narrators are heeded",
        f"The weight each has earned at {horizon} bars, 0–1.",
        [str(time) for time in times],
        [_curve(name, found.forecasts[name], at) for name in heeded],
    )
    return [bars, lines]


def _weights(market: NarratorResults, config: ForecastConfig) -> CurveChart:
    at = _places(len(market.moments))
    names = [name for name, told in market.forecasts.items() if told.has_track_record]
    return CurveChart(
        "How far narrators are heeded",
        f"The weight each has earned at {config.horizons[CENTRAL]} bars, over simulated worlds one after the other.",
        at.astype(np.float64).tolist(),
        [_curve(name, market.forecasts[name], at) for name in names],
        "moments with news so far",
        "weight",
    )


def _pits(market: NarratorResults, config: ForecastConfig) -> list[Chart]:
    return [
        _pit(
            f"Where what came fell in the forecast: {name}",
            "In event windows; even is right.",
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
    told: NarratorForecasts,
    moments: NewsMoments,
    inside: NDArray[np.bool_],
    config: ForecastConfig,
) -> HistogramChart:
    values = pit(told.quantiles[inside, CENTRAL], moments.outcomes[inside, CENTRAL], np.array(config.levels))
    counts = np.histogram(values, bins=_NUM_BINS, range=(0.0, 1.0))[0]
    return HistogramChart(title, note, (counts / max(len(values), 1)).tolist(), num=len(values))


def _places(num: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, num - 1, min(num, _POINTS)).astype(np.intp))


def _curve(name: str, told: NarratorForecasts, at: NDArray[np.intp]) -> Curve:
    values: Sequence[float] = told.weight[at, CENTRAL].tolist()
    return Curve(name, values)
