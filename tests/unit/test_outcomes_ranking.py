"""Ranking what a target may say, learning how often each rank comes true, and fitting the fan-out to the time."""

import numpy as np
import pytest

from checks import nonempty
from gumbel_noise import gumbel
from htfi.decoding.noise import noise_key
from htfi.decoding.sampling import AllowedTokens, SamplingParams, SamplingPosition, sample_positions
from htfi.decoding.strategies.outcomes.ranking import (
    DraftPassTimes,
    RankRates,
    choose_fan_out,
    outcome_chances,
    rank_outcomes,
)

NUM_TOKENS = 300
ADMITTED = AllowedTokens.of(np.arange(0, NUM_TOKENS, 2))


def _places(num: int, sampling: SamplingParams) -> list[SamplingPosition]:
    return [SamplingPosition(ADMITTED, sampling, noise_key(3, 0, at)) for at in range(num)]


def _logits(num: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.PCG64(seed))
    return list(rng.standard_normal((num, NUM_TOKENS)).astype(np.float32))


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_the_first_ranked_with_the_noise_is_nearly_always_what_is_chosen(temperature):
    logits, places = _logits(400), _places(400, SamplingParams(temperature))
    firsts = [tokens[0] for tokens in rank_outcomes(logits, places, 4, by_noise=True)]
    same = np.mean(np.array(firsts) == np.array(sample_positions(logits, places)))
    assert same >= 0.97  # the table of bounds may turn a near-tie


def test_ranks_follow_score_and_noise():
    logits, places = _logits(20), _places(20, SamplingParams(1.0))
    exact = [
        ADMITTED.ids[
            np.argsort(-(row[ADMITTED.ids] + gumbel(np.array([place.key], np.uint64), ADMITTED.ids)[0]))[:5]
        ].tolist()
        for row, place in zip(logits, places, strict=True)
    ]
    found = rank_outcomes(logits, places, 5, by_noise=True)
    assert sum(mine == true for mine, true in zip(found, exact, strict=True)) >= 18


def test_without_the_noise_ranks_follow_the_score_alone_and_stay_within_what_is_admitted():
    logits = _logits(10)
    found = rank_outcomes(logits, _places(10, SamplingParams(1.0)), 3, by_noise=False)
    for row, tokens in nonempty(zip(logits, found, strict=True)):
        assert tokens == ADMITTED.ids[np.argsort(-row[ADMITTED.ids])[:3]].tolist()


def test_tokens_that_truncation_drops_and_logits_that_are_not_finite_are_not_ranked():
    (tokens,) = rank_outcomes(_logits(1), _places(1, SamplingParams(1.0, top_k=2)), 5, by_noise=True)
    assert len(tokens) == 2
    (none,) = rank_outcomes(
        [np.full(NUM_TOKENS, np.nan, np.float32)], _places(1, SamplingParams(1.0)), 5, by_noise=True
    )
    assert none == []


def test_fewer_tokens_than_ranks_are_all_ranked():
    few = AllowedTokens.of(np.array([4, 9]))
    (tokens,) = rank_outcomes(_logits(1), [SamplingPosition(few, SamplingParams(1.0), 5)], 9, by_noise=True)
    assert sorted(tokens) == [4, 9]


def test_rates_follow_what_comes_true():
    rates = RankRates.refused("noise")
    for _ in range(2_000):
        rates.learn(2)
    rates.learn(-1)
    assert rates.rates[2] > 0.9
    assert sum(rates.rates) <= 1.0 + 1e-9


def test_costs_of_passes_are_learnt():
    times = DraftPassTimes()
    for _ in range(300):
        for num in (1, 4, 9):
            times.learn(num, 0.05 + 0.01 * num)
    assert times.one_ms == pytest.approx(0.06, rel=0.01)
    assert times.estimate(20) == pytest.approx(0.25, rel=0.01)


def test_chances_of_outcomes_sum_to_one_where_every_rank_is_counted():
    chances = outcome_chances([1.0, 0.9, 0.7], [0.6, 0.4], [0.5, 0.3, 0.2])
    assert [len(row) for row in chances] == [2, 2, 3]
    assert chances[1][0] == pytest.approx(0.2 * 0.6)
    assert sum(map(sum, chances)) == pytest.approx(1.0)


def test_the_likeliest_outcome_goes_alone_and_those_about_as_likely_side_by_side():
    times = DraftPassTimes(0.15, 0.015)
    assert choose_fan_out([0.8, 0.02, 0.02], times, max_ms=10.0) == 1
    assert choose_fan_out([0.8, 0.3, 0.02], times, max_ms=10.0) == 2
    assert choose_fan_out([0.02] * 30, times, max_ms=10.0) == 30
    assert choose_fan_out([0.02] * 30, times, max_ms=0.3) == 11
    assert choose_fan_out([0.02] * 30, times, max_ms=0.0) == 1
    assert choose_fan_out([], times, max_ms=1.0) == 0


def test_a_fan_out_serves_most_chance_per_ms():
    rng = np.random.Generator(np.random.PCG64(4))
    times = DraftPassTimes(0.05, 0.02)
    for _ in range(50):
        chances = sorted(rng.random(12).tolist(), reverse=True)
        rates = [sum(chances[:num]) / times.estimate(num) for num in range(1, 13)]
        assert choose_fan_out(chances, times, max_ms=99.0) == int(np.argmax(rates)) + 1


def test_of_a_large_vocabulary_the_likeliest_are_ranked_and_the_chosen_is_nearly_always_first():
    rng = np.random.Generator(np.random.PCG64(2))
    logits = list((4.0 * rng.standard_normal((200, 5_000))).astype(np.float32))
    large = AllowedTokens.of(np.arange(3, 5_000))
    places = [SamplingPosition(large, SamplingParams(1.0), noise_key(8, 0, at)) for at in range(200)]
    found = rank_outcomes(logits, places, 4, by_noise=True)
    chosen = sample_positions(logits, places)
    assert all(len(tokens) == 4 for tokens in found)
    assert np.mean([tokens[0] == token for tokens, token in zip(found, chosen, strict=True)]) >= 0.95
