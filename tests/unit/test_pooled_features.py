"""What the pooled learner reads: of the past alone, finite whatever the bars are, and of the whole market."""

import numpy as np
import pytest

from htfi.forecasting.config import SESSION_GAP_BARS
from htfi.forecasting.experts.pooled.features import FEATURES, SHARED, PooledFeatures
from htfi.forecasting.experts.pooled.typical import typical_terms
from htfi.forecasting.panel import Panel
from pooled_bars import daily_bars, market_paths

HORIZONS = (1, 5, 22)


def read(instants) -> tuple[np.ndarray, np.ndarray]:
    """Features [T, N, F] and volatilities [T, N] of bars of the same series at every instant."""
    panel, features = Panel(HORIZONS, SESSION_GAP_BARS), PooledFeatures()
    xs, sigmas = [], []
    for bars in instants:
        batch = panel.enter(bars)
        assert batch is not None
        features.grow(len(panel))
        x, sigma = features.update(batch)
        xs.append(x)
        sigmas.append(sigma)
    return np.stack(xs), np.stack(sigmas)


def test_later_bars_change_no_feature() -> None:
    paths = market_paths(120, 4, 1)
    other = paths.copy()
    other[80:] = 3.0 * market_paths(40, 4, 2) + paths[80, :, :1]
    first, second = read(daily_bars(paths)), read(daily_bars(other))
    np.testing.assert_array_equal(first[0][:80], second[0][:80])
    np.testing.assert_array_equal(first[1][:80], second[1][:80])
    assert (first[0][90] != second[0][90]).any()


@pytest.mark.parametrize(
    "spoil",
    ["crisis", "still", "no volume", "wild volume", "first bar alone"],
    ids=lambda name: name.replace(" ", "-"),
)
def test_features_are_finite_whatever_a_series_begins_with(spoil: str) -> None:
    paths = market_paths(60, 3, 3)
    if spoil == "crisis":
        paths[:15] *= 12.0
        paths[15:] += paths[14:15, :, -1:] - paths[15:16, :, :1]
    if spoil == "still":
        paths[:30, 0] = 0.0
    bars = daily_bars(paths[:1] if spoil == "first bar alone" else paths)
    if "volume" in spoil:
        volumes = (0.0,) if spoil == "no volume" else (1e-300, 1e300, 5.0)
        bars = [[replace_volume(bar, volumes[t % len(volumes)]) for bar in row] for t, row in enumerate(bars)]
    x, sigma = read(bars)
    assert x.shape[2] == len(FEATURES)
    assert np.isfinite(x).all()
    assert (sigma > 0.0).all()
    assert (np.abs(x) < 1e4).all()


def replace_volume(bar, volume: float):
    fields = {name: getattr(bar, name) for name in bar.__struct_fields__}
    return type(bar)(**(fields | {"volume": volume}))


def test_market_features_are_the_mean_of_what_all_series_tell() -> None:
    x = read(daily_bars(market_paths(60, 5, 4)))[0][-1].astype(np.float64)
    for name in SHARED:
        own = x[:, FEATURES.index(name.removeprefix("market "))]
        np.testing.assert_allclose(x[:, FEATURES.index(name)], own.mean(), rtol=1e-5, atol=1e-6)
    assert len(SHARED) > 5


def test_two_series_are_no_market() -> None:
    x = read(daily_bars(market_paths(60, 2, 4)))[0]
    shared = [FEATURES.index(name) for name in SHARED]
    assert (x[:, :, shared] == 0.0).all()


def test_typical_terms_lie_between_those_of_neighbouring_horizons() -> None:
    terms = typical_terms((1, 3, 5, 22, 100))
    assert terms.shape == (len(FEATURES) + 1, 5)
    assert ((terms[:, 1] - terms[:, 0]) * (terms[:, 2] - terms[:, 1]) >= 0.0).all()
    np.testing.assert_array_equal(terms[:, 3], terms[:, 4])
