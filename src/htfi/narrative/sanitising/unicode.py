"""Which characters nobody sees, and text without them; `narrative.text.clean` and `undo` call it."""

import unicodedata

# Drawn as blank, though their categories are letters, marks or symbols: Hangul fillers, combining grapheme
# joiner, Khmer inherent vowels, Mongolian and other variation selectors, the empty Braille pattern.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for span in (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
    for code in span
}
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_MAX_MARKS = 2  # stacked marks beyond this smear over neighbouring lines


_PLAIN = frozenset(map(chr, range(0x20, 0x7F)))


def one_line(text: str) -> str:
    """The text in NFC on one line, without what nobody sees; runs of blanks become one."""
    return " ".join((text if text.isascii() and text.isprintable() else visible(text)).split())


def cut(line: str, max_chars: int) -> str:
    """At most `max_chars` characters, ending in "…" where some are missing."""
    return line if len(line) <= max_chars else line[: max(max_chars - 1, 0)].rstrip() + "…"


def visible(text: str) -> str:
    """NFC, blanks as spaces, free of control, bidirectional, zero-width and unassigned characters."""
    text = unicodedata.normalize("NFC", text)
    if _PLAIN.issuperset(text) or not any(map(_is_odd, set(text))):
        return text
    kept: list[str] = []
    num_marks = 0
    for char in text:
        category = unicodedata.category(char)
        if category[0] == "Z" or char in "\t\n\v\f\r\x85":
            char, category = " ", "Zs"
        if category in _UNSEEN_CATEGORIES or char in _UNSEEN:
            continue
        num_marks = num_marks + 1 if category[0] == "M" else 0
        if num_marks <= _MAX_MARKS:
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))  # again, for what now stands side by side


def _is_odd(char: str) -> bool:
    """Whether a character may have to go or to change: a blank, a mark, or one that nobody sees."""
    category = unicodedata.category(char)
    return (category[0] in "ZM" and char != " ") or category in _UNSEEN_CATEGORIES or char in _UNSEEN
