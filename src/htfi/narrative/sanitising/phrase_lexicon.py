"""Marks entries of address.toml in a text, by language: who is addressed, what must be done, what is promised.

Latin, Cyrillic and Arabic text is marked at whole words, text of scripts without spaces wherever an entry stands. Case,
accents, and in Arabic the article and joined particles do not matter.
"""

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

_FILE = "address.toml"
EVERYWHERE = "any"
_WIDE = {  # languages whose words are found anywhere
    "zh": re.compile("[\u3400-\u9fff]"),
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "hi": re.compile("[\u0900-\u097f]"),
}
_ANY_WIDE = re.compile("[\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*|[^\w\s]")
_ELISION = re.compile(r"(?<=[^\W\d_])['’‐‑-](?=[^\W\d_])")
_MARKS = re.compile("[\u0300-\u036f\u064b-\u0655\u0640]")
_ARABIC = str.maketrans("أإآىةؤئ", "اااي\u0647وي")
_ARTICLE = re.compile("[وف]?(?:بال|كال|لل|ال)(?=..)")
_PARTICLES = re.compile("[وف]?[بلكوف](?=...)")
_SENTENCE_ENDS = frozenset(".!?。！？…؟।;；\n")
_HEAD = 3  # letters by which endings are looked up
_MAX_TOKENS = 3_000


class LexiconMark(NamedTuple):
    """One entry in a text: its kind, and its place in words, or in letters for scripts without spaces."""

    kind: str
    start: int
    end: int


class MarkedSentence(NamedTuple):
    """One sentence in one language. `words` are its words and signs, or its letters where `is_wide`."""

    words: list[str] | str
    is_wide: bool
    marks: tuple[LexiconMark, ...]

    def of_kinds(self, *kinds: str) -> list[LexiconMark]:
        return [mark for mark in self.marks if mark.kind in kinds]


def fold_text(text: str) -> str:
    """Lower case without accents, hamzas and vowel marks; what joins letters becomes a blank."""
    text = text.lower()
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text)).translate(_ARABIC)
        text = unicodedata.normalize("NFC", text).replace("ß", "ss").replace("ı", "i")
    return _ELISION.sub(" ", text)


def has_wide(text: str) -> bool:
    """Whether a text holds letters of a script that is written without spaces."""
    return not text.isascii() and _ANY_WIDE.search(text) is not None


def kinds_in(text: str, words: Iterable[str] | None = None) -> tuple[frozenset[str], ...]:
    """By language, the kinds of which a text may hold an entry; other kinds are certainly absent. `words` are its own,
    if at hand.
    """
    found = 0
    for bits in map(_bits_of, set(_TOKEN.findall(text)[:_MAX_TOKENS]) if words is None else words):
        found |= bits
    kinds = _kinds(found)
    if not has_wide(text):
        return kinds
    wide: dict[str, set[str]] = {}
    for language, (_, entry) in _wide_entries(fold_text(text)):
        wide.setdefault(language, set()).update(_wide(language)[1][entry])
    return (*kinds, *map(frozenset[str], wide.values()))


def marked_sentences(folded: str) -> Iterator[MarkedSentence]:
    """Each sentence of a folded text in each language of which it holds an entry."""
    words = _TOKEN.findall(folded)[:_MAX_TOKENS]
    begin = 0
    for at in range(len(words) + 1):
        if at == len(words) or words[at] in _SENTENCE_ENDS:
            if at - begin > 1:
                yield from _marked(words[begin:at])
            begin = at + 1
    if has_wide(folded):
        for part in re.split("[.!?。！？…।;；\n]", folded):
            yield from _marked_wide(part)


def _marked(words: list[str]) -> Iterator[MarkedSentence]:
    by_language: dict[str, list[LexiconMark]] = {}
    for at, word in enumerate(words):
        for language, kind, rest in entries_of_word(word):
            if not rest or _goes_on(words, at + 1, rest):
                by_language.setdefault(language, []).append(LexiconMark(kind, at, at + 1 + len(rest)))
    shared = by_language.pop(EVERYWHERE, [])
    for language, marks in by_language.items():
        if language not in _WIDE:
            yield MarkedSentence(words, False, (*marks, *shared))
    if shared and not by_language:
        yield MarkedSentence(words, False, tuple(shared))


