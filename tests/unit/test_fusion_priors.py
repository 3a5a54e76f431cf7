"""Learning the weights that experts start from: on simulated forecasts whose best mix is known."""

import tomllib

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.kinds import EXPERTS_BY_KIND, KINDS
from htfi_eval.eval.fusion_priors import (
    EVEN_SHARE,
    CapturedForecasts,
    best_mix,
    capture,
    learn_kind,
    shipped_weights,
    streams_of_shares,
    table_text,
)
from htfi_eval.eval.prices import load_prices

Array = NDArray[np.float64]
_STANDARD = np.quantile(np.random.default_rng(0).standard_normal(200_000), LEVELS)


def simulated(scales: Array, sigma: Array, seed: int) -> CapturedForecasts:
    """Experts that forecast a normal of `scales` [M, K]; outcomes are of `sigma` [M]."""
    outcomes = sigma * np.random.default_rng(seed).standard_normal(len(sigma))
    return CapturedForecasts(scales[:, :, None] * _STANDARD, outcomes)


def test_an_expert_that_knows_the_scale_of_every_stream_gets_nearly_all_weight() -> None:
    streams: list[CapturedForecasts] = []
    for seed in (1, 2, 3):
        sigma = np.exp(0.5 * np.random.default_rng(seed).standard_normal(3_000))
        usual = np.full_like(sigma, sigma.mean())
        streams.append(simulated(np.stack([usual, sigma, 3.0 * usual], axis=1), sigma, 10 + seed))
    weights = best_mix(streams, LEVELS)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] > 0.9
    assert weights[2] < 0.02


def test_the_mix_of_experts_too_narrow_and_too_wide_is_as_wide_as_the_outcomes() -> None:
    sigma = np.ones(5_000)
    weights = best_mix([simulated(np.stack([0.5 * sigma, 2.0 * sigma], axis=1), sigma, 4)], LEVELS)
    assert 0.5 * weights[0] + 2.0 * weights[1] == pytest.approx(1.0, abs=0.06)


def test_streams_count_alike_whatever_their_units() -> None:
    sigma = np.ones(4_000)
    narrow_right = simulated(np.stack([sigma, 2.0 * sigma], axis=1), sigma, 5)
    wide_right = simulated(np.stack([500.0 * sigma, 1_000.0 * sigma], axis=1), 1_000.0 * sigma, 6)
    weights = best_mix([narrow_right, wide_right], LEVELS)
    assert 0.2 < weights[0] < 0.8


def test_the_shipped_part_leaves_every_expert_a_share() -> None:
    weights = shipped_weights(np.array([1.0, 0.0, 0.0, 0.0]))
    assert sum(weights) == pytest.approx(1.0, abs=0.002)
    assert min(weights) == pytest.approx(EVEN_SHARE / 4)


def test_streams_of_several_shares_hold_all_of_them_and_none_twice_in_one_size() -> None:
    symbols = [f"S{n:02d}" for n in range(42)]
    mixed, several = streams_of_shares(symbols)
    assert [len(one) for one in mixed] == [1, 1, 1, 3, 9, 20]
    assert [len(one) for one in several] == [5] * 4 + [14] * 3 + [42]
    assert sorted(name for one in several[4:7] for name in one) == sorted(several[7]) == symbols
    for alike in (several[:4], several[4:7]):
        names = [name for one in alike for name in one]
        assert len(set(names)) == len(names)


def test_the_text_reads_back_with_every_kind_expert_and_horizon() -> None:
    weights = {kind: {name: [0.2, 0.3, 0.4] for name in EXPERTS_BY_KIND[k]} for k, kind in enumerate(KINDS)}
    table = tomllib.loads(table_text((1, 5, 22), weights))
    assert table == {"horizons": [1, 5, 22], "weights": weights}


def test_forecasts_are_captured_with_what_came_and_learnt_from() -> None:
    prices = load_prices("sample").cut(None, None, "2008-12-31")
    chosen = ForecastConfig(experts=tuple(sorted(EXPERTS_BY_KIND[0])))
    of_horizons = capture(prices, chosen)
    assert [one.quantiles.shape[1:] for one in of_horizons] == [(5, len(LEVELS))] * 3
    assert [len(one.outcomes) == len(one.quantiles) > 100 for one in of_horizons] == [True] * 3
    inside = [float((np.abs(one.outcomes) < one.quantiles[:, 3, -1]).mean()) for one in of_horizons]
    assert min(inside) > 0.8
    widths = [one.quantiles.mean(axis=1)[:, -1] - one.quantiles.mean(axis=1)[:, 0] for one in of_horizons]
    np.testing.assert_allclose(np.concatenate(widths), 1.0, atol=1e-9)
    learnt = learn_kind(0, iter([prices]))
    assert sorted(learnt) == sorted(EXPERTS_BY_KIND[0])
    np.testing.assert_allclose(np.sum(list(learnt.values()), axis=0), 1.0, atol=0.004)
    early = prices.cut(None, None, "2007-12-31")
    other = learn_kind(0, [prices], [early])
    for j, source in enumerate((learnt, learn_kind(0, [early]), learnt)):
        assert [other[name][j] for name in other] == [source[name][j] for name in other]
