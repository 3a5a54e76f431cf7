"""The TOML files in `data`: the words, names and exposures that simulations draw from."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

_DATA = Path(__file__).parent / "data"
T = TypeVar("T")


def read_table(name: str, kind: type[T]) -> T:
    """The file `name`.toml as a `kind`. Raises: msgspec.ValidationError, tomllib.TOMLDecodeError: a broken install."""
    return msgspec.convert(tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8")), kind)
