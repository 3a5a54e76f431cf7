"""The network in C: logits near those of float32 on the general engine, whatever the shape of a pass; refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from htfi import models
from htfi.adapters.native import network as native
from htfi.adapters.onnx.network import OnnxNetwork
from htfi.adapters.onnx.session import Precision
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.kv_cache import MASKED
from htfi.decoding.ports import ForwardOutput, Network
from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch
from model_folders import bert_model, causal_model, save

pytestmark = pytest.mark.skipif(not native.is_compiled(), reason="the network in C was not compiled")

SMALL: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 90,
    "vocab_size": 77,
    "max_position_embeddings": 64,
}
KINDS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "tie_word_embeddings": True},
    "biased": {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "head_dim": 24},
    "scaled": {
        "model_type": "llama",
        "num_key_value_heads": 4,
        "head_dim": 10,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 16,
        },
    },
    "qwen3": {"model_type": "qwen3", "num_key_value_heads": 1, "head_dim": 64},
    "long sums": {"model_type": "qwen3", "intermediate_size": 2100, "head_dim": 32},
}
SHARE = 0.05  # of the logits' own spread: int8 weights err by about 0.02


@pytest.fixture(scope="module", params=list(KINDS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    config = SMALL | KINDS[request.param]
    return ModelFolder.open(save(causal_model(config, 7), tmp_path_factory.mktemp("native")))


def near(found: ForwardOutput, wanted: ForwardOutput, share: float = SHARE) -> bool:
    return all(
        np.sqrt(np.mean((one - other) ** 2)) <= share * np.std(other)
        for one, other in zip(found, wanted, strict=True)
    )


@pytest.fixture(scope="module")
def general(folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> OnnxNetwork:
    return OnnxNetwork(folder, Precision.FP32, cache_folder=tmp_path_factory.mktemp("cache"))


def drawn(folder: ModelFolder, num_rows: int, num_new: int, past: int, seed: int = 0) -> list[np.ndarray]:
    """A pass of random tokens after a random past, of which each row hides its end, under a random tree's mask."""
    rng, of = np.random.Generator(np.random.PCG64(seed)), folder.architecture
    lengths = rng.integers(0, past + 1, num_rows)
    mask = np.full((num_rows, num_new, past + num_new), MASKED, np.float32)
    depths = np.zeros((num_rows, num_new), np.int64)
    for row in range(num_rows):
        mask[row, :, : lengths[row]] = 0.0
        for node in range(num_new):
            parent = int(rng.integers(-1, node)) if node else -1
            if parent >= 0:
                mask[row, node, past:] = mask[row, parent, past:]
                depths[row, node] = depths[row, parent] + 1
            mask[row, node, past + node] = 0.0
    kept = (of.num_layers, num_rows, of.num_kv_heads, past, of.head_dim)
    keys, values = (rng.standard_normal(kept).astype(np.float32) for _ in range(2))
    ids = rng.integers(0, of.vocab_size, (num_rows, num_new))
    return [ids, lengths[:, None] + depths, mask, keys, values]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 0), (1, 1, 33), (1, 7, 20), (5, 1, 17), (3, 6, 11), (30, 5, 8)])
def test_logits_are_near_those_of_float32(
    folder: ModelFolder, general: OnnxNetwork, level: int, shape: tuple[int, int, int]
) -> None:
    given = drawn(folder, *shape)
    assert near(native.NativeNetwork(folder, level=level).forward(*given), general.forward(*given))


def test_shipped_draft_is_as_near_as_the_general_engines_own_bytes() -> None:
    folder = ModelFolder.open(models.DRAFT)
    ids = np.random.Generator(np.random.PCG64(3)).integers(0, folder.architecture.vocab_size, (2, 60))

    def error(network: Network) -> float:
        return float(np.std(forward_text(network, ids).logits - wanted))

    wanted = forward_text(OnnxNetwork(folder, Precision.FP32), ids).logits
    assert error(native.NativeNetwork(folder)) < error(OnnxNetwork(folder, Precision.INT8))


