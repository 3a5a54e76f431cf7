"""The torch network holds to the port: it equals transformers and the embedded engine, in one pass or in several."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from htfi.adapters.onnx.network import OnnxNetwork
from htfi.adapters.onnx.session import Precision
from htfi.adapters.torch.llama import TorchNetwork
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import ForwardOutput
from htfi.domain.errors import InvalidInput, ShapeMismatch
from model_folders import causal_model, save

_SIZES: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**_SIZES, "model_type": "llama", "tie_word_embeddings": True},
    "llama with biases, untied, scaled": {
        **_SIZES, "model_type": "llama", "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True,
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 4.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
        },
    },
    "yarn": {
        **_SIZES, "model_type": "llama",
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 16,
        },
    },
    "qwen3": {**_SIZES, "model_type": "qwen3", "tie_word_embeddings": True},
    "qwen3 with biases, one key-value head": {
        **_SIZES, "model_type": "qwen3", "num_key_value_heads": 1, "attention_bias": True,
    },
}  # fmt: skip
HIDDEN = -1e9


def _whole(network: TorchNetwork | OnnxNetwork, ids: np.ndarray, cut: int | None = None) -> ForwardOutput:
    """Rows ids [B, T] in one pass, or in two, cut after `cut` positions."""
    of = network.shape
    rows, length = ids.shape
    keys = np.zeros((of.num_layers, rows, of.num_kv_heads, 0, of.head_dim), np.float32)
    values = keys.copy()
    logits: list[np.ndarray] = []
    for begin, end in ((0, length),) if cut is None else ((0, cut), (cut, length)):
        positions = np.tile(np.arange(begin, end), (rows, 1))
        mask = np.where(np.arange(end) <= np.arange(begin, end)[:, None], 0.0, HIDDEN).astype(np.float32)
        passed = network.forward(
            np.ascontiguousarray(ids[:, begin:end]), positions, np.tile(mask, (rows, 1, 1)), keys, values
        )
        logits.append(passed.logits)
        keys = np.concatenate((keys, passed.keys), axis=3)
        values = np.concatenate((values, passed.values), axis=3)
    return ForwardOutput(np.concatenate(logits, axis=1), keys, values)


@pytest.fixture
def ids() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 61, (3, 20))


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_are_those_of_transformers_and_of_the_embedded_engine(
    name: str, tmp_path: Path, ids: np.ndarray
) -> None:
    model = causal_model(CONFIGS[name], seed=1)
    folder = ModelFolder.open(save(model, tmp_path / "model"))
    network = TorchNetwork(folder, "cpu")
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids)).logits.numpy()
    scale = np.abs(theirs).max()
    whole = _whole(network, ids)
    assert np.abs(whole.logits - theirs).max() < 1e-4 * scale
    in_two = _whole(network, ids, cut=7)
    assert np.abs(in_two.logits - theirs).max() < 1e-4 * scale
    embedded = _whole(OnnxNetwork(folder, Precision.FP32, cache_folder=tmp_path / "cache"), ids)
    for ours, other in zip(whole, embedded, strict=True):
        assert ours.shape == other.shape
        assert ours.dtype == other.dtype == np.float32
        assert np.abs(ours - other).max() < 1e-4 * np.abs(other).max()


def test_bfloat16_comes_near_and_has_a_digest_of_its_own(tmp_path: Path, ids: np.ndarray) -> None:
    folder = ModelFolder.open(save(causal_model(CONFIGS["qwen3"], seed=2), tmp_path / "model"))
    exact, rough = TorchNetwork(folder, "cpu"), TorchNetwork(folder, "cpu", "bfloat16")
    difference = np.abs(_whole(exact, ids).logits - _whole(rough, ids).logits)
    assert 0 < difference.max() < 0.3
    assert exact.digest != rough.digest
    assert exact.digest == TorchNetwork(folder, "cpu").digest


def test_what_does_not_fit_is_refused(tmp_path: Path, ids: np.ndarray) -> None:
    folder = ModelFolder.open(save(causal_model(CONFIGS["llama"], seed=3), tmp_path / "model"))
    network = TorchNetwork(folder, "cpu")
    with pytest.raises(InvalidInput, match="the model's own tokenizer"):
        _whole(network, ids + 61)
    with pytest.raises(InvalidInput, match="the text is too long"):
        _whole(network, np.zeros((1, 65), np.int64))
    with pytest.raises(ShapeMismatch, match="ids are int32"):
        _whole(network, ids.astype(np.int32))
    with pytest.raises(ShapeMismatch, match="at least one each"):
        _whole(network, ids[:, :0])
    with pytest.raises(InvalidInput, match="dtype 'float8' is not known"):
        TorchNetwork(folder, "cpu", "float8")
    with pytest.raises(InvalidInput, match="device 'abacus'"):
        TorchNetwork(folder, "abacus")
