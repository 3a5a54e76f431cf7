import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LEVEL: int
NUM_COMPONENTS: int
PADDED_TO: int
MOST_LABELS: int
MOST_TOKENS: int

def multiply(states: list[Floats], weights: Floats, out: Floats, level: int) -> None: ...
def weigh(states: list[Floats], vector: Floats, out: Floats) -> None: ...
def pool(states: list[Floats], powers: Floats, out: Floats) -> None: ...
def multiply_rows(rows: Floats, weights: Floats, out: Floats) -> None: ...
