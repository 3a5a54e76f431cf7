"""Rotary positions: their description in config.json and the angles that follow from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput


class RopeKind(StrEnum):
    """Scalings by their Hugging Face `rope_type`."""

    DEFAULT = "default"
    LINEAR = "linear"
    DYNAMIC = (
        "dynamic"  # changes angles only beyond the trained length, which is never reached: same as default
    )
    LLAMA3 = "llama3"
    YARN = "yarn"


@dataclass(frozen=True, slots=True)
class Rope:
    """Base and scaling. Fields that a kind does not use keep their defaults; `original_positions` 0 means not given."""

    theta: float = 10_000.0
    kind: RopeKind = RopeKind.DEFAULT
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_positions: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def parameters(self) -> dict[str, Any]:
        """As the `rope_parameters` of a config.json."""
        body: dict[str, Any] = {"rope_type": self.kind.value, "rope_theta": self.theta}
        if self.kind is not RopeKind.DEFAULT:
            body["factor"] = self.factor
        if self.kind in (RopeKind.LLAMA3, RopeKind.YARN):
            body["original_max_position_embeddings"] = self.original_positions
        if self.kind is RopeKind.LLAMA3:
            body |= {"low_freq_factor": self.low_freq_factor, "high_freq_factor": self.high_freq_factor}
        if self.kind is RopeKind.YARN:
            body |= {"beta_fast": self.beta_fast, "beta_slow": self.beta_slow, "truncate": self.truncate}
            scales = ("attention_factor", "mscale", "mscale_all_dim")
            body |= {key: value for key in scales if (value := getattr(self, key)) is not None}
        return body


def parse_rope(config: Mapping[str, Any], max_positions: int, where: str) -> Rope:
    """The rope of a config.json, from `rope_theta` and `rope_scaling` or from newer `rope_parameters`.

    Raises: InvalidInput for a scaling that is unknown, lacks a value or rotates only part of a head.
    """
    rope_config: dict[str, Any] = {
        "rope_theta": config.get("rope_theta"),
        "partial": config.get("partial_rotary_factor"),
    }
    for key in ("rope_scaling", "rope_parameters"):
        value = config.get(key)
        if value is not None and not isinstance(value, dict):
            raise InvalidInput(f"{where}: {key!r} is {value!r} instead of an object")
        rope_config |= {k: v for k, v in cast("dict[str, Any]", value or {}).items() if v is not None}
    if (rope_config.get("partial_rotary_factor") or rope_config["partial"] or 1.0) != 1.0:
        raise InvalidInput(f"{where}: rotary positions over part of a head are not supported")
    kind = rope_config.get("rope_type") or rope_config.get("type") or "default"
    if kind not in list(RopeKind):
        known = ", ".join(RopeKind)
        raise InvalidInput(f"{where}: rope_type {kind!r} is not supported; known are {known}")
    kind = RopeKind(kind)
    theta = _number(rope_config, "rope_theta", where, 10_000.0)
    if kind is RopeKind.DEFAULT:
        return Rope(theta)
    factor = _number(rope_config, "factor", where)
    if kind in (RopeKind.LINEAR, RopeKind.DYNAMIC):
        return Rope(theta, kind, factor)
    original = int(_number(rope_config, "original_max_position_embeddings", where, float(max_positions)))
    if kind is RopeKind.LLAMA3:
        low, high = (_number(rope_config, f"{end}_freq_factor", where) for end in ("low", "high"))
        if high <= low:
            raise InvalidInput(f"{where}: high_freq_factor {high} must exceed low_freq_factor {low}")
        return Rope(theta, kind, factor, low, high, original)
    return Rope(
        theta,
        kind,
        factor,
        original_positions=original,
        beta_fast=_number(rope_config, "beta_fast", where, 32.0),
        beta_slow=_number(rope_config, "beta_slow", where, 1.0),
        truncate=bool(rope_config.get("truncate", True)),
        **{
            key: _number(rope_config, key, where)
            for key in ("attention_factor", "mscale", "mscale_all_dim")
            if rope_config.get(key)
        },
    )


def _number(rope_config: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = rope_config.get(key)
    if value is None:
        value = default
    if type(value) not in (int, float) or not 0 < cast("float", value) < math.inf:
        raise InvalidInput(f"{where}: the rope's {key!r} is {value!r}: give a positive number")
    return float(cast("float", value))


def rotary_frequencies(rope: Rope, head_dim: int) -> tuple[NDArray[np.float32], float]:
    """Angles per position [head_dim / 2], and the factor that cosine and sine are multiplied by.

    Source: RoFormer, arXiv 2104.09864; YaRN, arXiv 2309.00071; Llama 3.1's model card for llama3.
    """
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    plain = (np.float32(1) / np.float32(rope.theta) ** exponents).astype(np.float32)
    match rope.kind:
        case RopeKind.DEFAULT | RopeKind.DYNAMIC:
            return plain, 1.0
        case RopeKind.LINEAR:
            return (plain / np.float32(rope.factor)).astype(np.float32), 1.0
        case RopeKind.LLAMA3:
            return _llama3(rope, plain), 1.0
        case RopeKind.YARN:
            return _yarn(rope, plain, head_dim), _yarn_attention_factor(rope)


def _llama3(rope: Rope, plain: NDArray[np.float32]) -> NDArray[np.float32]:
    turns = rope.original_positions * plain / (2 * math.pi)  # over the trained length
    smooth = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    smooth = np.clip(smooth, 0, 1)
    return ((1 - smooth) * plain / rope.factor + smooth * plain).astype(np.float32)


def _yarn(rope: Rope, plain: NDArray[np.float32], head_dim: int) -> NDArray[np.float32]:
    def place(turns: float) -> float:
        """The pair of dimensions that turns this often over the trained length."""
        return (
            head_dim * math.log(rope.original_positions / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))
        )

    low, high = place(rope.beta_fast), place(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    width = (high - low) or 0.001
    ramp = np.clip((np.arange(head_dim // 2, dtype=np.float32) - low) / width, 0, 1)
    return (plain / rope.factor * ramp + plain * (1 - ramp)).astype(np.float32)


def _yarn_attention_factor(rope: Rope) -> float:
    if rope.attention_factor is not None:
        return rope.attention_factor

    def grown(scale: float) -> float:
        return 1.0 if rope.factor <= 1 else 0.1 * scale * math.log(rope.factor) + 1.0

    if rope.mscale and rope.mscale_all_dim:
        return grown(rope.mscale) / grown(rope.mscale_all_dim)
    return grown(1.0)
