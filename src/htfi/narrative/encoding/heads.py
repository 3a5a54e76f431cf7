"""Heads on the encoder's embedding: sentiment, stance and others as calibrated probabilities. The scorer asks them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.narrative.encoding.cues import NUM_BUCKETS, cue_ids

Floats = NDArray[np.float32]
FORMAT = 1
FACTS_FILE, WEIGHTS_FILE = "heads.json", "heads.bin"
_MOST_LABELS, _MOST_WIDTH = 64, 4096


class HeadFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One head as its file tells it: `widths` of its layers from the embedding to the labels."""

    name: str
    labels: tuple[str, ...]
    widths: tuple[int, ...]
    uses_cues: bool
    temperature: float


class HeadsFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All heads of a folder, the encoder that they stand on, and what they were made of and reached."""

    format: int
    encoder: str  # name of the encoder whose embeddings they read
    heads: tuple[HeadFacts, ...]
    card: dict[str, str | float | int]


@dataclass(frozen=True, slots=True)
class Head:
    """Layers [in, out] with biases [out], tanh between them; `cues` [buckets, labels] speak of the words themselves.

    Probabilities are softmax of (layers + mean cue) / temperature.
    """

    name: str
    labels: tuple[str, ...]
    layers: tuple[tuple[Floats, Floats], ...]
    cues: Floats | None = None
    temperature: float = 1.0

    def logits(self, embeddings: Floats, texts: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Scores [n, labels] before softmax, temperature applied. Without texts the cues are silent."""
        hidden = embeddings
        for depth, (weights, bias) in enumerate(self.layers):
            hidden = (np.tanh(hidden) if depth else hidden) @ weights + bias
        total = hidden.astype(np.float64)
        if self.cues is not None and texts is not None:
            for row, text in enumerate(texts):
                ids = cue_ids(text)
                if len(ids):
                    total[row] += self.cues[ids].sum(axis=0, dtype=np.float64) / np.sqrt(len(ids))
        return total / self.temperature

    def probabilities(self, embeddings: Floats, texts: Sequence[str] | None = None) -> NDArray[np.float64]:
        """P [n, labels]; rows sum to 1 and are finite for any embedding."""
        return softmax(self.logits(tame(embeddings), texts))


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads of one folder. `digest` (hex) names their very bits."""

    heads: Mapping[str, Head]
    encoder: str = ""
    card: Mapping[str, str | float | int] = field(default_factory=dict[str, str | float | int])
    digest: str = ""

    @classmethod
    def load(cls, folder: Path, digest: str = "") -> "Heads":
        """Read a folder, holding it to `digest` where one is given. Raises: InvalidInput, IntegrityError."""
        try:
            facts_bytes = (folder / FACTS_FILE).read_bytes()
            weights = (folder / WEIGHTS_FILE).read_bytes()
        except OSError as error:
            raise InvalidInput(
                f"{folder}: no heads ({error.strerror}); make them with `htfi models heads`"
            ) from error
        found = _digest(facts_bytes, weights)
        if digest and found != digest:
            raise IntegrityError(
                f"{folder}: heads were changed: digest {found[:12]}, not {digest[:12]}; reinstall, or make them anew"
            )
        try:
            facts = msgspec.json.decode(facts_bytes, type=HeadsFacts)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"{folder / FACTS_FILE}: {error}") from error
        if facts.format != FORMAT:
            raise InvalidInput(f"{folder / FACTS_FILE}: format {facts.format}, this version reads {FORMAT}")
        return cls(_unpack(facts, weights, folder), facts.encoder, facts.card, found)

    def score(self, embeddings: Floats, texts: Sequence[str] | None = None) -> dict[str, NDArray[np.float64]]:
        """Probabilities [n, labels] by head; `texts` are what the embeddings were made of.

        Raises: ShapeMismatch.
        """
        if embeddings.ndim != 2 or (texts is not None and len(texts) != len(embeddings)):
            raise ShapeMismatch(f"embeddings are [n, width] beside n texts, not {embeddings.shape}")
        return {name: head.probabilities(embeddings, texts) for name, head in self.heads.items()}


def save(folder: Path, heads: Sequence[Head], encoder: str, card: Mapping[str, str | float | int]) -> str:
    """Write heads as half floats; the digest (hex) of what was written. The same heads give the same bytes."""
    facts = HeadsFacts(FORMAT, encoder, tuple(_facts(head) for head in heads), dict(card))
    weights = b"".join(
        np.ascontiguousarray(array, dtype="<f2").tobytes() for head in heads for array in _arrays(head)
    )
    facts_bytes = msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FACTS_FILE).write_bytes(facts_bytes)
    (folder / WEIGHTS_FILE).write_bytes(weights)
    return _digest(facts_bytes, weights)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def tame(embeddings: Floats) -> Floats:
    """What an encoder in trouble may hand over, made finite: not-a-number is 0, all within ±1000."""
    return np.clip(np.nan_to_num(embeddings, nan=0.0, posinf=1e3, neginf=-1e3), -1e3, 1e3).astype(np.float32)


def _digest(facts: bytes, weights: bytes) -> str:
    return hashlib.sha256(len(facts).to_bytes(8, "big") + facts + weights).hexdigest()


def _facts(head: Head) -> HeadFacts:
    widths = (head.layers[0][0].shape[0], *(weights.shape[1] for weights, _ in head.layers))
    return HeadFacts(head.name, head.labels, widths, head.cues is not None, round(head.temperature, 6))


def _arrays(head: Head) -> list[Floats]:
    arrays = [array for layer in head.layers for array in layer]
    return arrays if head.cues is None else [*arrays, head.cues]


def _unpack(facts: HeadsFacts, weights: bytes, folder: Path) -> dict[str, Head]:
    heads: dict[str, Head] = {}
    offset = 0

    def take(*shape: int) -> Floats:
        nonlocal offset
        size = 2 * int(np.prod(shape))
        if offset + size > len(weights):
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: ends early, at {len(weights)} bytes")
        array = np.frombuffer(weights, dtype="<f2", count=size // 2, offset=offset).reshape(shape)
        offset += size
        if not np.isfinite(array).all():
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: holds numbers that are not finite")
        return array.astype(np.float32)

    for told in facts.heads:
        usable = (
            2 <= len(told.labels) <= _MOST_LABELS
            and len(told.widths) >= 2
            and all(0 < width <= _MOST_WIDTH for width in told.widths)
            and told.widths[-1] == len(told.labels)
            and told.temperature > 0
        )
        if not usable:
            raise InvalidInput(f"{folder / FACTS_FILE}: head {told.name!r} has unusable sizes")
        layers = tuple((take(wide, narrow), take(narrow)) for wide, narrow in pairwise(told.widths))
        cues = take(NUM_BUCKETS, len(told.labels)) if told.uses_cues else None
        heads[told.name] = Head(told.name, told.labels, layers, cues, told.temperature)
    if offset != len(weights):
        raise InvalidInput(f"{folder / WEIGHTS_FILE}: {len(weights) - offset} bytes too many")
    return heads
