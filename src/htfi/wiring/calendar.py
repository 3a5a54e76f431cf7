"""Reads the calendar of scheduled releases that the settings name. The engine and the bench of buffering ask for it."""

from pathlib import Path

from htfi import sample
from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.narrative.calendar.release import Calendar
from htfi.narrative.calendar.rows import MAX_BYTES, parse_calendar

SAMPLE = "sample"  # stands for the calendar of the embedded sample
SAMPLE_FILE = "calendar.toml"


def open_calendar(named: str) -> Calendar:
    """The calendar in a file, that of the sample, or an empty one where none is named.

    Raises: InvalidInput with one line that says what is wrong with it, where, and what to do.
    """
    if not named:
        return Calendar()
    path = Path(sample.__file__).with_name(SAMPLE_FILE) if named == SAMPLE else Path(named)
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise InvalidInput(f"calendar {path}: a calendar has at most {MAX_BYTES} bytes")
        data = read_whole(path)
    except (DependencyUnavailable, OSError, ValueError) as error:
        raise InvalidInput(f"calendar {named}: cannot be read: {error}") from error
    if data is None:
        raise InvalidInput(f"calendar {named}: there is no such file: check narrative.calendar")
    return parse_calendar(data, str(path))
