"""Bars a library from import for a moment, where another would import it unasked."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


class _Bar:
    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._module:
            raise ModuleNotFoundError(f"No module named {fullname!r}: barred", name=fullname)


@contextmanager
def barred(module: str) -> Generator[None]:
    """As if `module` were not installed; without effect where it is imported already."""
    bar = _Bar(module)
    sys.meta_path.insert(0, bar)
    try:
        yield
    finally:
        sys.meta_path.remove(bar)
