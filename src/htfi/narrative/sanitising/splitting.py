"""Joins words that were split to pass filters, and reads leetspeak.

Dotted acronyms (U.S.A., S.p.A.), initials and tables of single letters stay as they are.
"""

import re
from functools import lru_cache

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising.english import common_words

_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "splitting")
_SEPARATED = _DATA.compiled("separated")
_THREE = re.compile(r"(?<![^\W_])[A-Za-z]([ .\-_*|/+~·•])[A-Za-z]\1[A-Za-z](?![^\W_])")
_INSIDE = re.compile(r"(?<![\w.@/-])[A-Za-z]{1,12}(?:[._*|~^·•+=]{1,2}[A-Za-z]{1,12}){1,6}(?![\w.@/])")
_LEET = _DATA.compiled("leet")
_LETTERED = str.maketrans("0134578@$!", "oieastbasi")
_LETTERED_L = str.maketrans("0134578@$!", "oleastbasl")
_ODD_TOKEN = re.compile(r"[A-Za-z][^A-Za-z\s][A-Za-z]|[$@0-9!][A-Za-z]{2}|[A-Za-z]{2}[$@0-9!]")
_RUN = re.compile(r"(?:[^\W_][^\w\s]{1,3}|[^\W_]_){2}[^\W_]")
_BROKEN = re.compile(r"[A-Za-z][._*|~^·•+=]{1,2}[A-Za-z]{2}|[A-Za-z]{2}[._*|~^·•+=]{1,2}[A-Za-z]")
_MIXED = re.compile(r"[0-9@$!]")
_TRADING_WORD_LIST = "buy sell pump dump hold gain loss moon"
_TRADING_WORDS = frozenset(_TRADING_WORD_LIST.split())
GRAMMAR_WORDS = _DATA.words("grammar_words")
_MAX_FRAGMENTS = 4
_MIN_JOINED = 5


def join_split_words(text: str) -> tuple[str, list[ScreeningFinding]]:
    """The text with its words whole."""
    tokens = text.split(" ")
    odd = [token for token in tokens if not token.isalpha() and _ODD_TOKEN.search(token)]
    findings: list[ScreeningFinding] = []
    found: list[str] = []
    num_single = sum(len(token) == 1 for token in tokens)
    if num_single > 2 or any(_RUN.search(token) for token in odd):
        text = _SEPARATED.sub(lambda match: _join_separated(match, found), text)
        text = _THREE.sub(lambda match: _join_three(match, found), text)
    if any(_BROKEN.search(token) for token in odd):
        text = _INSIDE.sub(lambda match: _join_inside(match, found), text)
    text = _join_fragments(text, found)
    if found:
        findings.append(
            ScreeningFinding(
                "split words", 0.6, f"{len(found)} words were split: {', '.join(found[:3])}"[:120]
            )
        )
    leet: list[str] = []
    if any(_MIXED.search(token) for token in odd):
        text = _LEET.sub(lambda match: _read_leetspeak(match, leet), text)
    if leet:
        findings.append(
            ScreeningFinding(
                "leetspeak", 0.5, f"digits and signs stood for letters: {', '.join(leet[:3])}"[:120]
            )
        )
    return text, findings


def _join_separated(match: re.Match[str], found: list[str]) -> str:
    run, sign = match[0], match[1]
    word = run.replace(sign, "")
    if sum(char.isdigit() for char in word) * 2 > len(word):
        return run
    parts = segment_words(word)
    if parts is None:
        is_acronym = (
            (sign == "." and word.isupper()) or len(word) < _MIN_JOINED or (sign == "." and len(word) < 6)
        )
        if is_acronym or word.isupper() or sign in (", ", ","):
            return run
        parts = [word]
    elif sign == "." and word.isupper() and len(word) < 6 and word.lower() not in _TRADING_WORDS:
        return run
    found.append(" ".join(parts))
    return " ".join(parts)


def _join_three(match: re.Match[str], found: list[str]) -> str:
    word = match[0].replace(match[1], "")
    if word.lower() != "buy":
        return match[0]
    found.append(word)
    return word


