"""Maps letters of other scripts and fonts back to the Latin letters that they imitate.

Words of a living script stay as they are: a word is a disguise if it mixes scripts, or if it consists of look-alikes in
a text that is otherwise Latin.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising.characters import without_accents, without_overlays
from htfi.narrative.sanitising.confusables import (
    Lookalike,
    LookalikeKind,
    is_mark,
    lookalike_table,
    script_of,
)
from htfi.narrative.sanitising.english import is_common

_EAST_ASIAN = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HALFWIDTH", "FULLWIDTH", "IDEOGRAPHIC"}
)
_LATIN_SHARE = 4  # Latin letters per letter of a living script, from which a text counts as all Latin
_LATIN_WORDS = re.compile("[A-Za-z]+")
_FOREIGN_WORDS = re.compile(r"[^\W\d_a-zA-Z]{2,}")
_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "homoglyphs")
_ASCII_OR_STYLED = _DATA.compiled("ascii_or_styled")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]{2,}")
_FLAG_A = 0x1F1E6
_DIGITS = {"O": "0", "o": "0", "I": "1", "l": "1", "i": "1"}
_CASELESS_BARS = frozenset("Ӏǀꓲᛁ𐊊𐌉∣│┃❘ǃ⎮")  # without a case that distinguishes I from l
_LIGATURES = frozenset("ﬀﬁﬂﬃﬄﬅﬆ")
_GREEK_SIGNS = frozenset("αβγδεζηθκλμµνξπρσςτυφχψωΓΔΘΛΞΠΣΦΨΩ")
_COUNTRIES = _DATA.words("countries_words")


class _TextScripts(NamedTuple):
    """The scripts of the whole text: those that live in it, and whether it reads as Latin despite them."""

    living: frozenset[str]
    foreign: frozenset[str]  # letters without a Latin look-alike
    is_latin: bool
    is_latin_throughout: bool
    east_asian: bool


class _MaskedWord(NamedTuple):
    """One run of letters, its Latin reading, the strength of the finding, and whether it counts only beside others."""

    start: int
    end: int
    latin: str
    strength: float
    is_pending: bool = False


def replace_homoglyphs(text: str) -> tuple[str, list[ScreeningFinding]]:
    """The text with look-alikes mapped back; a finding for each kind of disguise."""
    if text.isascii():
        return text, []
    findings: list[ScreeningFinding] = []
    text, num_smeared = without_overlays(text)
    if num_smeared > 2:
        findings.append(ScreeningFinding("marks", 0.6, f"marks were stacked on {num_smeared} letters"))
    text = _FLAGS.sub(_letters_of_flags, text)
    page = _scripts_of_text(text)
    pattern, table = _word_pattern(), lookalike_table()
    words = [
        found
        for match in pattern.finditer(text)
        if not match[0].isascii()
        and (found := _read_masked(match[0], match.start(), page, table)) is not None
    ]
    is_attacked = any(word.strength >= 0.5 and not word.is_pending for word in words)
    taken = [word for word in words if is_attacked or not word.is_pending]
    if taken:
        parts: list[str] = []
        end = 0
        for word in taken:
            parts += (text[end : word.start], word.latin)
            end = word.end
        text = "".join(parts) + text[end:]
        findings += _findings_of(taken)
    text = _ascii_punctuation(text, table)
    return without_accents(text, findings), findings


def _findings_of(words: list[_MaskedWord]) -> list[ScreeningFinding]:
    strongest = max(word.strength for word in words)
    num = sum(word.strength > 0 for word in words)
    if strongest >= 0.7:
        return [
            ScreeningFinding(
                "homoglyphs", strongest, f"letters of other scripts imitated Latin ones in {num} words"
            )
        ]
    if strongest > 0:
        return [ScreeningFinding("styled", strongest, f"{num} words were written in a font of their own")]
    return []


def _scripts_of_text(text: str) -> _TextScripts:
    """A script lives in a text if some of its words are more than look-alikes."""
    living: set[str] = set()
    foreign: set[str] = set()
    num_foreign = 0
    num_latin = sum(map(len, _LATIN_WORDS.findall(text)))
    only_alike, table = _only_alike(), lookalike_table()
    for match in _FOREIGN_WORDS.finditer(text):
        word = match[0]
        if only_alike.issuperset(word):
            continue
        unlike = {char for char in word if char not in table and script_of(char) not in ("LATIN", "")}
        if not unlike and is_common("".join(table[char].latin if char in table else char for char in word)):
            continue
        foreign |= unlike
        living.update(map(script_of, unlike or word[:1]))
        num_foreign += len(word)
    living.discard("LATIN")
    return _TextScripts(
        frozenset(living),
        frozenset(foreign),
        num_latin > 0 and num_latin >= num_foreign,
        num_latin >= _LATIN_SHARE * num_foreign and num_latin > 0,
        bool(living & _EAST_ASIAN),
    )


@cache
def _only_alike() -> frozenset[str]:
    """Characters that no word of a living script needs: close look-alikes, styled letters, accented Latin."""
    found = {
        char
        for char, glyph in lookalike_table().items()
        if glyph.kind is not LookalikeKind.LOOSE or glyph.script == "LATIN"
    }
    return frozenset(found) | frozenset(map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))))


def _read_masked(
    word: str, start: int, page: _TextScripts, table: dict[str, Lookalike]
) -> _MaskedWord | None:
    """The Latin reading of a word that is not all ASCII; None for an honest word."""
    has_foreign = not page.foreign.isdisjoint(word)
    is_pure = _ASCII_OR_STYLED.search(word) is None
    if is_pure and (has_foreign or (not page.is_latin_throughout and script_of(word[0]) in page.living)):
        return None
    found = [table.get(char) for char in word]
    num_ascii = sum(char.isascii() and char.isalpha() for char in word)
    foreign = [char for char in word if char in page.foreign] if has_foreign else []
    end = start + len(word)
    if foreign:
        return _read_in_living_script(word, start, found, foreign, num_ascii, page)
    close = [g for g in found if g and g.kind is LookalikeKind.CLOSE]
    loose = [g for g in found if g and g.kind is LookalikeKind.LOOSE and g.script != "LATIN"]
    inner = found[1:-1]
    symbols = [g for g in inner if g and g.kind is LookalikeKind.SYMBOL and not is_mark(g)]
    styled = [g for g in found if g and g.kind is LookalikeKind.STYLED]
    plain = [g for g in inner if g and g.kind is LookalikeKind.PLAIN and len(g.latin) == 1]
    scripts = {glyph.script for glyph in (*close, *loose) if glyph.script}
    num_masks = len(close) + len(loose) + len(symbols)
    if not num_masks:
        return _read_styled(word, start, found, styled, plain, num_ascii, page)
    latin = _latin(word, found)
    if _is_formula(word, found, num_ascii):
        return None
    if num_ascii or (styled and num_masks) or (len(scripts) > 1 and not scripts <= _EAST_ASIAN):
        if scripts <= _EAST_ASIAN and scripts & page.living:
            return None  # A股
        if not scripts and not close and not loose and not is_common(latin):
            return None  # a sign between words: 3×4, a•b
        return _MaskedWord(start, end, latin, 0.9)
    if not any(char.isalpha() for char in word):
        return None
    if not page.is_latin or scripts <= _EAST_ASIAN:
        return None
    is_living = bool(scripts & page.living) and not page.is_latin_throughout
    if is_living:
        return None
    if scripts == {"LATIN"} or (not loose and not symbols and _num_letters(word) > 1):
        return _MaskedWord(start, end, latin, 0.9)
    if loose and is_common(latin) and len(latin) > 2:
        return _MaskedWord(start, end, latin, 0.9)
    is_lone = _num_letters(word) == 1 and not loose
    if is_lone and scripts != {"GREEK"} and latin in ("a", "I", "A", "i"):
        return _MaskedWord(start, end, latin, 0.9)
    return _MaskedWord(start, end, latin, 0.9, is_pending=True)


def _read_styled(
    word: str,
    start: int,
    found: list[Lookalike | None],
    styled: list[Lookalike],
    plain: list[Lookalike],
    num_ascii: int,
    page: _TextScripts,
) -> _MaskedWord | None:
    """A word in a font of its own: a tweet's emphasis, or a way around filters."""
    if not styled and not any(glyph and glyph.kind is LookalikeKind.PLAIN for glyph in found):
        return None
    if len(word) == 1 and unicodedata.category(word) == "So":  # ①, 🅰
        latin = _latin(word, found)
        return _MaskedWord(start, start + 1, latin, 0.8, is_pending=True) if latin.isalpha() else None
    strength = 0.0
    if not page.east_asian:
        if styled and any(glyph.latin.isalpha() for glyph in styled):
            strength = 0.8 if num_ascii else 0.5
        elif plain and num_ascii and not any(char in _LIGATURES for char in word):
            strength = 0.8
    return _MaskedWord(start, start + len(word), _latin(word, found), strength)


