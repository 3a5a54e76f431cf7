"""The rejection rule at one place: laws are those that `choose` draws from, and each verdict is the formula's own."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from checks import nonempty
from chi_square import fit
from gumbel_noise import gumbel
from htfi.decoding.noise import noise_keys
from htfi.decoding.rules.rejection import (
    ACCEPT_STREAMS,
    DRAFT_STREAMS,
    RESAMPLE_STREAMS,
    ROOT,
    EntropyAwareRule,
    RejectionRule,
    SiblingSet,
    accept_tree,
    acceptance_uniforms,
    entropy_nats,
    residual_distribution,
    sample_without_replacement,
    token_probabilities,
    verify_siblings,
    without_accepted,
    without_token,
)
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens
from htfi.domain.errors import IntegrityError, InvalidInput

ADMITTED = AllowedTokens.of(np.array([1, 2, 4, 5, 7], np.int64))
LOGITS = np.array([[9.0, 0.3, 1.4, 9.0, -0.6, 0.9, 9.0, 1.1]], np.float32)
ALL = AllowedTokens.of(np.arange(3, dtype=np.int64))
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])


def row_keys(num: int, stream: int = 0, seed: int = 5) -> np.ndarray:
    return noise_keys(seed, np.full(num, stream), np.arange(num))


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(1.0),
        SamplingParams(0.5),
        SamplingParams(2.0, top_k=3),
        SamplingParams(1.0, 0, 0.7),
        SamplingParams(1.5, 4, 0.8),
    ],
)
def test_laws_are_those_that_choose_draws_from(sampling: SamplingParams):
    """False-alarm rate 1e-5 a case, five cases; the seed was fixed beforehand."""
    (law,) = token_probabilities(LOGITS, ADMITTED, sampling)
    rows = np.broadcast_to(LOGITS, (20_000, 8))
    tokens = sample_tokens(rows, ADMITTED, sampling, row_keys(20_000))
    counts = [int((tokens == token).sum()) for token in ADMITTED.ids]
    assert fit(counts, law).p_value > 1e-5


def test_laws_at_temperature_0_are_certain_and_take_the_lowest_of_equals():
    logits = np.array([[0.0, 2.0, 5.0, 0.0, 5.0, 1.0, 0.0, 0.0]], np.float32)
    assert token_probabilities(logits, ADMITTED, SamplingParams(0.0)).tolist() == [[0.0, 1.0, 0.0, 0.0, 0.0]]


def test_a_logit_that_is_not_finite_makes_its_own_law_not_a_number():
    logits = np.repeat(LOGITS, 3, axis=0)
    logits[1, 4] = np.nan
    for sampling in (SamplingParams(0.0), SamplingParams(1.0), SamplingParams(1.0, 2, 0.9)):
        assert np.isnan(token_probabilities(logits, ADMITTED, sampling)).all(axis=1).tolist() == [
            False,
            True,
            False,
        ]
    logits[1, 4] = -np.inf
    assert token_probabilities(logits, ADMITTED, SamplingParams(1.0))[1, 2] == 0.0


def test_extreme_logits_give_laws_that_sum_to_1_without_a_warning():
    logits = np.array([[0.0, 3e38, -3e38, 0.0, 3e38, 0.0, 0.0, 0.0]], np.float32)
    (law,) = token_probabilities(logits, ADMITTED, SamplingParams(0.001))
    assert law.tolist() == [0.5, 0.0, 0.5, 0.0, 0.0]


def test_several_are_drawn_without_replacement_one_after_the_other():
    """False-alarm rate 1e-5."""
    counts = np.zeros((3, 3))
    for row_key in row_keys(6000):
        first, second = sample_without_replacement(Q, ALL, row_key[None], 2)
        counts[first, second] += 1
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    law = [Q[a] * Q[b] / (1 - Q[a]) for a, b in pairs]
    assert fit([int(counts[a, b]) for a, b in pairs], law).p_value > 1e-5


def test_those_drawn_are_the_greatest_sums_of_log_weight_and_noise():
    rng = np.random.Generator(np.random.PCG64(8))
    wide = AllowedTokens.of(np.arange(700, dtype=np.int64))
    for row_key in nonempty(row_keys(300)):
        weights = rng.random(700) ** 8 * (rng.random(700) < 0.8)
        with np.errstate(divide="ignore"):
            scores = np.log(weights) + gumbel(row_key[None], wide.ids)[0]
        for num in (1, 3, 20):
            assert (
                sample_without_replacement(weights, wide, row_key[None], num)
                == np.argsort(-scores)[:num].tolist()
            )


def test_no_more_are_drawn_than_have_a_probability():
    assert sorted(sample_without_replacement(np.array([0.5, 0.0, 0.5]), ALL, row_keys(1), 9)) == [0, 2]


def test_coins_are_fair_and_apart_for_each_token():
    """Kolmogorov and Smirnov; false-alarm rate 1e-6."""
    values = np.array([acceptance_uniforms(row_key[None], ALL, [0, 1, 2]) for row_key in row_keys(2000)])
    for column in values.T:
        ranks = np.arange(1, 2001) / 2000
        assert np.abs(np.sort(column) - ranks).max() * np.sqrt(2000) < 2.69
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.12


def test_a_token_that_the_target_likes_more_is_always_accepted_and_one_it_forbids_never():
    assert verify_siblings(P, Q, [0], [0.999]).taken == 0
    assert verify_siblings(np.array([0.0, 0.5, 0.5]), Q, [0], [1e-12]).taken == -1
    assert verify_siblings(P, Q, [1], [0.59]).taken == 0
    assert verify_siblings(P, Q, [1], [0.61]).taken == -1


def test_after_rejections_the_rest_of_the_target_is_left():
    np.testing.assert_allclose(residual_distribution(P, Q), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(verify_siblings(P, Q, [1], [0.99]).left, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(without_token(Q, 0), [0.0, 0.625, 0.375])
    p, q = np.array([0.1, 0.4, 0.5]), np.array([0.6, 0.2, 0.2])
    # the second sibling comes from q without the first and is compared with what is left of p
    left = np.array([0.0, 0.4, 0.6])
    assert verify_siblings(p, q, [0, 1], [0.99, 0.79]).taken == 1
    again = verify_siblings(p, q, [0, 1], [0.99, 0.81])
    assert again.taken == -1
    np.testing.assert_allclose(again.left, residual_distribution(left, without_token(q, 0)))


def test_equal_laws_leave_the_target_itself():
    assert residual_distribution(P, P).tolist() == P.tolist()


def test_certain_siblings_stand_with_the_probability_of_the_target():
    assert verify_siblings(P, None, [2], [0.19]).taken == 0
    refused = verify_siblings(P, None, [2], [0.21])
    np.testing.assert_allclose(refused.left, [0.625, 0.375, 0.0])
    assert verify_siblings(P, None, [2, 1], [0.21, 0.37]).taken == 1
    assert verify_siblings(P, None, [2, 1], [0.21, 0.38]).taken == -1


def test_a_token_that_its_law_never_gives_is_an_error():
    with pytest.raises(IntegrityError, match="distribution"):
        verify_siblings(P, np.array([0.5, 0.5, 0.0]), [2], [0.5])
    with pytest.raises(IntegrityError, match="distribution"):
        verify_siblings(P, np.array([1.0, 0.0, 0.0]), [0, 1], [0.9, 0.9])


def accept_chain(
    drafted: Sequence[int],
    draft: np.ndarray,
    target: np.ndarray,
    flips: Sequence[float],
    redraw: Callable[[int, np.ndarray], int],
) -> tuple[int, int]:
    """`accept_tree` for a chain: how many of K drafted tokens are accepted, and the token after them.

    Shapes: draft [K, C], the distributions sampled from; target [K+1, C], after the accepted text and after each
    drafted token; flips [K]. `redraw(k, weights)` samples the token after k accepted ones.
    """

    def look(node: int) -> SiblingSet:
        after = node + 1
        if after == len(drafted):
            return SiblingSet((), (), (), target[after], None)
        return SiblingSet((after,), (drafted[after],), (flips[after],), target[after], draft[after])

    path, place = accept_tree(look, lambda node, weights: redraw(node + 1, weights))
    return len(path), place


def test_a_chain_gives_the_bonus_after_all_and_the_rest_of_the_target_before():
    target = np.array([P, [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]])
    draft = np.array([Q, Q])
    asked: list[tuple[int, list[float]]] = []

    def redraw(after: int, weights: np.ndarray) -> int:
        asked.append((after, weights.tolist()))
        return int(weights.argmax())

    assert accept_chain([0, 2], draft, target, [0.9, 0.9], redraw) == (2, 1)
    assert accept_chain([0, 1], draft, target, [0.9, 0.9], redraw) == (1, 2)
    assert accept_chain([1, 2], draft, target, [0.9, 0.9], redraw) == (0, 0)
    assert accept_chain([], draft[:0], target[:1], [], redraw) == (0, 0)
    assert [after for after, _ in asked] == [2, 1, 0, 0]
    assert asked[0][1] == [0.0, 1.0, 0.0]


def test_entropy_aware_redraws_without_the_token_only_where_both_are_unsure_alike():
    rule = EntropyAwareRule(threshold_nats=0.5, top_n=2, overlap=1.0)
    flat, tilted, sharp = (
        np.array([0.4, 0.35, 0.25]),
        np.array([0.45, 0.3, 0.25]),
        np.array([0.98, 0.01, 0.01]),
    )
    assert rule.resamples(flat, tilted)
    assert not rule.resamples(flat, sharp)
    assert not rule.resamples(sharp, flat)
    assert not rule.resamples(flat, flat[::-1])
    assert without_accepted(flat, 0).tolist() == [0.0, 0.35, 0.25]
    assert without_accepted(np.array([0.0, 1.0]), 1).tolist() == [0.0, 1.0]
    assert entropy_nats(np.array([0.0, 1.0])) == 0.0
    assert entropy_nats(np.full(4, 0.25)) == pytest.approx(np.log(4))
    fork = SiblingSet([0], [0], [0.01], flat, tilted)
    looks = {-1: fork, 0: None}
    assert accept_tree(looks.__getitem__, lambda _, weights: int(weights.argmax())) == ([0], -1)
    assert accept_tree(looks.__getitem__, lambda _, weights: int(weights.argmax()), rule) == ([], 1)


@pytest.mark.parametrize(("field", "value"), [("threshold_nats", -1.0), ("top_n", 0), ("overlap", 1.5)])
def test_entropy_aware_refuses_settings_out_of_range(field: str, value: float):
    with pytest.raises(InvalidInput, match=field):
        EntropyAwareRule(**{field: value})  # type: ignore[arg-type]


def test_the_published_thresholds_are_the_defaults_and_the_ends_of_each_range_are_allowed():
    rule = EntropyAwareRule()
    assert (rule.threshold_nats, rule.top_n, rule.overlap) == (2.0, 10, 0.8)
    for overlap in (0.0, 1.0):
        assert EntropyAwareRule(0.0, 1, overlap).overlap == overlap


def test_entropy_at_the_threshold_is_not_above_it():
    even = np.full(4, 0.25)
    at = entropy_nats(even)
    assert at == pytest.approx(np.log(4.0))
    assert not EntropyAwareRule(threshold_nats=at).resamples(even, even)
    assert EntropyAwareRule(threshold_nats=np.nextafter(at, 0.0)).resamples(even, even)


def test_recorded_readings_depend_on_the_numbers_of_the_noise_streams():
    assert (DRAFT_STREAMS, ACCEPT_STREAMS, RESAMPLE_STREAMS) == (2**32, 2 * 2**32, 3 * 2**32)
    assert ROOT == -1


def test_a_rule_is_found_again_by_its_record_and_no_other_is():
    plain, aware = RejectionRule(widths=(2, 1)), RejectionRule(EntropyAwareRule(1.5, 4, 0.5), (3,))
    for rule in (plain, aware):
        assert RejectionRule.from_trace(rule.trace) == rule
    assert plain.trace.name != aware.trace.name
    with pytest.raises(IntegrityError, match="not known to this program"):
        RejectionRule.from_trace(replace(plain.trace, name="other"))
    with pytest.raises(IntegrityError, match="not possible"):
        RejectionRule.from_trace(replace(aware.trace, overlap=1.5))
