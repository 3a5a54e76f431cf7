"""The test of every breaker: few false alarms under the null, soon found where scores rise, begun anew after a trip."""

import numpy as np

from htfi.governance.breakers.detection import BETS, alarm_threshold, detect, excess_ratio

SEED = 20261124


def _first_alarms(chance: float, bound: float, threshold: float, num: int, length: int) -> np.ndarray:
    """When each of `num` tests of Bernoulli scores first reached the threshold; `length` where none did."""
    rng = np.random.default_rng(SEED)
    wealth, first = np.zeros((num, len(BETS))), np.full(num, length)
    for step in range(length):
        scores = (rng.random(num) < chance).astype(np.float64)
        wealth, evidence = detect(wealth, excess_ratio(scores, bound))
        first = np.where((evidence >= threshold) & (first == length), step, first)
    return first


def test_false_alarms_come_no_more_often_than_stated():
    """Stated: a mean of 1,000 scores at least between false alarms, so at most 0.25 of 250 scores raise one.

    Of 4,000 tests 1,000 at most are expected; the observed share is far below. False-alarm rate of this test: < 1e-9.
    """
    first = _first_alarms(0.1, 0.1, float(alarm_threshold(1_000.0, 1.0)), num=4_000, length=250)
    assert (first < 250).mean() <= 0.25


def test_scores_above_their_bound_are_found_soon():
    """The best of the bets grows by 0.71 nats a score; ln 1e6 and ln 4 for the choice of bet need 21 scores."""
    first = _first_alarms(0.6, 0.1, float(alarm_threshold(1e6, 1.0)), num=500, length=60)
    assert np.median(first) <= 25


def test_what_was_not_observed_is_no_evidence():
    wealth = np.array([[1.0, 2.0, 3.0, 0.5]])
    after, _ = detect(wealth, excess_ratio(np.array([np.nan]), 0.1))
    assert np.array_equal(after, wealth)


def test_wealth_begins_anew_at_one():
    after, _ = detect(np.full((1, len(BETS)), -5.0), np.array([-1.0]))
    assert np.allclose(after[0], np.log(1.0 - BETS))
