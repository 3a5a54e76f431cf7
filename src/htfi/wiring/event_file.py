"""What a run with a calendar has learnt of its events: written at the run's end, read by the report."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import write_atomically
from htfi.forecasting.known_variance.event_facts import KindFacts
from htfi.wiring.outputs import EVENTS


class EventFile(msgspec.Struct, frozen=True):
    """What the file holds: the kinds that the bars of the run held, the largest learnt factor first."""

    kinds: list[KindFacts]


def write_event_facts(folder: Path, kinds: Sequence[KindFacts]) -> Path | None:
    """Write the file and return its path; a run whose bars held no event writes none, and removes an older one.

    Raises: DependencyUnavailable.
    """
    path = folder / EVENTS
    try:
        if not kinds:
            path.unlink(missing_ok=True)
            return None
        data = msgspec.json.format(msgspec.json.encode(EventFile(list(kinds))), indent=1)
        write_atomically(path, data + b"\n", private=True)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; free some disk space and run again"
        ) from error
    return path


def read_event_facts(folder: Path) -> EventFile | None:
    """What the run has learnt; nothing where there is no such file, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / EVENTS).read_bytes(), type=EventFile)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
