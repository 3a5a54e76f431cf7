"""Circuit breakers: the same observations give the same changes, also across a restart, and stated rates hold."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from breaker_points import SIGMA, calm_point, usual_view
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.config import BreakerConfig, BreakerLimits
from htfi.governance.breakers.observations import BreakerObservation, NewsObservation
from htfi.governance.breakers.panel import BreakerPanel

NAMES = [f"S{place:02d}/1d" for place in range(12)]
NUM_POINTS = 40


def _course(seed: int) -> list[BreakerObservation]:
    """Points with views and news, of which the second half go wrong in some way."""
    rng = np.random.default_rng(seed)
    course: list[BreakerObservation] = []
    for number in range(1, NUM_POINTS + 1):
        is_wrong = number > NUM_POINTS // 2
        names = [name for name in NAMES if rng.random() < 0.9] or NAMES
        views = {0: usual_view(rng, f"n{number}")}
        returns = SIGMA * rng.normal(size=len(names)) * (rng.choice([1.0, 5.0]) if is_wrong else 1.0)
        course.append(
            NewsObservation(number, f"n{number}", "feed", (), bool(is_wrong and rng.random() < 0.7), 1.0, "c")
        )
        models = {"fused": "3" if is_wrong and seed % 3 == 0 else "2"}
        course.append(calm_point(number, rng, names, returns, views, models))
    return course


@given(seed=st.integers(0, 10_000), cut=st.integers(0, 2 * NUM_POINTS))
@settings(max_examples=6, deadline=None)
def test_a_restored_panel_goes_on_as_if_it_had_never_stopped(seed: int, cut: int):
    course = _course(seed)
    panel, whole = BreakerPanel(), BreakerPanel()
    expected = [change for seen in course for change in whole.observe(seen)]
    changes = [change for seen in course[:cut] for change in panel.observe(seen)]
    saved = json.dumps(panel.state())  # plain data
    again = BreakerPanel()
    again.restore(json.loads(saved))
    changes += [change for seen in course[cut:] for change in again.observe(seen)]
    assert changes == expected
    assert again.not_closed == whole.not_closed


def test_false_alarms_of_exact_forecasts_stay_below_their_rate():
    """Outcomes leave the quantiles at 2.25% and 97.75% as often as the bound of 4.5% allows: the worst of the null.

    Allowed: 100 false alarms a year of a desk of 12, over series and desk together. 12 desks for 73 days: a mean of 240
    at most. What was found is compared with that and with zero, so that a test that never trips fails; by Poisson's
    law 240 + 5·√240 = 317 would be passed once in a million.
    """
    config = BreakerConfig(bands_left=BreakerLimits(("series", "desk"), 100.0, 0.0, 1))
    num = 0
    for desk in range(12):
        rng, panel = np.random.default_rng(1_000 + desk), BreakerPanel(config)
        for number in range(1, 74):
            changes = panel.observe(calm_point(number, rng, NAMES))
            num += sum(one.state is BreakerState.OPEN and one.breaker == "bands_left" for one in changes)
    assert 0 < num <= 317
