"""The outcome cache as 64-bit words: drafted nodes that another process may read while they are being written.

A word holds all of a node, and the round (epoch) that it belongs to: whoever reads a word of the epoch it looks for
has a whole node, and stops at the first word of another. Drafters write, strategies read.
"""

from collections.abc import Iterable, Sequence

NUM_WORDS = 512  # nodes of a stem's round
NOTHING = 0xFFFFFFFF  # in place of a token: the drafter has no room for this stem, nothing will come
_OWN = 1 << 47
_PARENT = 0x7FFF


def first_epoch() -> int:
    return 1


def next_epoch(epoch: int) -> int:
    """Counts 1 … 65535 and begins anew."""
    return epoch % 0xFFFF + 1


def word(epoch: int, is_own: bool, parent: int, token: int) -> int:
    """`parent` is the node before, counted from 1; 0 the settled text. `is_own`: the draft's own choice there."""
    return epoch << 48 | is_own << 47 | parent << 32 | token


def read_on(words: Iterable[int], epoch: int, tokens: Sequence[int] = ()) -> list[int] | None:
    """What the draft would say after `tokens`, as far as it is there; None where those are not among its outcomes."""
    at = want = 0
    found: list[int] = []
    for number, packed in enumerate(words, 1):
        if packed >> 48 != epoch:
            break
        if (packed >> 32) & _PARENT != at:
            continue
        token = packed & 0xFFFFFFFF
        if want < len(tokens):
            if token == tokens[want]:
                at, want = number, want + 1
        elif packed & _OWN:
            found.append(token)
            at = number
    return found if want == len(tokens) else None
