"""How many examples Hypothesis tries, and how many cases of one law: all with `make test-all`, a part otherwise."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")

LARGE = "large"
SMALL = "small"
FEWEST = 10
SHARE = 8


def register_profiles() -> None:
    """Neither profile judges how long an example takes: that depends on what else the machine does."""
    settings.register_profile(SMALL, deadline=None, max_examples=40, print_blob=True)
    settings.register_profile(LARGE, deadline=None, max_examples=400, print_blob=True)
    settings.load_profile(SMALL)


def examples(num: int) -> int:
    """`num` in the large profile; an eighth in the small one, but ten at least."""
    if settings.get_current_profile_name() == LARGE:
        return num
    return max(min(num, FEWEST), num // SHARE)


def one_in_eight(cases: Sequence[Case]) -> Sequence[Case]:
    """Every case in the large profile; the first of every eight in the small one."""
    return cases if settings.get_current_profile_name() == LARGE else cases[::SHARE]
