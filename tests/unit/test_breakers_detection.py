"""The test of every breaker: few false alarms under the null, soon found where scores rise, begun anew after a trip."""

from math import comb

import numpy as np

from htfi.governance.breakers.detection import BETS, detect, excess_ratio, share_evidence

SEED = 20261124


def _first_alarms(chance: float, bound: float, limit: float, num: int, length: int) -> np.ndarray:
    """When each of `num` tests of Bernoulli scores first reached the limit; `length` where none did."""
    rng = np.random.default_rng(SEED)
    wealth, first = np.ones((num, len(BETS))), np.full(num, length)
    for step in range(length):
        scores = (rng.random(num) < chance).astype(np.float64)
        wealth, evidence = detect(wealth, excess_ratio(scores, bound))
        first = np.where((evidence >= limit) & (first == length), step, first)
    return first


def test_false_alarms_come_no_more_often_than_stated():
    """Stated: a mean of 1,000 scores or more to a false alarm. Alarms at scores that are at their bound are memoryless,
    nearly, so at most 1 − exp(−0.25) = 22% of 250 scores raise one. Of 4,000 tests 880 would; the standard error is 26:
    false-alarm rate of this test below 1e-6 with 130 to spare.
    """
    first = _first_alarms(0.1, 0.1, 1_000.0, num=4_000, length=250)
    assert 0 < (first < 250).sum() <= 1_010


def test_mean_time_to_a_false_alarm_is_at_least_the_limit():
    """Times to the first alarm of 2,000 tests at a limit of 50, cut at 1,000 scores, which only shortens them."""
    first = _first_alarms(0.1, 0.1, 50.0, num=2_000, length=1_000)
    assert (first < 1_000).sum() > 1_000
    assert first.mean() + 1 >= 50.0


def test_scores_above_their_bound_are_found_soon():
    """The best of the bets grows by 0.71 nats a score; ln 1e6 and ln 4 for the choice of bet need 21 scores."""
    first = _first_alarms(0.6, 0.1, 1e6, num=500, length=60)
    assert np.median(first) <= 25


def test_what_was_not_observed_is_no_evidence():
    wealth = np.array([[1.0, 2.0, 3.0, 1.5]])
    after, _ = detect(wealth, excess_ratio(np.array([np.nan]), 0.1))
    assert np.array_equal(after, wealth)


def test_wealth_begins_anew_at_one():
    after, evidence = detect(np.full((1, len(BETS)), 1e-9), np.array([-1.0]))
    assert np.allclose(after[0], 1.0 - BETS)
    assert np.allclose(evidence, (1.0 - BETS).mean())


def test_wealth_stays_finite():
    wealth = np.ones((1, len(BETS)))
    for _ in range(400):
        wealth, evidence = detect(wealth, np.array([199.0]))
    assert np.isfinite(wealth).all()
    assert np.isfinite(evidence).all()


def test_mean_of_share_evidence_is_one_where_the_share_is_the_bound():
    """The mean over the binomial distribution, in closed form: no random numbers."""
    for bound in (0.07, 0.3):
        mean = sum(
            comb(20, num) * bound**num * (1.0 - bound) ** (20 - num) * share_evidence(num, 20, bound)
            for num in range(21)
        )
        assert abs(mean - 1.0) < 1e-9


def test_share_of_nothing_is_no_evidence():
    assert share_evidence(0, 0, 0.1) == 1.0
