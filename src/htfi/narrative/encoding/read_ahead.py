"""Reads a text together with those that are known to follow, and holds what was read last.

What is read ahead changes how soon an answer comes, never the answer.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice

from htfi.narrative.encoding.text_reading import TextReader, TextReading

MAX_AHEAD = 512  # texts read with one that is asked for, or begun
# Read with one that is asked for where another core has begun with those that follow: they are left to it.
_FEW_AHEAD = 32
MAX_HELD = 2_048  # readings, of about 4 kB each


def begin_nothing(_: Sequence[str]) -> bool:
    """For a reader that reads on one core."""
    return False


class ReadAheadTextReader:
    """A reader that several ask for the same texts: each is read once, together with others."""

    def __init__(self, reader: TextReader, begin: Callable[[Sequence[str]], bool] = begin_nothing) -> None:
        """`begin` has a reader begin with texts that it will be asked for; it says whether there is a core for it."""
        self._reader, self._begin = reader, begin
        self.version, self.size = reader.version, reader.size
        self._held: OrderedDict[str, TextReading] = OrderedDict()  # the longest held first
        self._expected: dict[str, None] = {}  # in the order in which they will be asked for
        self._begins = False  # whether another core has begun with those that follow
        # Whether anything was missing since texts were begun: a cache may know them all.
        self._is_asked = True

    def expect(self, texts: Sequence[str]) -> None:
        """The texts that will be asked for next; those that were expected before are forgotten."""
        self._expected = dict.fromkeys(texts)
        if self._is_asked:
            self._begin_expected()

    def hold(self, text: str, reading: TextReading) -> None:
        """Hold what was read elsewhere."""
        self._held[text] = reading

    def forget(self, headline: str) -> None:
        """Forget what was read of an item that was withdrawn: its headline, alone or with its body."""
        for text in [text for text in self._held if text.startswith(headline)]:
            del self._held[text]

    def read(self, texts: Sequence[str]) -> list[TextReading]:
        """One per text, in order. Raises: DependencyUnavailable."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._held]
        if missing:
            self._read(missing)
        found = [self._held[text] for text in texts]
        while len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
        return found

    def _read(self, missing: Sequence[str]) -> None:
        for text in missing:
            self._expected.pop(text, None)
        ahead = list(islice(self._expected, _FEW_AHEAD if self._begins else MAX_AHEAD))
        for text in ahead:
            del self._expected[text]
        wanted = [*missing, *(text for text in ahead if text not in self._held)]
        self._held.update(zip(wanted, self._reader.read(wanted), strict=True))
        self._begin_expected()
        self._is_asked = True

    def _begin_expected(self) -> None:
        """Raises: DependencyUnavailable."""
        self._begins = self._begin(
            [text for text in islice(self._expected, MAX_AHEAD) if text not in self._held]
        )
        self._is_asked = False
