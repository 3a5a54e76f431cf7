"""What a panel measures of any bars: the range within a bar, and covariates whatever their unit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.panel import BarBatch, Panel

STEPS = st.lists(st.tuples(*[st.floats(-0.2, 0.2)] * 4), min_size=25, max_size=60)


def walked(steps: list[tuple[float, ...]], unit: float) -> list[BarBatch]:
    """Batches of a series that opens and closes by the steps, beside a covariate in some unit."""
    panel, last, fear, found = Panel((1, 5), 5.0, ("VIX/1d",)), 100.0, 20.0, list[BarBatch]()
    for day, (gap, body, up, down) in enumerate(steps):
        first = last * np.exp(gap)
        last, fear = first * np.exp(body), float(np.clip(fear * np.exp(gap + body), 5.0, 90.0))
        high, low = max(first, last) * np.exp(abs(up)), min(first, last) * np.exp(-abs(down))
        end_ns = (day + 1) * NS_PER_DAY
        span = (end_ns - NS_PER_DAY, end_ns)
        level = fear * unit
        batch = panel.enter(
            [
                Bar(end_ns, end_ns, "test", day + 1, "A", "1d", *span, first, high, low, last),
                Bar(end_ns, end_ns, "test", day + 1, "VIX", "1d", *span, level, level, level, level),
            ]
        )
        assert batch is not None
        found.append(batch)
    return found


@given(STEPS)
@settings(max_examples=30, deadline=None)
def test_a_bar_has_no_more_range_within_than_with_the_close_before(steps: list[tuple[float, ...]]) -> None:
    found = walked(steps, 1.0)
    within = np.array([batch.within_log_variance for batch in found])
    spanning = np.array([batch.log_variance for batch in found])
    assert np.isfinite(within).all()
    assert (within <= spanning + 1e-12).all()


@given(STEPS, st.sampled_from([0.01, 3.0, 250.0]))
@settings(max_examples=30, deadline=None)
def test_the_unit_of_a_covariate_does_not_matter(steps: list[tuple[float, ...]], unit: float) -> None:
    first, second = walked(steps, 1.0), walked(steps, unit)
    expected = np.array([batch.covariates for batch in first])
    np.testing.assert_allclose([batch.covariates for batch in second], expected, atol=1e-9)
    assert (expected[:21] == 0.0).all()