def _read_in_living_script(
    word: str,
    start: int,
    found: list[Lookalike | None],
    foreign: list[str],
    num_ascii: int,
    page: _TextScripts,
) -> _MaskedWord | None:
    """A word with letters that have no Latin look-alike: Latin letters in it may imitate those of its script."""
    scripts = {script_of(char) for char in foreign}
    end = start + len(word)
    if num_ascii and len(scripts) == 1 and not scripts & _EAST_ASIAN:
        script = next(iter(scripts))
        twins = _twins(script)
        native = "".join(twins.get(char, char) for char in word)
        if not any(char.isascii() and char.isalpha() for char in native):
            return _MaskedWord(start, end, native, 0.7)
    if any(glyph and glyph.kind is LookalikeKind.STYLED for glyph in found):
        kept = "".join(
            glyph.latin if glyph and glyph.kind is LookalikeKind.STYLED else char
            for char, glyph in zip(word, found, strict=True)
        )
        return _MaskedWord(start, end, kept, 0.0 if page.east_asian else 0.5)
    return None


@cache
def _twins(script: str) -> dict[str, str]:
    """For each Latin letter its close look-alike in `script`."""
    return {
        glyph.latin: char
        for char, glyph in lookalike_table().items()
        if glyph.script == script and glyph.kind is LookalikeKind.CLOSE and len(glyph.latin) == 1
    }


