"""Decisions of a run's record by series, newest first."""

from htfi.wiring.service.record import RecordedLine, ServedRecordReader

_SCAN = 1_024  # entries looked at in one step of a search backwards
_MAX_SCANNED = 50_000  # entries that one search looks at


def is_of(decision: str, series: str) -> bool:
    """Whether a decision's id is of a series, or of any series of a symbol."""
    name = decision.partition("@")[0]
    return series in (name, name.rpartition("/")[0])


def find_before(
    reader: ServedRecordReader, series: str, stop: int, limit: int, *, is_released: bool
) -> tuple[list[RecordedLine], int | None]:
    """Decisions on a series or symbol ('': any) before `stop`, newest first, with the index from which to go on."""
    found: list[RecordedLine] = []
    start, scanned = stop, 0
    while start > 0 and scanned < _MAX_SCANNED:
        stop, start = start, max(start - (_SCAN if series else limit), 0)
        scanned += stop - start
        names = reader.ids(start, stop) if series else []
        for index in range(stop - 1, start - 1, -1):
            if series and not is_of(names[index - start], series):
                continue
            one = reader.line(index)
            if is_released and one.decision is None:
                continue
            found.append(one)
            if len(found) == limit:
                return found, index if index > 0 else None
    return found, start if start > 0 else None
