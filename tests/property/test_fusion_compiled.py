"""Weights and mixes have the same bits whether a compiler was at hand or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.forecasting import fusion
from htfi.forecasting.config import LEVELS
from htfi.forecasting.fusion import CrpsAggregation, on_grid

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
    learning = CrpsAggregation(LEVELS, num_experts, num_horizons, NUM_REGIMES, 500.0)
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


def test_a_zero_has_no_sign() -> None:
    assert not np.signbit(on_grid(np.array([-0.0, -1e-12, 0.0]))).any()
