"""Weights that go where CRPS is earned, mixes that an auditor can recompute, a band that is kept honest."""

import math

import msgspec
import numpy as np
import pytest

from htfi.domain.decision import Forecast
from htfi.forecasting.calibration import Calibration
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.fusion import ZONES, CrpsAggregation, MaturedForecasts, combine, mix, on_grid
from htfi.forecasting.scores import crps
from htfi.forecasting.shapes import gaussian_quantiles

NORMAL = gaussian_quantiles(LEVELS)
LEVEL_ARRAY = np.array(LEVELS)
ROW = slice(0, 1)
FIRST = np.array([0])
GROUP = np.array([0])
ALONE = {0: 1}
NUM_REGIMES = 3


def matured(y: float, regime: int = 1, at: int = 0) -> MaturedForecasts:
    """The outcome of the one series there is, forecast in a regime."""
    return MaturedForecasts(
        FIRST, GROUP, np.array([at]), np.array([[y]]), np.array([[True]]), np.array([[regime]]), {0: 1}
    )


def learnt(
    scales: list[float], outcomes: np.ndarray, half_life: float = 500.0, regimes: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Weights [K, R] and mean CRPS of the mix, after Gaussian experts of these scales saw the outcomes."""
    experts = (np.array(scales)[:, None, None] * NORMAL)[None]  # [1, K, 1, Q]
    return learnt_from(experts, outcomes, half_life, regimes)


def learnt_from(
    experts: np.ndarray, outcomes: np.ndarray, half_life: float = 500.0, regimes: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    learning, at = zone_weights(experts, outcomes, half_life, regimes)
    learning_weights = [
        learning.weights(FIRST, GROUP, np.ones((1, experts.shape[1]), bool), np.array([r]), ALONE)[
            0, :, 0
        ].mean(axis=-1)
        for r in range(NUM_REGIMES)
    ]
    return np.stack(learning_weights, axis=1), at / len(outcomes)


def zone_weights(
    experts: np.ndarray, outcomes: np.ndarray, half_life: float, regimes: np.ndarray | None = None
) -> tuple[CrpsAggregation, float]:
    learning = CrpsAggregation(LEVELS, experts.shape[1], 1, NUM_REGIMES, half_life)
    learning.columns.grow(1)
    regimes = np.ones(len(outcomes), np.int64) if regimes is None else regimes
    ready, ones, total = np.ones((1, experts.shape[1]), bool), np.ones((1, 1)), 0.0
    for at, (y, regime) in enumerate(zip(outcomes, regimes, strict=True)):
        mixed = mix(experts, learning.weights(FIRST, GROUP, ready, np.array([regime]), ALONE), ones, LEVELS)
        total += crps(mixed[0, 0], np.array(y), LEVEL_ARRAY)
        learning.learn(matured(y, regime, at), waited(mixed, experts))
    return learning, float(total)


def waited(mixed: np.ndarray, experts: np.ndarray) -> np.ndarray:
    """What awaited its outcome, the mix first."""
    return np.concatenate([mixed[:, None], experts], axis=1)


def mean_crps(scale: float, outcomes: np.ndarray) -> float:
    return float(crps(np.broadcast_to(scale * NORMAL, (len(outcomes), 13)), outcomes, LEVEL_ARRAY).mean())


def test_weight_goes_to_the_expert_that_is_right():
    weights, _ = learnt([0.5, 1.0, 2.0], np.random.default_rng(1).standard_normal(1500))
    assert weights[:, 1].argmax() == 1
    assert weights[1, 1] > 0.6
    assert weights.sum(axis=0) == pytest.approx([1.0] * NUM_REGIMES, abs=1e-12)


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
    assert learnt([0.5, 2.0], calm, 100.0)[0][0, 1] > 0.8
    assert learnt([0.5, 2.0], np.concatenate([calm, wild]), 100.0)[0][1, 1] > 0.8


def test_each_regime_has_the_weights_that_were_earned_in_it():
    rng = np.random.default_rng(5)
    regimes = (np.arange(3000) // 50) % 2 * 2  # calm and stressed in turn
    outcomes = np.where(regimes == 0, 0.5, 2.0) * rng.standard_normal(3000)
    weights, aware = learnt([0.5, 2.0], outcomes, regimes=regimes)
    _, blind = learnt([0.5, 2.0], outcomes)
    assert weights[0, 0] > 0.9
    assert weights[1, 2] > 0.9
    assert aware < 0.95 * blind


def test_an_expert_good_at_one_tail_is_followed_there():
    experts = np.stack([NORMAL, 2.0 * NORMAL])[None, :, None]
    draws = np.random.default_rng(7).standard_normal(4000)
    learning, _ = zone_weights(experts, np.where(draws < 0, 2.0 * draws, draws), 2000.0)
    weights = learning.weights(FIRST, GROUP, np.ones((1, 2), bool), np.array([1]), ALONE)[0, :, 0]  # [K, Z]
    assert weights[1, 0] > 0.7
    assert weights[0, 2] > 0.7


def test_weights_that_differ_by_zone_never_cross_quantiles():
    rng = np.random.default_rng(8)
    for _ in range(300):
        experts = np.sort(rng.standard_normal((1, 3, 2, 13)) * rng.uniform(0.1, 9.0, (1, 3, 1, 1)), axis=-1)
        weights = np.moveaxis(rng.dirichlet(np.full(3, 0.3), (1, 2, len(ZONES))), -1, 1)
        mixed = mix(experts, weights, rng.uniform(0.5, 2.0, (1, 2)), LEVELS)
        assert (np.diff(mixed, axis=-1) >= 0).all()


def test_expert_without_a_forecast_has_no_weight_and_the_rest_sum_to_one():
    learning = CrpsAggregation(LEVELS, 3, 2, NUM_REGIMES, 500.0)
    learning.columns.grow(2)
    ready = np.array([[True, False, True], [False, False, False]])
    weights = learning.weights(np.arange(2), np.array([0, 0]), ready, np.array([0, 1]), {0: 2})
    np.testing.assert_allclose(weights[0, :, 0, 0], [0.5, 0.0, 0.5])
    assert (weights[0] == weights[0, :, :1, :1]).all()
    np.testing.assert_array_equal(weights[1], 0.0)


def test_expert_that_was_silent_neither_gains_nor_loses():
    learning = CrpsAggregation(LEVELS, 2, 1, NUM_REGIMES, 500.0)
    learning.columns.grow(1)
    experts = np.stack([NORMAL, np.full(13, math.nan)])[None, :, None]
    learning.learn(matured(0.3), waited(NORMAL[None, None], experts))
    assert all(np.isfinite(column).all() for column in learning.columns.values())
    np.testing.assert_array_equal(learning.columns["regret"][0, :, :, 1], 0.0)


def test_record_recomputes_to_the_same_bits_after_json_whatever_the_order_of_experts():
    rng = np.random.default_rng(6)
    names = ("alpha", "beta", "gamma", "zeta")
    for _ in range(200):
        experts = on_grid(np.sort(rng.standard_normal((4, 3, 13)) * 10.0 ** rng.integers(-6, 1), axis=-1))
        weights = np.moveaxis(rng.dirichlet(np.ones(4), (3, len(ZONES))), -1, 0)
        calibration = rng.uniform(0.5, 2.0, 3)
        fused = mix(experts, weights, calibration, LEVELS)
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
    honest = combine(experts, {"a": [[0.5] * 3], "b": [[0.5] * 3]}, [1.0], LEVELS)
    assert (
        combine(experts, {"a": [[0.5, 0.500001, 0.5]], "b": [[0.5, 0.499999, 0.5]]}, [1.0], LEVELS) != honest
    )


@pytest.mark.parametrize("scale", [0.8, 1.3])
def test_calibration_brings_a_wrong_band_to_ninety_percent(scale: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("htfi.forecasting.calibration.CALIBRATION_GAIN", 0.02)
    calibration = Calibration(ForecastConfig(horizons=(1,)), NUM_REGIMES)
    calibration.columns.grow(1)
    outcomes = np.random.default_rng(9).standard_normal(6000)
    inside = []
    for y in outcomes:
        fused = calibration.stretch(FIRST, GROUP, np.array([1]))[..., None] * scale * NORMAL
        inside.append(fused[0, 0, 1] <= y <= fused[0, 0, -2])
        calibration.learn(matured(y), fused[:, None])
    assert np.mean(inside[1000:]) == pytest.approx(0.9, abs=0.01)
    assert calibration.stretch(FIRST, GROUP, np.array([1]))[0, 0] == pytest.approx(1.0 / scale, rel=0.25)


def test_calibration_holds_in_each_regime_though_the_band_is_wrong_in_both():
    calibration = Calibration(ForecastConfig(horizons=(1,)), NUM_REGIMES)
    calibration.columns.grow(1)
    rng = np.random.default_rng(10)
    inside: dict[int, list[bool]] = {0: [], 2: []}
    for day in range(8000):
        regime = (day // 100) % 2 * 2
        y = float(rng.standard_normal() * (0.7 if regime == 0 else 1.5))
        fused = calibration.stretch(FIRST, GROUP, np.array([regime]))[..., None] * NORMAL
        inside[regime].append(bool(fused[0, 0, 1] <= y <= fused[0, 0, -2]))
        calibration.learn(matured(y, regime, day), fused[:, None])
    assert [np.mean(held[1000:]) for held in inside.values()] == pytest.approx([0.9, 0.9], abs=0.012)


def test_series_that_has_seen_nothing_starts_from_what_the_others_have_taught():
    learning = CrpsAggregation(LEVELS, 2, 1, NUM_REGIMES, 500.0)
    learning.columns.grow(2)
    experts = (np.array([0.4, 1.0])[:, None, None] * NORMAL)[None]
    ready, ones = np.ones((1, 2), bool), np.ones((1, 1))
    for at, y in enumerate(np.random.default_rng(11).standard_normal(1500)):
        mixed = mix(experts, learning.weights(FIRST, GROUP, ready, np.array([1]), ALONE), ones, LEVELS)
        learning.learn(matured(y, 1, at), waited(mixed, experts))
    young = learning.weights(np.array([1]), GROUP, ready, np.array([1]), {0: 50, 1: 1})
    of_another_kind = learning.weights(np.array([1]), np.array([1]), ready, np.array([1]), {0: 50, 1: 1})
    assert young[0, 1].min() > 0.8
    np.testing.assert_allclose(of_another_kind, 0.5)


def test_first_losses_move_learnt_starting_weights_no_faster_than_later_ones():
    starts, experts = np.array([[[0.9, 0.1]]]), (np.array([1.0, 1.05])[:, None, None] * NORMAL)[None]
    furthest: list[float] = []
    for steady_kinds in ((0,), ()):
        learning = CrpsAggregation(LEVELS, 2, 1, NUM_REGIMES, 500.0, (1,), starts, steady_kinds=steady_kinds)
        learning.columns.grow(1)
        learning.enter(FIRST, GROUP)
        away = 0.0
        for at, y in enumerate(np.random.default_rng(12).standard_normal(60)):
            weights = learning.weights(FIRST, GROUP, np.ones((1, 2), bool), np.array([1]), ALONE)
            away = max(away, float(np.abs(weights[0, 0, 0] - 0.9).max()))
            mixed = mix(experts, weights, np.ones((1, 1)), LEVELS)
            learning.learn(matured(y, 1, at), waited(mixed, experts))
        furthest.append(away)
    assert furthest[0] < 0.5 * furthest[1]


def test_first_losses_count_for_as_much_of_later_ones_at_a_shorter_half_life():
    experts, outcomes = (np.array([1.0, 1.05])[:, None, None] * NORMAL)[None], np.random.default_rng(12)
    first_over_later: list[float] = []
    for half_life in (25.0, 250.0):
        learning = CrpsAggregation(LEVELS, 2, 1, NUM_REGIMES, half_life, steady_kinds=(0,))
        learning.columns.grow(1)
        learning.enter(FIRST, GROUP)
        first = learning.columns["square"][0, 0].max()
        for at, y in enumerate(outcomes.standard_normal(int(10 * half_life))):
            learning.learn(matured(y, 1, at), waited(experts.mean(axis=1), experts))
        first_over_later.append(first / learning.columns["square"][0, 0].max())
    assert 0.5 < first_over_later[0] / first_over_later[1] < 2.0
