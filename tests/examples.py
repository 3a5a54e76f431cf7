"""How many examples Hypothesis tries: all that a test asks for with `make test-all`, a part of them otherwise."""

from hypothesis import settings

LARGE = "large"
SMALL = "small"
FEWEST = 20
SHARE = 4


def register_profiles() -> None:
    """Neither profile judges how long an example takes: that depends on what else the machine does."""
    settings.register_profile(SMALL, deadline=None, max_examples=100, print_blob=True)
    settings.register_profile(LARGE, deadline=None, max_examples=400, print_blob=True)
    settings.load_profile(SMALL)


def examples(num: int) -> int:
    """`num` in the large profile; a quarter in the small one, but twenty at least."""
    if settings.get_current_profile_name() == LARGE:
        return num
    return max(min(num, FEWEST), num // SHARE)
