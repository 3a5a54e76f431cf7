"""`htfi bench decode`: a heavier target writes what the shipped one writes, prompts are unseen, figures are sound."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from htfi import models
from htfi.apps.bench.heavy_target import COST_60M, Cost, write_heavy_target
from htfi.decoding.author import LocalAuthor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.config import DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Dialect, Request, Writing
from htfi.narrative.answer import view_form
from htfi.narrative.question import put, shown
from htfi.simulation.corpus import question
from htfi.simulation.stories import FIRST_EVALUATION_SEED, world_stories
from htfi.wiring.models import load_network, open_folder

DEEPER = Cost("deeper", 7, 768)


def _author(folder: Path, cache: Path) -> LocalAuthor:
    opened = open_folder(folder, "int8")
    network = load_network(opened.folder, "int8", cache)
    return LocalAuthor(network, opened.tokenizer, folder.name, DecodingConfig())


def _views(num: int) -> list[Request]:
    asked: list[Request] = []
    for number in range(num):
        told = question(world_stories(FIRST_EVALUATION_SEED + 3, number)[0])
        prompt, shared = put(told, Dialect.MINI)
        form = view_form(Dialect.MINI, len(shown(told)))
        asked.append(Request(prompt, form, seed=number, temperature=float(number % 2), shared=shared))
    return asked


def _tokens(author: LocalAuthor, asked: Sequence[Request]) -> list[tuple[int, ...]]:
    answers = author.write(asked)
    assert all(isinstance(answer, Writing) for answer in answers)
    return [answer.tokens for answer in answers if isinstance(answer, Writing)]


@pytest.mark.parametrize("cost", [DEEPER, COST_60M], ids=lambda cost: cost.label)
def test_heavier_target_writes_the_tokens_of_the_shipped_one(tmp_path: Path, cost: Cost) -> None:
    num_parameters = write_heavy_target(models.TARGET, tmp_path / cost.label, cost)
    of = ModelFolder.open(tmp_path / cost.label).architecture
    assert (of.num_layers, of.intermediate_size) == (cost.num_layers, cost.intermediate_size)
    assert of.hidden_size == 1024
    if cost is COST_60M:
        assert 55e6 < num_parameters < 65e6
    asked = _views(6)
    heavy = _tokens(_author(tmp_path / cost.label, tmp_path / "cache"), asked)
    assert heavy == _tokens(_author(models.TARGET, tmp_path / "cache"), asked)


def test_heavier_target_is_refused_where_the_source_is_larger_already(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="larger than small already"):
        write_heavy_target(models.TARGET, tmp_path, replace(COST_60M, label="small", num_layers=4))
