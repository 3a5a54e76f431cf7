# ruff: noqa: E501 -- a line is a row of the table
"""Characters that look like Latin letters and digits; `homoglyphs` maps them back.

Compatibility characters (full width, mathematical, enclosed, superscript, Roman numerals) come from the Unicode data of
Python, letters with hooks, strokes and small capitals from their names. Look-alikes of other scripts are listed letter
by letter, by how close they are and whether they need a Latin word around them.
"""

import re
import tomllib
import unicodedata
from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class LookalikeKind(IntEnum):
    """How a character stands for a Latin one."""

    PLAIN = 0  # typesetting: ligature, Roman numeral, superscript; no deceit
    STYLED = 1  # a font of its own: 𝐬𝐞𝐥𝐥, ｓｅｌｌ, ⓢⓔⓛⓛ
    CLOSE = 2  # hardly distinguishable: Cyrillic а, Greek Ο, Lisu ꓢ
    LOOSE = 3  # stands for it only beside letters that are surely Latin: ε, Я, 卂
    SYMBOL = 4  # no letter at all, but between letters it reads as one: ℮, ∂, ○


class Lookalike(NamedTuple):
    """What a character stands for, how closely, and its script."""

    latin: str
    kind: LookalikeKind
    script: str


_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    files("htfi.narrative.sanitising").joinpath("lookalikes.toml").read_text(encoding="utf-8")
)
_KIND_OF_TABLE = {
    "symbol": LookalikeKind.SYMBOL,
    "loose": LookalikeKind.LOOSE,
    "unicode_loose": LookalikeKind.LOOSE,
    "unicode_close": LookalikeKind.CLOSE,
    "close": LookalikeKind.CLOSE,
}
_MARKS = ".:/-';!%,?"  # read as such wherever they stand between letters or digits

# Letters of living European, Turkic, African and Vietnamese spellings: no disguise, except in an English word.
_LIVING_LETTERS = frozenset("ıøłđðþßæœŋħĸſƒəɛɔɓɗƙƴɣʒǝơưŧŉŁØĐÐÞÆŒŊĦŦƠƯƏƐƆƁƊƘƳẞĿŀĳĲǆǅǄǉǈǇǌǋǊǳǲǱ")
_BY_NAME = re.compile(
    r"LATIN (?:LETTER )?(?P<case>SMALL LETTER|CAPITAL LETTER|SMALL CAPITAL(?: LETTER)?|LETTER SMALL CAPITAL)"
    r" (?P<letter>[A-Z])(?: WITH (?!DIAERESIS|ACUTE|GRAVE|CIRCUMFLEX).*)?"
)
_LATIN_BLOCKS = (range(0x180, 0x2B0), range(0x1D00, 0x1DC0), range(0x2C60, 0x2C80), range(0xA722, 0xA800), range(0xAB30, 0xAB70))  # fmt: skip
_COMPATIBLE_BLOCKS = (
    range(0x2070, 0x20A0), range(0x2100, 0x2190), range(0x2460, 0x24EB), range(0x1D400, 0x1D800), range(0x1F100, 0x1F1AD),
    range(0xFF01, 0xFF5F), range(0xFB00, 0xFB07), range(0x1D2C, 0x1DC0), range(0x2B0, 0x300), range(0x10780, 0x107C0),
    range(0xA7F0, 0xA7FA), range(0x2C7C, 0x2C7E), range(0xAB5C, 0xAB6A), range(0x1E030, 0x1E06E), range(0x1FBF0, 0x1FBFA),
)  # fmt: skip
# Lettered rows without a decomposition: (first code point, first letter or digit, how many).
_ROWS = (
    (0x1F130, "A", 26), (0x1F150, "A", 26), (0x1F170, "A", 26), (0x249C, "a", 26), (0x1F110, "A", 26), (0x1CCD6, "A", 26),
    (0x1CCF0, "0", 10), (0x2776, "1", 9), (0x2780, "1", 9), (0x278A, "1", 9), (0x24F5, "1", 9),
)  # fmt: skip
_PLAIN_TAGS = ("<compat>", "<super>", "<sub>", "<fraction>")
_SUPERSCRIPT = ("<super>", "<sub>")


