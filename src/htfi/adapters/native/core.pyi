from typing import Any

from numpy.typing import NDArray

class Network:
    """The model in C. `sizes`: layers, heads, key-value heads, head size, hidden, inner, vocabulary, positions."""

    def __init__(
        self,
        sizes: tuple[int, int, int, int, int, int, int, int],
        eps: float,
        arrays: tuple[bytes | None, ...],
        level: int,
    ) -> None: ...
    @property
    def level(self) -> int: ...
    def forward(self, *arrays: NDArray[Any]) -> bool: ...