def _goes_on(words: list[str], at: int, rest: tuple[str, ...]) -> bool:
    if at + len(rest) > len(words):
        return False
    for place, entry in enumerate(rest, at):
        forms = _forms(words[place])
        if not (any(form.startswith(entry[:-1]) for form in forms) if entry[-1] == "*" else entry in forms):
            return False
    return True


def _marked_wide(part: str) -> Iterator[MarkedSentence]:
    by_language: dict[str, list[LexiconMark]] = {}
    for language, (at, entry) in _wide_entries(part):
        kinds = _wide(language)[1][entry]
        by_language.setdefault(language, []).extend(
            LexiconMark(kind, at, at + length) for kind, length in kinds.items()
        )
    for marks in by_language.values():
        yield MarkedSentence(part, True, tuple(marks))


def _wide_entries(text: str) -> Iterator[tuple[str, tuple[int, str]]]:
    has_kana = _WIDE["ja"].search(text) is not None
    for language, script in _WIDE.items():
        if (language == "zh" and has_kana) or not script.search(text):
            continue
        for match in _wide(language)[0].finditer(text):
            yield language, (match.start(), match[1])


def _without_article(word: str) -> str:
    """An Arabic word without its article; any other as it is."""
    return _ARTICLE.sub("", word, count=1) if _ARTICLE.match(word) else word


def _forms(word: str) -> tuple[str, ...]:
    """A word as entries may have it: an Arabic one also without article and joined particle."""
    if not "\u0600" <= word[0] <= "\u06ff" or len(word) < 4:
        return (word,)
    bare = _without_article(word)
    joined = _PARTICLES.match(bare)
    return (word, bare, bare[joined.end() :]) if joined else (word, bare)


@lru_cache(maxsize=1 << 15)
def entries_of_word(word: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """(language, kind, words that must follow) of each entry that begins with a word."""
    exact, by_head = _words()
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for form in _forms(word):
        found += exact.get(form, ())
        for length in range(1, _HEAD + 1):
            for stem, language, kind, rest in by_head.get(form[:length], ()):
                if form.startswith(stem) and len(stem[:_HEAD]) == length:
                    found.append((language, kind, rest))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1 << 15)
def _bits_of(word: str) -> int:
    """A bit for each language and kind of the entries whose longest word is this one."""
    exact, by_head = _kind_bits()
    bits = 0
    for part in _TOKEN.findall(fold_text(word)):
        for form in _forms(part):
            bits |= exact.get(form, 0)
            for length in range(1, _HEAD + 1):
                for stem, bit in by_head.get(form[:length], ()):
                    bits |= bit if form.startswith(stem) else 0
    return bits


def may_be_marked(word: str) -> bool:
    """Whether an entry may have a word, or begin with it; false for nearly all words of news, which are in small ASCII
    letters.
    """
    if not (word.isascii() and word.isalpha() and word.islower()):
        return True
    exact, short, by_head = _marked_words()
    return word in exact or word.startswith(by_head.get(word[:_HEAD], short))


@cache
def _marked_words() -> tuple[frozenset[str], tuple[str, ...], dict[str, tuple[str, ...]]]:
    """All words of entries in ASCII that count, and stems of any ending: short ones, and by their first letters these
    with longer ones.
    """
    (first, first_stems), (longest, longest_stems) = _words(), _kind_bits()
    stems = {stem for found in (*first_stems.values(), *longest_stems.values()) for stem, *_ in found}
    by_head: dict[str, list[str]] = {}
    for stem in stems:
        by_head.setdefault(stem[:_HEAD], []).append(stem)
    short = tuple(stem for stem in stems if len(stem) < _HEAD)
    exact = frozenset(word for word in (*first, *longest) if word.isascii())
    return exact, short, {head: (*short, *found) for head, found in by_head.items()}


@lru_cache(maxsize=1 << 12)
def _kinds(bits: int) -> tuple[frozenset[str], ...]:
    """Kinds by language; those of every language count in each."""
    found: dict[str, set[str]] = {}
    while bits:
        language, kind = _pairs()[(bits & -bits).bit_length() - 1]
        found.setdefault(language, set()).add(kind)
        bits &= bits - 1
    shared = found.pop(EVERYWHERE, set())
    return tuple(frozenset(kinds | shared) for kinds in found.values()) or (
        (frozenset(shared),) if shared else ()
    )


def kinds_of_word(word: str) -> list[tuple[str, str]]:
    """Language and kind of the entries that a word may belong to; those of `EVERYWHERE` count in each language."""
    bits = _bits_of(word)
    found: list[tuple[str, str]] = []
    while bits:
        found.append(_pairs()[(bits & -bits).bit_length() - 1])
        bits &= bits - 1
    return found


