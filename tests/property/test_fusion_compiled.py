"""Weights and mixes have the same bits whether a compiler was at hand or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.forecasting import fusion
from htfi.forecasting.config import LEVELS
from htfi.forecasting.fusion import CrpsAggregation, MaturedForecasts, on_grid
from htfi.forecasting.scores import crps
from htfi.forecasting.shapes import gaussian_quantiles

NUM_REGIMES = 3


@pytest.mark.skipif(fusion.core is None, reason="built without a C compiler")
@given(
    num_series=st.integers(1, 20),
    num_experts=st.integers(1, 7),
    num_horizons=st.integers(1, 4),
    scale=st.sampled_from([1e-9, 1e-4, 0.01, 1.0, 100.0]),
    share_missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_compiled_and_numpy_fuse_to_the_same_bits(
    num_series: int, num_experts: int, num_horizons: int, scale: float, share_missing: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    starts = rng.uniform(0.001, 1.0, (2, num_horizons, num_experts))
    learning = CrpsAggregation(
        LEVELS, num_experts, num_horizons, NUM_REGIMES, 500.0, range(1, 1 + num_horizons), starts
    )
    learning.columns.grow(num_series)
    learning.pooled.grow(2)
    for columns in (learning.columns, learning.pooled):
        columns["regret"][:] = rng.standard_normal(columns["regret"].shape) * scale
        columns["largest"][:] = np.abs(rng.standard_normal(columns["largest"].shape)) * scale
        columns["square"][:] = rng.exponential(scale**2, columns["square"].shape)
    index = rng.permutation(num_series)
    groups, regimes = rng.integers(0, 2, num_series), rng.integers(0, NUM_REGIMES, num_series)
    experts = (
        np.sort(rng.standard_normal((num_series, num_experts, num_horizons, len(LEVELS))), axis=-1) * scale
    )
    experts[:, 0, :, 6] = -0.0
    experts = on_grid(np.sort(experts, axis=-1))
    experts[rng.random((num_series, num_experts)) < share_missing] = np.nan
    calibration = rng.uniform(0.5, 2.0, (num_series, num_horizons))

    def fused() -> list[bytes]:
        found = learning.fuse(index, groups, regimes, {0: 3, 1: num_series}, experts, calibration)
        return [part.tobytes() for part in found]

    compiled = fused()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "core", None)
        assert fused() == compiled


@given(
    num_experts=st.integers(2, 7),
    scales=st.lists(st.floats(0.2, 5.0), min_size=7, max_size=7),
    how=st.sampled_from(["against the mix", "in turns", "jumps", "normal"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=20)
def test_weights_sum_to_one_and_the_mix_is_behind_no_expert_by_more_than_the_bound(
    num_experts: int, scales: list[float], how: str, seed: int
) -> None:
    """d05: after T rounds Σ (CRPS of the mix − that of an expert) / width ≤ 8·L·√(T·ln(2K/π)), L the largest term."""
    rng, num = np.random.default_rng(seed), 300
    starts = rng.dirichlet(np.ones(num_experts), (1, 1)) * 0.9 + 0.1 / num_experts
    learning = CrpsAggregation(LEVELS, num_experts, 1, NUM_REGIMES, 1e9, (1,), starts)
    learning.columns.grow(1)
    shape = gaussian_quantiles(LEVELS)
    experts = np.array(scales[:num_experts])[:, None] * shape + rng.standard_normal((num_experts, 1))
    experts = experts[None, :, None]
    first, alone, levels = np.zeros(1, np.intp), {0: 1}, np.array(LEVELS)
    regime, group = np.zeros(1, np.int64), np.zeros(1, np.int64)
    behind, most = np.zeros(num_experts), np.zeros(num_experts)
    for t in range(num):
        weights, mixed = learning.fuse(first, group, regime, alone, experts, np.ones((1, 1)))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
        outcomes = {
            "against the mix": experts[0, :, 0].ravel()[
                np.abs(experts[0, :, 0].ravel() - mixed[0, 0, 6]).argmax()
            ],
            "in turns": (-1.0) ** t * 3.0,
            "jumps": 0.0 if t % 50 else 40.0,
            "normal": rng.standard_normal(),
        }
        outcome = np.array([[outcomes[how]]])
        width = mixed[0, 0, -1] - mixed[0, 0, 0]
        scored = crps(np.concatenate([mixed, experts[0, :, 0][:, None]])[:, 0], outcome[0], levels)
        gap = (scored[0] - scored[1:]) / width
        behind, most = behind + gap, np.maximum(most, np.abs(gap))
        matured = MaturedForecasts(
            first, group, np.array([t]), outcome, np.ones((1, 1), np.bool_), regime[:, None], alone
        )
        learning.learn(matured, np.concatenate([mixed[:, None], experts], axis=1))
    bound = 8.0 * most * np.sqrt(num * np.log(2 * num_experts / starts[0, 0]))
    assert (behind <= bound).all()


def test_a_zero_has_no_sign() -> None:
    assert not np.signbit(on_grid(np.array([-0.0, -1e-12, 0.0]))).any()
