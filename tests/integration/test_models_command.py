"""`htfi models`: what it tells of a folder, how it checks one, what it asks of a remote model, what it refuses."""

import json
import shutil
from pathlib import Path

import pytest
from chat_server import Call, chat_server
from click.testing import CliRunner, Result

from htfi import models as shipped
from htfi.apps.cli.main import cli
from htfi.domain.errors import HtfiError, IntegrityError
from random_pair import write_random_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


def models(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["models", *map(str, arguments)])


def test_inspect_tells_architecture_sizes_and_digest(pair: tuple[Path, Path]) -> None:
    told = models("inspect", pair[0]).output
    for fact in ("llama", "2 layers of 32", "mini dialect", "digest"):
        assert fact in told


def test_check_loads_a_pair_and_shows_what_each_says(pair: tuple[Path, Path]) -> None:
    told = models("check", pair[0], "--draft", pair[1]).output
    assert "target-int8" in told
    assert "draft-int8" in told
    assert told.count("logits within") == 2
    assert "Norvane" in told


def test_convert_leaves_a_graph_in_the_cache_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert "ready" in models("convert", pair[1], "--cache", tmp_path).output
    assert list(tmp_path.glob("*.graph"))


def test_a_folder_that_does_not_exist_is_told_in_one_line(tmp_path: Path) -> None:
    for command in ("inspect", "check", "convert"):
        error = models(command, tmp_path / "none").exception
        assert isinstance(error, HtfiError)
        assert "is not a folder" in str(error)
        assert "\n" not in str(error)


def test_a_changed_byte_in_a_shipped_model_is_refused(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from htfi import models as shipped
    from htfi.wiring.models.loading import open_model

    folder = tmp_path / "mini-target"
    shutil.copytree(pair[0], folder)
    monkeypatch.setattr(shipped, "DIGESTS", {folder: open_model(pair[0], "int8").folder.digest})
    open_model(folder, "int8")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        content = bytearray((folder / name).read_bytes())
        content[-3] ^= 1
        spoilt = tmp_path / "spoilt"
        shutil.copytree(folder, spoilt, dirs_exist_ok=True)
        (spoilt / name).write_bytes(content)
        monkeypatch.setattr(
            shipped, "DIGESTS", {spoilt: shipped.DIGESTS[folder], folder: shipped.DIGESTS[folder]}
        )
        with pytest.raises(HtfiError) as refused:
            open_model(spoilt, "int8")
        if name == "model.safetensors":
            assert isinstance(refused.value, IntegrityError)


def test_a_remote_model_is_asked_and_its_cost_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-not-to-be-seen")
    with chat_server(lambda call: call.answer(call.filled())) as server:
        told = models(
            "ask", server.url, "tiny", "--key-variable", "TEST_MODEL_KEY", "--input-price", "2"
        ).output
    assert "profit beats" in told
    assert "100 tokens read, 20 generated, cost 0.0002" in told
    assert "sk-not-to-be-seen" not in told


def test_a_remote_model_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-not-to-be-seen")

    def refuse(call: Call) -> None:
        call.send(401, json.dumps({"error": "bad key sk-not-to-be-seen"}).encode())

    with chat_server(refuse) as server:
        error = models("ask", server.url, "tiny", "--key-variable", "TEST_MODEL_KEY").exception
    assert isinstance(error, HtfiError)
    assert "did not answer" in str(error)
    assert "sk-not" not in str(error)
    assert len(server.calls) == 1  # no use in asking again


def test_torch_runs_the_same_models_where_a_settings_file_asks_for_it(pair: tuple[Path, Path]) -> None:
    from htfi.decoding.config import DecodingConfig
    from htfi.wiring.models.checks import ask_standard_question
    from htfi.wiring.models.config import ModelsConfig
    from htfi.wiring.models.readers import open_model_pair

    named = {"target": str(pair[0]), "draft": str(pair[1]), "precision": "fp32"}
    views = []
    for engine in ("onnx", "torch"):
        target, _ = open_model_pair(ModelsConfig(**named, engine=engine))
        views.append(ask_standard_question(target.plain_generator(DecodingConfig())))
    assert views[1].reader.startswith("target-torch-fp32@")
    assert views[0].words == views[1].words
    assert views[0].size_sigmas == views[1].size_sigmas


def test_an_engine_or_precision_that_does_not_exist_is_refused() -> None:
    from htfi.wiring.models.config import ModelsConfig

    for wrong in ({"engine": "vllm"}, {"precision": "int3"}, {"engine": "torch", "precision": "int8"}):
        with pytest.raises(HtfiError, match=r"models\."):
            ModelsConfig(**wrong)


@pytest.mark.parametrize("columns", [80, 160])
def test_the_names_one_must_type_are_whole(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    listed, inspected = models("list").output, models("inspect", shipped.TARGET).output
    for name in ("mini-target", "mini-draft", str(shipped.TARGET.parent)):
        assert name in listed
    assert max(len(line) for line in listed.splitlines() if "/" not in line) <= columns
    assert str(shipped.TARGET) in inspected
    assert max(len(line) for line in inspected.splitlines() if "/" not in line) <= columns
    assert "…" not in listed + inspected
