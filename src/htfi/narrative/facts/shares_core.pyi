# As shares_core.pyx has them.
import numpy as np
from numpy.typing import NDArray

def scaled(
    logits: NDArray[np.float32],
    biases: NDArray[np.float32],
    warmths: NDArray[np.float64],
    ends: NDArray[np.intp],
) -> NDArray[np.float64]: ...
def divide(powers: NDArray[np.float64], ends: NDArray[np.intp]) -> None: ...
