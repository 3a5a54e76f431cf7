"""A small endless source of stories that a tiny network learns in seconds: runs of counting in a random stride."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from htfi.domain.errors import InvalidInput

SOURCE = "training_stories:stories"
VOCAB = 40


def stories(seed: int, start: int, tokenizer_file: str) -> Iterator[tuple[list[int], list[float], list[int]]]:
    number = start
    while True:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, number))))
        stride, length = int(rng.integers(1, 4)), int(rng.integers(12, 24))
        ids = [int(rng.integers(VOCAB)), *([stride] * 2)]
        while len(ids) < length:
            ids.append((ids[-1] + stride) % VOCAB)
        yield (
            ids,
            [0.0, 0.1, 1.0] + [1.0] * (length - 3),
            [1, 1, 2] + [3, 4] * (length // 2 - 2) + [4] * (1 + length % 2),
        )
        number += 1


def dry(seed: int, start: int, tokenizer_file: str) -> Iterator[tuple[list[int], list[float], list[int]]]:
    yield [1, 2], [0.0, 1.0], [1, 1]


def refusing(
    seed: int, start: int, tokenizer_file: str
) -> Iterator[tuple[list[int], list[float], list[int]]]:
    raise InvalidInput("these stories are refused")


def dying(seed: int, start: int, tokenizer_file: str) -> Iterator[tuple[list[int], list[float], list[int]]]:
    raise SystemExit(3)


def write_tokenizer(path: Path) -> Path:
    path.write_bytes(msgspec.json.encode({"version": "1.0"}))
    return path
