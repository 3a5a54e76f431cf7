"""Ranking with the shared noise: the first is what is chosen, the next what is chosen once those before are gone."""

import numpy as np
import pytest

from gumbel_noise import gumbel
from htfi.decoding.noise import noise_key, noise_keys
from htfi.decoding.sampling import (
    AllowedTokens,
    RankedTokens,
    SamplingParams,
    SamplingPosition,
    rank_positions,
    rank_tokens,
    sample_tokens,
)
from htfi.decoding.strategies.tree import RankAcceptance

LAWS = [
    SamplingParams(),
    SamplingParams(1.0),
    SamplingParams(0.3),
    SamplingParams(1.0, 5),
    SamplingParams(2.0, 0, 0.6),
    SamplingParams(0.7, 9, 0.8),
]


@pytest.mark.parametrize("law", LAWS)
def test_each_rank_is_chosen_once_those_before_it_are_gone(law: SamplingParams):
    rng = np.random.Generator(np.random.PCG64(3))
    for case in range(60):
        logits = rng.normal(0, 2, (3, 40)).astype(np.float32)
        if case % 3 == 0:
            logits = np.round(logits)  # ties
        ids = np.sort(rng.choice(40, int(rng.integers(1, 40)), replace=False))
        noise = noise_keys(case, np.zeros(3, np.int64), np.arange(3))
        tokens = rank_tokens(logits, AllowedTokens.of(ids), law, noise, 4)
        assert np.array_equal(tokens[:, 0], sample_tokens(logits, AllowedTokens.of(ids), law, noise))
        for row in range(3):
            found = tokens[row][tokens[row] >= 0]
            assert len(set(found.tolist())) == len(found)
            if not law.truncates:
                rest = ids
                for token in found:
                    here = slice(row, row + 1)
                    assert sample_tokens(logits[here], AllowedTokens.of(rest), law, noise[here]) == token
                    rest = rest[rest != token]


def test_gaps_are_differences_of_noisy_scores_in_logits():
    rng = np.random.Generator(np.random.PCG64(4))
    for law in (SamplingParams(), SamplingParams(1.0), SamplingParams(2.5), SamplingParams(1.0, 3)):
        logits = rng.normal(0, 2, 30).astype(np.float32)
        noise = noise_key(9, 0, 5)
        (ranked,) = rank_positions(
            [logits], [SamplingPosition(AllowedTokens.of(np.arange(30)), law, noise)], 3
        )
        noises = gumbel(np.array([noise], np.uint64), np.array(ranked.tokens))[0] * law.temperature
        scores = logits[ranked.tokens].astype(np.float64) + noises
        np.testing.assert_allclose(ranked.gaps, scores[0] - scores, atol=1e-9)
        assert ranked.gaps == sorted(ranked.gaps)


def test_tokens_that_the_law_cuts_off_have_no_rank():
    logits = np.array([[5.0, 4.0, 3.0, 2.0]], np.float32)
    tokens = rank_tokens(
        logits, AllowedTokens.of(np.arange(4)), SamplingParams(1.0, 2), np.array([7], np.uint64), 4
    )
    assert sorted(tokens[0, :2].tolist()) == [0, 1]
    assert tokens[0, 2:].tolist() == [-1, -1]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_not_finite_has_no_ranks_and_harms_no_other(law: SamplingParams, value: float):
    logits = np.zeros((2, 6), np.float32)
    logits[1, 3] = value
    places = [SamplingPosition(AllowedTokens.of(np.arange(6)), law, noise_key(1, 0, at)) for at in range(2)]
    good, bad = rank_positions(list(logits), places, 3)
    assert len(good.tokens) >= 1
    assert bad == RankedTokens([], [])


def test_odds_follow_what_the_target_says_by_rank_and_gap():
    odds = RankAcceptance(2)
    near, far = RankedTokens([4, 5], [0.0, 0.1]), RankedTokens([4, 5], [0.0, 5.0])
    before = odds.of(near)
    for turn in range(400):
        odds.learn(near, 5 if turn % 4 else 4)
        odds.learn(far, 4)
    first, second = odds.of(near)
    assert abs(first - 0.25) < 0.05
    assert abs(second - 0.75) < 0.05
    assert odds.of(far)[0] > 0.97
    assert odds.of(far)[1] < 0.03
    assert before[0] > before[1]