@cache
def lookalike_table() -> dict[str, Lookalike]:
    """Every character beyond ASCII that stands for Latin letters, digits or marks."""
    table: dict[str, Lookalike] = {}
    for block in _LATIN_BLOCKS:
        for code in block:
            char = chr(code)
            found = _by_name(char)
            if found and char not in _LIVING_LETTERS:
                table[char] = Lookalike(found, LookalikeKind.CLOSE, "LATIN")
    for block in _COMPATIBLE_BLOCKS:
        for code in block:
            glyph = _compatible(chr(code))
            if glyph is not None:
                table[chr(code)] = glyph
    for first, letter, num in _ROWS:
        for offset in range(num):
            table[chr(first + offset)] = Lookalike(chr(ord(letter) + offset), LookalikeKind.STYLED, "STYLED")
    for name, likeness in _KIND_OF_TABLE.items():  # the later, the stronger
        for latin, alike in _TABLES[name].items():
            for char in alike:
                if not char.isascii() and (likeness is LookalikeKind.CLOSE or char not in table):
                    kind = likeness if char.isalnum() else LookalikeKind.SYMBOL  # currencies among them
                    table[char] = Lookalike(latin, kind, script_of(char))
    for code in range(0x1D6A8, 0x1D7CC):  # mathematical Greek
        greek = table.get(unicodedata.normalize("NFKC", chr(code)))
        if greek is not None:
            table[chr(code)] = greek._replace(kind=LookalikeKind.LOOSE)
    for char in _LIVING_LETTERS & set(table):
        table[char] = table[char]._replace(kind=LookalikeKind.LOOSE, script="LATIN")
    return table


@cache
def latin_substitutes() -> dict[str, str]:
    """For each Latin letter or digit, the characters that can stand in its place unmistakably: styled and close
    look-alikes.
    """
    found: dict[str, str] = {}
    for char, glyph in sorted(lookalike_table().items()):
        if glyph.kind in (LookalikeKind.STYLED, LookalikeKind.CLOSE) and len(glyph.latin) == 1:
            found[glyph.latin] = found.get(glyph.latin, "") + char
    return found


def is_mark(glyph: Lookalike) -> bool:
    return glyph.latin in _MARKS


_scripts: dict[str, str] = {}


def script_of(char: str) -> str:
    """The script, as Unicode names begin: 'LATIN', 'CYRILLIC', 'CJK', …; '' for signs and digits."""
    found = _scripts.get(char)
    if found is None:
        first = unicodedata.name(char, "").partition(" ")[0]
        found = first if unicodedata.category(char)[0] in "LMN" else ""
        if len(_scripts) < 8192:  # bounded: a text may hold any character
            _scripts[char] = found
    return found


def _by_name(char: str) -> str:
    """The letter in a Latin character's Unicode name; '' where it differs by accents alone."""
    named = _BY_NAME.fullmatch(unicodedata.name(char, ""))
    if named is None or unicodedata.decomposition(char):
        return ""
    letter = named["letter"]
    return letter if named["case"] == "CAPITAL LETTER" else letter.lower()


def _compatible(char: str) -> Lookalike | None:
    """The look-alike by compatibility decomposition, if that is ASCII letters and digits alone."""
    tag, _, _ = unicodedata.decomposition(char).partition(" ")
    if not tag.startswith("<"):
        return None
    latin = unicodedata.normalize("NFKC", char)
    if len(latin) == 3 and latin[0] + latin[-1] == "()":
        latin = latin[1]
    if not latin.isascii() or not (latin.isalnum() or tag in ("<wide>", "<narrow>")):
        return None
    if (tag in _SUPERSCRIPT and latin.isdigit()) or tag == "<fraction>" or char in "™℠":
        return None  # m², ½
    if tag == "<compat>" and unicodedata.category(char) == "So":
        return None  # ℡, ㏂
    plain = tag in _PLAIN_TAGS
    return Lookalike(latin, LookalikeKind.PLAIN if plain else LookalikeKind.STYLED, "STYLED")
