"""Bands are drawn to each series' own level, the more so the longer the horizon."""

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.forecasting import compiled
from htfi.forecasting.band_reversion import BandReversion, reversions

Array = NDArray[np.float64]
HORIZONS = (1, 5, 22)
LEVELS = np.array([-1.6, 0.0, 1.6])  # in units of a scale: the 5%, 50% and 95% quantiles
ONE = np.array([0])


def quantiles(*scales: float) -> Array:
    """[1, K, H, Q] of experts at these scales of one bar."""
    roots = np.sqrt(np.array(HORIZONS))
    return (np.array(scales)[:, None, None] * roots[:, None] * LEVELS)[None]


def factors(bands: BandReversion, experts: Array, ahead: Array | None = None) -> Array:
    stretch = np.ones((1, len(HORIZONS)))
    bands.apply(ONE, experts, ahead, stretch)
    return stretch[0]


def settled(scale: float = 0.01, num: int = 300) -> BandReversion:
    bands = BandReversion(HORIZONS, 0, 2)
    bands.columns.grow(1)
    for _ in range(num):
        factors(bands, quantiles(scale, scale))
    return bands


def test_a_band_at_its_level_is_left_as_it_is():
    np.testing.assert_allclose(factors(settled(), quantiles(0.01, 0.01)), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("times", "at_22"), [(0.5, np.exp(0.15 * np.log(2.0))), (2.0, np.exp(-0.1 * np.log(2.0)))]
)
def test_a_narrow_band_is_widened_and_a_wide_one_narrowed_far_ahead(times: float, at_22: float):
    found = factors(settled(num=999), quantiles(0.01 * times, 0.01 * times))
    assert found[0] == 1.0  # one bar ahead volatility has no time to return
    assert found[2] == pytest.approx(at_22, rel=0.01)
    at_5 = np.log(2.5) / np.log(11.0) if times < 1.0 else 0.0  # five bars ahead a wide one is left as it is
    assert np.log(found[1]) == pytest.approx(np.log(found[2]) * at_5, rel=0.01)


def test_the_level_is_the_mean_of_the_experts_that_have_a_forecast():
    alone, with_absent = settled(), settled()
    absent = np.concatenate([quantiles(0.005), np.full((1, 2, 3, 3), np.nan)], axis=1)
    np.testing.assert_array_equal(factors(alone, quantiles(0.005)), factors(with_absent, absent))


def test_without_any_forecast_nothing_is_learnt_and_nothing_is_stretched():
    bands = settled()
    before = {name: column.copy() for name, column in bands.columns.items()}
    np.testing.assert_array_equal(factors(bands, np.full((1, 2, 3, 3), np.nan)), np.ones(3))
    assert all((bands.columns[name] == column).all() for name, column in before.items())


def test_what_is_known_of_the_coming_variance_is_no_state_of_volatility():
    ahead = np.full((1, 3), 3.0)
    np.testing.assert_allclose(factors(settled(), 3.0 * quantiles(0.01, 0.01), ahead), 1.0, rtol=1e-9)


def test_a_band_far_from_its_level_moves_no_further_than_a_bound():
    bands = settled(num=999)
    far, further = factors(bands, quantiles(1e-5)), factors(bands, quantiles(1e-6))
    assert far[2] == pytest.approx(np.exp(0.15 * 1.5), rel=0.01)
    np.testing.assert_array_equal(far, further)


def test_horizons_up_to_two_bars_are_left_alone_and_very_long_ones_like_66():
    assert reversions((1, 2, 66, 250), 0.0626, 2.0).tolist()[:2] == [0.0, 0.0]
    assert reversions((66,), 0.0626, 2.0) == reversions((250,), 0.0626, 2.0)


@pytest.mark.parametrize("has_ahead", [False, True])
def test_numpy_and_compiled_give_the_same_bits(has_ahead: bool, monkeypatch: pytest.MonkeyPatch):
    if compiled.core is None:
        pytest.skip("nothing is compiled here")
    rng = np.random.default_rng(1)
    found: list[list[Array]] = []
    moments = [
        (
            np.exp(rng.normal(-4.0, 1.0, (4, 3, 3, 1))) * LEVELS,
            np.where(rng.random((4, 3)) < 0.3, np.nan, 1.0),
            np.exp(rng.normal(0.0, 0.5, (4, 3))),
            np.exp(rng.normal(0.0, 0.1, (4, 3))),
        )
        for _ in range(50)
    ]
    for core in (compiled.core, None):
        monkeypatch.setattr(compiled, "core", core)
        bands = BandReversion(HORIZONS, 0, 2)
        bands.columns.grow(5)
        stretches: list[Array] = []
        for experts, is_there, ahead, before in moments:
            stretch = before.copy()
            there = np.ascontiguousarray(experts * is_there[:, :, None, None])
            bands.apply(np.array([4, 0, 2, 1]), there, ahead if has_ahead else None, stretch)
            stretches.append(stretch)
        found.append([*stretches, *bands.columns.values()])
    assert [each.tobytes() for each in found[0]] == [each.tobytes() for each in found[1]]
