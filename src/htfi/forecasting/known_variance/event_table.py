"""Scheduled events as arrays in the order of their times, from calendars in any order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S

Instants = NDArray[np.int64]

_ALWAYS = np.iinfo(np.int64).max
# Kinds of several persons, estimates or successors, which do not move prices alike: learnt by a calendar's own words.
BY_WORDS = frozenset(
    ("boc_member_speaks", "ch_economic_expectations", "ea_bank_stress_test", "fr_private_payrolls",
     "nz_pmi_manufacturing", "uk_chancellor_speaks", "us_economic_optimism", "us_productivity", "us_vehicle_sales")
)  # fmt: skip
CLOSED, HALF_DAY = "market_closed", "market_half_day"
_WITHIN_DAY_NS = (
    19 * 3600 * NS_PER_S
)  # into a day whose hour is not stated: before the close of New York, on its date


class Closure(NamedTuple):
    """A day, counted since 1970-01-01, on which the exchanges of a currency are closed, or close early."""

    day: int
    currency: str
    known_ns: int
    withdrawn_ns: int
    is_half: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledLines:
    """E events in rising order of time, of K kinds; each kind is of one currency and company.

    Shapes: time_ns, kind, known_ns, withdrawn_ns, is_exact [E]. `withdrawn_ns` is the largest integer where a line
    always held. `currencies` and `symbols` [K] are those of each kind. `closures` are days without a
    session or with a short one.
    """

    time_ns: Instants
    kind: Instants
    known_ns: Instants
    withdrawn_ns: Instants
    is_exact: NDArray[np.bool_]
    kinds: tuple[str, ...]
    currencies: tuple[str, ...]
    symbols: tuple[str, ...]
    changes_ns: Instants  # when lines became known or were withdrawn, rising
    closures: tuple[Closure, ...]

    def has_changed(self, after_ns: int, until_ns: int) -> bool:
        """Whether a line became known or was withdrawn in (after, until]."""
        if not len(self.changes_ns):
            return False
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

    def closed_days(self, currency: str, now_ns: int, *, half: bool = False) -> Instants:
        """The days without a session, or with a short one, rising, as expected at `now_ns`."""
        days = {
            one.day
            for one in self.closures
            if one.is_half == half
            and one.currency in (currency, "")
            and one.known_ns <= now_ns < one.withdrawn_ns
        }
        return np.array(sorted(days), np.int64)

    def all_closed_days(self, currency: str) -> Instants:
        """The days without a session, rising, whenever they were known."""
        days = {one.day for one in self.closures if not one.is_half and one.currency in (currency, "")}
        return np.array(sorted(days), np.int64)


_NONE = np.empty(0, np.intp)


def kind_of(event: ScheduledEvent) -> str:
    """What the effects of events are learnt by: the canonical kind, or the currency and the calendar's own words
    without their period ('(SEP)')."""
    if event.kind and event.kind not in BY_WORDS:
        return event.kind
    from htfi.calendar.recognition import without_period  # a run without a calendar reads no rules of names

    return f"{event.currency} {without_period(event.name)}".strip()


def expected_time_ns(event: ScheduledEvent) -> int:
    """When it happens; where no hour is stated, an instant within its day that the right daily bar holds."""
    return event.time_ns if event.is_exact else event.time_ns + _WITHIN_DAY_NS


def line_key(event: ScheduledEvent) -> tuple[int, str, str, str, bool]:
    """What lines for the same event share: time, kind, currency, company, and whether the time is exact."""
    return expected_time_ns(event), kind_of(event), event.currency, event.symbol.upper(), event.is_exact


def tabulate(events: Sequence[ScheduledEvent]) -> ScheduledLines:
    """The events, each once, whatever their order and however often a line comes.

    Of lines for the same event and time, the one that was known first counts, until the last is withdrawn.
    """
    spans: dict[tuple[int, str, str, str, bool], tuple[int, int]] = {}
    closures: set[Closure] = set()
    for event in events:
        withdrawn_ns = event.withdrawn_ns or _ALWAYS
        if event.kind in (CLOSED, HALF_DAY):
            day, is_half = event.time_ns // NS_PER_DAY, event.kind == HALF_DAY
            closures.add(Closure(day, event.currency, event.known_ns, withdrawn_ns, is_half))
        key = line_key(event)
        first = spans.get(key, (event.known_ns, withdrawn_ns))
        spans[key] = min(event.known_ns, first[0]), max(withdrawn_ns, first[1])
    ordered = sorted(spans)
    kinds = sorted({key[1:4] for key in ordered})
    place = {kind: number for number, kind in enumerate(kinds)}
    changes = {at for span in spans.values() for at in span} | {
        at for one in closures for at in (one.known_ns, one.withdrawn_ns)
    }
    return ScheduledLines(
        time_ns=np.array([key[0] for key in ordered], np.int64),
        kind=np.array([place[key[1:4]] for key in ordered], np.int64),
        known_ns=np.array([spans[key][0] for key in ordered], np.int64),
        withdrawn_ns=np.array([spans[key][1] for key in ordered], np.int64),
        is_exact=np.array([key[4] for key in ordered], np.bool_),
        kinds=tuple(kind for kind, _, _ in kinds),
        currencies=tuple(currency for _, currency, _ in kinds),
        symbols=tuple(symbol for _, _, symbol in kinds),
        changes_ns=np.array(sorted(changes), np.int64),
        closures=tuple(sorted(closures)),
    )
