"""Simulated questions that guard a draft against forgetting: stories to learn from, and others to be judged on."""

from collections.abc import Iterator
from itertools import count, islice

from htfi.decoding.author import LocalAuthor
from htfi.decoding.paths.sample import sample_paths
from htfi.decoding.replay_buffer import Drawn, Exchange, Said
from htfi.decoding.sampling import Sampling
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Writing
from htfi.narrative.answer import view_form
from htfi.narrative.question import put, shown
from htfi.simulation.corpus import question
from htfi.simulation.stories import FIRST_EVALUATION_SEED, world_stories

JUDGING_SEED = FIRST_EVALUATION_SEED + 600_000_000  # no training's, nor the evaluation's or the calibration's

_STORIES_A_WORLD = 5  # of some twenty, so that questions differ
_BATCH = 16
_LAW = Sampling(temperature=1.0)


def simulated_requests(seed: int, dialect: Dialect, temperature: float = 1.0) -> Iterator[Request]:
    """Questions of many worlds as a reader would put them, endless. Their own seeds count on from 0."""
    number = 0
    for world in count():
        for story in world_stories(seed, world)[:_STORIES_A_WORLD]:
            asked = question(story)
            prompt, shared = put(asked, dialect)
            form = view_form(dialect, len(shown(asked)))
            yield Request(prompt, form, number, temperature, shared=shared, kind="rehearsal")
            number += 1


def answered(
    target: LocalAuthor, requests: Iterator[Request], tokenizer: str, num_paths: int = 0, horizon: int = 24
) -> Iterator[Exchange]:
    """What the target says to each request, each followed by `num_paths` paths after its answer, if any.

    Raises: InvalidInput where it refuses.
    """
    while batch := list(islice(requests, _BATCH)):
        for request, answer in zip(batch, target.write(batch), strict=True):
            asked = target.ask(request)
            if isinstance(answer, Refusal) or isinstance(asked, Refusal):
                reason = answer.reason if isinstance(answer, Refusal) else "it cannot be asked"
                raise InvalidInput(f"{target.version} refuses a simulated story: {reason}")
            yield Said(request, answer.tokens, target.version, tokenizer)
            if num_paths:
                yield _drawn(
                    target, request, asked.prompt, asked.num_shared, answer, tokenizer, num_paths, horizon
                )


def _drawn(
    target: LocalAuthor,
    request: Request,
    prompt: list[int],
    num_shared: int,
    answer: Writing,
    tokenizer: str,
    num_paths: int,
    horizon: int,
) -> Drawn:
    prefix = (*prompt, *answer.tokens, target.vocabulary.mark("path"))
    drawn = sample_paths(
        target.sessions, target.vocabulary, prefix, num_paths, horizon,
        seed=request.seed, sampling=_LAW, shared=num_shared,
    )  # fmt: skip
    if isinstance(drawn, Refusal):
        raise InvalidInput(f"{target.version} refuses to draw paths: {drawn.reason}")
    rows = tuple(tuple(row) for row in drawn.bins.tolist())
    return Drawn(prefix, rows, request.seed, _LAW, num_shared, target.version, tokenizer)
