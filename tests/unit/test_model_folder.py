"""Hugging Face folders are read with numpy alone: config.json, safetensors, digest."""

import json
from pathlib import Path

import numpy as np
import pytest

from htfi.decoding.checkpoint.folder import (
    Architecture,
    ModelFamily,
    ModelFolder,
    config_json,
    parse_architecture,
)
from htfi.decoding.checkpoint.rope import Rope, RopeKind, rotary_frequencies
from htfi.decoding.checkpoint.weights import INDEX_FILE, open_weights, write_safetensors
from htfi.domain.errors import InvalidInput, ShapeMismatch

SMALL = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 24,
    "vocab_size": 40,
    "max_position_embeddings": 64,
}


def parse(**changes: object) -> Architecture:
    return parse_architecture(json.dumps(SMALL | changes).encode(), "config.json")


def test_llama_config_gives_sizes_and_defaults() -> None:
    architecture = parse(rms_norm_eps=1e-5, rope_theta=5e5, tie_word_embeddings=True)
    assert (architecture.family, architecture.head_dim, architecture.num_kv_heads) == (
        ModelFamily.LLAMA,
        8,
        1,
    )
    assert (architecture.norm_eps, architecture.tie_embeddings) == (1e-5, True)
    assert architecture.rope == Rope(5e5)


def test_old_and_new_spelling_of_rope_mean_the_same() -> None:
    scaling = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    old = parse(rope_theta=5e5, rope_scaling={"type": "llama3", **scaling})
    new = parse(rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **scaling})
    assert old == new
    assert old.rope == Rope(5e5, RopeKind.LLAMA3, 8.0, 1.0, 4.0, 32)


def test_qwen3_has_norms_on_queries_and_keys_and_its_own_head_size() -> None:
    architecture = parse(model_type="qwen3")
    assert architecture.qk_norm
    assert architecture.head_dim == 128


def test_bert_config_reads_layer_norm_and_token_types() -> None:
    architecture = parse(model_type="bert", layer_norm_eps=1e-12, type_vocab_size=2)
    assert not architecture.is_causal
    assert (architecture.activation, architecture.num_token_types) == ("gelu", 2)


@pytest.mark.parametrize(
    "rope",
    [
        Rope(5e5),
        Rope(1e4, RopeKind.LINEAR, 4.0),
        Rope(1e4, RopeKind.YARN, 4.0, original_positions=32, mscale=0.7),
    ],
)
def test_written_config_reads_back_as_it_was(rope: Rope) -> None:
    architecture = parse(rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True)
    changed = Architecture(
        **{name: getattr(architecture, name) for name in architecture.__slots__} | {"rope": rope}
    )
    assert parse_architecture(config_json(changed), "config.json") == changed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "mamba"}, "'mamba' is not known"),
        ({"model_type": ["llama"]}, "'model_type' is"),
        ({"hidden_size": None}, "lacks 'hidden_size'"),
        ({"hidden_size": "16"}, "'hidden_size' is '16'"),
        ({"num_hidden_layers": 0}, "at least 1"),
        ({"num_key_value_heads": 3}, "cannot share"),
        ({"head_dim": 7}, "odd"),
        ({"hidden_act": "relu6"}, "'relu6' is not supported"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "'longrope' is not supported"),
        ({"rope_scaling": {"rope_type": "linear"}}, "'factor' is None"),
        ({"rope_scaling": "linear"}, "instead of an object"),
        ({"partial_rotary_factor": 0.5}, "part of a head"),
        ({"layer_types": ["sliding_attention"]}, "sliding-window"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"layer_types": 3}, "sliding-window"),
        ({"rope_scaling": {"rope_type": ["yarn"]}}, "not supported"),
    ],
)
def test_unusable_config_is_refused_in_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        parse(**changes)
    assert "\n" not in str(refused.value)


def test_yarn_keeps_fast_angles_and_stretches_slow_ones() -> None:
    plain, _ = rotary_frequencies(Rope(), 64)
    stretched, scale = rotary_frequencies(Rope(1e4, RopeKind.YARN, 4.0, original_positions=2048), 64)
    assert stretched[0] == plain[0]
    assert stretched[-1] == pytest.approx(plain[-1] / 4)
    assert scale == pytest.approx(0.1 * np.log(4) + 1)


def test_weights_of_all_float_types_read_as_float32(tmp_path: Path) -> None:
    values = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    write_safetensors(tmp_path / "model.safetensors", {"a": values, "b": values.astype(np.float16)})
    weights = open_weights(tmp_path)
    assert np.array_equal(weights.array("a", (2, 3)), values)
    assert np.array_equal(weights.array("b", (2, 3)), values.astype(np.float16).astype(np.float32))
    assert weights.names() == ["a", "b"]


def test_bfloat16_reads_as_the_upper_half_of_float32(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    values = torch.linspace(-3, 3, 10).reshape(5, 2).to(torch.bfloat16)
    save_file({"a": values}, tmp_path / "model.safetensors")
    assert np.array_equal(open_weights(tmp_path).array("a", (5, 2)), values.float().numpy())


def test_safetensors_library_reads_what_is_written(tmp_path: Path) -> None:
    numpy_side = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.ones((), np.float32)}
    write_safetensors(tmp_path / "model.safetensors", arrays, {"made": "here"})
    read = numpy_side.load_file(tmp_path / "model.safetensors")
    assert all(np.array_equal(read[name], array) for name, array in arrays.items())
    assert len(read) == 2


def test_shards_read_as_one(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "one.safetensors", {"a": np.ones(2, np.float32)})
    write_safetensors(tmp_path / "two.safetensors", {"b": np.zeros(3, np.float32)})
    (tmp_path / INDEX_FILE).write_text(
        json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
    )
    weights = open_weights(tmp_path)
    assert weights.array("b", (3,)).shape == (3,)
    assert [file.name for file in weights.files] == ["one.safetensors", "two.safetensors"]


def test_tensor_of_another_shape_or_name_is_refused_by_name(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": np.ones((2, 3), np.float32)})
    weights = open_weights(tmp_path)
    with pytest.raises(ShapeMismatch, match=r"model.safetensors: tensor 'a' has shape \[2, 3\]"):
        weights.array("a", (3, 2))
    with pytest.raises(InvalidInput, match="lacks tensor 'norm'"):
        weights.array("norm", (3,))


def test_digest_changes_with_weights_config_and_tokenizer_alone(tmp_path: Path) -> None:
    def digest() -> str:
        return ModelFolder.open(tmp_path).digest

    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    write_safetensors(tmp_path / "model.safetensors", {"a": np.ones(2, np.float32)})
    seen = [digest()]
    (tmp_path / "generation_config.json").write_text("{}")
    assert digest() == seen[0]
    (tmp_path / "tokenizer.json").write_text("{}")
    seen.append(digest())
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(2, np.float32)})
    seen.append(digest())
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"rms_norm_eps": 1e-5}))
    seen.append(digest())
    assert len(set(seen)) == 4


def test_missing_folder_config_weights_or_tokenizer_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder"):
        ModelFolder.open(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"holds no config.json"):
        ModelFolder.open(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    with pytest.raises(InvalidInput, match=r"holds no model.safetensors"):
        ModelFolder.open(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", {"a": np.ones(2, np.float32)})
    with pytest.raises(InvalidInput, match=r"holds no tokenizer.json"):
        _ = ModelFolder.open(tmp_path).tokenizer_file
