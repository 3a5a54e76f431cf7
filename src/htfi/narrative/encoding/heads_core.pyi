from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Shares = NDArray[np.float64]

MOST_LABELS: int

class FeatureHeads:
    def __init__(
        self,
        token_weights: Floats,
        token_biases: Floats,
        weights: Floats,
        biases: Floats,
        temperatures: Shares,
        num_labels: list[int],
        cues: list[tuple[NDArray[np.uint32], Floats]],
        is_added_in_single: bool,
    ) -> None: ...
    def shares(
        self, points: Floats, states: list[Floats], words: Sequence[Sequence[int]]
    ) -> Shares | None: ...

class StateHeads:
    def __init__(
        self,
        attention: Floats,
        weights: list[Floats],
        biases: Floats,
        temperatures: Shares,
        token_heads: list[tuple[Floats, Floats, float]],
    ) -> None: ...
    def shares(self, states: list[Any]) -> tuple[Shares, list[Shares]] | None: ...
