"""Heads on the encoder's output and on hashed words of the text: sentiment, stance and others, as probabilities."""

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.domain.files import write_atomically
from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.products import row_products, token_products

if TYPE_CHECKING:
    from htfi.narrative.encoding.heads_core import FeatureHeads

Floats = NDArray[np.float32]

MAX_WORDS = 96

_WORD = re.compile(
    r"https?://\S+|\$[a-z][a-z.]{0,6}\b|@\w+|[+-]?\d[\d,.]*\s?(?:%|percent\b|per cent\b|pct\b|bps?\b)|[+-]?\d[\d,.]*"
    r"|[a-z]+(?:n't|n’t)\b|[a-z]+|[?!]|[\U0001f300-\U0001faff\u2190-\u27bf]"
)


def cue_words(text: str) -> list[str]:
    """Lower-case words; links, cash tags, user names and numbers become their kind."""
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        first = word[0]
        if first.isdigit() or (first in "+-" and len(word) > 1):
            sign = first if first in "+-" else ""
            share = word[-1] in "%tps"
            found.append(sign + ("<pct>" if share else "<num>"))
        elif word.startswith("http"):
            found.append("<link>")
        elif first == "$":
            found.append("<tag>")
        elif first == "@":
            found.append("<user>")
        else:
            found.append(word.replace("’", "'"))
        if len(found) == MAX_WORDS:
            break
    return found


@lru_cache(maxsize=1_024)  # the heads of news and those of facts ask for the same texts
def cue_ids(text: str) -> tuple[int, ...]:
    """CRC-32 of the text's words and of its pairs of neighbours, each once, in rising order."""
    if compiled.cues is not None and (ids := compiled.cues.cue_ids(text)) is not None:
        return ids
    found = cue_words(text)
    grams = [*found, *(f"{one} {two}" for one, two in itertools.pairwise(found))]
    return tuple(sorted({crc32(gram.encode()) for gram in grams}))


FORMAT = 1
METADATA_FILE, WEIGHTS_FILE = "heads.json", "heads.bin"
_MAX_LABELS, _MAX_WIDTH, _MAX_CUES = 64, 4096, 1 << 20


class HeadMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One head as its file describes it: `width` of a point, `num_seen` features per token, `num_cues` known words."""

    name: str
    labels: tuple[str, ...]
    width: int
    num_seen: int
    num_cues: int
    temperature: float


class HeadsMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All heads of a folder, the encoder that they need, their training data and their scores."""

    format: int
    encoder: str  # name of the encoder whose points they read
    heads: tuple[HeadMetadata, ...]
    card: dict[str, str | float | int]


