"""What has followed what: counts of tokens after contexts of up to N tokens. Prompt look-up guesses by them.

Blended from the shortest context to the longest by Witten and Bell's rule (1991): a context that was seen often
says nearly all, one seen once says half, and what never was seen is guessed by what is usual.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

_Counts = dict[tuple[int, ...], dict[int, int]]


class Ngrams:
    """Counts of one text or of many. `order` is the longest context."""

    def __init__(self, order: int) -> None:
        self.order = order
        self._after: _Counts = {}

    def add(self, text: Sequence[int], begin: int = 0) -> None:
        """Count the tokens of a text from place `begin` on, each after those before it."""
        order, counts = self.order, self._after
        text = tuple(text)
        for place in range(max(begin, 1), len(text)):
            token = text[place]
            for size in range(1, min(order, place) + 1):
                found = counts.setdefault(text[place - size : place], {})
                found[token] = found.get(token, 0) + 1

    def remove(self, text: Sequence[int], begin: int = 0) -> None:
        """Take back what `add` counted of the same text."""
        text = tuple(text)
        for place in range(max(begin, 1), len(text)):
            for size in range(1, min(self.order, place) + 1):
                context, token = text[place - size : place], text[place]
                found = self._after[context]
                found[token] -= 1
                if not found[token]:
                    del found[token]
                    if not found:
                        del self._after[context]

    def after(self, context: tuple[int, ...]) -> dict[int, int]:
        return self._after.get(context, {})


class Usual:
    """How usual each token is [V], whatever comes before."""

    def __init__(self, vocab_size: int) -> None:
        self._counts = np.full(vocab_size, 0.01)
        self._logs: NDArray[np.float32] | None = None

    def add(self, tokens: Sequence[int], num: float = 1.0) -> None:
        """Count each token `num` times; −1.0 takes it back."""
        np.add.at(self._counts, tokens, num)
        self._logs = None

    def logs(self) -> NDArray[np.float32]:
        """The logarithms of their shares [V]."""
        logs = self._logs
        if logs is None:
            logs = self._logs = np.log(self._counts / self._counts.sum()).astype(np.float32)
        return logs


def blend(usual: Usual, books: Sequence[Ngrams], context: Sequence[int]) -> NDArray[np.float32]:
    """Logarithms of the next token's chances [V] after a context, from what followed it in `books`."""
    unseen, seen = 1.0, dict[int, float]()  # the share left to what is usual; what contexts add to it
    whole = tuple(context)
    for size in range(1, min(max(book.order for book in books), len(whole)) + 1):
        counts: dict[int, int] = {}
        for book in books:
            for token, num in book.after(whole[-size:]).items():
                counts[token] = counts.get(token, 0) + num
        if not counts:
            break  # what a context never had after it, a longer one has not either
        num_all = sum(counts.values()) + len(counts)
        left = len(counts) / num_all
        unseen *= left
        seen = {token: chance * left for token, chance in seen.items()}
        for token, num in counts.items():
            seen[token] = seen.get(token, 0.0) + num / num_all
    logs = usual.logs() + np.float32(log(unseen))
    for token, chance in seen.items():
        logs[token] = log(chance + exp(logs[token]))
    return logs
