"""The text of an answer as its tokens come: no part of a character, and nothing that may yet be a stop string."""

from collections.abc import Sequence

from htfi.decoding.ports import Tokenizer

_PART = "\ufffd"  # how a part of a character decodes


class TextStream:
    """One answer's text. What it has given never changes; joined it is the text up to the first stop string.

    The first is the one that ends first, of those that end together the one that begins first: so the text is the same
    however it is cut into tokens.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stops = tuple(stop for stop in stops if stop)
        self._tokens: list[int] = []
        self._context = (
            0  # decoded again before the new tokens: a tokenizer may join a token to the one before
        )
        self._num_read = 0  # tokens whose text is known
        self._held = ""  # may be the beginning of a stop string
        self.is_stopped = False

    def add(self, token: int) -> str:
        """The text that is certain after one more token; empty after a stop string."""
        if self.is_stopped:
            return ""
        self._tokens.append(token)
        return self._release(self._decoded(is_last=False))

    def end(self) -> str:
        """The rest, when no token follows."""
        if self.is_stopped:
            return ""
        text = self._release(self._decoded(is_last=True))
        rest, self._held = self._held, ""
        return text if self.is_stopped else text + rest

    def _decoded(self, *, is_last: bool) -> str:
        before = self._tokenizer.decode(self._tokens[self._context : self._num_read])
        text = self._tokenizer.decode(self._tokens[self._context :])
        if len(text) <= len(before) or (text.endswith(_PART) and not is_last):
            return ""
        self._context, self._num_read = self._num_read, len(self._tokens)
        return text[len(before) :]

    def _release(self, text: str) -> str:
        if not self._stops:
            return text
        self._held += text
        found = [(place + len(stop), place) for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            text, self._held = self._held[: min(found)[1]], ""
            return text
        num_held = max(_num_begun(self._held, stop) for stop in self._stops)
        keep = len(self._held) - num_held
        text, self._held = self._held[:keep], self._held[keep:]
        return text


def _num_begun(text: str, stop: str) -> int:
    """How many characters at the end of a text begin a stop string."""
    return next((num for num in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:num])), 0)
