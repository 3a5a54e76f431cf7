"""What keeps a check from passing where there was nothing to look at."""

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def nonempty(items: Iterable[Item]) -> list[Item]:
    """The items to loop over, of which there must be one at least."""
    found = list(items)
    assert found, "nothing is there to be checked"
    return found
