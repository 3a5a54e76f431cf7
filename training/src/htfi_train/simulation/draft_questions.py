"""Simulated questions that guard a draft against forgetting: stories to learn from, and others to be judged on."""

from collections.abc import Iterator
from itertools import count, islice

from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.replay_buffer import RecordedAnswer, RecordedPaths, ReplayRecord
from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, PromptDialect, RequestRefused
from htfi.narrative.answer import view_grammar
from htfi.narrative.question import build_prompt, shown_items
from htfi_train.paths.sample import sample_paths
from htfi_train.simulation.corpus import FactSource, question
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, stories_of_market

JUDGING_SEED = FIRST_EVALUATION_SEED + 600_000_000  # no training's, nor the evaluation's or the calibration's

_STORIES_PER_WORLD = 5  # of some twenty, so that questions differ
_BATCH = 16
_SAMPLING = SamplingParams(temperature=1.0)


def simulated_requests(
    seed: int, dialect: PromptDialect, temperature: float = 1.0, facts: FactSource | None = None
) -> Iterator[GenerationRequest]:
    """Questions of many worlds as a reader would put them, endless; with `facts` of their items, if given.

    Their own seeds count on from 0.
    """
    drawn = (story for world in count() for story in stories_of_market(seed, world)[:_STORIES_PER_WORLD])
    for number, story in enumerate(drawn if facts is None else facts.of_stories(drawn)):
        asked = question(story)
        prompt, shared = build_prompt(asked, dialect)
        form = view_grammar(dialect, len(shown_items(asked)))
        yield GenerationRequest(prompt, form, number, temperature, shared=shared, kind="rehearsal")


def answer_requests(
    target: LocalGenerator,
    requests: Iterator[GenerationRequest],
    tokenizer: str,
    num_paths: int = 0,
    horizon: int = 24,
) -> Iterator[ReplayRecord]:
    """What the target says to each request, each followed by `num_paths` paths after its answer, if any.

    Raises: InvalidInput where it refuses.
    """
    while batch := list(islice(requests, _BATCH)):
        for request, answer in zip(batch, target.write(batch), strict=True):
            asked = target.tokenize(request)
            if isinstance(answer, RequestRefused) or isinstance(asked, RequestRefused):
                reason = answer.reason if isinstance(answer, RequestRefused) else "it cannot be asked"
                raise InvalidInput(f"{target.version} refuses a simulated story: {reason}")
            yield RecordedAnswer(request, answer.tokens, target.version, tokenizer)
            if num_paths:
                yield _draw_paths(
                    target, request, asked.prompt, asked.num_shared, answer, tokenizer, num_paths, horizon
                )


def _draw_paths(
    target: LocalGenerator,
    request: GenerationRequest,
    prompt: list[int],
    num_shared: int,
    answer: Completion,
    tokenizer: str,
    num_paths: int,
    horizon: int,
) -> RecordedPaths:
    prefix = (*prompt, *answer.tokens, target.vocabulary.mark("path"))
    drawn = sample_paths(
        target.sessions, target.vocabulary, prefix, num_paths, horizon,
        seed=request.seed, sampling=_SAMPLING, shared=num_shared,
    )  # fmt: skip
    if isinstance(drawn, RequestRefused):
        raise InvalidInput(f"{target.version} refuses to draw paths: {drawn.reason}")
    rows = tuple(tuple(row) for row in drawn.bins.tolist())
    return RecordedPaths(prefix, rows, request.seed, _SAMPLING, num_shared, target.version, tokenizer)
