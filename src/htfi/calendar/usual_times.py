"""Whether a calendar's zone is right: when known kinds are released by the clock of their own place, and when it says.

A shift by whole hours of most releases is a wrong zone; one that holds only in summer or only in winter is a zone
without daylight saving.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_S

# Of figures that have come at one hour for decades, all where summer is in July.
USUAL_TIMES = MappingProxyType({
    "us_payrolls": ("08:30", "America/New_York"),
    "us_jobless_claims": ("08:30", "America/New_York"),
    "us_cpi": ("08:30", "America/New_York"),
    "us_retail_sales": ("08:30", "America/New_York"),
    "us_gdp": ("08:30", "America/New_York"),
    "us_ism_manufacturing": ("10:00", "America/New_York"),
    "us_ism_services": ("10:00", "America/New_York"),
    "de_zew": ("11:00", "Europe/Berlin"),
    "ea_pmi_manufacturing": ("10:00", "Europe/Berlin"),
    "uk_pmi_manufacturing": ("09:30", "Europe/London"),
    "uk_pmi_services": ("09:30", "Europe/London"),
    "jp_tankan": ("08:50", "Asia/Tokyo"),
    "ca_employment": ("08:30", "America/Toronto"),
})  # fmt: skip
_MIN_SEEN = 6
_MIN_UNANIMOUS = 3  # releases that say enough where all say the same: a file of one week
_MOST = 0.6  # of the releases that must agree
_STEP_S = 900
_MAX_SHIFT_S = 14 * 3600


class ZoneFinding(NamedTuple):
    """How many releases of known hours were seen, how many at theirs, and what is wrong ('' where nothing is)."""

    num_seen: int
    num_at_usual: int
    fault: str


def check_zone(events: Iterable[ScheduledEvent]) -> ZoneFinding:
    """Compares the times of known kinds with their usual hours."""
    summer: list[int] = []
    winter: list[int] = []
    for event in events:
        usual = USUAL_TIMES.get(event.kind)
        if usual is None or not event.is_exact or event.is_by_rule:
            continue
        zone = ZoneInfo(usual[1])
        local = datetime.fromtimestamp(event.time_ns // NS_PER_S, zone)
        shifts = [_shift_s(local, usual[0], days) for days in (-1, 0, 1)]
        shift = min(shifts, key=abs)
        (summer if local.dst() else winter).append(shift)
    both = [*summer, *winter]
    at_usual = sum(shift == 0 for shift in both)
    if len(both) < (_MIN_UNANIMOUS if len(set(both)) == 1 else _MIN_SEEN):
        return ZoneFinding(len(both), at_usual, "")
    of_summer, of_winter = _common(summer), _common(winter)
    if of_summer is not None and of_winter is not None and of_summer != of_winter:
        return ZoneFinding(
            len(both),
            at_usual,
            f"releases of known hours come {_words(of_summer)} in summer and {_words(of_winter)} in winter: "
            "the times follow another daylight saving than their zone: state the zone that they were written in",
        )
    shift = of_summer or of_winter
    if shift:
        return ZoneFinding(
            len(both),
            at_usual,
            f"releases of known hours come {_words(shift)}: state the zone that they were written in",
        )
    if at_usual < len(both) / 2:
        return ZoneFinding(
            len(both), at_usual, "most releases of known hours come at other hours, by no common shift"
        )
    return ZoneFinding(len(both), at_usual, "")


def _shift_s(local: datetime, clock: str, days: int) -> int:
    hour, minute = map(int, clock.split(":"))
    usual = local.replace(hour=hour, minute=minute, second=0, microsecond=0) + timedelta(days=days)
    return round((local - usual).total_seconds() / _STEP_S) * _STEP_S


def _common(shifts: list[int]) -> int | None:
    """The shift of most; None where there is none, or too little was seen."""
    if not shifts:
        return None
    shift, num = Counter(shifts).most_common(1)[0]
    return shift if num >= _MOST * len(shifts) and abs(shift) <= _MAX_SHIFT_S else None


def _words(shift_s: int) -> str:
    if not shift_s:
        return "at them"
    hours = f"{abs(shift_s) / 3600:g} h"
    return f"{hours} {'after' if shift_s > 0 else 'before'} them"
