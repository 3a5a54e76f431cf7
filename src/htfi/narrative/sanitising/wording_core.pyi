from collections.abc import Callable, Mapping, Sequence

Traits = tuple[
    int, int, float, float, int, Sequence[tuple[int, int]], Sequence[tuple[int, int, Sequence[str]]]
]

EVERY: int
ORDER: int
WORDED: int
FIRST_PATTERN: int

class Screen:
    def __init__(
        self,
        describe: Callable[[str], Traits],
        pairs: Sequence[tuple[int, int, float, float]],
        biases: tuple[float, float],
        start_word: int,
        num_patterns: int,
        kinds: Mapping[str, int],
        num_languages: int,
        shared: int,
    ) -> None: ...
    def doubts(self, text: str, order_at: float, pump_at: float, sentences: list[tuple[int, int]]) -> int: ...

def may_hold_template(raw: str) -> bool: ...
