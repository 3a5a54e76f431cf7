from typing import Any

from numpy.typing import NDArray

def use_bounds(low: NDArray[Any], high: NDArray[Any]) -> None: ...
def choose(
    logits: NDArray[Any],
    ids: NDArray[Any],
    counters: NDArray[Any],
    keys: NDArray[Any],
    tokens: NDArray[Any],
    temperature: float,
    /,
) -> bool: ...
