from collections.abc import Mapping, Sequence
from typing import Protocol

TAG: int
RIC: int
LISTED: int
PAIR: int

class Named(Protocol):
    @property
    def words(self) -> tuple[str, ...]: ...

def possible_tickers(text: str) -> int: ...

class NamedPlaces:
    def __init__(self, by_word: Mapping[str, Sequence[Named]]) -> None: ...
    def words_of(
        self, text: str, has_possessives: bool
    ) -> tuple[list[int], list[int], list[str], list[str], list[int]] | None: ...
