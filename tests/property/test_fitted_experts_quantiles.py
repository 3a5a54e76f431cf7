"""GARCH, HAR, pooled and seasonal experts on any history: finite, never crossing, and continued bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.experts.garch import GarchTExpert, GjrTExpert
from htfi.forecasting.experts.har import HarExpert
from htfi.forecasting.experts.pooled.expert import PooledExpert
from htfi.forecasting.experts.seasonal import SeasonalExpert
from htfi.forecasting.panel import BarBatch, Panel
from htfi.forecasting.ports import Expert

CONFIG = ForecastConfig(residual_window_bars=40)
EXPERTS = (GarchTExpert, GjrTExpert, HarExpert, PooledExpert, SeasonalExpert)
HOUR_NS = 3600 * NS_PER_S
KINDS = {
    "still": lambda _, num: np.zeros(num),
    "calm": lambda rng, num: 0.001 * rng.standard_normal(num),
    "stormy": lambda rng, num: 0.08 * rng.standard_t(3.0, num),
    "spikes": lambda rng, num: np.where(rng.random(num) < 0.1, rng.choice([-5.0, 5.0], num), 1e-4),
    "dust": lambda rng, num: 1e-11 * rng.choice([-1.0, 1.0], num),
    "falling": lambda _, num: np.full(num, -0.02),
    "turns": lambda _, num: 0.03 * (-1.0) ** np.arange(num),
}
blocks = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 90), st.integers(0, 3)), min_size=2, max_size=5
)


def instants(history: list[tuple[str, int, int]], seed: int, length_ns: int) -> list[BarBatch]:
    """Two series with the same blocks and other dice; now and then there is a pause of hours or a weekend."""
    rng = np.random.Generator(np.random.PCG64(seed))
    panel, logs, clock_ns, found = Panel(CONFIG.horizons, SESSION_GAP_BARS), np.zeros(2), 0, []
    for kind, num, pause in history:
        clock_ns += (0, 5 * HOUR_NS, 62 * HOUR_NS, 400 * 24 * HOUR_NS)[pause]
        for moves in zip(KINDS[kind](rng, num), KINDS[kind](rng, num), strict=True):
            before, logs = logs, np.clip(logs + np.array(moves), -300.0, 300.0)
            end_ns = clock_ns + length_ns
            bars = []
            for name, a, b in zip("AB", before.tolist(), logs.tolist(), strict=True):
                first, last = math.exp(a), math.exp(b)
                shape = (first, max(first, last), min(first, last), last)
                bars.append(Bar(end_ns, end_ns, "t", 1, name, f"{length_ns}ns", clock_ns, end_ns, *shape))
            batch = panel.enter(bars)
            if batch is not None:
                found.append(batch)
            clock_ns = end_ns
    return found


def watched(expert: Expert, batches: list[BarBatch]) -> np.ndarray:
    """Quantiles [T, 2, H, Q]."""
    expert.grow(2)
    found = []
    for batch in batches:
        expert.update(batch)
        found.append(expert.quantiles(slice(0, 2)))
        expert.learn(batch)
    return np.array(found)


@pytest.mark.parametrize("kind", EXPERTS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blocks, st.integers(0, 10**6), st.sampled_from([60 * NS_PER_S, HOUR_NS, 24 * HOUR_NS]))
def test_quantiles_are_sound_and_a_restored_expert_goes_on_with_the_same_bits(kind, history, seed, length_ns):
    batches = instants(history, seed, length_ns)
    found = watched(kind(CONFIG), batches)
    present = np.isfinite(found)
    assert (present.all(axis=(2, 3)) | ~present.any(axis=(2, 3))).all()
    assert (np.diff(found, axis=3)[present[..., 1:]] >= 0.0).all()
    assert (present[1:] >= present[:-1]).all()  # once it speaks it does not fall silent
    cut = seed % len(batches)  # at least one bar follows
    first, second = kind(CONFIG), kind(CONFIG)
    watched(first, batches[:cut])
    second.restore(first.state())
    np.testing.assert_array_equal(watched(second, batches[cut:]), found[cut:])
