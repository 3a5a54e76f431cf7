"""Puts words together that were split so that no filter would know them, and reads leetspeak; `undo` calls it.

Dotted acronyms (U.S.A., S.p.A.), initials and tables of single letters stay as they are.
"""

import re
from functools import lru_cache

from htfi.domain.news import Finding
from htfi.narrative.sanitising.lexicon import words

_SEPARATED = re.compile(r"(?<![^\W_])(?:[^\W\d_]([ .\-_*|/+~·•,'^=]{1,3}))(?:[^\W_]\1){2,}[^\W_](?![^\W_])")
_THREE = re.compile(r"(?<![^\W_])[A-Za-z]([ .\-_*|/+~·•])[A-Za-z]\1[A-Za-z](?![^\W_])")
_INSIDE = re.compile(r"(?<![\w.@/-])[A-Za-z]{1,12}(?:[._*|~^·•+=]{1,2}[A-Za-z]{1,12}){1,6}(?![\w.@/])")
_LEET = re.compile(
    r"(?<![\w$@.])(?=[A-Za-z0-9@$!]{0,20}[A-Za-z])(?=[A-Za-z0-9@$!]{0,20}[0-9@$!][A-Za-z0-9@$!]{0,20}[A-Za-z]|[$@0-9!])[A-Za-z0-9@$!]{4,20}(?![\w@%])"
)
_LETTERED = str.maketrans("0134578@$!", "oieastbasi")
_LETTERED_L = str.maketrans("0134578@$!", "oleastbasl")
_HOT = frozenset("buy sell pump dump hold gain loss moon".split(" "))
_FRAGMENT = re.compile(r"[A-Za-z]+|[^A-Za-z]+")
_MAX_FRAGMENTS = 4
_MIN_JOINED = 5


def join(text: str) -> tuple[str, list[Finding]]:
    """The text with its words whole."""
    findings: list[Finding] = []
    found: list[str] = []
    text = _SEPARATED.sub(lambda match: _joined(match, found), text)
    text = _THREE.sub(lambda match: _short(match, found), text)
    text = _INSIDE.sub(lambda match: _inside(match, found), text)
    text = _fragments(text, found)
    if found:
        findings.append(
            Finding("split words", 0.6, f"{len(found)} words were split: {', '.join(found[:3])}"[:120])
        )
    leet: list[str] = []
    text = _LEET.sub(lambda match: _lettered(match, leet), text)
    if leet:
        findings.append(
            Finding("leetspeak", 0.4, f"digits and signs stood for letters: {', '.join(leet[:3])}"[:120])
        )
    return text, findings


def _joined(match: re.Match[str], found: list[str]) -> str:
    run, sign = match[0], match[1]
    word = run.replace(sign, "")
    if sum(char.isdigit() for char in word) * 2 > len(word):
        return run
    parts = segmented(word)
    if parts is None:
        is_acronym = (
            (sign == "." and word.isupper()) or len(word) < _MIN_JOINED or (sign == "." and len(word) < 6)
        )
        if is_acronym or word.isupper() or sign in (", ", ","):
            return run
        parts = [word]
    elif sign == "." and word.isupper() and len(word) < 6 and word.lower() not in _HOT:
        return run
    found.append(" ".join(parts))
    return " ".join(parts)


def _short(match: re.Match[str], found: list[str]) -> str:
    word = match[0].replace(match[1], "")
    if word.lower() != "buy":
        return match[0]
    found.append(word)
    return word


def _inside(match: re.Match[str], found: list[str]) -> str:
    """se.ll, pro*fit: parts that are no words, and together are one."""
    run = match[0]
    word = "".join(char for char in run if char.isalpha())
    known = words()
    if word.lower() not in known or len(word) < 4:
        return run
    parts = [part for part in re.split("[^A-Za-z]+", run) if part]
    if all(len(part) > 2 and part.lower() in known for part in parts):
        return run
    found.append(word)
    return word


def _fragments(text: str, found: list[str]) -> str:
    """Neighbours of which one at least is no word, and which together are one: "prof its", "ear nin gs"."""
    tokens = text.split(" ")
    if len(tokens) < 2:
        return text
    known = words()
    plain = [_core(token) for token in tokens]
    is_known = [word in known or not word for word in plain]
    if all(is_known):
        return text
    out: list[str] = []
    at = 0
    while at < len(tokens):
        took = 1
        for num in range(min(_MAX_FRAGMENTS, len(tokens) - at), 1, -1):
            if _is_one_word(tokens[at : at + num], plain[at : at + num], is_known[at : at + num], known):
                took = num
                break
        if took > 1:
            word = "".join(tokens[at : at + took])
            found.append(word)
            out.append(word)
        else:
            out.append(tokens[at])
        at += took
    return " ".join(out)


def _is_one_word(tokens: list[str], plain: list[str], is_known: list[bool], known: frozenset[str]) -> bool:
    if all(is_known) or any(not token.isalpha() or not token.islower() for token in tokens[1:-1]):
        return False
    if (
        not tokens[0].isalpha()
        or not (tokens[0].islower() or tokens[0].istitle())
        or not tokens[-1][:1].islower()
    ):
        return False
    word = "".join(plain)
    return len(word) >= _MIN_JOINED and word in known


@lru_cache(maxsize=4096)
def _core(token: str) -> str:
    """The word without signs about it, in lower case; '' where it has more than letters."""
    bare = token.strip(".,:;!?\"'()[]").lower()
    return bare if bare.isalpha() else ""


def _lettered(match: re.Match[str], found: list[str]) -> str:
    run = match[0]
    known = words()
    tail = run[len(run.rstrip("!")) :]
    body = run.rstrip("!")
    num_letters = sum(char.isalpha() for char in body)
    if (
        num_letters * 2 < len(body)
        or body.isalpha()
        or num_letters < 2
        or body[:1].isdigit()
        and body[1:].isalpha()
        and len(body) < 5
    ):
        return run
    if body[0] == "$" and body[1:].isalpha() and not body[1:].islower():
        return run  # $ALE, a cashtag
    for table in (_LETTERED, _LETTERED_L):
        word = body.translate(table)
        if word.lower() in known and len(word) >= 4:
            found.append(word)
            return word + tail
    return run


def segmented(letters: str) -> list[str] | None:
    """A run of letters as words, each known; None where no reading is. The fewest words win."""
    known = words()
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
