"""How far an actual lies from its forecast, in units of what is usual for that figure at that time.

surprise = (actual − forecast) / usual, with usual the scale of the surprises of the same figure that were known before:
a median of their sizes, drawn to a prior scale while they are few. Nothing of the release itself is in its scale.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from htfi.domain.scheduled_event import ScheduledEvent

MAX_SURPRISE = (
    6.0  # usual sizes; what is larger is a slip of the pen or a break in the series, and counts as this
)
MIN_PAST = 4  # surprises of a figure before one of it is stated
WINDOW = 48  # past surprises that its scale is made of: four years of a monthly figure
MEDIAN_TO_DEVIATION = 1.4826  # of a normal variable: the standard deviation over the median size
_ZERO_SHARE = 0.25  # of the mean size that the scale is at least, where most surprises are nil


class ReleaseSurprise(NamedTuple):
    """A surprise, from when it may be used; `size` in usual sizes, positive where the figure came in higher."""

    event: ScheduledEvent
    known_ns: int
    size: float


class UsualSurprise:
    """The running scale of one figure's surprises."""

    def __init__(self) -> None:
        self._past: deque[float] = deque(maxlen=WINDOW)
        self._scale = 0.0

    def scale(self) -> float:
        """The usual size so far; 0 where too few are known or none differed."""
        return self._scale

    def _measured(self) -> float:
        if len(self._past) < MIN_PAST:
            return 0.0
        sizes = sorted(self._past)
        middle = len(sizes) // 2
        median = sizes[middle] if len(sizes) % 2 else (sizes[middle - 1] + sizes[middle]) / 2.0
        mean = sum(sizes) / len(sizes)
        return max(MEDIAN_TO_DEVIATION * median, _ZERO_SHARE * mean)

    def add(self, gap: float) -> None:
        """Learn a gap; one that is wildly large counts as the largest, so that it alone moves the scale little."""
        usual = self._scale
        self._past.append(min(abs(gap), MAX_SURPRISE * usual) if usual > 0.0 else abs(gap))
        self._scale = self._measured()


@dataclass(slots=True)
class SurpriseScales:
    """The scales of all figures, by currency and the calendar's words for each."""

    _scales: dict[tuple[str, str], UsualSurprise] = field(
        default_factory=dict[tuple[str, str], UsualSurprise]
    )

    def surprise(self, event: ScheduledEvent) -> float | None:
        """The surprise of an event by what was added before; None where it has none or nothing is usual yet."""
        gap = surprise_gap(event)
        if gap is None:
            return None
        usual = self._scale_of(event).scale()
        if usual <= 0.0:
            return None
        return max(-MAX_SURPRISE, min(MAX_SURPRISE, gap / usual))

    def add(self, event: ScheduledEvent) -> None:
        """Learn from an event whose actual is known."""
        gap = surprise_gap(event)
        if gap is not None:
            self._scale_of(event).add(gap)

    def _scale_of(self, event: ScheduledEvent) -> UsualSurprise:
        from htfi.calendar.recognition import figure_name  # a run without a calendar reads no rules of names

        key = (event.symbol or event.currency, figure_name(event.name))
        found = self._scales.get(key)
        if found is None:
            found = self._scales[key] = UsualSurprise()
        return found


def surprise_gap(event: ScheduledEvent) -> float | None:
    """Actual less forecast in the figure's own unit; None where either is missing."""
    if event.actual is None or event.forecast is None:
        return None
    return event.actual - event.forecast


def known_ns(event: ScheduledEvent) -> int:
    """From when an event's actual may be used: when it came, and never before its time."""
    return max(event.actual_known_ns, event.time_ns)


def surprises(events: Iterable[ScheduledEvent]) -> Iterator[ReleaseSurprise]:
    """The surprises of a calendar in the order in which they became known; those of one instant see none of another's.

    `previous` is not read: calendars state it as revised in the very release.
    """
    scales = SurpriseScales()
    waiting: list[ScheduledEvent] = []
    for event in sorted((one for one in events if surprise_gap(one) is not None), key=known_ns):
        if waiting and known_ns(waiting[0]) != known_ns(event):
            for one in waiting:
                scales.add(one)
            waiting.clear()
        waiting.append(event)
        size = scales.surprise(event)
        if size is not None:
            yield ReleaseSurprise(event, known_ns(event), size)
