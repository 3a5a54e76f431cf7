"""`htfi models calibrate`: confidence is what proved right, it rises with what was stated, and the run uses it."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, PromptDialect
from htfi.narrative.answer import CONFIDENCES, DIRECTIONS, ConfidenceCalibration, parse_answer
from htfi.wiring.models.loading import read_trust
from htfi_train.simulation.reader_calibration import SEED, measure_trust
from htfi_train.simulation.stories import stories
from random_pair import write_random_pair

NUM_STORIES = 800


class Oracle:
    """Right in nine of ten stories that it is sure of, in three of ten that it is not; always calls a move."""

    version = "oracle/1"
    dialect = PromptDialect.MINI

    def __init__(self) -> None:
        self.stories = stories(SEED)
        self.asked = 0

    def write(self, requests: list[GenerationRequest]) -> list[Completion]:
        return [self.answer() for _ in requests]

    def answer(self) -> Completion:
        truth = float(next(self.stories).truth.direction)
        sure = self.asked % 2 == 0
        right = self.asked // 2 % 10 < (9 if sure else 3)
        self.asked += 1
        called = truth if right and truth else (1.0 if truth != 1.0 else -1.0)
        place = {"direction": DIRECTIONS.index(called), "confidence": 5 if sure else 2}
        others = dict.fromkeys(("cite0", "cite1", "cause", "consistency", "size", "volatility"), "0")
        return Completion(others | {name: str(value) for name, value in place.items()} | {"words": ""})


def test_confidence_is_the_share_that_was_right_and_never_falls_as_more_is_stated() -> None:
    trust = measure_trust(Oracle(), NUM_STORIES, lambda *_: None)
    assert all(low <= high for low, high in pairwise(trust.moving))
    assert trust.moving[5] > trust.moving[2] + 0.2
    story = list(zip(range(NUM_STORIES), stories(SEED), strict=False))
    moves = sum(told.truth.direction != 0 for _, told in story) / len(story)
    assert trust.moving[5] == pytest.approx(0.9 * moves, abs=0.05)
    assert trust.moving[2] == pytest.approx(0.3 * moves, abs=0.05)


def test_calibrate_keeps_what_it_measured_in_the_folder_and_readers_use_it(tmp_path: Path) -> None:
    target, draft = write_random_pair(tmp_path)
    shutil.rmtree(target)
    before = json.loads((draft / "config.json").read_text())
    done = CliRunner().invoke(cli, ["models", "calibrate", str(draft), "--stories", "100"])
    assert done.exit_code == 0, done.output
    after = json.loads((draft / "config.json").read_text())
    trust = read_trust(draft)
    assert {name: after[name] for name in before} == before
    assert (list(trust.flat), list(trust.moving)) == (
        after["htfi_trust"]["flat"],
        after["htfi_trust"]["moving"],
    )
    said = dict.fromkeys(("cite0", "cite1", "cause", "consistency", "size", "volatility"), "0")
    said |= {"direction": "2", "confidence": "5", "words": ""}
    assert parse_answer(said, trust).confidence == trust.moving[5]
    assert parse_answer(said | {"direction": "1"}, trust).confidence == trust.flat[5]


@pytest.mark.parametrize("wrong", [{"flat": [0.5]}, {"moving": [0.0] * 7}, {"flat": "high"}, []])
def test_a_trust_that_is_none_is_refused_with_the_files_name(tmp_path: Path, wrong: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"htfi_trust": wrong}))
    with pytest.raises(InvalidInput, match=r"config\.json"):
        read_trust(tmp_path)


def test_a_folder_without_a_trust_is_taken_at_its_word(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert read_trust(tmp_path) == ConfidenceCalibration(CONFIDENCES, CONFIDENCES)


def test_what_moves_followed_is_measured_from_five_hundred_stories_on(tmp_path: Path) -> None:
    from htfi_train.simulation.reader_calibration import answer_stories, estimate_meaning

    found = estimate_meaning(answer_stories(Oracle(), 700, lambda *_: None))
    assert found.horizons == (1, 5, 22)
    assert max(found.shifts[1]) == 0.0  # the oracle states no size, so nothing follows from it
    with pytest.raises(InvalidInput, match="too few stories"):
        estimate_meaning(answer_stories(Oracle(), 120, lambda *_: None))
