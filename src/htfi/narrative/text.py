"""Cleans text from outside before it is shown or quoted (D11): no invisible characters, one line, cut to size."""

import re
import unicodedata
from functools import lru_cache

# Drawn as blank, though their categories are letters, marks or symbols: Hangul fillers, combining grapheme
# joiner, Khmer inherent vowels, Mongolian and other variation selectors, the empty Braille pattern.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for span in (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
    for code in span
}
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_MAX_MARKS = 2  # more stacked marks overlap neighbouring lines


_PRINTABLE_ASCII = frozenset(map(chr, range(0x20, 0x7F)))


def one_line(text: str) -> str:
    """The text in NFC on one line, without invisible characters; runs of blanks become one."""
    return " ".join((text if text.isascii() and text.isprintable() else visible_text(text)).split())


def cut(line: str, max_chars: int) -> str:
    """At most `max_chars` characters, ending in "…" where some are missing."""
    return line if len(line) <= max_chars else line[: max(max_chars - 1, 0)].rstrip() + "…"


def visible_text(text: str) -> str:
    """NFC, blanks as spaces, free of control, bidirectional, zero-width and unassigned characters."""
    text = unicodedata.normalize("NFC", text)
    if _PRINTABLE_ASCII.issuperset(text) or not any(map(_needs_work, set(text))):
        return text
    kept: list[str] = []
    num_marks = 0
    for char in text:
        category = unicodedata.category(char)
        if category[0] == "Z" or char in "\t\n\v\f\r\x85":
            char, category = " ", "Zs"
        if category in _INVISIBLE_CATEGORIES or char in _BLANK_LETTERS:
            continue
        num_marks = num_marks + 1 if category[0] == "M" else 0
        if num_marks <= _MAX_MARKS:
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))  # again, for characters that are now neighbours


def _needs_work(char: str) -> bool:
    """Whether a character may have to be removed or changed: a blank, a mark, or an invisible one."""
    category = unicodedata.category(char)
    return (
        (category[0] in "ZM" and char != " ") or category in _INVISIBLE_CATEGORIES or char in _BLANK_LETTERS
    )


_QUOTES = re.compile('[“”„‟«»＂"]')


def clean(text: str, max_chars: int) -> str:
    """One line in NFC, free of control, bidirectional, zero-width and unassigned characters, cut to size."""
    # The cut before the work bounds it; the margin leaves room for what is dropped.
    return cut(one_line(text[: 4 * max_chars + 64]), max_chars)


@lru_cache(maxsize=1024)
def quote(line: str) -> str:
    """Cleaned text between quotation marks that nothing inside can close."""
    return f"“{_QUOTES.sub('’', line)}”"
