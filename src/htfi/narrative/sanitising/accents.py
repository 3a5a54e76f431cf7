"""Takes off marks and accents that no spelling puts there; names keep theirs. `homoglyphs` calls it."""

import re
import unicodedata

from htfi.domain.news import Finding
from htfi.narrative.sanitising.lexicon import is_common

_MOST_ACCENTED = 0.45  # of a text's letters: Vietnamese, the most accented spelling alive, stays below
_WORDS = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_OVERLAYS = "\u0300-\u036f\u0488\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MARKED = re.compile(rf"([A-Za-z\u00c0-\u024f\u1e00-\u1eff0-9])([{_OVERLAYS}]+)")


def without_overlays(text: str) -> tuple[str, int]:
    """Latin letters without marks that no spelling puts there, and how many letters had them."""
    num = 0

    def bare(found: re.Match[str]) -> str:
        nonlocal num
        if found[2] == "\u20e3":
            return found[1]  # a keycap
        composed = unicodedata.normalize("NFC", found[0])
        if len(composed) == 1:
            return composed
        num += 1
        return unicodedata.normalize("NFD", found[1])[0]

    return _MARKED.sub(bare, text), num


def without_accents(text: str, findings: list[Finding]) -> str:
    """Accents that turn English words into nonsense taken off; those of names and of other languages stay."""
    if text.isascii():
        return text
    num_accented = len(_ACCENTED.findall(text))
    if not num_accented:
        return text
    if num_accented > _MOST_ACCENTED * len(text) / 2 and num_accented > _MOST_ACCENTED * max(
        8, sum(map(str.isalpha, text))
    ):
        findings.append(Finding("accents", 0.7, "nearly every letter carried an accent"))
        return "".join(_bare(char) for char in text)
    num = 0

    def plain(found: re.Match[str]) -> str:
        nonlocal num
        word = found[0]
        bare = word if word.isascii() else _bared(word)
        if word.isascii() or not word.islower() or len(word) < 4 or word in _LOANED or not is_common(bare):
            return word
        num += 1
        return bare

    if not any(
        is_common(_bared(word)) for word in set(_WORDS.findall(text)) if not word.isascii() and word.islower()
    ):
        return text
    stripped = re.sub(r"[^\W\d_]+", plain, text)
    # In a text of another language some words happen to be English without their accents.
    if not num or num * 2 < len({word for word in re.findall(r"[^\W\d_]+", stripped) if not word.isascii()}):
        return text
    num_common = sum(is_common(word) for word in re.findall(r"[a-z]+", stripped))
    if num_common < 2 * num or num_common < 3:
        return text
    findings.append(Finding("accents", 0.5, f"{num} English words carried accents that they do not have"))
    return stripped


_LOANED_WORDS = (
    "café cafés résumé résumés exposé exposés naïve fiancé fiancée cliché clichés décor façade protégé "
    "protégés communiqué communiqués élite élites rôle rôles début débuts touché coöperate coöperation reëlect "
    "première precís précis détente entrée regime régime coup crème liberté saké maté rosé pâté attaché"
)
_LOANED = frozenset(_LOANED_WORDS.split())
_FOLDED = str.maketrans("ıøłđðæœŋħĸſəɛɔØŁĐÐÆŒŊĦþÞß", "iolddaonhkseeoOLDDAONHpPs")


def _bared(word: str) -> str:
    return "".join(map(_bare, word))


def _bare(char: str) -> str:
    """A Latin letter without its accents."""
    if char.isascii():
        return char
    folded = unicodedata.normalize("NFD", char)[0].translate(_FOLDED)
    return folded if folded.isascii() else char
