"""Finds what a text names: firms, central banks, indices, commodities, currencies.

A ticker that is a word counts only with a sign that it is one: $ALL, (ALL.N), NYSE: ALL. A firm whose name is a word
counts only in a context that shows the firm is meant. One pass over the words, however many names there are.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from htfi.narrative.encoding import compiled

if TYPE_CHECKING:
    from htfi.narrative.encoding.linking_core import NamedPlaces

MAX_CHARS = 4096  # of a text; its subjects stand in the beginning
MAX_SYMBOLS = 16
_MAX_KEPT = 1_024  # texts whose mentions are kept
_CONTEXT_MARK = "~"

_WORD = re.compile(r"\w+(?:[&.*'’]\w+)*")
# How tickers are written, with a character that all of them have: texts without it are not searched.
_TICKERS = (
    ("tag", "$", re.compile(r"(?<![\w$])\$([A-Za-z]{1,5}(?:[.\-][A-Za-z]{1,2})?)(?![\w$])")),  # $AAPL
    (
        "ric",  # AAPL.O, 7203.T
        ".",
        re.compile(
            r"\b(?<!\.)(?!U\.[SNK]|[LDP]\.A)([A-Z]{1,5}[a-z]?|\d{4,6}(?=\.[A-Z]))"
            r"\.(N|OQ?|A|K|L|PA|DE|F|TO|T|V|HK|SS|SZ|AX|MI|MC|AS|BR|ST|CO|HE|OL|SI|SA|S|VX|NS|BO|KS|TW|MX|J|PK|OB|P|Z)"
            r"(?![\w.]\w)"
        ),
    ),
    (
        "listed",  # NYSE: XYZ
        ":",
        re.compile(
            r"\b(?:NYSE(?: American| Arca| MKT)?|NASDAQ(?:GS|GM|CM)?|Nasdaq|AMEX|LSE|TSX|ASX|OTC(?:QB|QX)?|CBOE)\s?:"
            r"\s?([A-Z]{1,5}(?:[.\-][A-Z]{1,2})?)\b"
        ),
    ),
    ("pair", "", re.compile(r"(?<![\w/])([A-Z]{3}/?[A-Z]{3})(?:=X?)?(?![\w/])")),  # EUR/USD, EURUSD=X
)
_ALL_KINDS = (1 << len(_TICKERS)) - 1
_NON_COMPANY_KINDS = ("central_banks", "indices", "commodities", "currencies")


class _Capitals(Enum):
    """How a name must be written in a text."""

    ALL = auto()
    FIRST = auto()
    ANY = auto()


class _EntityName(NamedTuple):
    words: tuple[str, ...]  # folded
    symbol: str
    needs_context: bool
    capitals: _Capitals  # as the name itself is written


class EntityMention(NamedTuple):
    """Where a text names a symbol: from `start` to before `end`, without a possessive ending."""

    start: int
    end: int
    symbol: str


class _TextWords(NamedTuple):
    """Where the words of a text start and end; as they are written, without a possessive ending, and folded; the places
    at which a name may begin.
    """

    starts: list[int]
    ends: list[int]
    written: list[str]
    folded: list[str]
    places: list[int]


class EntityLinker:
    """Names by symbol: those of the run, then the built-in ones. The same text gives the same symbols."""

    def __init__(self, names: Mapping[str, Iterable[str]], *, built_in: bool = True) -> None:
        """`names` are those of the run's symbols, such as {"SPX": ["S&P 500"]}; a name belongs to the first symbol that
        claims it, the run's own before others.
        """
        self._own = [(symbol, name) for symbol, called in names.items() for name in called]
        self._has_built_in = built_in
        self._kept: dict[str, tuple[EntityMention, ...]] = {}  # of the newest texts: some are asked for again

    @cached_property
    def _by_word(self) -> dict[str, list[_EntityName]]:
        """Names by their first word, the longest first; made at the first text, which many forecasts do without."""
        by_word: dict[str, list[_EntityName]] = {}
        known: set[tuple[str, ...]] = set()
        for symbol, name in self._own + (list(_built_in_names()) if self._has_built_in else []):
            made = _parsed_name(symbol, name)
            if made.words and made.words not in known:
                known.add(made.words)
                by_word.setdefault(made.words[0], []).append(made)
        for called in by_word.values():
            called.sort(key=lambda name: -len(name.words))
        return by_word

    @cached_property
    def _named_places(self) -> "NamedPlaces":
        return compiled.linking.NamedPlaces(self._by_word)

    @cached_property
    def _symbols(self) -> frozenset[str]:
        return frozenset(name.symbol for called in self._by_word.values() for name in called)

    def link(self, text: str) -> tuple[str, ...]:
        """Symbols that the text names, in the order of their first mention."""
        return tuple(dict.fromkeys(mention.symbol for mention in self.mentions(text)))[:MAX_SYMBOLS]

    def mentions(self, text: str, expected: Collection[str] = ()) -> list[EntityMention]:
        """Every place in which the text names a symbol, in order; the name of an `expected` symbol needs no context."""
        text = text[:MAX_CHARS]
        if expected:
            return self._found(text, expected)
        kept = self._kept.get(text)
        if kept is None:
            kept = tuple(self._found(text, ()))
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[text] = kept
        return list(kept)

    def _found(self, text: str, expected: Collection[str]) -> list[EntityMention]:
        found: list[EntityMention] = []
        kinds = _ALL_KINDS if compiled.linking is None else compiled.linking.possible_tickers(text)
        for number, (kind, sign, pattern) in enumerate(_TICKERS):
            if kinds & 1 << number and sign in text:
                found += [
                    EntityMention(match.start(), match.end(), symbol)
                    for match in pattern.finditer(text)
                    for symbol in _symbols_of_ticker(kind, match)
                ]
        found += self._named(text, expected)
        found.sort(key=lambda mention: mention.start)
        return found

    def knows(self, symbol: str) -> bool:
        """Whether a symbol has a name of its own."""
        return symbol in self._symbols

    def _named(self, text: str, expected: Collection[str]) -> list[EntityMention]:
        after = 0
        words = self._text_words(text)
        if words is None:
            return []
        found: list[EntityMention] = []
        for place in words.places:
            if place >= after:
                name = self._match(text, words, place, expected)
                if name is not None:
                    after = place + len(name.words)
                    end = words.starts[after - 1] + len(words.written[after - 1])
                    found.append(EntityMention(words.starts[place], end, name.symbol))
        return found

    def _text_words(self, text: str) -> _TextWords | None:
        """The words of a text; None where no name can begin."""
        has_possessives = "'" in text or "’" in text
        if compiled.linking is not None and text.isascii():
            found = self._named_places.words_of(text, has_possessives)
            return None if found is None else _TextWords(*found)
        matches = list(_WORD.finditer(text))
        written = [match[0] for match in matches]
        if has_possessives:
            written = [_without_possessive(word) for word in written]
        starts, ends = [match.start() for match in matches], [match.end() for match in matches]
        folded = [word.casefold() for word in written]
        places = [place for place, word in enumerate(folded) if word in self._by_word]
        return _TextWords(starts, ends, written, folded, places) if places else None

    def _match(
        self, text: str, words: _TextWords, place: int, expected: Collection[str]
    ) -> _EntityName | None:
        for name in self._by_word[words.folded[place]]:
            end = place + len(name.words)
            if tuple(words.folded[place:end]) != name.words or not _is_written_so(words.written[place], name):
                continue
            is_sure = not name.needs_context or name.symbol in expected
            if is_sure or _is_company_here(text, words, place, end):
                return name
        return None


@lru_cache(maxsize=4_096)  # symbols that are asked about again and again
def entity_kind(symbol: str) -> str:
    """'central_banks', 'indices', 'commodities', 'currencies', else 'companies'."""
    tables = _tables()
    return next((kind for kind in _NON_COMPANY_KINDS if symbol in tables[kind]), "companies")


def has_built_in_name(symbol: str) -> bool:
    """Whether the built-in tables say what a symbol is called."""
    return any(symbol in names for names in _tables().values())


def is_company(symbol: str) -> bool:
    """Whether a symbol is that of a firm, not of a bank, index, commodity or currency."""
    return entity_kind(symbol) == "companies"


def names_company(symbol: str, written: str) -> bool:
    """Whether a symbol stands for a firm where a text names it so: NOK is the krone's, and Nokia's where 'Nokia' is
    written.
    """
    if is_company(symbol):
        return True
    called = _tables()[entity_kind(symbol)][symbol].casefold()
    return written.casefold() not in called and written != symbol


def _symbols_of_ticker(kind: str, match: re.Match[str]) -> list[str]:
    """Symbols that a ticker stands for: BRKa is BRK.A, 7203 at T is 7203.T, a pair is both its currencies."""
    value = match[1]
    if kind == "pair":
        one, other = value[:3], value[-3:]
        currencies = _tables()["currencies"]
        return [one, other] if one in currencies and other in currencies and one != other else []
    if kind == "ric" and value.isdigit():
        return [f"{value}.{match[2]}"]
    if kind == "ric" and value[-1].islower():
        return [f"{value[:-1]}.{value[-1].upper()}"]
    return [value.upper().replace("-", ".")]


def _without_possessive(word: str) -> str:
    return word[:-2] if word[-2:] in ("'s", "’s") else word


def _is_written_so(word: str, name: _EntityName) -> bool:
    if name.capitals is _Capitals.ANY:
        return True
    if name.capitals is _Capitals.ALL:
        return word.isupper()
    return not word[0].islower()


def _is_company_here(text: str, words: _TextWords, place: int, end: int) -> bool:
    """Whether a word that may be a firm's name is one here: by what follows, or by a capital among lower-case words."""
    last = end - 1
    if words.ends[last] - words.starts[last] != len(words.written[last]):  # a possessive
        return True
    if end < len(words.folded) and words.folded[end] in _company_signs():
        return True
    if place == 0 or not words.written[place - 1].islower():
        return False
    return text[words.ends[place - 1] : words.starts[place]] == " "


