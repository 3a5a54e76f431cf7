"""Cheap scalar draws from one seeded generator, for the companies, headlines and stories of a simulated world."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_BLOCK = 4096


class Rng:
    """Draws in blocks: a scalar call on a numpy generator costs more than the choice it serves."""

    __slots__ = ("_at", "_block", "_generator")

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self._block: list[float] = []
        self._at = 0

    def uniform(self) -> float:
        """Uniform on [0, 1)."""
        if self._at == len(self._block):
            self._block = self._generator.random(_BLOCK).tolist()
            self._at = 0
        value = self._block[self._at]
        self._at += 1
        return value

    def chance(self, probability: float) -> bool:
        return self.uniform() < probability

    def integer(self, bound: int) -> int:
        """Uniform on 0 … bound − 1."""
        return int(self.uniform() * bound)

    def uniform_between(self, low: float, high: float) -> float:
        return low + (high - low) * self.uniform()

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.uniform() * len(options))]

    def weighted_index(self, weights: Sequence[float]) -> int:
        """An index, with probability in proportion to its weight."""
        left = self.uniform() * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1

    def sample(self, options: Sequence[T], num: int) -> list[T]:
        """Up to `num` different options, in drawn order."""
        left = list(options)
        return [left.pop(self.integer(len(left))) for _ in range(min(num, len(left)))]

    def normal(self) -> float:
        """Box–Muller; one of the pair is enough here."""
        return math.sqrt(-2.0 * math.log(1.0 - self.uniform())) * math.cos(2.0 * math.pi * self.uniform())

    def sign(self) -> int:
        return 1 if self.uniform() < 0.5 else -1
