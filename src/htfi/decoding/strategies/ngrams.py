"""What has followed what: counts of tokens after contexts of up to N tokens. Prompt look-up guesses by them.

Blended from the shortest context to the longest by Witten and Bell's rule (1991): a context that was seen often
says nearly all, one seen once says half, and what never was seen is guessed by what is usual.
"""

from collections.abc import Sequence

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


def blend(usual: NDArray[np.float64], books: Sequence[Ngrams], context: Sequence[int]) -> NDArray[np.float64]:
    """Weights of the next token [V] after a context, from how usual each is [V] and what followed it in `books`."""
    weights = usual / usual.sum()
    whole = tuple(context)
    for size in range(1, max(book.order for book in books) + 1):
        counts: dict[int, int] = {}
        for book in books:
            for token, num in book.after(whole[-size:]).items():
                counts[token] = counts.get(token, 0) + num
        if size > len(whole) or not counts:
            break  # what a context never had after it, a longer one has not either
        total, num_kinds = sum(counts.values()), len(counts)
        weights *= num_kinds / (total + num_kinds)
        for token, num in counts.items():
            weights[token] += num / (total + num_kinds)
    return weights
