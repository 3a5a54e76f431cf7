"""What the mini model expects after reading the news, as quantiles."""

from itertools import islice

import numpy as np
import pytest
from msgspec.structs import replace

from conditioned_quantiles import conditioned_quantiles
from htfi import models
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import LEVELS
from htfi.narrative.question import Question
from htfi.wiring.models.loading import open_model
from htfi_train.simulation.corpus import question
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, stories


@pytest.fixture(scope="module")
def author() -> LocalGenerator:
    return open_model(models.DRAFT, "int8").plain_generator(DecodingConfig())


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return [question(story) for story in islice(stories(FIRST_EVALUATION_SEED + 9), 3)]


def test_each_question_gets_rising_finite_quantiles_in_its_own_units(
    author: LocalGenerator, questions: list[Question]
) -> None:
    small = conditioned_quantiles(author, questions, [0.01] * 3, (1, 4), LEVELS, num_views=2, num_paths=8)
    assert small.shape == (3, 2, 13)
    assert (np.diff(small, axis=2) >= 0).all()
    large = conditioned_quantiles(
        author, questions, [0.01, 0.01, 0.04], (1, 4), LEVELS, num_views=2, num_paths=8
    )
    assert (large[:2] == small[:2]).all()
    assert np.allclose(large[2], 4.0 * small[2])


def test_news_change_the_law_and_other_questions_do_not(
    author: LocalGenerator, questions: list[Question]
) -> None:
    plain = replace(questions[0], items=())
    read, alone = (
        conditioned_quantiles(author, [one], [0.01], (1,), LEVELS, num_views=3, num_paths=3)
        for one in (questions[0], plain)
    )
    assert (read != alone).any()
    beside = conditioned_quantiles(
        author, [plain, questions[1]], [0.01, 0.02], (1,), LEVELS, num_views=3, num_paths=3
    )
    assert (beside[0] == alone[0]).all()


def test_without_views_paths_follow_the_question_at_once(
    author: LocalGenerator, questions: list[Question]
) -> None:
    said = conditioned_quantiles(author, questions, [0.01] * 3, (1,), LEVELS, num_views=0, num_paths=1)
    assert np.isfinite(said).all()


def test_no_question_gives_no_row(author: LocalGenerator) -> None:
    assert conditioned_quantiles(author, [], [], (1,), LEVELS).shape == (0, 1, 13)


@pytest.mark.parametrize("horizons", [(), (5, 1), (0, 1), (1, 1)])
def test_horizons_that_do_not_rise_are_refused(author: LocalGenerator, horizons: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="horizons"):
        conditioned_quantiles(author, [], [], horizons, LEVELS)


def test_a_volatility_too_few_is_refused(author: LocalGenerator, questions: list[Question]) -> None:
    with pytest.raises(InvalidInput, match="a volatility for each question"):
        conditioned_quantiles(author, questions, [0.01], (1,), LEVELS)
