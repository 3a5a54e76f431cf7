"""Scores of `htfi eval mini` on answers whose scores are known."""

import math

import numpy as np
import pytest

from checks import nonempty
from htfi.decoding.ports import ForwardOutput, NetworkShape
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import ControlToken, PlainText
from htfi.narrative.answer import ParsedAnswer
from htfi.narrative.question import shown_items
from htfi_eval.eval.mini import scores
from htfi_eval.eval.mini.reading import (
    FIELDS,
    HEADLINES,
    LABELS,
    PATH,
    DraftMatches,
    LabelledPassage,
    labels,
    model_losses,
    pooled,
    unigram_losses,
)
from htfi_eval.eval.mini.scores import LEAK_ERRORS, ReaderAnswers, shuffled, unseen_cases
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED


def _said(direction, size=None, confidence=None, **more) -> ReaderAnswers:
    ways = np.array(direction, np.float64)
    return ReaderAnswers(
        ways,
        np.abs(ways) if size is None else np.array(size, np.float64),
        np.full(len(ways), 0.7) if confidence is None else np.array(confidence, np.float64),
        **more,
    )


def test_a_flat_answer_has_no_size():
    flat = ParsedAnswer(0.0, 3.0, 1.5, 0.7, "with", "legal", (0,), "words")
    answers = scores.answers_of([flat, ParsedAnswer(-1.0, 2.0, 1.0, 0.4, "unmoved", "none", (), "")])
    assert answers.size_sigmas.tolist() == [0.0, 2.0]
    assert answers.cited == ((0,), ())


def test_shares_count_what_they_say():
    truth = _said([1, 1, -1, 0, -1, 0])
    reader = _said([1, -1, 0, 0, -1, 1])
    assert scores.right_direction(reader, truth).tolist() == [True, False, False, True, True, False]
    assert scores.sign_where_it_moves(reader, truth).tolist() == [True, False, False, True]
    assert scores.sign_where_called(reader, truth).tolist() == [True, False, True]


def test_mean_states_its_standard_error():
    found = scores.mean([True] * 30 + [False] * 70)
    assert found.value == pytest.approx(0.3)
    assert found.error == pytest.approx(math.sqrt(0.3 * 0.7 / 100))
    assert math.isnan(scores.mean([]).value)


def test_sizes_are_held_by_steps_of_their_scale():
    truth = _said([1, 1, -1, 0], size=[1.0, 1.0, 7.0, 0.0])
    reader = _said([1, -1, -1, 1], size=[1.5, 2.0, 2.9, 4.5])
    assert scores.size_within_a_step(reader, truth).tolist() == [True, False, False]
    assert scores.size_error_sigmas(reader, truth) == pytest.approx([0.5, 1.0, 4.1])
    assert scores.effect_error_sigmas(reader, truth) == pytest.approx([0.5, 3.0, 4.1, 4.5])


def test_citing_wants_the_first_item_or_just_the_set():
    truth = _said([1, 1, 1, 0], cited=((2, 0), (1,), (0,), ()))
    reader = _said([1, 1, 1, 0], cited=((0, 2), (1, 3), (4,), ()))
    assert scores.cites_the_first(reader, truth).tolist() == [True, True, False]
    assert scores.cites_exactly(reader, truth).tolist() == [True, False, False, True]
    assert scores.cites_the_first(_said([1] * 4), truth) is None


def test_calibration_is_zero_where_stated_is_right_and_the_gap_where_not():
    honest = _said([1] * 20, confidence=[0.7] * 20)
    truth = _said([1] * 14 + [0] * 6)
    assert scores.expected_calibration_error(scores.reliability(honest, truth)) == pytest.approx(0.0)
    boastful = _said([1] * 20 + [0] * 5, confidence=[0.95] * 25)  # what is called flat does not count
    truth = _said([1] * 14 + [0] * 6 + [0] * 5)
    bins = scores.reliability(boastful, truth)
    assert [one.num for one in bins] == [0, 0, 0, 0, 0, 0, 20]
    assert scores.expected_calibration_error(bins) == pytest.approx(0.25)
    assert scores.brier(boastful, truth).mean() == pytest.approx(0.7 * 0.05**2 + 0.3 * 0.95**2)


def test_a_leak_is_noticed_and_chance_is_not():
    """False alarms: 3 standard errors, one-sided; with this seed none of 200 readers by chance."""
    rng = np.random.Generator(np.random.PCG64(5))
    truth = _said(rng.choice([-1, 1], 400))
    knows = _said(np.where(rng.random(400) < 0.62, truth.direction, -truth.direction))
    assert scores.leak(knows, None, truth) > LEAK_ERRORS
    chance = [scores.leak(_said(rng.choice([-1, 0, 1], 400)), None, truth) for _ in range(200)]
    assert max(chance) < LEAK_ERRORS
    # what prices and tags give away is no leak
    assert scores.leak(knows, knows, truth) == pytest.approx(0.0)


