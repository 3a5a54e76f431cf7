"""A Hugging Face folder on disk: the architecture in its config.json, weights, tokenizer file and digest.

Wiring opens it for adapters, which build networks from its architecture.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from htfi.decoding.checkpoint.rope import Rope, parse_rope
from htfi.decoding.checkpoint.weights import CheckpointWeights, open_weights
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.file_digests import DigestFile, file_digest

_T = TypeVar("_T", int, float, bool, str)


class ModelFamily(StrEnum):
    """The supported architectures, by their Hugging Face `model_type`."""

    LLAMA = "llama"
    QWEN3 = "qwen3"
    BERT = "bert"


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes and switches of one network. `norm_eps` is that of the RMS norm, or with BERT of the layer norm."""

    family: ModelFamily
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_positions: int
    norm_eps: float
    activation: str  # silu; BERT: gelu (erf), gelu_new (tanh) or relu
    tie_embeddings: bool = False
    attention_bias: bool = False  # on q, k, v and o
    mlp_bias: bool = False
    qk_norm: bool = False
    rope: Rope | None = None  # None: learned positions, as in BERT
    num_token_types: int = 0

    @property
    def is_causal(self) -> bool:
        return self.family is not ModelFamily.BERT


_ACTIVATIONS = {
    ModelFamily.LLAMA: {"silu": "silu", "swish": "silu"},
    ModelFamily.QWEN3: {"silu": "silu", "swish": "silu"},
    ModelFamily.BERT: {
        "gelu": "gelu", "gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new",
        "relu": "relu",
    },
}  # fmt: skip


def parse_architecture(content: bytes, where: str) -> Architecture:
    """The architecture in the bytes of a config.json; `where` names the file in errors.

    Raises: InvalidInput if it is not JSON, names an unknown architecture, lacks a key, or needs an unsupported feature.
    """
    try:
        raw: Any = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{where} is not JSON ({error}): copy the model folder again") from error
    if not isinstance(raw, dict):
        raise InvalidInput(f"{where} is not a JSON object: copy the model folder again")
    config = _Config(cast("dict[str, Any]", raw), where)
    kind = config.get("model_type", str, "")
    if kind not in set(ModelFamily):
        known = ", ".join(ModelFamily)
        raise InvalidInput(f"{where}: model_type {kind!r} is not known here; use a folder of {known}")
    family = ModelFamily(kind)
    return _bert(config) if family is ModelFamily.BERT else _causal(config, family)


