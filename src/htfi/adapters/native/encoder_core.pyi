from typing import Any

from numpy.typing import NDArray

class Encoder:
    """The encoder in C. `sizes`: layers, heads, head size, hidden, inner, vocabulary, positions."""

    def __init__(
        self,
        sizes: tuple[int, int, int, int, int, int, int],
        eps: float,
        least: float,
        arrays: tuple[NDArray[Any], ...],
        level: int,
    ) -> None: ...
    @property
    def level(self) -> int: ...
    def start(
        self,
        ids: NDArray[Any],
        lengths: NDArray[Any],
        states: NDArray[Any],
        sums: NDArray[Any],
        num_threads: int,
        wait: int,
    ) -> Job | None: ...
    def multiply(self, num_tokens: int) -> None: ...

class Job:
    """Texts that are being read; what is not finished when it goes is read no further."""

    def finish(self, num_texts: int) -> None: ...

def best_level() -> int: ...
def rouse(num_threads: int) -> None: ...
