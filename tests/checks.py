"""What keeps a check from passing where there was nothing to look at."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


def nonempty(items: Iterable[Item]) -> list[Item]:
    """The items to loop over, of which there must be one at least."""
    found = list(items)
    assert found, "nothing is there to be checked"
    return found


@contextmanager
def sooner_than(wait_s: float) -> Iterator[None]:
    """Asserts that its body does not sit out a wait of `wait_s` which the test has set up to be noticed.

    It is no bound on speed: choose a wait so long that no machine is busy enough to take it for another.
    """
    began_s = time.monotonic()
    yield
    assert time.monotonic() - began_s < wait_s, f"it sat out a wait of {wait_s} s"