def test_others_headlines_leave_tags_ages_prices_and_truth():
    cases = unseen_cases(FIRST_EVALUATION_SEED, 40)
    found = shuffled(cases)
    assert len(found) > 30
    for place, case in found:
        own, other = shown_items(cases[place].question), shown_items(case.question)
        assert [(item.symbols, item.available_at_ns, item.id) for item in own] == [
            (item.symbols, item.available_at_ns, item.id) for item in other
        ]
        assert case.question.context == cases[place].question.context
        assert case.truth == cases[place].truth
    changed = [
        mine.headline != other.headline
        for place, case in found
        for mine, other in zip(shown_items(cases[place].question), shown_items(case.question), strict=True)
    ]
    assert np.mean(changed) > 0.97
    words = sorted(item.headline for _, case in found for item in shown_items(case.question))
    assert words == sorted(item.headline for place, _ in found for item in shown_items(cases[place].question))


def test_a_case_whose_number_of_items_is_its_own_is_left_out():
    cases = unseen_cases(FIRST_EVALUATION_SEED, 60)
    by_size = {len(shown_items(case.question)): case for case in cases}
    assert len(by_size) > 2
    assert shuffled(list(by_size.values())) == []


def test_a_seed_that_training_may_use_is_refused():
    with pytest.raises(InvalidInput, match="training may have used it"):
        unseen_cases(FIRST_EVALUATION_SEED - 1, 2)


def test_parts_of_a_passage_are_told_apart():
    cases = unseen_cases(FIRST_EVALUATION_SEED, 30)
    for case in nonempty(cases):
        found = labels(case.passage)
        texts = [
            part.segment.text.strip()
            for part, label in zip(case.passage, found, strict=True)
            if label == HEADLINES and isinstance(part.segment, PlainText)
        ]
        assert texts == [item.headline for item in shown_items(case.question)]
        view = [label for label in found if label in FIELDS]
        assert view[:4] == ["cites", "cites", "cause", "consistency"]
        assert view[-5:] == ["words", "direction", "size", "volatility", "confidence"]
        assert found.count(PATH) == 1
        marks = [part.segment for part in case.passage]
        assert not found[marks.index(ControlToken("view"))]
        assert not found[marks.index(ControlToken("/view"))]


class _Table:
    """A network whose logits depend on the last token alone; wrong positions or padding would show."""

    def __init__(self, size: int) -> None:
        self.shape = NetworkShape(1, 1, 2, size, 64)
        self.digest = "0" * 64
        self.logits = np.random.Generator(np.random.PCG64(3)).standard_normal((size, size)).astype(np.float32)

    def forward(self, ids, positions, mask, keys, values):
        none = np.zeros((1, len(ids), 1, ids.shape[1], 2), np.float32)
        return ForwardOutput(self.logits[ids], none, none)


def test_perplexity_is_that_of_each_token_after_the_one_before():
    network = _Table(9)
    passages = [
        LabelledPassage(np.array([1, 4, 2, 7]), np.array([-1, 0, 0, -1])),
        LabelledPassage(np.array([3, 3, 5, 0, 8, 2]), np.array([-1, -1, LABELS.index(PATH), 0, -1, 0])),
    ]
    chances = np.exp(network.logits.astype(np.float64))
    chances /= chances.sum(axis=1, keepdims=True)
    expected = -np.log([chances[1, 4], chances[4, 2], chances[5, 0], chances[8, 2]])
    told = []
    losses = model_losses(network, passages, lambda done, num: told.append((done, num)))
    assert losses.perplexity(HEADLINES)[0] == pytest.approx(math.exp(expected.mean()))
    assert losses.perplexity(PATH)[0] == pytest.approx(1 / chances[3, 5])
    assert losses.perplexity(HEADLINES, PATH)[1] > 0.0
    assert told == [(2, 2)]


def test_a_unigram_expects_what_it_has_seen_in_the_same_part():
    known = [LabelledPassage(np.array([1, 1, 1, 2]), np.array([0, 0, 0, LABELS.index(PATH)]))]
    asked = [LabelledPassage(np.array([1, 2]), np.array([0, 0]))]
    losses = unigram_losses(known, asked, 4)
    assert losses.nats.sum() == pytest.approx(-math.log(3.5 / 5) - math.log(0.5 / 5))


def test_match_rates_are_pooled_over_fields_by_group():
    matches = {"size": DraftMatches([1, 0], [1, 1]), "words": DraftMatches([4, 3], [4, 4])}
    share, error = pooled(matches).rate()
    assert share == pytest.approx(8 / 10)
    assert error == pytest.approx(math.sqrt(2) / 10)
    assert math.isnan(DraftMatches([], []).rate()[0])
