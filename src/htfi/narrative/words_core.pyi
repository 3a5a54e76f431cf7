# As words_core.pyx has them.
import re
from collections.abc import Callable

def find_figures(
    match: Callable[[str, int], re.Match[str] | None], text: str, words: bytes
) -> list[re.Match[str]]: ...
def words_to_link(
    text: str, names: dict[str, object]
) -> tuple[list[tuple[int, int]], list[str], list[str], list[int], bool, bool]: ...
