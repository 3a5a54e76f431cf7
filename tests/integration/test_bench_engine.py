"""`htfi bench engine` on a small network: every engine has its row, and the figures are sound."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnxruntime")

from htfi.decoding.checkpoint.folder import ModelFolder, config_json
from htfi_eval.bench import engine
from htfi_eval.bench.engine import story_texts, top1_agreement
from htfi_eval.bench.targets import TARGET, minimal_work, num_parameters, write_target

SMALL = dataclasses.replace(
    TARGET,
    hidden_size=32,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=16,
    intermediate_size=40,
    vocab_size=60,
)


def test_target_has_56_million_parameters_and_its_folder_opens(tmp_path: Path) -> None:
    assert num_parameters(TARGET) == 56_636_160
    write_target(tmp_path, 3, SMALL)
    assert ModelFolder.open(tmp_path).architecture == SMALL


def test_least_work_counts_weights_once_and_operations_by_token() -> None:
    one, many = (minimal_work(SMALL, rows, 1, 0, weight_bytes=1) for rows in (1, 5))
    assert one.read_bytes == many.read_bytes == num_parameters(SMALL)
    assert many.num_operations == 5 * one.num_operations


@pytest.mark.slow
def test_bench_reports_each_engine_that_is_there_and_a_line_for_the_one_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TARGET", SMALL)
    monkeypatch.setattr(engine, "PEER_ENGINES", ("transformers", "llama-cpp-python"))
    monkeypatch.setattr(engine, "CASES", ((1, 1), (1, 8), (16, 8)))
    monkeypatch.setattr(engine, "story_texts", lambda folder: story_texts(folder, num_texts=5))
    done = CliRunner().invoke(engine.command, ["--runs", "1", "--json", str(tmp_path / "engine.json")])
    assert done.exit_code == 0, done.output
    body = json.loads((tmp_path / "engine.json").read_text())
    assert {"decode_vs_transformers", "verify8_vs_transformers", "verify16x8_vs_transformers"} <= set(
        body["metrics"]
    )
    assert all(value > 0 for value in body["metrics"].values())
    rows = {row["what"]: row for row in body["rows"]}
    assert rows["1×8"]["int8"] > 0
    assert any(note.startswith("llama-cpp-python: ") for note in body["notes"])


def test_agreement_is_whole_with_itself_and_less_with_coarse_bytes(tmp_path: Path) -> None:
    model_folders = pytest.importorskip("model_folders")
    config = json.loads(config_json(dataclasses.replace(SMALL, vocab_size=2000, tie_embeddings=False)))
    model_folders.save(model_folders.causal_model(config, 3), tmp_path)
    cache = tmp_path / "cache"
    texts = np.random.Generator(np.random.PCG64(0)).integers(0, 2000, (2, 9)).tolist()
    assert top1_agreement(tmp_path, "fp32", texts, cache) == 1.0
    coarse = top1_agreement(tmp_path, "int8", texts, cache)
    assert 0.5 < coarse <= 1.0
    assert top1_agreement(tmp_path, "int8", texts, cache) == coarse