def _join_inside(match: re.Match[str], found: list[str]) -> str:
    """se.ll, pro*fit: parts that are no words, and a word together."""
    run = match[0]
    word = "".join(char for char in run if char.isalpha())
    known = common_words()
    if (
        word.lower() not in known
        or len(word) < 4
        or (word.isupper() and "." in run and word.lower() not in _TRADING_WORDS)
    ):
        return run  # DOW.N, a ticker
    parts = [part for part in re.split("[^A-Za-z]+", run) if part]
    if all(len(part) > 2 and part.lower() in known for part in parts):
        return run
    found.append(word)
    return word


def _join_fragments(text: str, found: list[str]) -> str:
    """Neighbours that are no words, and a word together: "mar kets", "ear nin gs"."""
    known = common_words()
    tokens = text.split(" ")
    strange = [
        at
        for at, token in enumerate(tokens)
        if token not in known
        and token.islower()
        and token.isascii()
        and (core := _core(token))
        and core not in known
    ]
    if not strange or len(tokens) < 2:
        return text
    taken = 0
    for at in strange:
        for first in range(max(at - _MAX_FRAGMENTS + 1, taken), at + 1):
            if (num := _num_of_one_word(tokens, first, at, known)) > 0:
                word = "".join(tokens[first : first + num])
                found.append(word)
                tokens[first : first + num] = [word] + [""] * (num - 1)
                taken = first + num
                break
    return " ".join(token for token in tokens if token) if found else text


def _num_of_one_word(tokens: list[str], first: int, at: int, known: frozenset[str]) -> int:
    """How many tokens from `first` on, beyond `at`, are pieces of one word; 0 for none."""
    head = tokens[first]
    if not head.isalpha() or not (head.islower() or head.istitle()) or not _is_piece(head, known):
        return 0
    word = head
    for num in range(2, min(_MAX_FRAGMENTS, len(tokens) - first) + 1):
        token = tokens[first + num - 1]
        core = _core(token)
        if not core or not token.islower() or not token[0].isalpha() or not _is_piece(core, known):
            return 0
        word += core
        if first + num > at and len(word) >= _MIN_JOINED and word.lower() in known:
            return num
        if core != token:
            return 0
    return 0


def _is_piece(token: str, known: frozenset[str]) -> bool:
    """Whether a token can be a part of a word: no word, or a short one that is not of grammar."""
    low = token.lower()
    return low not in known or (len(low) <= 4 and low not in GRAMMAR_WORDS)


@lru_cache(maxsize=4096)
def _core(token: str) -> str:
    """The word without signs about it, in lower case; '' if it has more than letters."""
    bare = token.strip(".,:;!?\"'()[]").lower()
    return bare if bare.isalpha() else ""


def _read_leetspeak(match: re.Match[str], found: list[str]) -> str:
    run = match[0]
    known = common_words()
    tail = run[len(run.rstrip("!")) :]
    body = run.rstrip("!")
    num_letters = sum(char.isalpha() for char in body)
    if (
        num_letters * 2 < len(body)
        or body.isalpha()
        or num_letters < 2
        or (body[:1].isdigit() and body[1:].isalpha() and len(body) < 5)
    ):
        return run
    if ("$" in body and not body.islower()) or not (body.islower() or body.isupper() or body[1:].islower()):
        return run  # $ALE, a cashtag; Solar3D, a name
    for table in (_LETTERED, _LETTERED_L):
        word = body.translate(table)
        if word.lower() in known and len(word) >= 4:
            found.append(word)
            return word + tail
    return run


def segment_words(letters: str) -> list[str] | None:
    """A run of letters as known words, as few as possible; None if there is no such reading."""
    known = common_words()
    low = letters.lower()
    if low in known:
        return [letters]
    num = len(low)
    if num > 120:
        return None
    best: list[tuple[int, int] | None] = [(0, 0)] + [None] * num  # number of words, start of the last
    for end in range(1, num + 1):
        for start in range(max(0, end - 16), end):
            before = best[start]
            if before is None or low[start:end] not in known:
                continue
            cost = before[0] + (3 if end - start == 1 else 1)
            if (here := best[end]) is None or cost < here[0]:
                best[end] = (cost, start)
    parts: list[str] = []
    end = num
    while end:
        here = best[end]
        if here is None:
            return None
        parts.append(letters[here[1] : end])
        end = here[1]
    return parts[::-1]
