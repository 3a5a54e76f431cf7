"""Opens a run's calendar: announcements whose views are prepared, and scheduled events that move the bands.

What reads calendars is imported with the first one, so that a run without any starts as fast as before.
"""

from collections.abc import Callable

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.narrative.calendar.announcements import Calendar
from htfi.wiring.settings import Settings


def open_calendar(named: str, report: Callable[[str], None] | None = None) -> Calendar:
    """The calendar that the setting names; an empty one where it names none. `report` hears what is wrong with rows.

    Raises: InvalidInput with one line that says what is wrong with it, where, and what to do; MissingExtra.
    """
    if not named:
        return Calendar()
    from htfi.wiring.calendar_reading import calendar_notices, read_calendar

    opened = read_calendar(named)
    if report is not None:
        for line in calendar_notices(opened):
            report(line)
    return opened.calendar


def scheduled_events(settings: Settings) -> tuple[ScheduledEvent, ...]:
    """The scheduled events of a run's calendar, by rising time. Raises: as `open_calendar`."""
    return open_calendar(settings.narrative.calendar).events
