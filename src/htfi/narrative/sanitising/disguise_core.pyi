from collections.abc import Iterable, Mapping

REWRITTEN: int
TAIL: int
SPLIT: int
CODES: int
CIPHERS: int

class Words:
    def __init__(self, words: Mapping[str, int]) -> None: ...

def set_tail_hints(hints: Iterable[str]) -> None: ...
def doubts(text: str, max_chars: int, known: Words, instructing: Words, stems: Words) -> int: ...
