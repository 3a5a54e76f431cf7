"""Moments at which news was read, and each narrator's forecast there.

The price-only forecast is that of the fused forecaster of `htfi run`, walked through all bars and
asked at each question. Tilt and weight are those of `htfi run` too; a weight is updated once the outcome is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import NewsView
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps, integration_weights
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.forecasting.tilts import apply_tilt, derive_tilts
from htfi.forecasting.track_record import NarratorTrackRecords
from htfi.narrative.question import Question
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.pipeline.weighing import opinion_of
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Walk

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_RECENT_BARS = 20


@dataclass(frozen=True, slots=True)
class NewsTruth:
    """The true effect of news, signed and in sigmas of one bar, where it is known.

    `expected` is the effect with full understanding of what is shown.
    """

    expected: float
    volatility_multiplier: float


@dataclass(frozen=True, slots=True)
class NewsQuestion:
    """A question about the series at `place` after instant `t` of `Prices`."""

    question: Question
    t: int
    place: int
    cluster: int
    truth: NewsTruth | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NewsMoments:
    """n moments in the order of time.

    Shapes: quantiles [n, H, Q] of prices alone and outcomes [n, H], in log returns; scales [n, H], the sigma that
    `quantiles` are as wide as; recent_volatility [n], the deviation of the last 20 returns; cluster [n], whose members
    are dependent; instant [n] and known [n, H]: when the forecast was made and when its outcome was known, both as
    numbers of one clock.
    """

    questions: tuple[Question, ...]
    truths: tuple[NewsTruth | None, ...]
    quantiles: Array
    outcomes: Array
    scales: Array
    recent_volatility: Array
    cluster: Whole
    instant: Whole
    known: Whole

    def __len__(self) -> int:
        return len(self.questions)


def gather(
    prices: Prices,
    asked: Sequence[NewsQuestion],
    config: ForecastConfig,
    progress: ProgressCallback | None = None,
) -> NewsMoments:
    """Walk through `prices` and keep the forecasts at the questions.

    A moment before the first forecast, or whose outcome lies after the data, is left out.
    Raises: InvalidInput if nothing is left.
    """
    by_instant: dict[int, list[NewsQuestion]] = {}
    for one in asked:
        by_instant.setdefault(one.t, []).append(one)
    ahead = _series(prices, config.horizons)
    low, high = config.levels.index(0.05), config.levels.index(0.95)
    kept: list[tuple[NewsQuestion, Array, Array, Whole, float]] = []
    for instant in Walk(prices, config).instants(progress=progress):
        for one in by_instant.get(instant.t, ()):
            place = int(np.searchsorted(instant.places, one.place))
            if place == len(instant.places) or instant.places[place] != one.place:
                continue
            quantiles = instant.quantiles[0, place]
            series = ahead[one.place]
            outcomes, known = series.after(one.t)
            deviation = series.deviation(one.t)
            if np.isfinite(quantiles).all() and np.isfinite(outcomes).all() and np.isfinite(deviation):
                kept.append((one, quantiles, outcomes, known, deviation))
    if not kept:
        raise InvalidInput(f"{prices.name}: no question has a forecast and an outcome: use a longer history")
    quantiles = np.array([row[1] for row in kept])
    return NewsMoments(
        tuple(row[0].question for row in kept),
        tuple(row[0].truth for row in kept),
        quantiles,
        np.array([row[2] for row in kept]),
        (quantiles[..., high] - quantiles[..., low]) / BAND_SIGMAS,
        np.array([row[4] for row in kept]),
        np.array([row[0].cluster for row in kept], np.int64),
        np.array([row[0].t for row in kept], np.int64),
        np.array([row[3] for row in kept], np.int64),
    )


def concatenated(parts: Sequence[NewsMoments]) -> NewsMoments:
    """Concatenated parts, as if each began when the last outcome of the previous one was known."""
    begins = np.cumsum([0, *(int(part.known.max()) + 1 for part in parts[:-1])]).tolist()
    return NewsMoments(
        tuple(question for part in parts for question in part.questions),
        tuple(truth for part in parts for truth in part.truths),
        np.concatenate([part.quantiles for part in parts]),
        np.concatenate([part.outcomes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.recent_volatility for part in parts]),
        np.concatenate([part.cluster for part in parts]),
        np.concatenate([part.instant + begin for part, begin in zip(parts, begins, strict=True)]),
        np.concatenate([part.known + begin for part, begin in zip(parts, begins, strict=True)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _BarSeries:
    """One series' own bars: their instants in `Prices`, and log closes."""

    when: NDArray[np.intp]
    logs: Array
    horizons: Whole

    def after(self, t: int) -> tuple[Array, Whole]:
        """Log returns over the horizons from the bar at t, and the instants of the bars that complete them."""
        at = int(np.searchsorted(self.when, t)) + self.horizons
        inside = np.minimum(at, len(self.when) - 1)
        moves = self.logs[inside] - self.logs[at[0] - self.horizons[0]]
        return np.where(at == inside, moves, np.nan), self.when[inside].astype(np.int64)

    def deviation(self, t: int) -> float:
        """Of the last 20 returns up to the bar at t; NaN while there are fewer."""
        at = int(np.searchsorted(self.when, t))
        if at < _RECENT_BARS:
            return float("nan")
        return float(np.std(np.diff(self.logs[at - _RECENT_BARS : at + 1]), ddof=1))


