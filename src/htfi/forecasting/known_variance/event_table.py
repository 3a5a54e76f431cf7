"""Scheduled events as arrays in the order of their times, from calendars in any order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent

Instants = NDArray[np.int64]

_ALWAYS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class EventTable:
    """E events in rising order of time, of K kinds; each kind is of one currency and company.

    Shapes: time_ns, kind, known_ns, withdrawn_ns [E]. `withdrawn_ns` is the largest integer where a line always held.
    `currencies` and `symbols` [K] are those of each kind.
    """

    time_ns: Instants
    kind: Instants
    known_ns: Instants
    withdrawn_ns: Instants
    kinds: tuple[str, ...]
    currencies: tuple[str, ...]
    symbols: tuple[str, ...]
    changes_ns: Instants  # when lines became known or were withdrawn, rising

    def has_changed(self, after_ns: int, until_ns: int) -> bool:
        """Whether a line became known or was withdrawn in (after, until]."""
        first, beyond = np.searchsorted(self.changes_ns, [after_ns, until_ns], "right")
        return bool(first < beyond)

    def within(self, begin_ns: int, end_ns: int, now_ns: int) -> NDArray[np.intp]:
        """The places of the events in [begin, end) that somebody at `now_ns` expects."""
        first, beyond = np.searchsorted(self.time_ns, [begin_ns, end_ns])
        if first == beyond:
            return _NONE
        part = slice(int(first), int(beyond))
        expected = (self.known_ns[part] <= now_ns) & (self.withdrawn_ns[part] > now_ns)
        return np.flatnonzero(expected) + int(first)


_NONE = np.empty(0, np.intp)


def kind_of(event: ScheduledEvent) -> str:
    """What the effects of events are learnt by: the canonical kind, or the currency and the calendar's own words."""
    return event.kind or f"{event.currency} {event.name}".strip()


def tabulate(events: Sequence[ScheduledEvent]) -> EventTable:
    """The events whose time of day is known, each once, whatever their order and however often a line comes.

    Of lines for the same event and time, the one that was known first counts, until the last is withdrawn.
    """
    spans: dict[tuple[int, str, str, str], tuple[int, int]] = {}
    for event in events:
        if not event.is_exact:
            continue
        key = (event.time_ns, kind_of(event), event.currency, event.symbol.upper())
        known_ns, withdrawn_ns = event.known_ns, event.withdrawn_ns or _ALWAYS
        if key in spans:
            known_ns, withdrawn_ns = min(known_ns, spans[key][0]), max(withdrawn_ns, spans[key][1])
        spans[key] = known_ns, withdrawn_ns
    ordered = sorted(spans)
    kinds = sorted({key[1:] for key in ordered})
    place = {kind: number for number, kind in enumerate(kinds)}
    return EventTable(
        time_ns=np.array([key[0] for key in ordered], np.int64),
        kind=np.array([place[key[1:]] for key in ordered], np.int64),
        known_ns=np.array([spans[key][0] for key in ordered], np.int64),
        withdrawn_ns=np.array([spans[key][1] for key in ordered], np.int64),
        kinds=tuple(kind for kind, _, _ in kinds),
        currencies=tuple(currency for _, currency, _ in kinds),
        symbols=tuple(symbol for _, _, symbol in kinds),
        changes_ns=np.array(sorted({at for span in spans.values() for at in span}), np.int64),
    )
