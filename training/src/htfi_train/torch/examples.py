"""What a draft is taught: texts, where a token was open in them, and what was admitted there. Distilling cuts batches.

Needs no torch. Which example lands in which batch follows from the seed alone.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.ports import Ids
from htfi.domain.errors import InvalidInput

ANSWER, PATHS, REHEARSAL = range(3)
KIND_NAMES = ("answers", "paths", "rehearsal")
ALL_TOKENS = 0  # the set that admits every token

_ROUND_TO = 16  # steps of a row: whole blocks of the processor's bfloat16 products


class DistillationExample(NamedTuple):
    """One text: `places` are those of the tokens to predict, each with what it counts and which set it came from."""

    ids: Sequence[int]
    places: Sequence[int]
    weights: Sequence[float]
    admitted: Sequence[int]
    temperature: float
    kind: int


class ExampleBatch(NamedTuple):
    """Texts padded on the right, ids int64 [B, T]; N open places: `picked`, the flat place one before each, with
    weights, temperatures, sets and kinds [N]. `tokens` counts those that are no padding."""

    ids: Ids
    picked: Ids
    weights: NDArray[np.float32]
    temperatures: NDArray[np.float32]
    admitted: Ids
    kinds: Ids
    tokens: int


class AdmittedTokenSets:
    """Sets of tokens by number; number 0 admits all. Forms repeat, so there are few."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._numbers: dict[bytes, int] = {}
        self._sets: list[Ids] = []

    def number(self, ids: Ids) -> int:
        name = ids.tobytes()
        if name not in self._numbers:
            self._sets.append(ids)
            self._numbers[name] = len(self._sets)
        return self._numbers[name]

    def mask(self) -> NDArray[np.bool_]:
        """Which token each set admits, [sets + 1, V]."""
        mask = np.zeros((len(self._sets) + 1, self._vocab_size), np.bool_)
        mask[ALL_TOKENS] = True
        for number, ids in enumerate(self._sets, 1):
            mask[number, ids] = True
        return mask


def example_batches(
    examples: Sequence[DistillationExample],
    rehearsal: Iterator[DistillationExample],
    *,
    share: float,
    pool: int,
    batch_tokens: int,
    seed: int,
) -> Iterator[ExampleBatch]:
    """Endless: each pool draws a `share` from the replayed questions, the rest from the examples, which come in a new
    order each time. Raises: InvalidInput, when there is no example or the replayed questions end."""
    if not examples:
        raise InvalidInput("no examples to learn from")
    order: list[int] = []
    num_rehearsed = round(pool * share)
    turn = 0
    while True:
        draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, turn))))
        chosen = list(islice(rehearsal, num_rehearsed))
        if len(chosen) < num_rehearsed:
            raise InvalidInput("the replayed questions ended: they must be endless")
        while len(chosen) < pool:
            if not order:
                order = draw.permutation(len(examples)).tolist()
            chosen.append(examples[order.pop()])
        yield from _cut(chosen, batch_tokens, draw)
        turn += 1


def _cut(
    examples: list[DistillationExample], batch_tokens: int, draw: np.random.Generator
) -> list[ExampleBatch]:
    """Batches of like length, of about `batch_tokens` with padding, in random order."""
    examples = sorted(examples, key=lambda example: len(example.ids))
    groups: list[list[DistillationExample]] = [[]]
    for example in examples:
        if groups[-1] and (len(groups[-1]) + 1) * _padded(example) > batch_tokens:
            groups.append([])
        groups[-1].append(example)
    return [_batch(groups[int(place)]) for place in draw.permutation(len(groups))]


def _padded(example: DistillationExample) -> int:
    return -(-len(example.ids) // _ROUND_TO) * _ROUND_TO


def _batch(group: Sequence[DistillationExample]) -> ExampleBatch:
    width = max(map(_padded, group))
    ids = np.zeros((len(group), width), np.int64)
    for row, example in enumerate(group):
        ids[row, : len(example.ids)] = example.ids
    nums = [len(example.places) for example in group]
    return ExampleBatch(
        ids,
        np.concatenate(
            [row * width + np.array(example.places, np.int64) - 1 for row, example in enumerate(group)]
        ),
        np.concatenate([np.array(example.weights, np.float32) for example in group]),
        np.repeat(np.array([example.temperature for example in group], np.float32), nums),
        np.concatenate([np.array(example.admitted, np.int64) for example in group]),
        np.repeat(np.array([example.kind for example in group], np.int64), nums),
        sum(len(example.ids) for example in group),
    )