def _series(prices: Prices, horizons: Sequence[int]) -> list[_BarSeries]:
    found: list[_BarSeries] = []
    for place in range(len(prices.symbols)):
        when = np.flatnonzero(np.isfinite(prices.close[:, place]))
        found.append(_BarSeries(when, np.log(prices.close[when, place]), np.array(horizons, np.int64)))
    return found


PRICE_ONLY = "price only"
_ARRIVAL_STEP = 0.1  # of its log stretch, by AdaGrad
_MAX_LOG_STRETCH = 1.0
_MAX_MOVED = SanitiserConfig().max_influence_unconfirmed  # all items have one source


@dataclass(frozen=True, slots=True, eq=False)
class NarratorForecasts:
    """One narrator's forecasts. Shapes: quantiles [n, H, Q]; losses, CRPS in price-only sigmas, and weight [n, H]."""

    name: str
    quantiles: Array
    losses: Array
    weight: Array
    has_track_record: bool = False  # whether the weight comes from its track record


@dataclass(frozen=True, slots=True, eq=False)
class TiltEffect:
    """The full change by a narrator: shift in log return and stretch, [n, H]."""

    shift: Array
    stretch: Array


def tilt_effects(views: Sequence[NewsView], moments: NewsMoments, config: ForecastConfig) -> TiltEffect:
    """The change by views, as in `htfi run`: calibrated where there is a calibration, else as stated."""
    opinions = [
        opinion_of(view, question.as_of_ns, question.bar_ns, None, _MAX_MOVED)
        for view, question in zip(views, moments.questions, strict=True)
    ]
    found = derive_tilts(opinions, moments.quantiles, config.horizons, config.levels)
    return TiltEffect(found.shift, found.stretch)


def news_arrival(moments: NewsMoments, config: ForecastConfig) -> TiltEffect:
    """A baseline that knows only that there is news: a stretch learnt from earlier moments."""
    levels = np.array(config.levels)
    cells = 2.0 * integration_weights(config.levels)
    median = config.levels.index(0.5)
    num_horizons = len(config.horizons)
    log_stretch, square = np.zeros(num_horizons), np.full(num_horizons, 1e-6)
    stretch = np.empty((len(moments), num_horizons))
    for now, matured in _by_instant(moments):
        for place, j in matured:
            away = moments.quantiles[place, j] - moments.quantiles[place, j, median]
            stretched = moments.quantiles[place, j, median] + np.exp(log_stretch[j]) * away
            slope = cells * ((moments.outcomes[place, j] < stretched) - levels)
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
    """The full change from the first moment on."""
    weight = np.ones_like(change.shift)
    return _tilted(name, moments, change, weight, config)


def track_record_weighted(
    name: str, moments: NewsMoments, change: TiltEffect, config: ForecastConfig
) -> NarratorForecasts:
    """The change with the narrator's track-record weight at each moment."""
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
    """The instants in order: newly matured outcomes as (moment, horizon), then the moments."""
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