def config_json(architecture: Architecture) -> bytes:
    """The bytes of a config.json of a causal network, as transformers also reads it; the inverse of parsing."""
    if architecture.rope is None:
        raise InvalidInput(
            "config.json is written for causal architectures only; this one has no rotary positions"
        )
    classes = {ModelFamily.LLAMA: "LlamaForCausalLM", ModelFamily.QWEN3: "Qwen3ForCausalLM"}
    body: dict[str, Any] = {
        "architectures": [classes[architecture.family]],
        "model_type": architecture.family.value,
        "hidden_size": architecture.hidden_size,
        "num_hidden_layers": architecture.num_layers,
        "num_attention_heads": architecture.num_heads,
        "num_key_value_heads": architecture.num_kv_heads,
        "head_dim": architecture.head_dim,
        "intermediate_size": architecture.intermediate_size,
        "vocab_size": architecture.vocab_size,
        "max_position_embeddings": architecture.max_positions,
        "rms_norm_eps": architecture.norm_eps,
        "hidden_act": architecture.activation,
        "tie_word_embeddings": architecture.tie_embeddings,
        "attention_bias": architecture.attention_bias,
        "mlp_bias": architecture.mlp_bias,
        "rope_parameters": architecture.rope.parameters(),
        "dtype": "float32",
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def _causal(config: "_Config", family: ModelFamily) -> Architecture:
    config.refuse_sliding_windows()
    hidden, num_heads = config.count("hidden_size"), config.count("num_attention_heads")
    num_kv_heads = config.count("num_key_value_heads", num_heads)
    # Qwen3's default is 128, whatever the hidden size; transformers writes it out.
    head_dim = config.count("head_dim", 128 if family is ModelFamily.QWEN3 else hidden // num_heads)
    if num_heads % num_kv_heads:
        raise InvalidInput(
            f"{config.where}: {num_heads} attention heads cannot share {num_kv_heads} key-value heads"
        )
    if head_dim % 2:
        raise InvalidInput(f"{config.where}: head_dim {head_dim} is odd; rotary positions need an even one")
    max_positions = config.count("max_position_embeddings", 2048 if family is ModelFamily.LLAMA else 32768)
    if config.get("pretraining_tp", int, 1) != 1:
        raise InvalidInput(f"{config.where}: pretraining_tp other than 1 is not supported")
    return Architecture(
        family=family,
        hidden_size=hidden,
        num_layers=config.count("num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        intermediate_size=config.count("intermediate_size"),
        vocab_size=config.count("vocab_size"),
        max_positions=max_positions,
        norm_eps=config.positive("rms_norm_eps", 1e-6),
        activation=config.activation(family, "silu"),
        tie_embeddings=config.get("tie_word_embeddings", bool, False),
        attention_bias=config.get("attention_bias", bool, False),
        mlp_bias=config.get("mlp_bias", bool, False) if family is ModelFamily.LLAMA else False,
        qk_norm=family is ModelFamily.QWEN3,
        rope=parse_rope(config.raw, max_positions, config.where),
    )


def _bert(config: "_Config") -> Architecture:
    hidden, num_heads = config.count("hidden_size"), config.count("num_attention_heads")
    if hidden % num_heads:
        raise InvalidInput(f"{config.where}: hidden_size {hidden} does not divide into {num_heads} heads")
    positions = config.get("position_embedding_type", str, "absolute")
    if positions != "absolute" or config.get("is_decoder", bool, False):
        raise InvalidInput(f"{config.where}: only BERT encoders with absolute positions are supported")
    return Architecture(
        family=ModelFamily.BERT,
        hidden_size=hidden,
        num_layers=config.count("num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=hidden // num_heads,
        intermediate_size=config.count("intermediate_size"),
        vocab_size=config.count("vocab_size"),
        max_positions=config.count("max_position_embeddings", 512),
        norm_eps=config.positive("layer_norm_eps", 1e-12),
        activation=config.activation(ModelFamily.BERT, "gelu"),
        tie_embeddings=True,
        attention_bias=True,
        mlp_bias=True,
        num_token_types=config.count("type_vocab_size", 2),
    )


@dataclass(frozen=True, slots=True)
class _Config:
    """Typed access to config.json's keys, with errors that name the key."""

    raw: Mapping[str, Any]
    where: str

    def get(self, key: str, kind: type[_T], default: _T | None = None) -> _T:
        value = self.raw.get(key)
        if value is None:
            if default is None:
                raise InvalidInput(f"{self.where} lacks {key!r}: is it a whole model's config.json?")
            return default
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise InvalidInput(f"{self.where}: {key!r} is {value!r} instead of a {kind.__name__}")
        return kind(value)

    def count(self, key: str, default: int | None = None) -> int:
        value = self.get(key, int, default)
        if value < 1:
            raise InvalidInput(f"{self.where}: {key!r} is {value}: give at least 1")
        return value

    def positive(self, key: str, default: float) -> float:
        value = self.get(key, float, default)
        if not 0 < value < 1:
            raise InvalidInput(f"{self.where}: {key!r} is {value}: give a small positive number")
        return value

    def activation(self, family: ModelFamily, default: str) -> str:
        name = self.get("hidden_act", str, default)
        known = _ACTIVATIONS[family]
        if name not in known:
            names = ", ".join(sorted(known))
            raise InvalidInput(f"{self.where}: hidden_act {name!r} is not supported; known are {names}")
        return known[name]

    def refuse_sliding_windows(self) -> None:
        layer_types: object = self.raw.get("layer_types")
        full = not layer_types or (
            isinstance(layer_types, list)
            and all(kind == "full_attention" for kind in cast("list[object]", layer_types))
        )
        windowed = bool(self.raw.get("use_sliding_window")) or not full
        if windowed:
            raise InvalidInput(f"{self.where}: sliding-window attention is not supported; use another model")


CONFIG = "config.json"
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk. Chat templates and generation settings are not read."""

    path: Path
    architecture: Architecture
    weights: CheckpointWeights
    digest_file: DigestFile = file_digest

    @classmethod
    def open(cls, path: Path, digest_file: DigestFile = file_digest) -> "ModelFolder":
        """Read config.json and the headers of the weights.

        Raises: InvalidInput if the folder or one of its files is missing, damaged or of an unknown architecture.
        """
        if not path.is_dir():
            raise InvalidInput(
                f"{path} is not a folder: name a model folder with {CONFIG} and safetensors weights"
            )
        config = path / CONFIG
        try:
            content = config.read_bytes()
        except FileNotFoundError as error:
            raise InvalidInput(f"{path} holds no {CONFIG}: name a Hugging Face model folder") from error
        except OSError as error:
            raise DependencyUnavailable(f"{config} cannot be read: {error}") from error
        return cls(path, parse_architecture(content, str(config)), open_weights(path), digest_file)

    @property
    def tokenizer_file(self) -> Path:
        """Path of tokenizer.json. Raises: InvalidInput if the folder has none."""
        file = self.path / TOKENIZER
        if not file.is_file():
            raise InvalidInput(f"{self.path} holds no {TOKENIZER}: save the model's fast tokenizer there")
        return file

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over config.json, the weights' files and tokenizer.json, if present."""
        names = [CONFIG, *(file.name for file in self.weights.files)]
        if (self.path / TOKENIZER).is_file():
            names.append(TOKENIZER)
        whole = hashlib.sha256()
        for name in names:
            file = self.path / name
            try:
                whole.update(f"{name}\0{self.digest_file(file)}\n".encode())
            except OSError as error:
                raise DependencyUnavailable(f"{file} cannot be read: {error}") from error
        return whole.hexdigest()
