"""Heads that read the states of an encoder tuned for facts: kind of event, tone, axis, modality, tense, and by token
the role of a party and what the event means for it. Numpy alone; `htfi models facts` trains and writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.files import write_atomically
from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.heads import Floats, clip_finite, heads_digest, read_heads_files, softmax
from htfi.narrative.encoding.products import padded_weights, pooled_states, row_products, token_products
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.record import KINDS, ROLES, Modality, Tense

if TYPE_CHECKING:
    from htfi.narrative.encoding.heads_core import StateHeads

FORMAT = 1
METADATA_FILE, WEIGHTS_FILE = "facts.json", "facts.bin"
SIDES = ("up", "neutral", "down")
LABELS: Mapping[str, tuple[str, ...]] = {
    "event": tuple(KINDS),
    "tone": SIDES,
    "axis": SIDES,
    "modality": tuple(Modality),
    "tense": tuple(Tense),
}
TOKEN_LABELS: Mapping[str, tuple[str, ...]] = {"roles": (*ROLES, "none"), "effects": SIDES}


_SIZES = np.array([len(labels) for labels in LABELS.values()])
_ENDS = np.cumsum(_SIZES)
_STARTS = _ENDS - _SIZES
_PLACES = dict(zip(LABELS, zip(_STARTS.tolist(), _ENDS.tolist(), strict=True), strict=True))


class FactHeadsMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The heads as their file describes them: the width of a state, labels and temperature by head, the training."""

    format: int
    encoder: str
    width: int
    labels: dict[str, tuple[str, ...]]
    temperatures: dict[str, float]
    card: dict[str, str | float | int]


