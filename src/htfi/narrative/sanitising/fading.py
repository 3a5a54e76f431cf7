"""Powers by multiplication alone, so that what fades comes to the same bits on every machine. Item checks use it."""

NS_PER_HOUR = 3_600_000_000_000
_MOST_STEPS = 10_000


def faded(kept: float, steps: int) -> float:
    """What is left after so many steps, each of which keeps the fraction `kept`."""
    left, steps = 1.0, min(steps, _MOST_STEPS)
    while steps > 0:
        if steps & 1:
            left *= kept
        kept *= kept
        steps >>= 1
    return left
