"""Finds where a text names the asset that is asked about: by its name, shorter forms of it, or its symbol."""

import re
from collections.abc import Iterator
from functools import lru_cache

from htfi.narrative.encoding.linking import has_built_in_name

_ENDINGS = re.compile(
    r"(?<=\w{6})\.com$|"  # Amazon.com, but not Cars.com
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
_FOLLOWING = re.compile(r" ([A-Z][\w-]+)")
# Words by which a name goes on as that of another firm.
_FIRMS = """
electronics rentals hospitality steel foods technologies technology healthcare health insurance bank bancorp petroleum
airlines airways motors pictures records capital financial energy pharma pharmaceutical pharmaceuticals semiconductor
semiconductors materials resources mining gold metals realty reit properties entertainment media systems software
networks communications telecom industries industrial chemical chemicals therapeutics biosciences biotech laboratories
labs holdings partners brands stores outdoor hotels resorts logistics express freight marine aerospace defense solar
power water gas oil trust savings securities investment investments ventures university hospital foundation force
records studios games motorsport racing cosmetics apparel paper packaging plastics tire rubber cement glass natural"""
_FIRM_WORDS = frozenset(_FIRMS.split())
# Symbols that are words: written alone they name no company.
_WORDS = """
A AI ALL AN AND ANY APP ARE AT BE BIG CAN CEO CFO CPI ECB EPS ETF EU EV FED FOR GDP GO HAS HE IMF IPO IT NEW NEXT NOW ON
ONE OPEN OR OUT PC PMI REAL SEE SO THE TRUE TV TWO UK UN UP US USA VERY WELL YOU"""
_WORD_SYMBOLS = frozenset(_WORDS.split())
_AFTER = r"(?:['’]s?)?(?![\w&])"


def find_name(text: str, symbol: str, name: str) -> tuple[int, int] | None:
    """Where the text names an asset, in characters; the longest form of its name that is found counts first."""
    for pattern in _patterns(symbol, name, is_shouted=text.isupper()):
        if pattern.needed not in text:
            continue
        for found in pattern.compiled.finditer(text):
            is_whole = found[1].casefold() == name.casefold() and not has_built_in_name(symbol)
            if is_whole or not is_of_another(text, found.end(1), name):
                return found.start(1), found.end(1)
    return None


def is_of_another(text: str, end: int, name: str) -> bool:
    """Whether a shorter form of a name goes on as another firm's: 'Delta' in 'Delta Electronics', asked for Delta Air
    Lines. A name of a firm that is not known, of which nothing was left out, may go on.
    """
    following = _FOLLOWING.match(text, end)
    return (
        following is not None
        and following[1].casefold() in _FIRM_WORDS
        and following[1].casefold() not in name.casefold()
    )


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


def is_word_symbol(symbol: str) -> bool:
    """Whether a symbol is also a common word, so that its letters alone do not name it."""
    return symbol in _WORD_SYMBOLS


def has_symbol_as_word(text: str, symbol: str) -> bool:
    """Whether a text holds a symbol that is a word, so that its tag may come from the word alone."""
    return (
        is_word_symbol(symbol)
        and re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text, re.IGNORECASE) is not None
    )


class _NamePattern:
    """One form of a name, compiled at the first text that holds what it needs: most symbols are in none."""

    __slots__ = ("_compiled", "_flags", "_text", "needed")

    def __init__(self, text: str, needed: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._text, self._flags = text, flags
        self.needed = needed  # what stands in every text that it matches in
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return self._compiled


@lru_cache(maxsize=4096)
def _patterns(symbol: str, name: str, *, is_shouted: bool) -> tuple[_NamePattern, ...]:
    found: list[_NamePattern] = []
    for form in dict.fromkeys(name_forms(name)):
        is_word = " " not in form
        # A single word must be written as a name: with its capitals, its first alone, or all.
        forms = dict.fromkeys((form, form.upper(), form.capitalize())) if is_word else (form,)
        written = "|".join(re.escape(one) for one in forms)
        flags = re.NOFLAG if is_word else re.IGNORECASE
        found.append(_NamePattern(rf"(?<![\w&])({written}){_AFTER}", "", flags))
    root = symbol.lstrip("^$").partition(".")[0].partition("=")[0]
    if root:
        tagged = re.escape(root)
        found.append(_NamePattern(rf"\$({tagged})(?!\w)", "$", re.IGNORECASE))
        found.append(_NamePattern(rf"(?:NYSE|NASDAQ|Nasdaq|LSE|TSX|NSE|BSE)\s?:\s?({tagged})(?!\w)", root))
        found.append(_NamePattern(rf"\(({tagged})(?:\.\w{{1,3}})?\)", root))
        if len(root) >= 3 and root.isupper() and not is_shouted and not is_word_symbol(root):
            found.append(_NamePattern(rf"(?<![\w$.])({tagged})(?![\w])", root))
    return tuple(found)
