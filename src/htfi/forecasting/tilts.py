"""What an opinion on the news does to a forecast: shift and stretch of its quantiles.

A tilt is derived from an opinion and the forecast alone, so that an auditor derives it again (`derive_tilt`,
`tilt_record`). How much of it counts is learnt in `track_record` (docs/decisions/d05-fusion.md).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import MEDIAN_SHARE, TICKS_PER_UNIT, NewsTilt
from htfi.forecasting.batch import BAND_SIGMAS
from htfi.forecasting.fusion import on_grid
from htfi.forecasting.scores import integration_weights

Array = NDArray[np.float64]

VERSION = "2"
VERSION_WITHOUT_BOUND = "1"  # the version whose tilts were bounded by MAX_SHIFT_SIGMAS alone
MAX_SHIFT_SIGMAS = 4.0  # a median is moved no further, in standard deviations of one bar
MIN_STRETCH, MAX_STRETCH = 0.5, 4.0
MAX_BANDS = 1e3  # a bound beyond this is none
_LN2 = math.log(2.0)
_UNITS = 1e6  # stretch, weight and divergence are recorded in millionths
_ROUNDED_DOWN = 1.0 - 1e-9  # so that no rounding of a product goes beyond the bound
_MIN_REMAINING = 2.0**-10  # what is left of an opinion that still counts
STALE_HALF_LIVES = 3.0  # an older opinion is refused


class Opinion(NamedTuple):
    """A narrator's opinion on one series at one instant, as numbers.

    Units: direction −1..1; size in standard deviations of one bar; volatility_multiplier as in `NewsView`; confidence
    0–1; `age_half_lives` counts the half-lives since it was formed, `bar_half_lives` those that one bar lasts;
    `last_return` is the log return of the bar that just closed, 0 where it is not known. `calibrated_effects`, where it
    was measured what such an opinion means, gives (horizon in bars, shift in standard deviations of one bar, stretch)
    by rising horizon. Whatever the narrator's track record, this opinion weighs no more than `max_weight`, 0–1, and
    moves an end of the 90% band by no more than `max_moved` of the band, the median by `MEDIAN_SHARE` of that; None for
    those recorded before there was a bound, and where it is measured what news can be worth.
    """

    narrator: str
    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    age_half_lives: float
    bar_half_lives: float
    last_return: float = 0.0
    calibrated_effects: tuple[tuple[int, float, float], ...] = ()
    max_weight: float = 1.0
    max_moved: float | None = None


class TiltArrays(NamedTuple):
    """Opinions as changes of n forecasts: shift and stretch [n, H] as in `NewsTilt`, divergence [n], which do any."""

    shift: Array
    stretch: Array
    divergence: Array
    has_effect: NDArray[np.bool_]


def derive_tilts(
    opinions: Sequence[Opinion], plain: Array, horizons: Sequence[int], levels: Sequence[float]
) -> TiltArrays:
    """What opinions [n], at full weight, change in forecasts [n, H, Q].

    With c the confidence and f = 2^−age what is left of the opinion, a move of s standard deviations of one bar
    shifts every horizon by c·f·s·σ₁: it is made once. Volatility fades while the horizon lasts: the variance over h
    bars grows by the mean over k < h of (1 + c·(m − 1)·f·2^(−k·bar))². σ₁ comes from the 90% band of the first
    horizon. What an opinion has proved to mean takes the place of that, f times; divergence is of its word. What is
    no number, and what is stale, counts as no opinion. Shift and stretch are bounded, at last so that median and band
    move no further than the opinion may, at any weight.
    """
    given = np.array([opinion[1:8] for opinion in opinions], np.float64).reshape(len(opinions), 7)
    usable = np.logical_and.reduce(np.isfinite(given[:, :6]), axis=1) & (given[:, 5] >= 0.0)
    given = np.where(usable[:, None] & np.isfinite(given), given, 0.0)
    direction, size, multiplier, confidence, age, bar, drift = given.T
    fade = exact.exp(-_LN2 * np.maximum(age, 0.0))
    left = fade * np.minimum(np.maximum(confidence, 0.0), 1.0)
    left = np.where(usable & (left >= _MIN_REMAINING) & (age <= STALE_HALF_LIVES), left, 0.0)
    sigma = _sigma(plain[:, 0], levels)
    step = sigma / math.sqrt(horizons[0])
    moved = np.minimum(np.maximum(direction, -1.0), 1.0) * np.minimum(np.maximum(size, 0.0), 1e3)
    shift = _bounded_shift(left * moved, step)
    wider = left * (np.minimum(np.maximum(multiplier, 0.0), 1e3) - 1.0)
    stretch = _stretches(np.where(left > 0.0, wider, 0.0), bar, horizons)
    divergence = _divergence(plain[:, 0], shift, stretch[:, 0], drift, sigma, levels)
    shifts = np.repeat(shift[:, None], len(horizons), axis=1)
    for anchors, places in _places_by_anchors(opinions, left).items():
        anchored = np.array([opinions[place].calibrated_effects for place in places], np.float64)[
            :, :, 1:
        ]  # [n, A, 2]
        meant = _interpolate_effect(anchored, anchors, horizons)
        faded = fade[places, None]
        shifts[places] = _bounded_shift(faded * meant[..., 0], step[places, None])
        stretch[places] = _bounded_stretch(1.0 + faded * (meant[..., 1] - 1.0))
    shifts, stretch = _cap_moves(opinions, shifts, stretch, plain, levels)
    counts = np.logical_or.reduce((shifts != 0.0) | (stretch != 1.0), axis=1)
    return TiltArrays(shifts, stretch, divergence, counts)


def _bounded_shift(sigmas: Array, step: Array) -> Array:
    return on_grid(np.minimum(np.maximum(sigmas, -MAX_SHIFT_SIGMAS), MAX_SHIFT_SIGMAS) * step)


def _bounded_stretch(stretch: Array) -> Array:
    return np.rint(np.minimum(np.maximum(stretch, MIN_STRETCH), MAX_STRETCH) * _UNITS) / _UNITS


def _cap_moves(
    opinions: Sequence[Opinion], shift: Array, stretch: Array, plain: Array, levels: Sequence[float]
) -> tuple[Array, Array]:
    """Shift and stretch [n, H] cut, so that an end of the 90% band moves no further than the opinion may, and the
    median no further than `MEDIAN_SHARE` of that. What a weight below 1 leaves of them moves less in proportion.
    """
    places = [place for place, opinion in enumerate(opinions) if opinion.max_moved is not None]
    if not places:
        return shift, stretch
    max_moved = np.array([_clamp_bands(opinions[place].max_moved) for place in places], np.float64)
    low, median, high = levels.index(0.05), levels.index(0.5), levels.index(0.95)
    away = plain[places][:, :, [low, high]] - plain[places][:, :, median : median + 1]  # [n, H, 2]
    max_move = max_moved[:, None] * np.maximum(away[..., 1] - away[..., 0], 0.0)
    own, wider = shift[places], stretch[places] - 1.0
    own = np.minimum(np.maximum(own, -MEDIAN_SHARE * max_move), MEDIAN_SHARE * max_move)
    moved = np.abs(own[..., None] + wider[..., None] * away).max(axis=2)
    kept = np.where(moved > max_move, _ROUNDED_DOWN * max_move / np.where(moved > max_move, moved, 1.0), 1.0)
    is_cut = (own != shift[places]) | (moved > max_move)
    shift, stretch = shift.copy(), stretch.copy()
    shift[places] = np.where(is_cut, np.trunc(own * kept * TICKS_PER_UNIT) / TICKS_PER_UNIT, shift[places])
    cut = np.rint((1.0 + np.trunc(wider * kept * _UNITS) / _UNITS) * _UNITS) / _UNITS
    stretch[places] = np.where(moved > max_move, cut, stretch[places])
    return shift, stretch


def _clamp_bands(most: float | None) -> float:
    """A share of the band that may be moved; none of it where it is not a number."""
    return min(max(most or 0.0, 0.0), MAX_BANDS) if most == most else 0.0


def _places_by_anchors(opinions: Sequence[Opinion], left: Array) -> dict[tuple[int, ...], list[int]]:
    """The places of opinions whose meaning was measured, by the horizons at which it was."""
    found: dict[tuple[int, ...], list[int]] = {}
    for place, (opinion, some) in enumerate(zip(opinions, left.tolist(), strict=True)):
        if opinion.calibrated_effects and some > 0.0:
            found.setdefault(tuple([one[0] for one in opinion.calibrated_effects]), []).append(place)
    return found


def _interpolate_effect(anchored: Array, anchors: Sequence[int], horizons: Sequence[int]) -> Array:
    """Shift and stretch [n, H, 2] from those at the anchors [n, A, 2], on straight lines in the logarithm of the
    horizon; what is not a number is not a change.
    """
    anchored = np.where(np.isfinite(anchored), anchored, np.array([0.0, 1.0]))
    anchored = np.minimum(np.maximum(anchored, -1e3), 1e3)
    known = exact.log(np.maximum(np.array(anchors, np.float64), 1.0))
    at = np.interp(exact.log(np.array(horizons, np.float64)), known, np.arange(len(anchors)))
    below = np.minimum(at.astype(np.intp), max(len(anchors) - 2, 0))
    above = np.minimum(below + 1, len(anchors) - 1)
    return anchored[:, below] + (at - below)[:, None] * (anchored[:, above] - anchored[:, below])


def _sigma(quantiles: Array, levels: Sequence[float]) -> Array:
    low, high = levels.index(0.05), levels.index(0.95)
    return np.maximum((quantiles[..., high] - quantiles[..., low]) / BAND_SIGMAS, 1e-12)


def _stretches(wider: Array, bar: Array, horizons: Sequence[int]) -> Array:
    """√(mean over k < h of (1 + wider·2^(−k·bar))²) [n, H], bounded."""
    decay = exact.exp(-_LN2 * np.maximum(bar, 0.0))
    total, found, at = np.zeros_like(wider), np.empty((len(wider), len(horizons))), 0
    for k in range(1, horizons[-1] + 1):
        times = np.maximum(1.0 + wider, 0.0)
        total = total + times * times
        wider = wider * decay
        if k == horizons[at]:
            found[:, at] = np.sqrt(total / k)
            at += 1
    return _bounded_stretch(found)


def _divergence(
    plain: Array, shift: Array, stretch: Array, drift: Array, sigma: Array, levels: Sequence[float]
) -> Array:
    """How far narrative and numbers disagree, 0–1 [n]: d / (1 + d), d in standard deviations of the forecast.

    d is the Wasserstein distance of the first horizon's forecast from itself tilted in full, and as much of the
    last bar's move again as went against the shift: prices that have moved the other way disagree as well.
    """
    median = levels.index(0.5)
    middle = plain[:, median : median + 1]
    away = np.abs(shift[:, None] + (stretch[:, None] - 1.0) * (plain - middle))
    distance = (away * integration_weights(levels)).sum(axis=1)
    against = np.minimum(np.abs(shift), np.maximum(np.where(shift > 0.0, -drift, drift), 0.0))
    d = (distance + against) / sigma
    return np.rint(d / (1.0 + d) * _UNITS) / _UNITS


def apply_tilt(plain: Array, shift: Array, stretch: Array, weight: Array, median: int) -> Array:
    """q + w·(shift + (stretch − 1)·(q − median)) for q [..., H, Q] and the others [..., H].

    Guarantees: never decreasing along Q to the last bit, as the mix: each step rounds in the order of what it is
    given.
    """
    middle = plain[..., median : median + 1]
    factor = 1.0 + weight * (stretch - 1.0)
    return on_grid((middle + (weight * shift)[..., None]) + factor[..., None] * (plain - middle))


def tilt_record(
    plain: Sequence[Sequence[float]], tilt: NewsTilt, levels: Sequence[float]
) -> list[list[float]]:
    """Recompute recorded quantiles [H, Q] from the mix of the numbers and the recorded tilt, bit for bit."""
    shift, stretch, weight = (np.array(row, np.float64) for row in (tilt.shift, tilt.stretch, tilt.weight))
    return apply_tilt(np.array(plain, np.float64), shift, stretch, weight, list(levels).index(0.5)).tolist()


def derive_tilt(
    opinion: Opinion,
    plain: Sequence[Sequence[float]],
    horizons: Sequence[int],
    levels: Sequence[float],
    weight: Sequence[float],
    rank: float = 0.0,
) -> NewsTilt | None:
    """The tilt of one forecast [H, Q] by one opinion, at a given weight [H]; None where it changes nothing.

    `rank` is that of its divergence.
    """
    found = derive_tilts([opinion], np.array([plain], np.float64), horizons, levels)
    return to_records([opinion], found, [weight], [rank])[0]


def to_records(
    opinions: Sequence[Opinion], found: TiltArrays, weights: Sequence[Sequence[float]], ranks: Sequence[float]
) -> list[NewsTilt | None]:
    """In the record's form; `ranks` are those of the divergences."""
    shift, stretch, divergence = found.shift.tolist(), found.stretch.tolist(), found.divergence.tolist()
    return [
        NewsTilt(
            opinion.narrator,
            shift[i],
            stretch[i],
            list(weights[i]),
            divergence[i],
            ranks[i],
            UNSET if opinion.max_moved is None else _clamp_bands(opinion.max_moved),
        )
        if found.has_effect[i]
        else None
        for i, opinion in enumerate(opinions)
    ]


def tilt_batch(plain: Array, tilts: Mapping[int, NewsTilt], levels: Sequence[float]) -> Array:
    """Forecasts [n, H, Q], those at the places of `tilts` tilted."""
    places = list(tilts)
    stacked = np.array([(tilt.shift, tilt.stretch, tilt.weight) for tilt in tilts.values()], np.float64)
    changed = plain.copy()
    changed[places] = apply_tilt(
        plain[places], stacked[:, 0], stacked[:, 1], stacked[:, 2], list(levels).index(0.5)
    )
    return changed
