import numpy as np
from numpy.typing import NDArray

class HeldPoints:
    def __init__(
        self,
        points: NDArray[np.int8],
        lengths: NDArray[np.float64],
        read_ns: NDArray[np.int64],
        decay: NDArray[np.int64],
        step_ns: int,
    ) -> None: ...
    def likest(self, point: NDArray[np.float32], places: list[list[int]], at_ns: int, place: int) -> int: ...
