"""Lines for a person about what runs beside the answers."""

import sys


def warn(line: str) -> None:
    """A line on standard error about something that runs beside an answer and changes none."""
    print(f"htfi: {line}", file=sys.stderr)  # noqa: T201  # the draft process's only way to a person
