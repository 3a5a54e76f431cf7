"""Loads patterns and word lists from TOML files beside the modules that use them.

A file has a table per module. A value is one pattern, which may stand on several lines: line breaks are removed, blanks
count. `<<name>>` stands for another value of the table, `<<table.name>>` for one of another table of the file.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import cast

_REFERENCE = re.compile(r"<<([\w.]+)>>")


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
        return re.compile(self._resolved(self._table, name), flags)

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