def words_of_kinds(kinds: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Words in ASCII by which a text may hold an entry of these kinds, with a bit for each, in whatever language: those
    that stand as they are, and stems of any ending.
    """
    numbers = {kind: 1 << number for number, kind in enumerate(sorted(kinds))}
    by_place = [numbers.get(kind, 0) for _, kind in _pairs()]
    exact, by_head = _kind_bits()
    stems = [pair for pairs in by_head.values() for pair in pairs]
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for table, words in zip(found, (exact.items(), stems), strict=True):
        for word, bits in words:
            number = 0
            while bits:
                number |= by_place[(bits & -bits).bit_length() - 1]
                bits &= bits - 1
            if number and word.isascii():
                table[word] = table.get(word, 0) | number
    return found


def languages_and_kinds() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All languages of the lexicon and all kinds, each in a fixed order."""
    return tuple(sorted({one for one, _ in _pairs()})), tuple(sorted({kind for _, kind in _pairs()}))


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    return tuple(_places())


@cache
def _places() -> dict[tuple[str, str], int]:
    pairs = [(language, kind) for language, entries in _entries().items() for kind, _ in entries]
    return {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}


@cache
def _kind_bits() -> tuple[dict[str, int], dict[str, list[tuple[str, int]]]]:
    """Bits by the longest word of entries, and (stem, bit) by first letters where it may end in any way."""
    exact: dict[str, int] = {}
    by_head: dict[str, list[tuple[str, int]]] = {}
    for language, entries in _entries().items():
        for kind, entry in entries if language not in _WIDE else ():
            longest = max(re.findall(r"[^\W\d_]+\*?|\d+", entry), key=len)
            stem, bit = _without_article(longest.removesuffix("*")), 1 << _places()[language, kind]
            if longest.endswith("*"):
                by_head.setdefault(stem[:_HEAD], []).append((stem, bit))
            else:
                exact[stem] = exact.get(stem, 0) | bit
    return exact, by_head


@cache
def _entries() -> dict[str, list[tuple[str, str]]]:
    """By language: (kind, entry) folded."""
    table: dict[str, dict[str, str]] = tomllib.loads(
        files("htfi.narrative.sanitising").joinpath(_FILE).read_text(encoding="utf-8")
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, by_language in table.items():
        for language, entries in by_language.items():
            found.setdefault(language, []).extend(
                (kind, fold_text(entry.strip())) for entry in entries.split(",") if entry.strip()
            )
    return found


@cache
def _words() -> tuple[
    dict[str, list[tuple[str, str, tuple[str, ...]]]],
    dict[str, list[tuple[str, str, str, tuple[str, ...]]]],
]:
    """Entries by their first word; those whose first word may have any ending by its first letters."""
    exact: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
    by_head: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = {}
    for language, entries in _entries().items():
        if language in _WIDE:
            continue
        for kind, entry in entries:
            first, *rest = re.findall(r"[^\W\d_]+\*?|\d+|,", entry)
            follows = tuple(map(_without_article, rest))
            stem = _without_article(first.removesuffix("*"))
            if first.endswith("*"):
                by_head.setdefault(stem[:_HEAD], []).append((stem, language, kind, follows))
            else:
                exact.setdefault(stem, []).append((language, kind, follows))
    return exact, by_head


@cache
def _wide(language: str) -> tuple[re.Pattern[str], dict[str, dict[str, int]]]:
    """The pattern of the longest entry at each place, and by entry its kinds with their lengths."""
    kinds: dict[str, dict[str, int]] = {}
    for name in (EVERYWHERE, language):
        for kind, entry in _entries()[name]:
            kinds.setdefault(entry.rstrip("*"), {})[kind] = len(entry.rstrip("*"))
    for entry, own in kinds.items():  # a shorter entry at the same place counts as well
        for length in range(1, len(entry)):
            for kind, size in kinds.get(entry[:length], {}).items():
                if size == length:
                    own.setdefault(kind, size)
    ordered = sorted(kinds, key=len, reverse=True)
    parts = [
        f"(?<![a-z]){re.escape(entry)}(?![a-z])" if entry.isascii() else re.escape(entry) for entry in ordered
    ]
    return re.compile(f"(?=({'|'.join(parts)}))"), kinds
