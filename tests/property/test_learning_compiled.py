"""What is learnt from bars has the same bits whether a compiler was at hand or not."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.decision import Regime
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting import compiled
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.known_variance import compiled as known_compiled

INTERVALS = ("1d", "1d", "1h", "1d", "volume:5000", "1d")
VOLUMES = (1e6, 0.0, float("nan"))
REGIMES = tuple(Regime)


def moments(num_series: int, num: int, share_missing: float, seed: int) -> list[list[tuple[Bar, Regime]]]:
    """Bars of series of three intervals, some of which halt, have no volume or did not move at first."""
    rng = np.random.default_rng(seed)
    closes = np.full(num_series, 100.0)
    found: list[list[tuple[Bar, Regime]]] = []
    for t in range(num):
        moment: list[tuple[Bar, Regime]] = []
        for i in np.flatnonzero(rng.random(num_series) >= share_missing).tolist():
            first = closes[i] * np.exp(0.001 * rng.standard_normal())
            last = first * np.exp(0.01 * rng.standard_t(3)) if rng.random() < 0.85 else first
            if i == 1 and t < 30:
                first = last = 100.0
            reach = 0.004 * rng.random(2) * (i != 1 or t >= 30)
            closes[i] = last
            end_ns = t * NS_PER_DAY + int(rng.integers(3))
            bar = Bar(
                end_ns, end_ns, "test", t, f"S{i}", INTERVALS[i], end_ns - NS_PER_DAY, end_ns,
                first, max(first, last) * (1.0 + reach[0]), min(first, last) * (1.0 - reach[1]), last,
                float(rng.choice(VOLUMES, p=(0.8, 0.1, 0.1))),
            )  # fmt: skip
            moment.append((bar, REGIMES[int(rng.integers(len(REGIMES)))]))
        rng.shuffle(moment)  # pyright: ignore[reportArgumentType]
        found.append(moment)
    return found


def bits(state: Any, path: str = "") -> dict[str, Any]:
    """What a state holds by its path."""
    if not isinstance(state, dict):
        return {path: state.tobytes() if isinstance(state, np.ndarray) else state}
    parts = cast("dict[str, Any]", state)
    return {name: part for key in parts for name, part in bits(parts[key], f"{path}/{key}").items()}


def learnt(found: list[list[tuple[Bar, Regime]]], horizons: tuple[int, ...]) -> dict[str, Any]:
    config = ForecastConfig(
        experts=tuple(EXPERTS), horizons=horizons, residual_window_bars=40, covariates=("S0/1d", "absent/1d")
    )
    forecaster = Forecaster(config, build_experts(config))
    for moment in found:
        forecaster.observe([bar for bar, _ in moment], [regime for _, regime in moment])
    return bits(forecaster.state())


@pytest.mark.skipif(compiled.core is None, reason="built without a C compiler")
@given(
    num_series=st.integers(1, len(INTERVALS)),
    horizons=st.sampled_from([(1,), (1, 3, 7), (2, 22)]),
    share_missing=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=4)
def test_compiled_and_numpy_learn_the_same_bits(
    num_series: int, horizons: tuple[int, ...], share_missing: float, seed: int
) -> None:
    found = moments(num_series, 110, share_missing, seed)
    compiled_bits = learnt(found, horizons)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "core", None)
        patch.setattr(known_compiled, "core", None)
        assert learnt(found, horizons) == compiled_bits
