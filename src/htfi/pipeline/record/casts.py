"""Conversions that C makes in one instruction: compiled modules take them from casts.pxd instead."""


def to_whole(value: float) -> int:
    """A finite number without its fraction, below 2**63 in size."""
    return int(value)
