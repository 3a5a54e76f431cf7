"""What is asked: one line of a command or one table of a TOML file for each scenario. Pure parsing."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from htfi.domain.errors import InvalidInput

MAX_ASKED = 1_000
MAX_NAME_CHARS = 60


class Kind(StrEnum):
    HEADLINE = "headline"
    MACRO = "macro"
    SHOCK = "shock"
    STRESS = "stress"


@dataclass(frozen=True, slots=True)
class Asked:
    """One scenario: its kind, the text that says it, the symbols that a headline is on, and what a person calls it.

    One of `all` stresses is left out where nothing of the run stands for it; one that is named must apply.
    """

    kind: Kind
    text: str
    on: tuple[str, ...] = ()
    name: str = ""
    is_of_all: bool = False


def read_asked(text: str, origin: str) -> list[Asked]:
    """The [[scenario]] tables of a TOML text. Raises: InvalidInput, naming the table."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{origin}: not valid TOML: {error}") from error
    tables = told.get("scenario")
    if not isinstance(tables, list) or set(told) != {"scenario"}:
        raise InvalidInput(
            f"{origin}: write one [[scenario]] table for each, with shock, macro, stress or headline"
        )
    return [
        _table(table, f"{origin}, scenario {number}")
        for number, table in enumerate(cast("list[Any]", tables), 1)
    ]


def check_asked(asked: Sequence[Asked]) -> None:
    """Raises: InvalidInput for none, or more than one command answers."""
    if not asked:
        raise InvalidInput(
            "no scenario: name a --shock, --macro, --stress or --headline, or --file with several"
        )
    if len(asked) > MAX_ASKED:
        raise InvalidInput(f"{len(asked):,} scenarios: at most {MAX_ASKED:,} at a time")


def _table(table: object, where: str) -> Asked:
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{where}: must be a table")
    told = cast("Mapping[str, Any]", table)
    kinds = [kind for kind in Kind if kind.value in told]
    if len(kinds) != 1:
        raise InvalidInput(f"{where}: name one of shock, macro, stress and headline, not {len(kinds)}")
    kind = kinds[0]
    unknown = set(told) - {kind.value, "name", *(["on"] if kind is Kind.HEADLINE else [])}
    if unknown:
        raise InvalidInput(f"{where}: unknown key '{sorted(unknown)[0]}'")
    text, name, on = told[kind.value], told.get("name", ""), told.get("on", [])
    on = [on] if isinstance(on, str) else on
    if not isinstance(text, str) or not isinstance(name, str):
        raise InvalidInput(f"{where}: {kind.value} and name must be text")
    if not isinstance(on, list) or not all(isinstance(symbol, str) for symbol in cast("list[Any]", on)):
        raise InvalidInput(f"{where}: 'on' must be a symbol or a list of symbols")
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(f"{where}: a name has at most {MAX_NAME_CHARS} characters, in one line")
    return Asked(kind, text, tuple(cast("list[str]", on)), name)
