"""Costs of passes: what is learnt from noisy ones, and what is said of those never made."""

import math

import numpy as np
import pytest

from htfi.decoding.draft_length.pass_costs import (
    DRAFT_PRIOR,
    TARGET_PRIOR,
    LearnedPassCosts,
    NominalPassCosts,
    PassCostPlane,
)
from htfi.domain.errors import InvalidInput

HEAVY = PassCostPlane(11.7, 0.27, 0.0, 1.0)
SIZES = [(rows, tokens) for rows in (1, 2, 3, 5, 8, 16, 40, 100) for tokens in (1, 2, 3, 5, 7, 9, 17, 25)]


def taught(truth, sizes, num, seed=3, noise=0.2, **options):
    rng = np.random.default_rng(seed)
    costs = LearnedPassCosts(**options)
    for at in range(num):
        rows, tokens = sizes[at % len(sizes)]
        slow = 8.0 if rng.random() < 0.04 else 1.0
        costs.learn(rows, tokens, truth(rows, tokens) * slow * math.exp(noise * rng.normal()))
    return costs


def test_the_prior_tells_the_shipped_pair_within_a_third_of_what_was_measured():
    measured = {
        (1, 1): 0.43,
        (1, 4): 0.54,
        (1, 8): 0.78,
        (1, 16): 1.23,
        (16, 1): 2.4,
        (16, 8): 8.8,
        (100, 8): 55.0,
    }
    costs = LearnedPassCosts()
    for (rows, tokens), ms in measured.items():
        assert costs.estimate(rows, tokens) == pytest.approx(ms, rel=0.33)
        assert costs.estimate(rows, tokens) == pytest.approx(TARGET_PRIOR.ms(rows, tokens))


def test_noisy_passes_are_learnt_against_each_other_and_those_in_between_as_well():
    made = [(1, 1), (1, 5), (1, 9), (16, 1), (16, 9)]
    for seed in range(3):
        costs = taught(HEAVY.ms, made, 600, seed)
        pace = costs.estimate(1, 1) / HEAVY.ms(
            1, 1
        )  # of the last few passes, which is noisy; plans are ratios
        assert pace == pytest.approx(1.0, rel=0.2)
        for size in made:
            assert costs.estimate(*size) == pytest.approx(pace * HEAVY.ms(*size), rel=0.15)
        for size in [(1, 3), (1, 7), (4, 4), (8, 8), (16, 5), (32, 12)]:
            assert costs.estimate(*size) == pytest.approx(pace * HEAVY.ms(*size), rel=0.2)


def test_one_size_tells_the_pace_of_all():
    costs = taught(HEAVY.ms, [(1, 9)], 30)
    assert costs.estimate(1, 1) > 5 * TARGET_PRIOR.ms(1, 1)


def test_estimates_never_fall_with_rows_or_tokens():
    rng = np.random.default_rng(5)
    costs = LearnedPassCosts()
    for _ in range(300):  # times without any sense in them
        costs.learn(int(rng.integers(1, 100)), int(rng.integers(1, 40)), float(rng.lognormal(0, 1)))
    table = np.array([[costs.estimate(rows, tokens) for tokens in range(1, 60)] for rows in range(1, 140)])
    assert (np.diff(table, axis=0) >= -1e-12).all()
    assert (np.diff(table, axis=1) >= -1e-12).all()
    assert (table > 0).all()


def test_a_step_in_the_kernel_is_found():
    def stair(rows, tokens):
        return 1.0 if tokens <= 8 else 3.0

    costs = taught(stair, [(1, 1), (1, 4), (1, 8), (1, 10), (1, 12)], 400, noise=0.05)
    assert costs.estimate(1, 8) < 1.5 < 2.2 < costs.estimate(1, 10)


def test_a_machine_that_slows_down_slows_what_was_not_done_lately_as_well():
    costs = taught(HEAVY.ms, [(1, 1), (1, 5)], 200, noise=0.05)
    before = costs.estimate(1, 1)
    for _ in range(600):
        costs.learn(1, 5, 2.0 * HEAVY.ms(1, 5))
    assert costs.estimate(1, 5) == pytest.approx(2.0 * HEAVY.ms(1, 5), rel=0.1)
    assert costs.estimate(1, 1) == pytest.approx(2.0 * before, rel=0.15)


def test_a_low_quantile_is_deaf_to_the_reading_of_a_prompt_in_every_other_round():
    costs = LearnedPassCosts(DRAFT_PRIOR)
    for at in range(200):
        costs.learn(1, 4, 13.0 if at % 2 else 0.4)
    assert costs.estimate(1, 4) == pytest.approx(0.4, rel=0.15)
    assert costs.estimate(1, 8) < 1.2


def test_a_first_pass_that_had_to_load_does_not_stand_for_its_size():
    costs = LearnedPassCosts()
    costs.learn(1, 5, 80.0)
    for _ in range(20):
        costs.learn(1, 1, 0.6)
    assert costs.estimate(1, 1) == pytest.approx(0.6, rel=0.3)
    assert costs.estimate(1, 5) < 2.5


def test_nonsense_is_not_learnt():
    costs = LearnedPassCosts()
    for ms in (math.nan, math.inf, -1.0):
        costs.learn(1, 1, ms)
    costs.learn(0, 4, 1.0)
    costs.learn(1, 0, 1.0)
    assert costs.estimate(1, 1) == TARGET_PRIOR.ms(1, 1)
    assert costs.estimate(0, 1) == costs.estimate(1, 0) == 0.0


def test_nominal_costs_stay_what_was_configured():
    costs = NominalPassCosts(HEAVY)
    costs.learn(1, 1, 1000.0)
    assert costs.estimate(1, 8) == HEAVY.ms(1, 8)
    assert costs.estimate(4, 0) == 0.0


def test_a_quantile_out_of_range_is_refused():
    with pytest.raises(InvalidInput, match="quantile"):
        LearnedPassCosts(quantile=1.0)


@pytest.mark.parametrize(
    "plane",
    [PassCostPlane(-1.0, 1.0, 1.0, 1.0), PassCostPlane(0.0, 0.0, 0.0, 0.0), PassCostPlane(math.nan, 1, 1, 1)],
)
def test_costs_that_cannot_be_are_refused(plane):
    with pytest.raises(InvalidInput, match="decoding costs"):
        NominalPassCosts(plane)
