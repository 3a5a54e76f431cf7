"""What each narrator makes of prices' forecast: tilts by its views, weighted by what its past views have earned.

`narrative` calls it with moments in the order of time. Tilt and weight are those of `htfi run`; a weight learns of a
moment when its outcome is known, never before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.apps.eval.narrative_moments import Moments
from htfi.domain.decision import View
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.earned import Narrators
from htfi.forecasting.narrator import apply, derive_tilts
from htfi.forecasting.scores import crps, integration_weights
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.pipeline.weighing import opinion_of

Array = NDArray[np.float64]

PLAIN = "price only"
_BELL_STEP = 0.1  # of its log stretch, by AdaGrad
_WIDEST_LOG = 1.0
_MAX_MOVED = SanitiserConfig().max_moved_alone  # every line is told by one source


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """One narrator's forecasts. Shapes: quantiles [n, H, Q]; losses, CRPS in price-only sigmas, and weight [n, H]."""

    name: str
    quantiles: Array
    losses: Array
    weight: Array
    earns: bool = False  # whether the weight was earned


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What a narrator would change, heeded in full: shift in log return and stretch, [n, H]."""

    shift: Array
    stretch: Array


def changes(views: Sequence[View], moments: Moments, config: ForecastConfig) -> Change:
    """What views change: as `htfi run` has it, by what they proved to mean, else at their word."""
    opinions = [
        opinion_of(view, question.as_of_ns, question.bar_ns, None, _MAX_MOVED)
        for view, question in zip(views, moments.questions, strict=True)
    ]
    found = derive_tilts(opinions, moments.quantiles, config.horizons, config.levels)
    return Change(found.shift, found.stretch)


def bell(moments: Moments, config: ForecastConfig) -> Change:
    """One who knows that there are news, and reads none: a stretch learnt from the moments before, nothing else."""
    levels = np.array(config.levels)
    cells = 2.0 * integration_weights(config.levels)
    median = config.levels.index(0.5)
    num_horizons = len(config.horizons)
    log_stretch, square = np.zeros(num_horizons), np.full(num_horizons, 1e-6)
    stretch = np.empty((len(moments), num_horizons))
    for now, matured in _through(moments):
        for place, j in matured:
            away = moments.quantiles[place, j] - moments.quantiles[place, j, median]
            told = moments.quantiles[place, j, median] + np.exp(log_stretch[j]) * away
            slope = cells * ((moments.outcomes[place, j] < told) - levels)
            gradient = float((slope * away).sum()) * np.exp(log_stretch[j]) / moments.scales[place, j]
            square[j] += gradient * gradient
            log_stretch[j] -= _BELL_STEP * gradient / np.sqrt(square[j])
            log_stretch[j] = min(max(log_stretch[j], -_WIDEST_LOG), _WIDEST_LOG)
        stretch[now] = np.exp(log_stretch)
    return Change(np.zeros_like(stretch), stretch)


def plain(moments: Moments, config: ForecastConfig) -> Told:
    """Prices alone."""
    return _told(PLAIN, moments, moments.quantiles, np.zeros(moments.outcomes.shape), config)


def random_walk(name: str, moments: Moments, config: ForecastConfig) -> Told:
    """Gaussian steps as wide as the last 20 returns, without drift: the benchmark."""
    widths = np.maximum(moments.usual, 1e-8)[:, None] * np.sqrt(np.array(config.horizons, np.float64))
    quantiles = widths[..., None] * gaussian_quantiles(config.levels)
    return _told(name, moments, quantiles, np.zeros(moments.outcomes.shape), config)


def full(name: str, moments: Moments, change: Change, config: ForecastConfig) -> Told:
    """The change heeded in full from the first moment on."""
    weight = np.ones_like(change.shift)
    return _tilted(name, moments, change, weight, config)


def heeded(name: str, moments: Moments, change: Change, config: ForecastConfig) -> Told:
    """The change with the weight that its narrator has earned by each moment."""
    narrators = Narrators(config.horizons, config.levels)
    serial = float(narrators.serial(name))
    tilts = np.stack([change.shift, change.stretch, np.zeros_like(change.shift)], axis=1)  # [n, 3, H]
    for now, matured in _through(moments):
        for known in sorted({int(moments.known[place, j]) for place, j in matured}):
            due = [(place, j) for place, j in matured if moments.known[place, j] == known]
            places = sorted({place for place, _ in due})
            serials = np.full((len(places), len(config.horizons)), np.nan)
            for place, j in due:
                serials[places.index(place), j] = serial
            narrators.learn(serials, tilts[places], moments.quantiles[places], moments.outcomes[places])
        tilts[now, 2] = narrators.weight(name)
    return replace(_tilted(name, moments, change, tilts[:, 2], config), earns=True)


def _tilted(name: str, moments: Moments, change: Change, weight: Array, config: ForecastConfig) -> Told:
    median = config.levels.index(0.5)
    quantiles = apply(moments.quantiles, change.shift, change.stretch, weight, median)
    return _told(name, moments, quantiles, weight, config)


def _told(name: str, moments: Moments, quantiles: Array, weight: Array, config: ForecastConfig) -> Told:
    losses = crps(quantiles, moments.outcomes, np.array(config.levels))
    return Told(name, quantiles, losses / moments.scales, weight)


def _through(moments: Moments) -> Iterator[tuple[NDArray[np.intp], list[tuple[int, int]]]]:
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
