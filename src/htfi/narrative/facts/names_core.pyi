# As name_words.py has them.
from htfi.narrative.facts.name_words import FoundName, Numbers, Span

def find_names(text: str, taken: list[Span], tokens: Numbers, roles: Numbers) -> list[FoundName]: ...
def find_parties(
    text: str, taken: list[Span], tokens: Numbers, roles: Numbers, effects: Numbers, max_names: int
) -> tuple[list[FoundName], Numbers, list[float]]: ...
