"""Every strategy and look-ahead that settings can name writes what the target writes alone, and says who drafted."""

from collections.abc import Iterator
from itertools import islice

import pytest

from htfi.decoding.config import LOOKAHEADS, STRATEGIES, DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Writing
from htfi.wiring.open_folder import OpenFolder, open_folder
from htfi.wiring.rehearsal import simulated_requests
from htfi.wiring.speculation import speculative_author
from random_pair import write_random_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenFolder, OpenFolder]:
    target, draft = write_random_pair(tmp_path_factory.mktemp("pair"))
    return open_folder(target, "int8"), open_folder(draft, "int8")


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    return list(islice(simulated_requests(5, Dialect.MINI), 4))


@pytest.fixture(scope="module")
def alone(pair: tuple[OpenFolder, OpenFolder], requests: list[Request]) -> list[tuple[int, ...]]:
    return tokens(pair[0].author(DecodingConfig()).write(requests))


def tokens(answers: list[Writing | Refusal]) -> list[tuple[int, ...]]:
    assert all(isinstance(answer, Writing) for answer in answers), answers
    return [answer.tokens for answer in answers if isinstance(answer, Writing)]


def every_way() -> Iterator[tuple[str, str]]:
    yield from ((strategy, "nominal") for strategy in STRATEGIES)
    yield from (("chain", lookahead) for lookahead in LOOKAHEADS)


@pytest.mark.parametrize(("strategy", "lookahead"), sorted(set(every_way())))
def test_the_answer_is_the_targets_own(
    pair: tuple[OpenFolder, OpenFolder],
    requests: list[Request],
    alone: list[tuple[int, ...]],
    strategy: str,
    lookahead: str,
) -> None:
    author = speculative_author(*pair, DecodingConfig(strategy=strategy, lookahead=lookahead))
    for _ in range(2):  # the second time with all that the first has taught
        answers = author.write(requests)
        assert tokens(answers) == alone
        drafted_by = {answer.draft for answer in answers if isinstance(answer, Writing)}
        assert drafted_by == ({""} if strategy in ("plain", "lookup", "jacobi") else {pair[1].version})


@pytest.mark.parametrize("strategy", ["chain", "tree", "lookup", "jacobi"])
def test_what_a_recorded_run_drafts_does_not_depend_on_what_ran_before(
    pair: tuple[OpenFolder, OpenFolder], requests: list[Request], strategy: str
) -> None:
    config = DecodingConfig(strategy=strategy)
    fresh, used = speculative_author(*pair, config), speculative_author(*pair, config)
    used.write(requests)
    rounds = [
        [answer.rounds for answer in author.write(requests[:2]) if isinstance(answer, Writing)]
        for author in (fresh, used)
    ]
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(("key", "value"), [("strategy", "magic"), ("lookahead", "far"), ("max_draft", -1)])
def test_a_setting_that_is_not_known_is_one_line(key: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"decoding.{key} must"):
        DecodingConfig(**{key: value})  # type: ignore[arg-type]
