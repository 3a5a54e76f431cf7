"""Counts as people read them: '1 view', '2,124 entries'."""


def counted(num: int, noun: str, plural: str = "") -> str:
    """A number with its noun, singular where it is one; `plural` where it is not the noun with an s."""
    return f"{num:,} {noun if num == 1 else plural or noun + 's'}"
