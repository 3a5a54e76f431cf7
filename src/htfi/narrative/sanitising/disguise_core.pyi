from collections.abc import Iterable, Set

REWRITTEN: int
TAIL: int
SPLIT: int
CODES: int
CIPHERS: int

class Words:
    def __init__(self, words: Iterable[str], grammar: Set[str]) -> None: ...

def set_tail_hints(hints: Iterable[str]) -> None: ...
def doubts(text: str, max_chars: int, known: Words) -> int: ...
