from typing import Any

from numpy.typing import NDArray

def fuse(
    regret: NDArray[Any],
    square: NDArray[Any],
    largest: NDArray[Any],
    prior: NDArray[Any],
    index: NDArray[Any],
    groups: NDArray[Any],
    regimes: NDArray[Any],
    experts: NDArray[Any],
    calibration: NDArray[Any],
    shares: NDArray[Any],
    paces: NDArray[Any],
    weights: NDArray[Any],
    fused: NDArray[Any],
    log_k: float,
    median: int,
    /,
) -> bool: ...
