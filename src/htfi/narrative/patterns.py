"""Loads patterns and word lists from TOML files beside the modules that use them.

A file has a table per module. A value is one pattern, which may stand on several lines: line breaks are removed, blanks
count. `<<name>>` stands for another value of the table, `<<table.name>>` for one of another table of the file.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

import msgspec

from htfi.narrative.pattern_starts import literal_marks, start_words
from htfi.narrative.prefilter import Words, needed_words, small_letters
from htfi.narrative.scanning import WordFilter, any_filter_passes, filters_that_pass

_REFERENCE = re.compile(r"<<([\w.]+)>>")


def one_of(names: Iterable[str]) -> str:
    """A pattern of any of these names, the longest first; what several begin with is compared once."""
    behind: dict[str, list[str]] = {}
    may_end = False
    for name in sorted(set(names)):
        if name:
            behind.setdefault(name[0], []).append(name[1:])
        may_end = may_end or not name
    branches = [re.escape(first) + one_of(rests) for first, rests in behind.items()]
    if len(branches) == 1 and not may_end:
        return branches[0]
    return f"(?:{'|'.join(branches)})" + "?" * (may_end and bool(branches)) if branches else ""


class _DeferredPattern:
    """Stands for a compiled pattern; its methods are those of the pattern from their first use on."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)  # `re` keeps what it compiles
        setattr(self, name, found)
        return found


def deferred(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A pattern that is compiled when it is first used: a run without news needs none of several hundred."""
    return cast("re.Pattern[str]", _DeferredPattern(text, flags))


# What a pattern gives in a text, by the name of the filter's method.
_METHODS = {"search": "search", "finditer": "finditer", "match": "match_first", "may_match": "may_match"}


class FilteredPattern:
    """A pattern for whole texts: compiled at its first use, tried only where a text has the words that it needs, and
    only at the words that it may begin with.
    """

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.text, self.flags = text, flags

    if TYPE_CHECKING:

        def search(self, text: str) -> re.Match[str] | None: ...

        def finditer(self, text: str, start: int = 0) -> Iterable[re.Match[str]]: ...

        def match(self, text: str) -> re.Match[str] | None:
            """As that of a pattern, at the beginning of a text."""
            ...

        def may_match(self, text: str) -> bool:
            """Whether a text has the words without which the pattern matches nowhere in it."""
            ...

    else:

        def __getattr__(self, name: str) -> Any:
            """The methods above are those of the filter from their first use on: nothing is called between."""
            of_filter = _METHODS.get(name)
            if of_filter is None:
                raise AttributeError(name)
            found = getattr(self.filter, of_filter)
            setattr(self, name, found)
            return found

    def sub(self, instead: str, text: str) -> str:
        return self._compiled.sub(instead, text) if self.may_match(text) else text

    @property
    def needed(self) -> tuple[Words, ...]:
        """See `prefilter.needed_words`."""
        return self._words[0]

    @cached_property
    def starts(self) -> Words | None:
        """See `pattern_starts.start_words`."""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[tuple[Words, ...], Words | None]:
        known = _known_words().get(pattern_name(self))
        if known is None:
            return needed_words(self.text, self.flags), start_words(self.text, self.flags)
        needed, starts = known
        return tuple(frozenset(words.split()) for words in needed), None if starts is None else frozenset(
            starts.split()
        )

    @cached_property
    def filter(self) -> WordFilter:
        return WordFilter(self.needed, self.starts, lambda: self._compiled)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, self.flags)


class MarkedPattern:
    """A pattern that may match within a word: searched only where a text has one of the strings that it needs."""

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.text, self.flags = text, flags

    def search(self, text: str) -> re.Match[str] | None:
        small = small_letters(text)
        for mark in self.marks:
            if mark in small:
                return self._compiled.search(text)
        return None if self.marks else self._compiled.search(text)

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """See `pattern_starts.literal_marks`."""
        return literal_marks(self.text, self.flags)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, self.flags)


KNOWN_WORDS = "needed_words.json"


def pattern_name(pattern: FilteredPattern) -> str:
    """Names a pattern by its text and flags (hex)."""
    return blake2b(f"{int(pattern.flags)} {pattern.text}".encode(), digest_size=8).hexdigest()


@cache
def _known_words() -> Mapping[str, tuple[Sequence[str], str | None]]:
    """What `needed_words` and `start_words` find for this package's patterns, by `pattern_name`: to derive it takes a
    second.

    Each set is one text of words. A pattern that is not named derives its own; `tests/needed_words.py` writes the file.
    """
    content = files("htfi.narrative").joinpath(KNOWN_WORDS).read_bytes()
    return msgspec.json.decode(content, type=dict[str, tuple[list[str], str | None]])


class PatternTable:
    """Patterns of which a text has few: those that may match it are found by its words, whatever their number."""

    def __init__(self, patterns: Iterable[FilteredPattern]) -> None:
        self.patterns = tuple(patterns)

    def candidates(self, text: str) -> list[int]:
        """The places of the patterns that may match in a text, rising."""
        return filters_that_pass(self._filters, text)

    def may_match(self, text: str) -> bool:
        """Whether any of the patterns may match in a text."""
        return any_filter_passes(self._filters, text)

    @cached_property
    def _filters(self) -> list[WordFilter]:
        return [pattern.filter for pattern in self.patterns]


class Patterns:
    """The values of one table, with their references resolved."""

    def __init__(self, package: str, file: str, table: str) -> None:
        self._tables = _tables(package, file)
        self._table = table

    def text(self, name: str) -> str:
        """A value as a string: a part of patterns, or a list of words."""
        return self._resolved(self._table, name)

    def names(self) -> tuple[str, ...]:
        """The names of the values, in the order of the file."""
        return tuple(self._tables[self._table])

    def words(self, name: str) -> frozenset[str]:
        """The words of a value, separated by blanks."""
        return frozenset(self._tables[self._table][name].split())

    def items(self) -> Iterable[tuple[str, str]]:
        """Every value by its name, for tables that are lists."""
        return self._tables[self._table].items()

    def compiled(self, name: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        """Compiled when it is first used."""
        return deferred(self._resolved(self._table, name), flags)

    def filtered(self, name: str, flags: re.RegexFlag = re.NOFLAG) -> FilteredPattern:
        """For whole texts; see `FilteredPattern`."""
        return FilteredPattern(self._resolved(self._table, name), flags)

    def marked(self, name: str, flags: re.RegexFlag = re.NOFLAG) -> MarkedPattern:
        """For whole texts; see `MarkedPattern`."""
        return MarkedPattern(self._resolved(self._table, name), flags)

    def entries(self, name: str) -> list[dict[str, str]]:
        """The tables `[[name]]` of the file, with references to this object's table resolved."""
        return [
            {key: self._filled(self._table, value) for key, value in entry.items()}
            for entry in cast("list[dict[str, str]]", self._tables[name])
        ]

    def _resolved(self, table: str, name: str) -> str:
        return self._filled(table, self._tables[table][name])

    def _filled(self, table: str, value: str) -> str:

        def referred(found: re.Match[str]) -> str:
            other, _, key = found[1].rpartition(".")
            return self._resolved(other or table, key)

        return _REFERENCE.sub(referred, value.replace("\n", ""))


@cache
def _tables(package: str, file: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))
