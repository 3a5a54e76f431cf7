"""Weights that go where CRPS is earned, mixes that an auditor can recompute, a band that is kept honest."""

import math

import msgspec
import numpy as np
import pytest

from htfi.domain.decision import Forecast
from htfi.forecasting.calibration import Calibration
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.fusion import CrpsLearning, combine, mix, on_grid
from htfi.forecasting.scores import crps
from htfi.forecasting.shapes import gaussian_quantiles

NORMAL = gaussian_quantiles(LEVELS)
LEVEL_ARRAY = np.array(LEVELS)
MEDIAN = LEVELS.index(0.5)
ROW = slice(0, 1)


def learnt(scales: list[float], outcomes: np.ndarray, half_life: float = 500.0) -> tuple[np.ndarray, float]:
    """Weights [K] and mean CRPS of the mix after Gaussian experts of these scales saw the outcomes."""
    learning = CrpsLearning(LEVELS, len(scales), 1, half_life)
    learning.columns.grow(1)
    experts = (np.array(scales)[:, None, None] * NORMAL)[None]  # [1, K, 1, Q]
    ready, ones, total = np.ones((1, len(scales)), bool), np.ones((1, 1)), 0.0
    for y in outcomes:
        weights = learning.weights(ROW, ready)
        mixed = mix(experts, weights, ones, MEDIAN)
        total += crps(mixed[0, 0], np.array(y), LEVEL_ARRAY)
        learning.learn(ROW, experts, mixed, np.array([[y]]), np.array([[True]]))
    return learning.weights(ROW, ready)[0, :, 0], total / len(outcomes)


def mean_crps(scale: float, outcomes: np.ndarray) -> float:
    return float(crps(np.broadcast_to(scale * NORMAL, (len(outcomes), 13)), outcomes, LEVEL_ARRAY).mean())


def test_weight_goes_to_the_expert_that_is_right():
    weights, _ = learnt([0.5, 1.0, 2.0], np.random.default_rng(1).standard_normal(1500))
    assert weights.argmax() == 1
    assert weights[1] > 0.6
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_mix_of_two_wrong_experts_beats_both():
    outcomes = np.random.default_rng(2).standard_normal(3000)
    _, mixed = learnt([0.5, 1.6], outcomes)
    assert mixed < 0.995 * min(mean_crps(0.5, outcomes), mean_crps(1.6, outcomes))


def test_mix_is_hardly_worse_than_the_best_expert_in_hindsight():
    outcomes = np.random.default_rng(3).standard_normal(3000)
    _, mixed = learnt([0.3, 0.6, 1.0, 3.0], outcomes)
    assert mixed < 1.01 * mean_crps(1.0, outcomes)


def test_weights_turn_when_the_market_does():
    rng = np.random.default_rng(4)
    calm, wild = 0.5 * rng.standard_normal(800), 2.0 * rng.standard_normal(300)
    assert learnt([0.5, 2.0], calm, 100.0)[0][0] > 0.8
    assert learnt([0.5, 2.0], np.concatenate([calm, wild]), 100.0)[0][1] > 0.8


def test_expert_without_a_forecast_has_no_weight_and_the_rest_sum_to_one():
    learning = CrpsLearning(LEVELS, 3, 2, 500.0)
    learning.columns.grow(2)
    weights = learning.weights(slice(0, 2), np.array([[True, False, True], [False, False, False]]))
    np.testing.assert_allclose(weights[0], [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]])
    np.testing.assert_array_equal(weights[1], 0.0)


def test_expert_that_was_silent_neither_gains_nor_loses():
    learning = CrpsLearning(LEVELS, 2, 1, 500.0)
    learning.columns.grow(1)
    experts = np.stack([NORMAL, np.full(13, math.nan)])[None, :, None]
    learning.learn(ROW, experts, NORMAL[None, None], np.array([[0.3]]), np.array([[True]]))
    assert all(np.isfinite(column).all() for column in learning.columns.values())
    np.testing.assert_array_equal(learning.columns["regret"][0, 1], 0.0)


def test_record_recomputes_to_the_same_bits_after_json_whatever_the_order_of_experts():
    rng = np.random.default_rng(6)
    names = ("alpha", "beta", "gamma", "zeta")
    for _ in range(200):
        experts = on_grid(np.sort(rng.standard_normal((4, 3, 13)) * 10.0 ** rng.integers(-6, 1), axis=-1))
        weights = rng.dirichlet(np.ones(4), 3).T
        calibration = rng.uniform(0.5, 2.0, 3)
        fused = mix(experts, weights, calibration, MEDIAN)
        order = rng.permutation(4)
        record = Forecast(
            horizons=(1, 5, 22),
            levels=LEVELS,
            quantiles=fused.tolist(),
            expert_ticks={names[k]: np.rint(experts[k] * 1e10).astype(int).tolist() for k in order},
            weights={names[k]: weights[k].tolist() for k in order},
            calibration=calibration.tolist(),
        )
        read = msgspec.json.decode(msgspec.json.encode(record), type=Forecast)
        assert combine(read.experts, read.weights, read.calibration, read.levels) == read.quantiles


def test_one_altered_weight_changes_what_is_recomputed():
    experts = {"a": [(0.01 * NORMAL).tolist()], "b": [(0.02 * NORMAL).tolist()]}
    honest = combine(experts, {"a": [0.5], "b": [0.5]}, [1.0], LEVELS)
    assert combine(experts, {"a": [0.5000001], "b": [0.4999999]}, [1.0], LEVELS) != honest


@pytest.mark.parametrize("scale", [0.8, 1.3])
def test_calibration_brings_a_wrong_band_to_ninety_percent(scale: float):
    calibration = Calibration(ForecastConfig(horizons=(1,), calibration_gain=0.02))
    calibration.columns.grow(1)
    outcomes = np.random.default_rng(9).standard_normal(6000)
    inside = []
    for y in outcomes:
        fused = calibration.stretch(ROW)[..., None] * scale * NORMAL
        inside.append(fused[0, 0, 1] <= y <= fused[0, 0, -2])
        calibration.learn(ROW, fused, np.array([[y]]), np.array([[True]]))
    assert np.mean(inside[1000:]) == pytest.approx(0.9, abs=0.01)
    assert calibration.stretch(ROW)[0, 0] == pytest.approx(1.0 / scale, rel=0.15)
