from typing import Any

TAG: int
RIC: int
LISTED: int
PAIR: int

def possible_tickers(text: str) -> int: ...
def words_of(
    text: str, known: dict[str, Any], has_possessives: bool
) -> tuple[list[int], list[int], list[str], list[str]] | None: ...