def _parsed_name(symbol: str, name: str) -> _EntityName:
    name = name.strip()
    is_wary = name.startswith(_CONTEXT_MARK)
    words = [_without_possessive(match[0]) for match in _WORD.finditer(name.removeprefix(_CONTEXT_MARK))]
    first = words[0] if words else ""
    if len(words) == 1 and first.isupper() and len(first) <= 5:
        capitals = _Capitals.ALL
    else:
        capitals = _Capitals.FIRST if first[:1].isupper() else _Capitals.ANY
    return _EntityName(tuple(word.casefold() for word in words), symbol, is_wary, capitals)


def _built_in_names() -> Iterable[tuple[str, str]]:
    for kind in (*_NON_COMPANY_KINDS, "companies"):
        for symbol, called in _tables()[kind].items():
            for name in called.split("|"):
                yield symbol, name


@cache
def _tables() -> dict[str, dict[str, str]]:
    return {kind: _read()[kind] for kind in (*_NON_COMPANY_KINDS, "companies")}


@cache
def _company_signs() -> frozenset[str]:
    """Words that show the word before them to be a firm."""
    return frozenset(word for words in _read()["signs"].values() for word in words.split())


@cache
def _read() -> dict[str, Any]:
    """Both built-in tables."""
    folder = resources.files("htfi.narrative.encoding")
    tables: dict[str, Any] = {}
    for file in ("entities.toml", "companies.toml"):
        tables |= tomllib.loads((folder / file).read_text(encoding="utf-8"))
    return tables
