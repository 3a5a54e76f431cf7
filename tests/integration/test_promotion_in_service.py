"""A service under way: what it says is remembered, and a draft promoted meanwhile is taken up with the same answers."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from htfi.adapters.stores.replay_buffer import ReplayBufferFile, read_replay_buffer
from htfi.decoding.config import DecodingConfig
from htfi.decoding.promotion import PromotedDraftGenerator, PromotedDraftSource, promote
from htfi.decoding.replay_buffer import RecordedAnswer, RecordingGenerator
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, GenerationRequest, PlainText, PromptDialect, RequestRefused
from htfi.narrative.ports import TextGenerator
from htfi.wiring.models.loading import LoadableModel, open_like, open_model
from htfi.wiring.models.speculation import speculative_generator
from htfi_train.simulation.draft_questions import simulated_requests
from random_pair import write_random_pair

CONFIG = DecodingConfig(strategy="chain", draft_length="fixed", max_draft_length=3)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


def requests(num: int) -> list[GenerationRequest]:
    return list(islice(simulated_requests(11, PromptDialect.MINI), num))


def follow(
    pair: tuple[Path, Path],
    drafts: Path,
    said: list[str],
    build: Callable[[LoadableModel], TextGenerator] | None = None,
) -> PromotedDraftGenerator[LoadableModel]:
    target, draft = (open_model(path, "int8") for path in pair)
    promoted = PromotedDraftSource(drafts, draft, open_like, said.append)
    return PromotedDraftGenerator(
        promoted, build or (lambda found: speculative_generator(target, found, CONFIG)), said.append
    )


def promote_the_target(pair: tuple[Path, Path], drafts: Path) -> LoadableModel:
    shutil.copytree(pair[0], drafts / ".candidate")
    return open_model(promote(drafts, drafts / ".candidate", "", (0.1, 0.2)), "int8")


def test_a_draft_promoted_between_two_requests_drafts_the_next_and_the_answers_stay(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    said: list[str] = []
    author = follow(pair, tmp_path, said)
    first = author.write(requests(3))
    new = promote_the_target(pair, tmp_path)
    second = author.write(requests(3))
    assert not said
    for before, after in zip(first, second, strict=True):
        assert isinstance(before, Completion)
        assert isinstance(after, Completion)
        assert before.tokens == after.tokens
        assert before.draft == open_model(pair[1], "int8").version
        assert after.draft == new.version
    # A draft that is the target guesses as it does.
    passes = [
        sum(len(answer.rounds) for answer in turn if isinstance(answer, Completion))
        for turn in (first, second)
    ]
    assert passes[1] < passes[0]


def test_a_promoted_draft_that_cannot_be_loaded_is_told_once_and_the_one_before_goes_on(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    said: list[str] = []
    target = open_model(pair[0], "int8")

    def build(draft: LoadableModel) -> TextGenerator:
        if draft.folder.path != pair[1]:
            raise DependencyUnavailable("no memory left")
        return speculative_generator(target, draft, CONFIG)

    author = follow(pair, tmp_path, said, build)
    promote_the_target(pair, tmp_path)
    for _ in range(2):
        assert not any(isinstance(answer, RequestRefused) for answer in author.write(requests(2)))
    assert len(said) == 1
    assert "no memory left" in said[0]


def test_what_was_answered_is_remembered_and_what_was_refused_is_not(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    target = open_model(pair[0], "int8")
    recent = ReplayBufferFile(tmp_path / "recent")
    author = RecordingGenerator(
        target.plain_generator(DecodingConfig()), recent, target.tokenizer.digest, pytest.fail
    )
    asked = requests(3)
    too_long = GenerationRequest((PlainText("word " * 3_000),), asked[0].form)
    answers = author.write([*asked, too_long])
    assert isinstance(answers[-1], RequestRefused)
    found, num_skipped = read_replay_buffer(tmp_path / "recent")
    assert num_skipped == 0
    kept = [(said.request, said.tokens) for said in found if isinstance(said, RecordedAnswer)]
    assert kept == [(request, answer.tokens) for request, answer in zip(asked, answers, strict=False)]
    assert {said.target for said in found} == {target.version}


def test_a_buffer_that_cannot_be_written_is_told_once_and_answers_go_on(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    target = open_model(pair[0], "int8")
    recent = ReplayBufferFile(tmp_path / "recent")
    recent.close()  # as a disk that is taken away
    said: list[str] = []
    author = RecordingGenerator(
        target.plain_generator(DecodingConfig()), recent, target.tokenizer.digest, said.append
    )
    for _ in range(2):
        assert not any(isinstance(answer, RequestRefused) for answer in author.write(requests(2)))
    assert len(said) == 1
    assert "not kept for distillation" in said[0]
