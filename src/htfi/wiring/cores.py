"""The cores that this process may use."""

import os


def usable_cores() -> list[int]:
    """Their numbers, rising."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
