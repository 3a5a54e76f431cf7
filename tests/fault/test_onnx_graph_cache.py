"""The graph cache may be damaged, unwritable or full: networks open all the same and give the same logits."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from htfi.adapters.onnx.network import OnnxNetwork
from htfi.adapters.onnx.session import Precision
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Floats
from htfi.domain.errors import DependencyUnavailable
from model_folders import causal_model, save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = {
        "model_type": "qwen3",
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 20,
        "vocab_size": 30,
    }
    return save(causal_model(config, 1), tmp_path_factory.mktemp("qwen"))


def logits(folder: Path, cache: Path) -> Floats:
    network = OnnxNetwork(ModelFolder.open(folder), Precision.INT8, cache_folder=cache)
    past = np.zeros((1, 1, 1, 0, 8), np.float32)
    ids = np.arange(3)[None]
    return network.forward(ids, ids, np.triu(np.full((1, 3, 3), -1e30, np.float32), 1), past, past).logits


def test_damaged_file_is_written_anew(folder: Path, tmp_path: Path) -> None:
    wanted = logits(folder, tmp_path)
    (file,) = (found for found in tmp_path.glob("*.graph") if not found.name.startswith("saturation"))
    whole = file.read_bytes()
    noise = np.random.Generator(np.random.PCG64(3))
    for _ in range(12):
        damaged = bytearray(whole)
        damaged[int(noise.integers(len(whole)))] ^= 1 << int(noise.integers(8))
        file.write_bytes(damaged)
        assert np.array_equal(logits(folder, tmp_path), wanted)
    for num_kept in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:num_kept])
        assert np.array_equal(logits(folder, tmp_path), wanted)
        assert file.read_bytes() == whole


def test_folder_that_cannot_be_made_is_done_without(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert np.array_equal(logits(folder, tmp_path / "file" / "cache"), logits(folder, tmp_path / "cache"))


def test_full_disk_leaves_no_part_behind(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    found = logits(folder, tmp_path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    assert np.array_equal(found, logits(folder, tmp_path))


def test_graph_that_the_runtime_refuses_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    from htfi.adapters.onnx.session import OnnxSession, WrittenGraph

    with pytest.raises(DependencyUnavailable, match="cannot open the graph") as refused:
        OnnxSession(WrittenGraph(b"no graph at all", {}, {}), ModelFolder.open(folder).weights, threads=1)
    assert "\n" not in str(refused.value)
