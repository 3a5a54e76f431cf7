"""Measures what a model's words prove to be worth, on simulated stories. `htfi models calibrate` calls it.

`ConfidenceCalibration` says how far its confidence proves right; `ViewCalibration`, which moves followed its views.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.generation import GenerationRequest, RequestRefused
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import integration_weights
from htfi.narrative.answer import CONFIDENCES, ConfidenceCalibration, parse_answer, to_view, view_grammar
from htfi.narrative.ports import TextGenerator
from htfi.narrative.question import build_prompt, shown_items
from htfi.narrative.view_calibration import ViewCalibration, move_features, width_features
from htfi_train.simulation.corpus import FactSource, question
from htfi_train.simulation.simulated_market import DECAY
from htfi_train.simulation.stories import Story, stories

Array = NDArray[np.float64]

SEED = 1_500_000_000  # neither trained on nor the evaluation's
HORIZONS = (1, 5, 22)
MIN_STORIES = 500  # to measure a meaning by
_MIN_NEUTRAL = 100
_PRIOR_STORIES = 20.0  # stories' worth of the overall share, for steps that are seldom stated
_BATCH = 64
_RIDGE_STORIES = 5.0  # stories' worth of doubt about each coefficient of a meaning
_NUM_STEPS, _MAX_STEP = 400, 0.03


class AnsweredStory(NamedTuple):
    """A story and what the model answered, as fields."""

    story: Story
    fields: dict[str, str]


def answer_stories(
    generator: TextGenerator,
    num_stories: int,
    progress: Callable[[int, int], None],
    facts: FactSource | None = None,
) -> list[AnsweredStory]:
    """What the model says of simulated stories; with `facts` of their items, if given. Raises: InvalidInput where it
    refuses one.
    """
    found: list[AnsweredStory] = []
    source = stories(SEED) if facts is None else facts.of_stories(stories(SEED))
    for done in range(0, num_stories, _BATCH):
        batch = list(islice(source, min(_BATCH, num_stories - done)))
        for story, answer in zip(
            batch, generator.write([_request(story, generator) for story in batch]), strict=True
        ):
            if isinstance(answer, RequestRefused):
                raise InvalidInput(f"{generator.version} refuses a story: {answer.reason}")
            found.append(AnsweredStory(story, answer.fields))
        progress(len(found), num_stories)
    return found


def measure_trust(
    generator: TextGenerator, num_stories: int, progress: Callable[[int, int], None]
) -> ConfidenceCalibration:
    """Trust alone. Raises: InvalidInput where the generator refuses a story."""
    return estimate_trust(answer_stories(generator, num_stories, progress))


def estimate_trust(answered: Sequence[AnsweredStory]) -> ConfidenceCalibration:
    """Share of right directions by what was stated; rising with it, as it must."""
    counts = {is_moving: [[0.0, 0.0] for _ in CONFIDENCES] for is_moving in (False, True)}
    for story, fields in answered:
        direction = parse_answer(fields).direction
        step = counts[direction != 0.0][int(fields["confidence"])]
        step[0] += direction == story.truth.direction
        step[1] += 1.0
    return ConfidenceCalibration(flat=_isotonic_shares(counts[False]), moving=_isotonic_shares(counts[True]))


def estimate_meaning(answered: Sequence[AnsweredStory]) -> ViewCalibration:
    """What the model's views meant. Raises: InvalidInput where there are too few stories."""
    return fit_meaning([one.story for one in answered], [_view(one) for one in answered])


def fit_meaning(batch: Sequence[Story], views: Sequence[NewsView]) -> ViewCalibration:
    """The shifts and stretches that would have had the lowest CRPS on what followed, in sigmas of EWMA volatility.

    They bend quantiles that prices alone would give: those of stories in which nothing came. Raises: InvalidInput
    where there are too few stories.
    """
    outcomes = np.array([_outcomes(story) for story in batch])  # [n, H]
    idle = np.array([story.truth.direction == 0 and story.truth.likeliest == 0 for story in batch])
    if np.count_nonzero(idle) < _MIN_NEUTRAL:
        raise InvalidInput(f"too few stories to measure what views mean: give more than {MIN_STORIES}")
    moved = np.array([move_features(view) for view in views])
    wide = np.array([width_features(view) for view in views])
    shifts: list[tuple[float, ...]] = []
    stretches: list[tuple[float, ...]] = []
    for j, horizon in enumerate(HORIZONS):
        usual = np.concatenate([outcomes[idle, j], -outcomes[idle, j]])
        shape = np.quantile(usual, LEVELS)
        shift, stretch = _fit(moved / math.sqrt(horizon), wide, outcomes[:, j], shape)
        shifts.append(tuple(round(value, 4) for value in shift.tolist()))
        stretches.append(tuple(round(value, 4) for value in stretch.tolist()))
    return ViewCalibration(HORIZONS, tuple(shifts), tuple(stretches))


def _fit(moved: Array, wide: Array, outcome: Array, shape: Array) -> tuple[Array, Array]:
    """Coefficients of shift, at least 0, and log stretch by descent on the mean CRPS (Adam: Kingma and Ba 2015)."""
    levels, cells = np.array(LEVELS), 2.0 * integration_weights(LEVELS)
    num, split = len(outcome), moved.shape[1]
    values = np.zeros(split + wide.shape[1])
    first, second = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, _NUM_STEPS + 1):
        stretch = np.exp(wide @ values[split:])
        quantiles = (moved @ values[:split])[:, None] + stretch[:, None] * shape
        slope = cells * ((outcome[:, None] < quantiles) - levels)  # of the CRPS in each quantile
        grown = wide.T @ ((slope * shape).sum(axis=1) * stretch)
        gradient = (np.concatenate([moved.T @ slope.sum(axis=1), grown]) + _RIDGE_STORIES * values) / num
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * np.square(gradient)
        size = _MAX_STEP * (1.0 - step / _NUM_STEPS)
        values -= size * (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.99**step)) + 1e-8)
        values[:split] = np.maximum(values[:split], 0.0)
    return values[:split], values[split:]


def _outcomes(story: Story) -> list[float]:
    """Returns over HORIZONS in EWMA sigmas of the moment, over √h: the path is given in those of each bar."""
    variance, total = 1.0, 0.0
    found: list[float] = []
    for bar, scaled in enumerate(story.path[: HORIZONS[-1]], 1):
        move = scaled * math.sqrt(variance)
        total += move
        variance = DECAY * variance + (1.0 - DECAY) * move * move
        if bar in HORIZONS:
            found.append(total / math.sqrt(bar))
    return found


def _view(one: AnsweredStory) -> NewsView:
    return to_view(parse_answer(one.fields), question(one.story), NS_PER_DAY, "")


def _request(story: Story, generator: TextGenerator) -> GenerationRequest:
    asked = question(story)
    prompt, shared = build_prompt(asked, generator.dialect)
    return GenerationRequest(prompt, view_grammar(generator.dialect, len(shown_items(asked))), shared=shared)


def _isotonic_shares(counts: list[list[float]]) -> tuple[float, ...]:
    """Shares of right calls, drawn towards the overall one where there are few, pooled until they rise."""
    right, num = (sum(column) for column in zip(*counts, strict=True))
    overall = (right + 1.0) / (num + 2.0)
    blocks: list[list[float]] = []  # right, stated, steps
    for step_right, step_num in counts:
        blocks.append([step_right + _PRIOR_STORIES * overall, step_num + _PRIOR_STORIES, 1.0])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return tuple(round(block[0] / block[1], 3) for block in blocks for _ in range(int(block[2])))