@dataclass(frozen=True)
class FactHeads:
    """Linear heads. Shapes: attention [D]; weights [2D, labels] and biases by head of the text; token weights
    [D, labels] and biases by head of the tokens. A text is the mean of its states beside their mean by attention.
    """

    encoder: str
    attention: Floats
    weights: Mapping[str, Floats]
    biases: Mapping[str, Floats]
    temperatures: Mapping[str, float]
    card: Mapping[str, str | float | int]
    digest: str = ""

    def read(self, states: Floats, spans: NDArray[np.int64]) -> FactScores:
        """The scores of one text from its states [T, D] and the spans [T, 2] of its tokens."""
        return self.read_each([states], [spans])[0]

    def read_each(
        self,
        states: Sequence[Floats],
        spans: Sequence[NDArray[np.int64]],
        other_tones: NDArray[np.float64] | None = None,
    ) -> list[FactScores]:
        """The scores of texts from their states n × [T, D] and the spans n × [T, 2] of their tokens. Where
        `other_tones` [n, 3] are given, the tone is the mean of them and of what the heads here say.

        Products are each text's own, as their bits depend on what is multiplied together; the rest is done at once.
        """
        if not states:
            return []
        found = None if compiled.heads is None else self._compiled.shares([*states])
        if found is None:
            states = [clip_finite(one) for one in states]
            of_text = _shares_of_groups(self._text_logits(states).astype(np.float64) / self._warmths)
            of_each_token = [self._token_shares(name, states) for name in TOKEN_LABELS]
        else:
            of_text, of_each_token = found
        if other_tones is not None:
            tones = of_text[:, slice(*_PLACES["tone"])]
            tones += other_tones
            tones /= 2.0
        roles, effects = of_each_token
        places = pairwise(accumulate(map(len, states), initial=0))
        of_roles, of_effects = zip(
            *((roles[first:last], effects[first:last]) for first, last in places), strict=True
        )
        event, tone, axis, modality, tense = (
            [row[start:end] for row in of_text] for start, end in _PLACES.values()
        )
        return [
            FactScores(*one)
            for one in zip(event, tone, axis, modality, tense, spans, of_roles, of_effects, strict=True)
        ]

    @cached_property
    def _compiled(self) -> "StateHeads":
        """What reads all heads in one call."""
        return compiled.heads.StateHeads(
            self.attention,
            [self.weights[name] for name in LABELS],
            self._biases,
            self._warmths,
            [
                (self._token_weights[name], self.biases[name], self.temperatures.get(name, 1.0))
                for name in TOKEN_LABELS
            ],
        )

    def _text_logits(self, states: Sequence[Floats]) -> Floats:
        """Of the heads of the text, [n, labels], from the mean of its states beside their mean by attention."""
        logits: Floats = np.empty((len(states), len(self._biases)), np.float32)
        pooled = pooled_states(states, self.attention)
        for name in LABELS:
            row_products(pooled, self.weights[name], logits[:, slice(*_PLACES[name])])
        logits += self._biases
        return logits

    @cached_property
    def _token_weights(self) -> Mapping[str, Floats]:
        return {name: padded_weights(self.weights[name]) for name in TOKEN_LABELS}

    @cached_property
    def _biases(self) -> Floats:
        """Of the heads of the text, one behind the other."""
        return np.concatenate([self.biases[name] for name in LABELS])

    @cached_property
    def _warmths(self) -> NDArray[np.float64]:
        """The temperature of each label of the heads of the text."""
        return np.repeat([self.temperatures.get(name, 1.0) for name in LABELS], _SIZES)

    def _token_shares(self, name: str, states: Sequence[Floats]) -> NDArray[np.float64]:
        """Of a head of the tokens, [sum of T, labels]."""
        logits = token_products(states, self._token_weights[name], len(TOKEN_LABELS[name]))
        logits += self.biases[name]
        return softmax(logits.astype(np.float64) / self.temperatures.get(name, 1.0))

    @classmethod
    def load(cls, folder: Path, digest: str = "") -> "FactHeads":
        """Read a folder, and check its `digest` if one is given. Raises: InvalidInput, IntegrityError."""
        described, raw, found = read_heads_files(
            folder / METADATA_FILE, folder / WEIGHTS_FILE, digest, "htfi models facts"
        )
        try:
            metadata = msgspec.json.decode(described, type=FactHeadsMetadata)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"{folder / METADATA_FILE}: {error}") from error
        expected = {**LABELS, **TOKEN_LABELS}
        if metadata.format != FORMAT or metadata.labels != expected:
            raise InvalidInput(
                f"{folder / METADATA_FILE}: heads of another version; create them again with `htfi models facts`"
            )
        values = np.frombuffer(raw, "<f2").astype(np.float32)
        sizes = _sizes(metadata.width)
        if (
            len(values) != sum(int(np.prod(shape)) for shape in sizes.values())
            or not np.isfinite(values).all()
        ):
            raise InvalidInput(f"{folder / WEIGHTS_FILE}: it does not fit its description; create it again")
        arrays: dict[str, Floats] = {}
        start = 0
        for name, shape in sizes.items():
            end = start + int(np.prod(shape))
            arrays[name] = values[start:end].reshape(shape)
            start = end
        return cls(
            metadata.encoder,
            arrays["attention"],
            {name: arrays[f"{name}.weights"] for name in expected},
            {name: arrays[f"{name}.bias"] for name in expected},
            metadata.temperatures,
            metadata.card,
            found,
        )

    def save(self, folder: Path) -> str:
        """Write as half floats; the digest (hex) of what was written. The same heads give the same bytes."""
        arrays = {"attention": self.attention}
        for name in (*LABELS, *TOKEN_LABELS):
            arrays |= {f"{name}.weights": self.weights[name], f"{name}.bias": self.biases[name]}
        labels = {**LABELS, **TOKEN_LABELS}
        metadata = FactHeadsMetadata(
            FORMAT, self.encoder, len(self.attention), labels, dict(self.temperatures), dict(self.card)
        )
        described = msgspec.json.format(msgspec.json.encode(metadata), indent=1) + b"\n"
        raw = b"".join(
            np.ascontiguousarray(arrays[name], "<f2").tobytes() for name in _sizes(len(self.attention))
        )
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / METADATA_FILE, described, private=False)
        write_atomically(folder / WEIGHTS_FILE, raw, private=False)
        return heads_digest(described, raw)


def _shares_of_groups(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """`softmax` of the logits [n, labels] of each head of the text, all in one pass, with the same bits: `reduceat`
    would add in another order than `reduce`, so sums are made head by head.
    """
    powers = np.exp(logits - np.repeat(np.maximum.reduceat(logits, _STARTS, axis=1), _SIZES, axis=1))
    sums = [np.add.reduce(powers[:, start:end], axis=1) for start, end in _PLACES.values()]
    return powers / np.repeat(np.stack(sums, axis=1), _SIZES, axis=1)


def _sizes(width: int) -> dict[str, tuple[int, ...]]:
    """The arrays of the file, in order."""
    sizes: dict[str, tuple[int, ...]] = {"attention": (width,)}
    for heads, inputs in ((LABELS, 2 * width), (TOKEN_LABELS, width)):
        for name, labels in heads.items():
            sizes |= {f"{name}.weights": (inputs, len(labels)), f"{name}.bias": (len(labels),)}
    return sizes
