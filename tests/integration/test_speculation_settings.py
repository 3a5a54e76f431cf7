"""Every strategy and look-ahead that settings can name writes what the target writes alone, and says who drafted."""

from collections.abc import Iterator
from itertools import islice

import pytest

from htfi.decoding.config import LENGTH_PLANNERS, STRATEGIES, DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, PromptDialect, RequestRefused
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.models.speculation import speculative_generator
from htfi_train.simulation.draft_questions import simulated_requests
from random_pair import write_random_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadableModel, LoadableModel]:
    target, draft = write_random_pair(tmp_path_factory.mktemp("pair"))
    return open_model(target, "int8"), open_model(draft, "int8")


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    return list(islice(simulated_requests(5, PromptDialect.MINI), 4))


@pytest.fixture(scope="module")
def alone(
    pair: tuple[LoadableModel, LoadableModel], requests: list[GenerationRequest]
) -> list[tuple[int, ...]]:
    return tokens(pair[0].plain_generator(DecodingConfig()).write(requests))


def tokens(answers: list[Completion | RequestRefused]) -> list[tuple[int, ...]]:
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer.tokens for answer in answers if isinstance(answer, Completion)]


def every_way() -> Iterator[tuple[str, str]]:
    yield from ((strategy, "nominal") for strategy in STRATEGIES)
    yield from (("chain", lookahead) for lookahead in LENGTH_PLANNERS)


@pytest.mark.parametrize(("strategy", "lookahead"), sorted(set(every_way())))
def test_the_answer_is_the_targets_own(
    pair: tuple[LoadableModel, LoadableModel],
    requests: list[GenerationRequest],
    alone: list[tuple[int, ...]],
    strategy: str,
    lookahead: str,
) -> None:
    author = speculative_generator(*pair, DecodingConfig(strategy=strategy, draft_length=lookahead))
    for _ in range(2):  # the second time with all that the first has taught
        answers = author.write(requests)
        assert tokens(answers) == alone
        drafted_by = {answer.draft for answer in answers if isinstance(answer, Completion)}
        assert drafted_by == ({""} if strategy in ("plain", "lookup", "jacobi") else {pair[1].version})


@pytest.mark.parametrize("strategy", ["chain", "tree", "lookup", "jacobi"])
def test_what_a_recorded_run_drafts_does_not_depend_on_what_ran_before(
    pair: tuple[LoadableModel, LoadableModel], requests: list[GenerationRequest], strategy: str
) -> None:
    config = DecodingConfig(strategy=strategy)
    fresh, used = speculative_generator(*pair, config), speculative_generator(*pair, config)
    used.write(requests)
    rounds = [
        [answer.rounds for answer in author.write(requests[:2]) if isinstance(answer, Completion)]
        for author in (fresh, used)
    ]
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(
    ("key", "value"), [("strategy", "magic"), ("draft_length", "far"), ("max_draft_length", -1)]
)
def test_a_setting_that_is_not_known_is_one_line(key: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"decoding.{key} must"):
        DecodingConfig(**{key: value})  # type: ignore[arg-type]
