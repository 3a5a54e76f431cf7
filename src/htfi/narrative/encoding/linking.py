"""Finds which symbols a text names: tickers with evidence, names that the run gives. The scorer asks for each item."""

import re
from collections.abc import Iterable, Mapping

_CASHTAG = re.compile(r"(?<![\w$])\$([A-Za-z]{1,5}(?:[.\-][A-Za-z]{1,2})?)(?![\w$])")


class Linker:
    """Names by symbol, as the run gives them; `link` finds them in a text."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        self._symbols = frozenset(names)

    def link(self, text: str) -> tuple[str, ...]:
        """Symbols that the text names, in the order of their first mention."""
        found = [tag.upper() for tag in _CASHTAG.findall(text)]
        return tuple(dict.fromkeys(found))
