"""Marks: evidence is fair to texts without them, finds those with them, edited or cut, and none where none can be."""

import math

import numpy as np
import pytest

from gumbel_noise import gumbel
from htfi.decoding import marking
from htfi.decoding.marking import MarkKey, choice_nats, find_mark, seed_evidence, token_odds
from htfi.decoding.noise import noise_keys, token_counters
from htfi.domain.errors import InvalidInput

KEY = MarkKey(bytes(range(32)))
OTHER = MarkKey(bytes(range(1, 33)))
SEEDS = KEY.seeds()
FEW = SEEDS[:8]


def marked(seed: int, num_tokens: int = 60, vocab_size: int = 16, first: int = 0) -> list[int]:
    """What a model without any preference among its tokens writes with this noise."""
    places = np.arange(first, first + num_tokens)
    keys = noise_keys(seed, np.zeros_like(places), places)
    return gumbel(keys, np.arange(vocab_size)).argmax(axis=1).tolist()


def test_seeds_follow_from_the_key_alone():
    assert KEY.seed(7) == 0x0350894E1C4BF771
    assert KEY.seed(7) == KEY.seed(7 + marking.NUM_MARK_SEEDS) == SEEDS[7]
    assert len({*SEEDS, *OTHER.seeds()}) == 2 * marking.NUM_MARK_SEEDS
    assert KEY.id == MarkKey(bytes(range(32))).id != OTHER.id


def test_a_key_does_not_show_its_secret():
    assert KEY.secret.hex() not in repr(KEY)
    assert repr(KEY.secret) not in repr(KEY)


def test_a_key_of_another_length_is_refused():
    with pytest.raises(InvalidInput, match="a marking key has 32 bytes, not 16"):
        MarkKey(bytes(16))


@pytest.mark.parametrize("number", [0, 3, 255])
def test_a_marked_text_is_found_with_its_seed(number: int):
    found = find_mark(marked(SEEDS[number]), SEEDS)
    assert found.place == number
    assert found.p_value < 1e-12


def test_another_key_finds_nothing():
    assert find_mark(marked(SEEDS[3]), OTHER.seeds(), 4).p_value > 0.01


def test_an_excerpt_is_found_wherever_it_began():
    found = find_mark(marked(SEEDS[3], first=200), SEEDS)
    assert found.place == 3
    assert found.p_value < 1e-6


def test_tokens_replaced_left_out_and_put_in_leave_the_rest():
    text = marked(SEEDS[3])
    text[10] = (text[10] + 1) % 16
    edited = [*text[:20], *text[21:35], 5, *text[35:50], *text[52:]]
    found = find_mark(edited, SEEDS)
    assert found.place == 3
    assert 1e-25 < found.p_value < 1e-8
    assert find_mark(text, SEEDS).p_value < found.p_value


def test_tokens_that_were_certain_hold_nothing():
    """A text that does not depend on the noise, as at temperature 0."""
    assert find_mark([5] * 60, FEW, 4).p_value > 0.01
    assert find_mark([5] * 60, FEW, 4, np.ones(60)).p_value > 0.01


def test_known_probabilities_find_what_few_free_tokens_hold():
    """One token of six was free: those that were certain cost nothing where they are known."""
    free = marked(SEEDS[3], 90, 64)
    text = [token if place % 6 == 0 else 99 for place, token in enumerate(free)]
    odds = np.where(np.arange(90) % 6 == 0, 1 / 64, 1.0)
    assert find_mark(text, FEW, 4, odds).nats > find_mark(text, FEW, 4).nats + 5.0
    assert find_mark(text, FEW, 4, odds).p_value < 1e-4


def test_the_mean_likelihood_ratio_of_fair_hashes_is_at_most_one():
    means = marking._RATIOS.mean(axis=1)  # the first bits of a hash are uniform
    assert (means <= 1.0).all()
    assert (means > 0.9).all()  # and hardly less: the table costs little


def test_evidence_is_above_a_level_no_more_often_than_it_says():
    """One text and 20,000 keys: were P(e ≥ 1/a) = a, more than these counts are one chance in 10⁴."""
    text = np.random.Generator(np.random.PCG64(5)).integers(0, 50, 12)
    counters, unknown = token_counters(text), np.stack([np.zeros(12, np.int64), np.ones(12, np.int64)])
    nats = marking._mean_evidence(counters, unknown, range(20_000), 1, 4)
    assert (nats >= math.log(10)).sum() <= 2000 + 3.8 * math.sqrt(1800)
    assert (nats >= math.log(100)).sum() <= 200 + 3.8 * math.sqrt(198)
    assert (nats > 0.0).sum() > 500  # some are, so that the counts say something
    assert 0.25 < np.exp(nats).mean() < 1.2


def test_nothing_to_look_in_is_no_evidence():
    assert find_mark([], SEEDS).p_value == 1.0
    assert find_mark([1, 2], []).p_value == 1.0


def test_capacity_is_the_mean_log_ratio_of_free_tokens():
    odds, capacity = token_odds(np.zeros((3, 10), np.float32), [2, 3, 9], np.arange(8), 1.0)
    assert odds.tolist() == pytest.approx([1 / 8, 1 / 8, 1.0])  # the last is not allowed: somebody else's
    assert capacity == pytest.approx(3 * (math.log(8) - 1 + 1 / 8))


def test_a_sure_model_leaves_no_capacity():
    logits = np.zeros((2, 8), np.float32)
    logits[:, 3] = 60.0
    assert token_odds(logits, [3, 3], np.arange(8), 1.0)[1] == pytest.approx(0.0, abs=1e-9)


def test_choice_is_the_entropy_and_what_of_it_noise_can_show():
    nats, capacity = choice_nats(np.zeros((3, 10), np.float32), np.arange(8), 1.0)
    assert nats == pytest.approx(3 * math.log(8))
    assert capacity == pytest.approx(3 * (math.log(8) - 1 + 1 / 8))
    assert choice_nats(np.zeros((3, 10), np.float32), np.arange(1), 1.0) == (0.0, 0.0)


def test_the_evidence_is_the_mean_over_single_seeds():
    text = marked(FEW[3], 20)
    nats = seed_evidence(text, FEW, 4)
    assert int(nats.argmax()) == 3
    assert find_mark(text, FEW, 4).nats == pytest.approx(np.logaddexp.reduce(nats) - math.log(len(FEW)))
