"""BERT encoders on the embedded engine give transformers' states, for sizes and padding drawn at random."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnxruntime")
import torch

from htfi.adapters.onnx.encoder import OnnxEncoder
from htfi.adapters.onnx.session import Precision
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Floats
from htfi.domain.errors import InvalidInput, ShapeMismatch
from model_folders import bert_model, save

CONFIG: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}


def opened(folder: Path, precision: Precision) -> OnnxEncoder:
    return OnnxEncoder(ModelFolder.open(folder), precision, cache_folder=folder / "cache")


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.fixed_dictionaries(
        {
            "num_attention_heads": st.sampled_from([1, 3]),
            "hidden_act": st.sampled_from(["gelu", "gelu_new", "relu"]),
            "num_hidden_layers": st.integers(1, 3),
            "intermediate_size": st.integers(3, 60),
        }
    ),
    st.integers(1, 3),
    st.integers(1, 12),
    st.integers(0, 1000),
)
def test_states_equal_transformers(
    changes: dict[str, Any], num_rows: int, num_tokens: int, seed: int
) -> None:
    model = bert_model(CONFIG | changes, seed)
    noise = np.random.Generator(np.random.PCG64(seed))
    ids = noise.integers(0, 50, (num_rows, num_tokens))
    types = noise.integers(0, 2, ids.shape)
    lengths = noise.integers(1, num_tokens + 1, (num_rows, 1))
    mask = (np.arange(num_tokens) < lengths).astype(np.int64)
    with torch.inference_mode():
        said = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        wanted: Floats = model(
            **{name: torch.from_numpy(part) for name, part in said.items()}
        ).last_hidden_state.numpy()
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder))
        found = opened(Path(folder), Precision.FP32).encode(ids, mask, types)
        rounded = opened(Path(folder), Precision.INT8).encode(ids, mask, types)
    shown = mask.astype(bool)
    highest = np.abs(wanted).max()
    assert np.abs(found - wanted)[shown].max() <= 1e-4 * highest
    assert np.abs(rounded - wanted)[shown].max() <= 0.1 * highest


def test_bad_inputs_are_refused_in_one_line(tmp_path: Path) -> None:
    encoder = opened(save(bert_model(CONFIG, 0), tmp_path), Precision.FP32)
    ids = np.zeros((2, 3), np.int64)
    with pytest.raises(ShapeMismatch, match="for all three"):
        encoder.encode(ids, ids[:1])
    with pytest.raises(InvalidInput, match="0 to 49"):
        encoder.encode(ids + 50, ids)
    with pytest.raises(InvalidInput, match="cut it to 32"):
        encoder.encode(np.zeros((1, 33), np.int64), np.ones((1, 33), np.int64))
