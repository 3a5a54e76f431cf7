"""Finds where a text names the asset that is asked about: by its name, shorter forms of it, or its symbol."""

import re
from collections.abc import Iterator
from functools import lru_cache

_ENDINGS = re.compile(
    r"[\s,]+(?:inc|corp(?:oration)?|co|company|companies|ltd|limited|plc|ag|sa|s\.a\.|se|nv|n\.v\.|ab|asa|oyj|spa|s\.p\.a\.|"
    r"llc|lp|kk|gmbh|holdings?|group|the|& co|class [a-c]|adr|cl [a-c]|com|bhd|pjsc|industries|international|"
    r"technologies|pharmaceuticals?|motors?|bank|energy|systems|laboratories|stores|airlines?)\.?$",
    re.IGNORECASE,
)
_LEGAL = re.compile(r"^the\s+", re.IGNORECASE)
_MIN_WORD = 3  # letters of a first word that may stand for the whole name
_COMMON = """
american general national united first international global new standard best bank royal great north south east
west central home health energy power capital credit public service western eastern southern northern advanced
applied digital pacific atlantic china india us the de la el dr st san las los big blue green red black white
gold silver oil gas air life world business news state city real net smart super"""
_COMMON_WORDS = frozenset(_COMMON.split())
_AFTER = r"(?:['’]s?)?(?![\w&])"


def find_name(text: str, symbol: str, name: str) -> tuple[int, int] | None:
    """Where the text names an asset, in characters; the longest form of its name that is found counts first."""
    for pattern in _patterns(symbol, name):
        found = pattern.search(text)
        if found is not None:
            return found.start(1), found.end(1)
    return None


def name_forms(name: str) -> Iterator[str]:
    """A name, then without its legal form and what companies of its kind are called, then its first word."""
    short = _LEGAL.sub("", " ".join(name.split()))
    if name.strip():
        yield " ".join(name.split())
    if short:
        yield short
    while (shorter := _ENDINGS.sub("", short)) not in (short, ""):
        short = shorter
        yield short
    words = short.split()
    if len(words) > 1:
        if len(words[0]) >= _MIN_WORD and words[0].casefold() not in _COMMON_WORDS:
            yield words[0]
        initials = "".join(word[0] for word in words if word[0].isupper())
        if len(initials) >= 3:
            yield initials


@lru_cache(maxsize=4096)
def _patterns(symbol: str, name: str) -> tuple[re.Pattern[str], ...]:
    found: list[re.Pattern[str]] = []
    for form in dict.fromkeys(name_forms(name)):
        is_word = " " not in form
        # A single word must be written as a name: with its capitals, its first alone, or all.
        forms = dict.fromkeys((form, form.upper(), form.capitalize())) if is_word else (form,)
        written = "|".join(re.escape(one) for one in forms)
        flags = re.NOFLAG if is_word else re.IGNORECASE
        found.append(re.compile(rf"(?<![\w&])({written}){_AFTER}", flags))
    root = symbol.lstrip("^$").partition(".")[0].partition("=")[0]
    if root:
        tagged = re.escape(root)
        found.append(re.compile(rf"\$({tagged})(?!\w)", re.IGNORECASE))
        found.append(re.compile(rf"(?:NYSE|NASDAQ|Nasdaq|LSE|TSX|NSE|BSE)\s?:\s?({tagged})(?!\w)"))
        if len(root) >= 3 and root.isupper():
            found.append(re.compile(rf"(?<![\w$.])({tagged})(?![\w])"))
    return tuple(found)
