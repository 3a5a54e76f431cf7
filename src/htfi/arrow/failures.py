"""What arro3 raises, as errors of this package. It raises plain exceptions, and panics of Rust."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from htfi.arrow.reader_program import is_damage

_PREFIX = re.compile(r"^(?:[A-Z][A-Za-z ]* error: |External: )+")
_MAX_CHARS = 120


class DamagedFile(Exception):
    """A file is not a whole one of its form; the message says why, in one line."""


class SourceOfBytes(Protocol):
    """A file object that arro3 reads; `failure` is what it raised, which arro3 passes on as text alone."""

    @property
    def failure(self) -> BaseException | None: ...


@contextmanager
def failures_as_damage(source: SourceOfBytes | None = None) -> Generator[None]:
    """Raises: DamagedFile for what arro3 raises; what the source raised, as it was."""
    try:
        yield
    except BaseException as error:
        failure = None if source is None else source.failure
        if failure is not None:
            raise failure from None
        if is_damage(error):
            raise DamagedFile(reason(str(error)) or type(error).__name__) from error
        raise


def reason(text: str) -> str:
    """Why, in one line, without the names of the layers that passed it on."""
    lines = text.splitlines()
    return _PREFIX.sub("", lines[0])[:_MAX_CHARS] if lines else ""
