"""Rates, gaps and corrections of the fairness audit against fairlearn, scipy and what must hold of any table."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.adapters.fairlearn.metrics import FairlearnMetrics
from htfi.governance.fairness.client_decisions import (
    FALSE_POSITIVE,
    SELECTION,
    TRUE_POSITIVE,
    ClientDecisions,
    audit_decisions,
)
from htfi.governance.fairness.findings import Correction, adjust
from htfi.governance.fairness.proxies import auc


@cache
def metrics() -> FairlearnMetrics:
    """Imports fairlearn and scikit-learn, which no other file needs."""
    return FairlearnMetrics()


@given(seed=st.integers(0, 10_000), num=st.integers(60, 200), num_groups=st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_disparities_are_those_of_fairlearn(seed: int, num: int, num_groups: int) -> None:
    from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

    rng = np.random.default_rng(seed)
    labels = [f"g{place % num_groups}" for place in range(num)]
    outcome, decision = rng.random(num) < 0.5, rng.random(num) < 0.4
    outcome[:2], decision[:2] = (True, False), (True, False)
    outcome[num_groups : 3 * num_groups] = [True] * num_groups + [False] * num_groups
    audit = audit_decisions(ClientDecisions({"group": labels}, decision, outcome), metrics(), Correction.HOLM)
    found = audit.disparities["group"]
    expected = demographic_parity_difference(outcome, decision, sensitive_features=labels)
    assert found[SELECTION] == pytest.approx(expected)
    nums = {one.num for one in audit.figures if one.measure in (TRUE_POSITIVE, FALSE_POSITIVE)}
    if min(nums) >= 10:
        odds = equalized_odds_difference(outcome, decision, sensitive_features=labels)
        assert max(found[TRUE_POSITIVE], found[FALSE_POSITIVE]) == pytest.approx(odds)


@given(chances=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
@settings(deadline=None)
def test_corrections_are_those_of_scipy_and_never_lower_a_p_value(chances: list[float]) -> None:
    from scipy.stats import false_discovery_control

    holm, bh = adjust(chances, Correction.HOLM), adjust(chances, Correction.BENJAMINI_HOCHBERG)
    assert bh == pytest.approx(false_discovery_control(chances, method="bh").tolist())
    assert all(one >= other - 1e-12 >= p - 2e-12 for one, other, p in zip(holm, bh, chances, strict=True))


@given(seed=st.integers(0, 10_000), num=st.integers(4, 60))
@settings(deadline=None, max_examples=30)
def test_auc_is_that_of_scikit_learn(seed: int, num: int) -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    scores, truth = rng.integers(0, 5, num).astype(float), rng.random(num) < 0.5
    truth[:2] = True, False
    assert auc(scores, truth) == pytest.approx(roc_auc_score(truth, scores))


def test_exact_intervals_hold_their_level() -> None:
    from scipy.stats import binom

    num, rate = 40, 0.3
    inside = [low <= rate <= high for low, high in (metrics().rate_interval(k, num) for k in range(num + 1))]
    covered = sum(float(binom.pmf(k, num, rate)) for k in range(num + 1) if inside[k])
    assert 0.95 <= covered < 0.995
