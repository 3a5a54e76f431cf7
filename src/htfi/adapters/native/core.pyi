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
    def chain(
        self,
        keys: NDArray[Any],
        values: NDArray[Any],
        slot: int,
        length: int,
        unread: NDArray[Any],
        begins: NDArray[Any],
        tokens: NDArray[Any],
        nexts: NDArray[Any],
        counters: NDArray[Any],
        noise: NDArray[Any],
        out: NDArray[Any],
        state: int,
        num_chosen: int,
        temperature: float,
    ) -> tuple[int, int]: ...

def use_bounds(low: NDArray[Any], high: NDArray[Any]) -> None: ...
