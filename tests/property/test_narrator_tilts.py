"""Whatever is said of the news, a tilted forecast stays a forecast, and can be derived again to the bit."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.decision import MEDIAN_SHARE
from htfi.forecasting.config import LEVELS
from htfi.forecasting.fusion import on_grid
from htfi.forecasting.tilts import (
    MAX_SHIFT_SIGMAS,
    MAX_STRETCH,
    MIN_STRETCH,
    Opinion,
    derive_tilt,
    derive_tilts,
    tilt_batch,
    tilt_record,
    to_records,
)

HORIZONS = (1, 5, 22)
anything = st.floats(allow_nan=True, allow_infinity=True)
sane = st.builds(
    Opinion,
    narrator=st.just("n"),
    direction=st.floats(-1, 1),
    size_sigmas=st.floats(0, 7),
    volatility_multiplier=st.floats(0.5, 3),
    confidence=st.floats(0, 1),
    age_half_lives=st.floats(0, 20),
    bar_half_lives=st.floats(0, 30),
    last_return=st.floats(-1, 1),
)
meaning = st.lists(
    st.tuples(st.integers(1, 60), anything, anything), max_size=4, unique_by=lambda one: one[0]
).map(lambda told: tuple(sorted(told)))
wild = st.builds(Opinion, st.just("n"), *[anything] * 7, meaning)
weights = st.lists(st.floats(0, 1), min_size=3, max_size=3)
forecasts = st.lists(
    st.lists(st.floats(-2, 2), min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted), min_size=3, max_size=3
)


@given(opinion=sane | wild, plain=forecasts, weight=weights)
def test_quantiles_never_cross_and_the_tilt_is_bounded(
    opinion: Opinion, plain: list[list[float]], weight: list[float]
) -> None:
    numbers = on_grid(np.array(plain)).tolist()
    tilt = derive_tilt(opinion, numbers, HORIZONS, LEVELS, weight)
    found = derive_tilts([opinion], np.array([numbers]), HORIZONS, LEVELS)
    assert (tilt is not None) == found.has_effect[0]
    if tilt is None:
        return
    sigma = max((numbers[0][-2] - numbers[0][1]) / 3.2897072539029444, 1e-12)
    assert all(abs(shift) <= MAX_SHIFT_SIGMAS * sigma + 1e-10 for shift in tilt.shift)
    assert all(MIN_STRETCH <= stretch <= MAX_STRETCH for stretch in tilt.stretch)
    assert 0.0 <= tilt.divergence <= 1.0
    told = np.array(tilt_record(numbers, tilt, LEVELS))
    assert np.isfinite(told).all()
    assert (np.diff(told, axis=1) >= 0.0).all()


@given(opinions=st.lists(sane | wild, min_size=1, max_size=5), plain=forecasts, weight=weights)
def test_one_by_one_gives_the_same_bits_as_all_at_once(
    opinions: list[Opinion], plain: list[list[float]], weight: list[float]
) -> None:
    numbers = on_grid(np.array(plain))
    all_plain = np.repeat(numbers[None], len(opinions), axis=0)
    together = to_records(
        opinions,
        derive_tilts(opinions, all_plain, HORIZONS, LEVELS),
        [weight] * len(opinions),
        [0.0] * len(opinions),
    )
    alone = [derive_tilt(opinion, numbers.tolist(), HORIZONS, LEVELS, weight) for opinion in opinions]
    assert together == alone
    told = {place: tilt for place, tilt in enumerate(alone) if tilt is not None}
    if told:
        changed = tilt_batch(all_plain, told, LEVELS)
        for place, tilt in told.items():
            assert changed[place].tolist() == tilt_record(numbers.tolist(), tilt, LEVELS)


@given(opinion=sane, plain=forecasts)
def test_an_opinion_of_no_weight_changes_nothing(opinion: Opinion, plain: list[list[float]]) -> None:
    numbers = on_grid(np.array(plain)).tolist()
    tilt = derive_tilt(opinion, numbers, HORIZONS, LEVELS, [0.0, 0.0, 0.0])
    assert tilt is None or tilt_record(numbers, tilt, LEVELS) == numbers


def normal() -> list[list[float]]:
    from statistics import NormalDist

    one = [NormalDist(0.0, 0.01).inv_cdf(level) for level in LEVELS]
    return on_grid(np.array([[math.sqrt(h) * q for q in one] for h in HORIZONS])).tolist()


def opinion(**told: Any) -> Opinion:
    base: dict[str, Any] = {
        "direction": 1.0,
        "size_sigmas": 2.0,
        "volatility_multiplier": 2.0,
        "confidence": 0.5,
        "age_half_lives": 0.0,
    }
    return Opinion("n", **{**base, "bar_half_lives": 1.0, "last_return": 0.0, **told})


def test_a_move_is_made_once_and_volatility_fades_while_the_horizon_lasts() -> None:
    tilt = derive_tilt(opinion(), normal(), HORIZONS, LEVELS, [1.0] * 3)
    assert tilt is not None
    assert tilt.shift == [tilt.shift[0]] * 3
    assert abs(tilt.shift[0] - 0.01) < 1e-4  # 0.5 · 2 of 1%
    assert abs(tilt.stretch[0] - 1.5) < 1e-6
    five = [1.0 + 0.5 * 0.5**k for k in range(5)]
    assert abs(tilt.stretch[1] - math.sqrt(sum(x * x for x in five) / 5)) < 1e-6
    assert tilt.stretch[0] > tilt.stretch[1] > tilt.stretch[2] > 1.0


def test_an_opinion_fades_with_its_half_life_until_nothing_is_left() -> None:
    fresh, old = (
        derive_tilt(opinion(age_half_lives=age), normal(), HORIZONS, LEVELS, [1.0] * 3) for age in (0.0, 1.0)
    )
    assert fresh is not None
    assert old is not None
    assert abs(old.shift[0] - fresh.shift[0] / 2) < 1e-9
    assert derive_tilt(opinion(age_half_lives=12.0), normal(), HORIZONS, LEVELS, [1.0] * 3) is None
    assert derive_tilt(opinion(confidence=0.0), normal(), HORIZONS, LEVELS, [1.0] * 3) is None


def test_divergence_grows_with_the_move_and_with_prices_that_went_the_other_way() -> None:
    def divergence(**told: float) -> float:
        tilt = derive_tilt(opinion(**told), normal(), HORIZONS, LEVELS, [1.0] * 3)
        assert tilt is not None
        return tilt.divergence

    assert divergence(size_sigmas=0.5) < divergence() < divergence(size_sigmas=4.0)
    assert divergence() < divergence(last_return=-0.005) < divergence(last_return=-0.01)
    assert divergence(last_return=0.02) == divergence()
    assert divergence(last_return=-0.01) == divergence(
        last_return=-0.5
    )  # it cannot be taken back more than once
    assert divergence(size_sigmas=0.25, volatility_multiplier=1.0, confidence=0.4) < 0.2


def test_what_an_opinion_has_proved_to_mean_takes_the_place_of_its_word_and_fades_as_it() -> None:
    meant = ((1, 0.1, 1.2), (5, 0.5, 1.4), (25, 0.3, 1.0))
    fresh, old, word = (
        derive_tilt(told, normal(), HORIZONS, LEVELS, [1.0] * 3)
        for told in (
            opinion(calibrated_effects=meant),
            opinion(calibrated_effects=meant, age_half_lives=1.0),
            opinion(),
        )
    )
    assert fresh is not None
    assert old is not None
    assert word is not None
    share = math.log(22 / 5) / math.log(5)
    assert np.allclose(fresh.shift, [0.001, 0.005, 0.01 * (0.5 - 0.2 * share)], rtol=1e-4)
    assert np.allclose(fresh.stretch, [1.2, 1.4, 1.4 - 0.4 * share], atol=1e-6)
    assert np.allclose(old.shift, np.array(fresh.shift) / 2, rtol=1e-4)
    assert np.allclose(np.array(old.stretch) - 1.0, (np.array(fresh.stretch) - 1.0) / 2, atol=1e-6)
    assert fresh.divergence == word.divergence
    assert (
        derive_tilt(opinion(calibrated_effects=meant, confidence=0.0), normal(), HORIZONS, LEVELS, [1.0] * 3)
        is None
    )


def test_beyond_what_was_measured_the_nearest_horizon_counts() -> None:
    tilt = derive_tilt(opinion(calibrated_effects=((5, 0.5, 1.4),)), normal(), HORIZONS, LEVELS, [1.0] * 3)
    assert tilt is not None
    assert tilt.stretch == [1.4] * 3


@given(opinion=sane | wild, plain=forecasts, weight=weights, most=st.floats(0, 2))
def test_at_any_weight_median_and_band_move_no_further_than_the_opinion_may(
    opinion: Opinion, plain: list[list[float]], weight: list[float], most: float
) -> None:
    numbers = on_grid(np.array(plain)).tolist()
    bound = opinion._replace(max_moved=most)
    low, middle, high = (LEVELS.index(level) for level in (0.05, 0.5, 0.95))
    counts = derive_tilts([bound], np.array([numbers]), HORIZONS, LEVELS).has_effect[0]
    for heeded in (weight, [1.0] * 3):
        tilt = derive_tilt(bound, numbers, HORIZONS, LEVELS, heeded)
        assert (tilt is not None) == counts
        if tilt is None:
            continue
        assert tilt.max_moved == most
        for before, after in zip(numbers, tilt_record(numbers, tilt, LEVELS), strict=True):
            width = before[high] - before[low]
            rounding = 1e-6 * width + 3e-10
            assert max(abs(after[at] - before[at]) for at in (low, high)) <= most * width + rounding
            assert abs(after[middle] - before[middle]) <= MEDIAN_SHARE * most * width + rounding


@given(opinion=sane, plain=forecasts)
def test_a_bound_that_is_not_reached_changes_nothing(opinion: Opinion, plain: list[list[float]]) -> None:
    """A shift is in sigmas, of which a band of crowded quantiles may hold none: the bound is 10⁹ such bands."""
    numbers = on_grid(np.array([plain]))
    width = numbers[0, :, LEVELS.index(0.95)] - numbers[0, :, LEVELS.index(0.05)]
    free, bound = (
        derive_tilts([opinion._replace(max_moved=most)], numbers, HORIZONS, LEVELS) for most in (None, 1e9)
    )
    assert bound.divergence == free.divergence
    wide = width > 1e-6
    assert (bound.shift[0, wide] == free.shift[0, wide]).all()
    assert (bound.stretch[0, wide] == free.stretch[0, wide]).all()