def test_a_row_has_the_same_bits_alone_and_among_others(folder: ModelFolder) -> None:
    network = native.NativeNetwork(folder)
    ids, positions, mask, keys, values = drawn(folder, 9, 6, 13)
    whole = network.forward(ids, positions, mask, keys, values)
    again = network.forward(ids, positions, mask, keys, values)
    assert all(np.array_equal(one, other) for one, other in zip(whole, again, strict=True))
    alone = network.forward(
        ids[4:5], positions[4:5], mask[4:5], *(np.ascontiguousarray(kv[:, 4:5]) for kv in (keys, values))
    )
    assert np.array_equal(alone.logits[0], whole.logits[4])
    assert np.array_equal(alone.keys[:, 0], whole.keys[:, 4])


def test_arrays_that_are_not_contiguous_are_read_all_the_same(folder: ModelFolder) -> None:
    network = native.NativeNetwork(folder)
    given = drawn(folder, 3, 2, 8)
    strided = [np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0) for array in given]
    assert np.array_equal(network.forward(*strided).logits, network.forward(*given).logits)


@pytest.mark.parametrize(
    ("place", "changed", "error", "said"),
    [
        (0, np.zeros(3, np.int64), ShapeMismatch, "ids have shape"),
        (0, np.zeros((2, 0), np.int64), ShapeMismatch, "ids have shape"),
        (0, np.zeros((2, 3), np.int32), ShapeMismatch, "ids are int32"),
        (1, np.zeros((2, 2), np.int64), ShapeMismatch, "positions are"),
        (2, np.zeros((2, 3, 3), np.float32), ShapeMismatch, "mask are"),
        (3, np.zeros((2, 2), np.float32), ShapeMismatch, "are due|is expected"),
        (4, np.zeros((2, 2, 2, 4, 16)), ShapeMismatch, "values are float64"),
        (0, np.full((2, 3), 77), InvalidInput, "0 to 76"),
        (0, np.full((2, 3), -1), InvalidInput, "0 to 76"),
        (1, np.full((2, 3), 64), InvalidInput, "0 to 63"),
    ],
)
def test_passes_that_do_not_fit_are_refused(
    tmp_path: Path, place: int, changed: np.ndarray, error: type[Exception], said: str
) -> None:
    folder = ModelFolder.open(save(causal_model(SMALL | KINDS["llama"], 7), tmp_path))
    given = drawn(folder, 2, 3, 4)
    given[place] = changed
    with pytest.raises(error, match=said):
        native.NativeNetwork(folder).forward(*given)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = causal_model(SMALL | KINDS["llama"], 7)
    model.model.norm.weight.data[3] = float("nan")
    with pytest.raises(InvalidInput, match=r"norm\.weight"):
        native.NativeNetwork(ModelFolder.open(save(model, tmp_path)))


def test_digests_tell_weights_and_instructions_apart(folder: ModelFolder) -> None:
    digests = {native.NativeNetwork(folder, level=level).digest for level in (0, 1, 1)}
    assert len(digests) == len({native.NativeNetwork(folder, level=level)._core.level for level in (0, 1)})


def test_encoders_and_large_models_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    encoder = save(bert_model(config | {"intermediate_size": 8}, 0), tmp_path)
    with pytest.raises(InvalidInput, match="bert"):
        native.NativeNetwork(ModelFolder.open(encoder))
    with pytest.raises(InvalidInput, match="4,000,000: run it on onnxruntime"):
        native.NativeNetwork(ModelFolder.open(models.TARGET))


def test_without_the_compiled_part_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "core", None)
    assert not native.is_compiled()
    with pytest.raises(DependencyUnavailable, match="C compiler"):
        native.NativeNetwork(ModelFolder.open(models.DRAFT))