@dataclass(frozen=True)
class Head:
    """Predicts labels from a text's point, from the states of its tokens, and from its words.

    Shapes: token_weights [D, S] and token_biases [S] give features of each token, tanh(state · token_weights +
    token_biases), of which the largest and the mean over the tokens count; weights [D + 2S, labels] and bias [labels]
    weigh the point and these; cue_weights [K, labels] are those of the words with the hashes `cue_hashes` [K], rising.
    Probabilities are the softmax of the sum over `temperature`.
    """

    name: str
    labels: tuple[str, ...]
    weights: Floats
    bias: Floats
    token_weights: Floats
    token_biases: Floats
    temperature: float = 1.0
    cue_hashes: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    cue_weights: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32))

    def probabilities(
        self, points: Floats, states: Sequence[Floats], words: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        """P [n, labels] from points [n, D], states n × [T, D] and the texts' cues; rows are finite and sum to 1.

        Each row is computed by itself, so that batching changes no bit. Raises: ShapeMismatch.
        """
        width = len(self.token_weights)
        if points.ndim != 2 or points.shape[1] != width or not (len(states) == len(words) == len(points)):
            raise ShapeMismatch(
                f"the head {self.name} reads n points of {width}, n states and n texts, "
                f"not {list(points.shape)}, {len(states)} and {len(words)}"
            )
        if compiled.heads is not None:
            found = self._compiled.shares(points, [*states], words)
            if found is not None:
                return found
        rows = (
            _head_logits(points, states, self.token_weights, self.token_biases, self.weights) + self.bias
        ).astype(np.float64)
        rows += self.cue_logits(words)
        return softmax(rows / self.temperature)

    @cached_property
    def _compiled(self) -> "FeatureHeads":
        return _compiled_heads(
            [self], self.token_weights, self.token_biases, self.weights, self.bias, is_alone=True
        )

    def cue_logits(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The sum of the weights of the known cues of each text, [n, labels], by the root of their number."""
        found: Floats = np.zeros((len(texts), len(self.labels)), np.float32)
        if not len(self.cue_hashes):
            return found
        if compiled.cues is not None:
            compiled.cues.weigh(self.cue_hashes, self.cue_weights, [tuple(words) for words in texts], found)
            return found
        for words, row in zip(texts, found, strict=True):
            hashes = np.array(words, dtype=np.uint32)
            places = np.minimum(np.searchsorted(self.cue_hashes, hashes), len(self.cue_hashes) - 1)
            places = places[self.cue_hashes[places] == hashes]
            row[:] = np.add.reduce(self.cue_weights[places], axis=0) / np.float32(max(1, len(places)) ** 0.5)
        return found


def _compiled_heads(
    heads: Sequence[Head],
    token_weights: Floats,
    token_biases: Floats,
    weights: Floats,
    bias: Floats,
    *,
    is_alone: bool,
) -> "FeatureHeads":
    """What reads these heads in one call."""
    return compiled.heads.FeatureHeads(
        token_weights,
        token_biases,
        weights,
        bias,
        np.array([head.temperature for head in heads for _ in head.labels]),
        [len(head.labels) for head in heads],
        [(head.cue_hashes, head.cue_weights) for head in heads],
        is_alone,
    )


def _head_logits(
    points: Floats, states: Sequence[Floats], token_weights: Floats, token_biases: Floats, scale: Floats
) -> Floats:
    """Logits [n, labels] of points [n, D] and states n × [T, D], without what is the same for every text.

    The products are each text's own, as their bits depend on the number of rows that are multiplied together.
    """
    ends = np.cumsum([len(one) for one in states], dtype=np.intp)
    width, num_seen = token_weights.shape
    seen = token_products([clip_finite(one) for one in states], token_weights, num_seen)  # [sum of T, S]
    seen += token_biases
    np.tanh(seen, out=seen)
    weighed: Floats = np.empty((len(points), width + 2 * num_seen), np.float32)
    weighed[:, :width] = clip_finite(points)
    _pool(seen, ends, weighed[:, width:])
    logits: Floats = np.empty((len(points), scale.shape[1]), np.float32)
    row_products(weighed, scale, logits)
    return logits


def _pool(seen: Floats, ends: NDArray[np.intp], out: Floats) -> None:
    """The largest feature of a text's tokens, and behind it their mean, into a row each, [n, 2S]."""
    num_seen = seen.shape[1]
    if compiled.cues is not None and len(ends):
        compiled.cues.pool(seen, ends, out[:, :num_seen], out[:, num_seen:])
        return
    start = 0
    for row, end in zip(out, ends.tolist(), strict=True):
        row[:num_seen] = np.maximum.reduce(seen[start:end], axis=0)
        row[num_seen:] = np.add.reduce(seen[start:end], axis=0) / np.float32(end - start)
        start = end


@dataclass(frozen=True)
class Heads:
    """The heads of one folder. `digest` (hex) names their bits."""

    heads: Mapping[str, Head]
    encoder: str = ""
    card: Mapping[str, str | float | int] = field(default_factory=dict[str, str | float | int])
    digest: str = ""

    @classmethod
    def load(cls, folder: Path, digest: str = "") -> "Heads":
        """Read a folder, and check its `digest` if one is given. Raises: InvalidInput, IntegrityError."""
        facts_bytes, weights, found = read_heads_files(
            folder / METADATA_FILE, folder / WEIGHTS_FILE, digest, "htfi models heads"
        )
        try:
            facts = msgspec.json.decode(facts_bytes, type=HeadsMetadata)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"{folder / METADATA_FILE}: {error}") from error
        if facts.format != FORMAT:
            raise InvalidInput(
                f"{folder / METADATA_FILE}: format {facts.format}, this version reads {FORMAT}"
            )
        return cls(_unpack_heads(facts, weights, folder), facts.encoder, facts.card, found)

    def score(
        self, points: Floats, states: Sequence[Floats], texts: Sequence[str]
    ) -> dict[str, NDArray[np.float64]]:
        """Probabilities [n, labels] by head; see `Head.probabilities`. Raises: ShapeMismatch."""
        words = [cue_ids(text) for text in texts]
        if not self.heads or any(len(head.token_weights) != points.shape[-1] for head in self.heads.values()):
            return {name: head.probabilities(points, states, words) for name, head in self.heads.items()}
        if points.ndim != 2 or not (len(states) == len(words) == len(points)):
            raise ShapeMismatch(
                f"heads read points [n, D], n states and n texts, not {list(points.shape)}, {len(states)}, {len(words)}"
            )
        if compiled.heads is not None:
            found = self._compiled.shares(points, [*states], words)
            if found is not None:
                return {name: found[:, of_head] for name, of_head in self._places.items()}
        token_weights, token_biases, scale, bias = self._stacked
        rows = _head_logits(points, states, token_weights, token_biases, scale).astype(np.float64)
        rows += bias
        return {
            name: softmax((rows[:, self._places[name]] + head.cue_logits(words)) / head.temperature)
            for name, head in self.heads.items()
        }

    @cached_property
    def _places(self) -> Mapping[str, slice]:
        """Where the labels of each head stand among those of all."""
        ends = itertools.accumulate((len(head.labels) for head in self.heads.values()), initial=0)
        return {name: slice(*at) for name, at in zip(self.heads, itertools.pairwise(ends), strict=True)}

    @cached_property
    def _compiled(self) -> "FeatureHeads":
        return _compiled_heads(list(self.heads.values()), *self._stacked, is_alone=False)

    @cached_property
    def _stacked(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All heads as one with the labels of all, so that a token is looked at once."""
        heads = list(self.heads.values())
        width, num_seen = len(heads[0].token_weights), sum(head.token_weights.shape[1] for head in heads)
        scale = np.zeros((width + 2 * num_seen, sum(len(head.labels) for head in heads)), np.float32)
        label = seen = 0
        for head in heads:
            num, of_head = len(head.labels), head.token_weights.shape[1]
            at = slice(label, label + num)
            highest, mean = width + seen, width + num_seen + seen
            scale[:width, at] = head.weights[:width]
            scale[highest : highest + of_head, at] = head.weights[width : width + of_head]
            scale[mean : mean + of_head, at] = head.weights[width + of_head :]
            label, seen = label + num, seen + of_head
        return (
            np.concatenate([head.token_weights for head in heads], axis=1),
            np.concatenate([head.token_biases for head in heads]),
            scale,
            np.concatenate([head.bias for head in heads]),
        )


def save_heads(
    folder: Path, heads: Sequence[Head], encoder: str, card: Mapping[str, str | float | int]
) -> str:
    """Write heads as half floats; the digest (hex) of what was written. The same heads give the same bytes."""
    facts = HeadsMetadata(FORMAT, encoder, tuple(_metadata(head) for head in heads), dict(card))
    weights = b"".join(
        b"".join(np.ascontiguousarray(array, dtype="<f2").tobytes() for array in _half_float_arrays(head))
        + np.ascontiguousarray(head.cue_hashes, dtype="<u4").tobytes()
        for head in heads
    )
    facts_bytes = msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / METADATA_FILE, facts_bytes, private=False)
    write_atomically(folder / WEIGHTS_FILE, weights, private=False)
    return heads_digest(facts_bytes, weights)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along the last axis."""
    powers = np.exp(logits - np.maximum.reduce(logits, axis=-1, keepdims=True))
    return powers / np.add.reduce(powers, axis=-1, keepdims=True)


def clip_finite(embeddings: Floats) -> Floats:
    """Embeddings of a failing encoder made finite: not-a-number becomes 0, everything lies within ±1000."""
    if (
        compiled.cues is not None
        and embeddings.dtype == np.float32
        and embeddings.ndim == 2
        and embeddings.flags.c_contiguous
        and compiled.cues.are_small(embeddings)
    ):
        return embeddings
    flat = embeddings.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        if flat.dtype == np.float32 and float(flat @ flat) < 1e6:  # each is below the length of all
            return embeddings
    return np.clip(np.nan_to_num(embeddings, nan=0.0, posinf=1e3, neginf=-1e3), -1e3, 1e3).astype(np.float32)


def read_heads_files(
    metadata_file: Path, weights_file: Path, digest: str, command: str
) -> tuple[bytes, bytes, str]:
    """The bytes of both files of a folder's heads, and their digest; `command` is what makes such heads.

    Raises: InvalidInput, where a file is missing; IntegrityError, where `digest` is given and is another.
    """
    folder = metadata_file.parent
    try:
        metadata, weights = metadata_file.read_bytes(), weights_file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{folder}: no heads ({error.strerror}); create them with `{command}`") from error
    found = heads_digest(metadata, weights)
    if digest and found != digest:
        raise IntegrityError(
            f"{folder}: the heads were changed: digest {found[:12]}, not {digest[:12]}; reinstall, or "
            "create them again"
        )
    return metadata, weights, found


def heads_digest(facts: bytes, weights: bytes) -> str:
    """SHA-256 (hex) of heads by the bytes of their two files."""
    return hashlib.sha256(len(facts).to_bytes(8, "big") + facts + weights).hexdigest()


def _metadata(head: Head) -> HeadMetadata:
    width, num_seen = head.token_weights.shape
    return HeadMetadata(
        head.name, head.labels, width, num_seen, len(head.cue_hashes), round(head.temperature, 4)
    )


def _half_float_arrays(head: Head) -> tuple[Floats, ...]:
    return head.weights, head.bias, head.token_weights, head.token_biases, head.cue_weights


def _unpack_heads(facts: HeadsMetadata, weights: bytes, folder: Path) -> dict[str, Head]:
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
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: contains numbers that are not finite")
        return array.astype(np.float32)

    def take_hashes(num: int) -> NDArray[np.uint32]:
        nonlocal offset
        if offset + 4 * num > len(weights):
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: ends early, at {len(weights)} bytes")
        hashes = np.frombuffer(weights, dtype="<u4", count=num, offset=offset).astype(np.uint32)
        offset += 4 * num
        if not (hashes[1:] > hashes[:-1]).all():
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: its word hashes are not in order")
        return hashes

    for metadata in facts.heads:
        num = len(metadata.labels)
        sizes = (
            (metadata.width, _MAX_WIDTH),
            (metadata.num_seen, _MAX_WIDTH),
            (metadata.num_cues + 1, _MAX_CUES),
        )
        sane = 2 <= num <= _MAX_LABELS and all(0 < size <= most for size, most in sizes)
        if not sane or not 0.01 <= metadata.temperature <= 100.0:
            raise InvalidInput(f"{folder / METADATA_FILE}: head {metadata.name!r} has unusable sizes")
        scale, bias = take(metadata.width + 2 * metadata.num_seen, num), take(num)
        token_weights, token_biases = take(metadata.width, metadata.num_seen), take(metadata.num_seen)
        cues = take(metadata.num_cues, num)
        known = take_hashes(metadata.num_cues)
        heads[metadata.name] = Head(
            metadata.name,
            metadata.labels,
            scale,
            bias,
            token_weights,
            token_biases,
            metadata.temperature,
            known,
            cues,
        )
    if offset != len(weights):
        raise InvalidInput(f"{folder / WEIGHTS_FILE}: {len(weights) - offset} bytes too long")
    return heads
