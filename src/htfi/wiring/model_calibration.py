"""Measures how far a model's confidence proves right, on simulated stories. `htfi models calibrate` calls it."""

from collections.abc import Callable
from itertools import islice

from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Refusal, Request
from htfi.narrative.answer import CONFIDENCES, Trust, understand, view_form
from htfi.narrative.ports import Author
from htfi.narrative.question import put, shown
from htfi.simulation.corpus import question
from htfi.simulation.stories import Story, stories

SEED = 1_500_000_000  # neither trained on nor the evaluation's
_PRIOR = 20.0  # stories' worth of the overall share, for steps that are seldom stated
_BATCH = 64


def measure_trust(author: Author, num_stories: int, progress: Callable[[int, int], None]) -> Trust:
    """Share of right directions by what was stated, over simulated stories; rising with it, as it must.

    Raises: InvalidInput where the author refuses a story.
    """
    counts = {is_moving: [[0.0, 0.0] for _ in CONFIDENCES] for is_moving in (False, True)}
    source = stories(SEED)
    for done in range(0, num_stories, _BATCH):
        told = list(islice(source, min(_BATCH, num_stories - done)))
        answers = author.write([_request(story, author) for story in told])
        for story, answer in zip(told, answers, strict=True):
            if isinstance(answer, Refusal):
                raise InvalidInput(f"{author.version} refuses a story: {answer.reason}")
            direction = understand(answer.fields).direction
            step = counts[direction != 0.0][int(answer.fields["confidence"])]
            step[0] += direction == story.truth.direction
            step[1] += 1.0
        progress(done + len(told), num_stories)
    return Trust(flat=_shares(counts[False]), moving=_shares(counts[True]))


def _request(story: Story, author: Author) -> Request:
    asked = question(story)
    prompt, shared = put(asked, author.dialect)
    return Request(prompt, view_form(author.dialect, len(shown(asked))), shared=shared)


def _shares(counts: list[list[float]]) -> tuple[float, ...]:
    """Shares of right calls, drawn towards the overall one where there are few, pooled until they rise."""
    right, num = (sum(column) for column in zip(*counts, strict=True))
    overall = (right + 1.0) / (num + 2.0)
    blocks: list[list[float]] = []  # right, stated, steps
    for step_right, step_num in counts:
        blocks.append([step_right + _PRIOR * overall, step_num + _PRIOR, 1.0])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return tuple(round(block[0] / block[1], 3) for block in blocks for _ in range(int(block[2])))
