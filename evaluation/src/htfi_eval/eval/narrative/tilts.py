"""What each narrator makes of prices' forecast: tilts by its views, weighted by what its past views have earned.

`narrative` calls it with moments in the order of time. Tilt and weight are those of `htfi run`; a weight learns of a
moment when its outcome is known, never before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps, integration_weights
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.forecasting.tilts import apply_tilt, derive_tilts
from htfi.forecasting.track_record import NarratorTrackRecords
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.pipeline.weighing import opinion_of
from htfi_eval.eval.narrative.moments import NewsMoments

Array = NDArray[np.float64]

PRICE_ONLY = "price only"
_ARRIVAL_STEP = 0.1  # of its log stretch, by AdaGrad
_MAX_LOG_STRETCH = 1.0
_MAX_MOVED = SanitiserConfig().max_moved_alone  # every line is told by one source


@dataclass(frozen=True, slots=True, eq=False)
class NarratorForecasts:
    """One narrator's forecasts. Shapes: quantiles [n, H, Q]; losses, CRPS in price-only sigmas, and weight [n, H]."""

    name: str
    quantiles: Array
    losses: Array
    weight: Array
    has_track_record: bool = False  # whether the weight was earned


@dataclass(frozen=True, slots=True, eq=False)
class TiltEffect:
    """What a narrator would change, heeded in full: shift in log return and stretch, [n, H]."""

    shift: Array
    stretch: Array


def tilt_effects(views: Sequence[NewsView], moments: NewsMoments, config: ForecastConfig) -> TiltEffect:
    """What views change: as `htfi run` has it, by what they proved to mean, else at their word."""
    opinions = [
        opinion_of(view, question.as_of_ns, question.bar_ns, None, _MAX_MOVED)
        for view, question in zip(views, moments.questions, strict=True)
    ]
    found = derive_tilts(opinions, moments.quantiles, config.horizons, config.levels)
    return TiltEffect(found.shift, found.stretch)


def news_arrival(moments: NewsMoments, config: ForecastConfig) -> TiltEffect:
    """One who knows that there are news, and reads none: a stretch learnt from the moments before, nothing else."""
    levels = np.array(config.levels)
    cells = 2.0 * integration_weights(config.levels)
    median = config.levels.index(0.5)
    num_horizons = len(config.horizons)
    log_stretch, square = np.zeros(num_horizons), np.full(num_horizons, 1e-6)
    stretch = np.empty((len(moments), num_horizons))
    for now, matured in _by_instant(moments):
        for place, j in matured:
            away = moments.quantiles[place, j] - moments.quantiles[place, j, median]
            told = moments.quantiles[place, j, median] + np.exp(log_stretch[j]) * away
            slope = cells * ((moments.outcomes[place, j] < told) - levels)
            gradient = float((slope * away).sum()) * np.exp(log_stretch[j]) / moments.scales[place, j]
            square[j] += gradient * gradient
            log_stretch[j] -= _ARRIVAL_STEP * gradient / np.sqrt(square[j])
            log_stretch[j] = min(max(log_stretch[j], -_MAX_LOG_STRETCH), _MAX_LOG_STRETCH)
        stretch[now] = np.exp(log_stretch)
    return TiltEffect(np.zeros_like(stretch), stretch)


def price_only(moments: NewsMoments, config: ForecastConfig) -> NarratorForecasts:
    """Prices alone."""
    return _forecasts(PRICE_ONLY, moments, moments.quantiles, np.zeros(moments.outcomes.shape), config)


def random_walk(name: str, moments: NewsMoments, config: ForecastConfig) -> NarratorForecasts:
    """Gaussian steps as wide as the last 20 returns, without drift: the benchmark."""
    widths = np.maximum(moments.recent_volatility, 1e-8)[:, None] * np.sqrt(
        np.array(config.horizons, np.float64)
    )
    quantiles = widths[..., None] * gaussian_quantiles(config.levels)
    return _forecasts(name, moments, quantiles, np.zeros(moments.outcomes.shape), config)


def full_weight(
    name: str, moments: NewsMoments, change: TiltEffect, config: ForecastConfig
) -> NarratorForecasts:
    """The change heeded in full from the first moment on."""
    weight = np.ones_like(change.shift)
    return _tilted(name, moments, change, weight, config)


def track_record_weighted(
    name: str, moments: NewsMoments, change: TiltEffect, config: ForecastConfig
) -> NarratorForecasts:
    """The change with the weight that its narrator has earned by each moment."""
    narrators = NarratorTrackRecords(config.horizons, config.levels)
    serial = float(narrators.serial(name))
    tilts = np.stack([change.shift, change.stretch, np.zeros_like(change.shift)], axis=1)  # [n, 3, H]
    for now, matured in _by_instant(moments):
        for known in sorted({int(moments.known[place, j]) for place, j in matured}):
            due = [(place, j) for place, j in matured if moments.known[place, j] == known]
            places = sorted({place for place, _ in due})
            serials = np.full((len(places), len(config.horizons)), np.nan)
            for place, j in due:
                serials[places.index(place), j] = serial
            narrators.learn(serials, tilts[places], moments.quantiles[places], moments.outcomes[places])
        tilts[now, 2] = narrators.weight(name)
    return replace(_tilted(name, moments, change, tilts[:, 2], config), has_track_record=True)


def _tilted(
    name: str, moments: NewsMoments, change: TiltEffect, weight: Array, config: ForecastConfig
) -> NarratorForecasts:
    median = config.levels.index(0.5)
    quantiles = apply_tilt(moments.quantiles, change.shift, change.stretch, weight, median)
    return _forecasts(name, moments, quantiles, weight, config)


def _forecasts(
    name: str, moments: NewsMoments, quantiles: Array, weight: Array, config: ForecastConfig
) -> NarratorForecasts:
    losses = crps(quantiles, moments.outcomes, np.array(config.levels))
    return NarratorForecasts(name, quantiles, losses / moments.scales, weight)


def _by_instant(moments: NewsMoments) -> Iterator[tuple[NDArray[np.intp], list[tuple[int, int]]]]:
    """The instants in order: the moments of each, and before them what has matured since, as (moment, horizon)."""
    order = np.argsort(moments.known.reshape(-1), kind="stable")
    waiting = moments.known.reshape(-1)[order]
    num_horizons, begin = moments.known.shape[1], 0
    instants: list[int] = np.unique(moments.instant).tolist()
    for instant in instants:
        end = int(np.searchsorted(waiting, instant, "right"))
        flat: list[int] = order[begin:end].tolist()
        pairs = [divmod(place, num_horizons) for place in flat]
        begin = end
        yield np.flatnonzero(moments.instant == instant), pairs
