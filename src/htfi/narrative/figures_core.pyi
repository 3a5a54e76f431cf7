# As figures_core.pyx has them.
import re
from collections.abc import Callable

def find_figures(
    match: Callable[[str, int], re.Match[str] | None], text: str, words: bytes
) -> list[re.Match[str]]: ...
