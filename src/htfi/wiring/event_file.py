"""A run's file on the events of its calendar: what was learnt of them, and when they were. The report reads it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import write_atomically
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.known_variance.event_facts import KindFacts
from htfi.forecasting.known_variance.event_table import expected_time_ns
from htfi.forecasting.known_variance.relations import HOME, currencies_of
from htfi.wiring.outputs import EVENTS

_RESULTS_KIND = "earnings"


class EventTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When events of one owner, a currency or a company, were: its results, or what the calendar calls of high impact.

    `is_day`: no hour was stated, so that daily bars alone hold them.
    """

    owner: str
    are_results: bool
    is_day: bool
    times_ns: list[int]


class EventFile(msgspec.Struct, frozen=True):
    """What the file holds: the kinds that the bars of the run held, the largest learnt factor first; and the times of
    events of the run's series.
    """

    kinds: list[KindFacts]
    times: list[EventTimes] = []


def event_times(events: Sequence[ScheduledEvent], series: Sequence[str]) -> list[EventTimes]:
    """The times of results and of events of high impact that concern these series ('SYMBOL/interval').

    What was moved or cancelled before its time is none.
    """
    symbols = {name.rpartition("/")[0].upper() for name in series}
    owners = symbols | {currency for symbol in symbols for currency in currencies_of(symbol) or (HOME,)}
    found: dict[tuple[str, bool, bool], list[int]] = {}
    for event in events:
        owner, are_results = event.symbol.upper() or event.currency, event.kind == _RESULTS_KIND
        if owner in owners and (are_results or event.impact == "high") and event.is_expected(event.time_ns):
            times = found.setdefault((owner, are_results, not event.is_exact), [])
            times.append(expected_time_ns(event))
    return [
        EventTimes(owner=owner, are_results=are_results, is_day=is_day, times_ns=sorted(times))
        for (owner, are_results, is_day), times in sorted(found.items())
    ]


def write_event_facts(folder: Path, kinds: Sequence[KindFacts], times: Sequence[EventTimes]) -> Path | None:
    """Write the file and return its path; a run that has neither writes none, and removes an older one.

    Raises: DependencyUnavailable.
    """
    path = folder / EVENTS
    try:
        if not kinds and not times:
            path.unlink(missing_ok=True)
            return None
        data = msgspec.json.format(msgspec.json.encode(EventFile(list(kinds), list(times))), indent=1)
        write_atomically(path, data + b"\n", private=True)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; free some disk space and run again"
        ) from error
    return path


def read_event_facts(folder: Path) -> EventFile | None:
    """What the run wrote; nothing where there is no such file, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / EVENTS).read_bytes(), type=EventFile)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