def _latin(word: str, found: list[Lookalike | None]) -> str:
    """Letter by letter, with I and l, O and 0 as their neighbours say."""
    letters = [char if glyph is None else glyph.latin for char, glyph in zip(word, found, strict=True)]
    digits = sum(char.isascii() and char.isdigit() for char in word)
    if digits and all(map(_is_digit_like, word, found)):
        return "".join(_DIGITS.get(letter, letter) for letter in letters)
    last = len(letters) - 1
    for place, glyph in enumerate(found):
        if glyph is None or glyph.latin not in ("I", "l"):
            continue
        before, after = letters[place - 1 : place], letters[place + 1 : place + 2]
        if glyph.latin == "I" and place and before[0][-1:].islower():
            tall = "".join((*letters[:place], "l", *letters[place + 1 :]))
            if word[place] in _CASELESS_BARS or (
                glyph.kind is LookalikeKind.CLOSE and is_common(tall.replace("I", "l"))
            ):
                letters[place] = "l"
        elif glyph.latin == "l" and place < last and place and before[0].isupper() and after[0].isupper():
            letters[place] = "I"
    if found[0] is not None and found[0].kind is LookalikeKind.SYMBOL and not is_common("".join(letters)):
        letters[0] = word[0]
    if (
        last
        and (edge := found[-1]) is not None
        and edge.kind is LookalikeKind.SYMBOL
        and not is_common("".join(letters))
    ):
        letters[-1] = word[-1]
    return "".join(letters)


def _is_digit_like(char: str, glyph: Lookalike | None) -> bool:
    return char.isdigit() or (
        glyph is not None and glyph.latin in _DIGITS and glyph.kind is LookalikeKind.CLOSE
    )


def _is_formula(word: str, found: list[Lookalike | None], num_ascii: int) -> bool:
    """Greek as signs: μm, ΔGDP, 5σ, kΩ."""
    signs = [char for char, glyph in zip(word, found, strict=True) if glyph is not None]
    if not all(char in _GREEK_SIGNS for char in signs) or len(signs) > 1:
        return False
    rest = "".join(char for char in word if char.isascii() and char.isalpha())
    at_edge = word[0] == signs[0] or word[-1] == signs[0] or not word[0].isalpha()
    return at_edge and (num_ascii <= 1 or (rest.isupper() and num_ascii <= 4))


def _num_letters(word: str) -> int:
    return sum(char.isalpha() for char in word)


@cache
def _word_pattern() -> re.Pattern[str]:
    signs = "".join(
        char for char, glyph in lookalike_table().items() if not char.isalnum() and not is_mark(glyph)
    )
    return re.compile(rf"[\w{re.escape(signs)}]+")


@cache
def _mark_chars() -> frozenset[str]:
    return frozenset(
        char for char, glyph in lookalike_table().items() if is_mark(glyph) and not char.isalnum()
    )


@cache
def _mark_pattern() -> re.Pattern[str]:
    marks = "".join(sorted(_mark_chars()))
    return re.compile(rf"(?<=[A-Za-z0-9])[{re.escape(marks)}](?=[A-Za-z0-9])")


def _ascii_punctuation(text: str, table: dict[str, Lookalike]) -> str:
    """Dots, slashes and hyphens of other scripts between Latin letters as ASCII's."""
    if text.isascii() or _mark_chars().isdisjoint(text):
        return text
    return _mark_pattern().sub(lambda found: table[found[0]].latin, text)


def _letters_of_flags(found: re.Match[str]) -> str:
    letters = "".join(chr(ord(char) - _FLAG_A + 65) for char in found[0])
    pairs = [letters[place : place + 2] for place in range(0, len(letters), 2)]
    return found[0] if all(pair in _COUNTRIES for pair in pairs) else letters
