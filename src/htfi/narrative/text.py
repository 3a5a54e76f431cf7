"""Cleans text from outside before anything shows or quotes it (D11). The wire calls it on every item."""

import re
from functools import lru_cache

from htfi.narrative.sanitising.unicode import cut, one_line

_QUOTES = re.compile('[“”„‟«»＂"]')


def clean(text: str, max_chars: int) -> str:
    """One line in NFC, free of control, bidirectional, zero-width and unassigned characters, cut to size."""
    # The cut before the work bounds it; the margin leaves room for what is dropped.
    return cut(one_line(text[: 4 * max_chars + 64]), max_chars)


@lru_cache(maxsize=1024)
def quote(line: str) -> str:
    """Cleaned text between quotation marks that nothing inside can close."""
    return f"“{_QUOTES.sub('’', line)}”"
