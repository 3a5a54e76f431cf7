"""Releases and expiries that follow from a rule, as scheduled events: known in advance, and marked as rule-made.

The rules are in recurring.toml; whose days off they need, an exchange's or the US government's, is asked for.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from importlib.resources import files
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from htfi.calendar.recognition import currency_of_country
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import session_time_ns

IsOpen = Callable[[date], bool]
OpenDays = Callable[
    [str], IsOpen
]  # whose days, such as 'XNYS' or 'us_government' → whether a day is one of work
US_GOVERNMENT = "us_government"
VERSION = "recurring/1"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
_MAX_ROLL = 12  # days: no market is closed for longer at a stretch, but for a war


class _NotBefore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    month: int
    day: int


class RecurringRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule, as recurring.toml explains it."""

    kind: str
    name: str
    country: str
    impact: Literal["low", "medium", "high"]
    every: Literal["week", "month"]
    days: str
    times: list[tuple[str, str]]
    weekday: str = ""
    last: str = ""
    day: int = 1
    business_day: int = 0
    reference_week: int = 0
    week_of: str = ""
    closed: Literal["before", "after"] = "after"
    delayed_by_days_off_before: bool = False
    delayed_time: str = ""
    not_before: _NotBefore | None = None
    months: tuple[int, ...] = tuple(range(1, 13))
    also_closed: list[str] = []
    companions: list[tuple[str, str, Literal["low", "medium", "high"]]] = msgspec.field(
        name="with", default_factory=list[tuple[str, str, Literal["low", "medium", "high"]]]
    )


class Expiry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A monthly expiry of an exchange's options: the first such weekday on or after `day`, or the session before."""

    exchange: str
    name: str
    weekday: str
    day: int
    quarterly_impact: Literal["low", "medium", "high"]
    time: str


class RecurringRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    zones: dict[str, str]
    release: list[RecurringRelease]
    expiry: list[Expiry]


def recurring_rules() -> RecurringRules:
    text = files("htfi.calendar").joinpath("recurring.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), RecurringRules)


def recurring_releases(
    countries: Sequence[str], first: date, last: date, open_days: OpenDays
) -> list[ScheduledEvent]:
    """The releases of countries ('us', 'ea', 'uk', 'jp') by rule, from a day to another, both included."""
    rules = recurring_rules()
    made: list[ScheduledEvent] = []
    for rule in rules.release:
        if rule.country in countries:
            zone = ZoneInfo(rules.zones[rule.country])
            for day in _days_of(rule, rules, first, last, open_days):
                made += _events_of(rule, day, zone, open_days)
    return sorted(made, key=lambda event: (event.time_ns, event.kind))


def expiries(
    exchange: str, zone: ZoneInfo, currency: str, first: date, last: date, is_open: IsOpen
) -> list[ScheduledEvent]:
    """When an exchange's options expire, where its rule is known."""
    made: list[ScheduledEvent] = []
    for rule in recurring_rules().expiry:
        if rule.exchange != exchange:
            continue
        for year, month in _months(first, last):
            day = _rolled(_on_or_after(date(year, month, rule.day), rule.weekday), is_open, -1)
            if first <= day <= last:
                hour, minute = map(int, rule.time.split(":"))
                made.append(
                    ScheduledEvent(
                        time_ns=session_time_ns(day, hour, minute, zone),
                        kind="option_expiry",
                        name=rule.name,
                        currency=currency,
                        impact=rule.quarterly_impact if month % 3 == 0 else "low",
                        is_by_rule=True,
                    )
                )
    return made


def _events_of(
    rule: RecurringRelease, day: date, zone: ZoneInfo, open_days: OpenDays
) -> Iterator[ScheduledEvent]:
    hour, minute = map(int, _time_on(rule, day, open_days).split(":"))
    time_ns = session_time_ns(day, hour, minute, zone)
    currency = currency_of_country(rule.country)
    all_of_it: list[tuple[str, str, Literal["low", "medium", "high"]]] = [
        (rule.kind, rule.name, rule.impact),
        *rule.companions,
    ]
    for kind, name, impact in all_of_it:
        yield ScheduledEvent(
            time_ns=time_ns, kind=kind, name=name, currency=currency, impact=impact, is_by_rule=True
        )


def _time_on(rule: RecurringRelease, day: date, open_days: OpenDays) -> str:
    if rule.delayed_time and _days_off_before(day, open_days(rule.days)):
        return rule.delayed_time
    found = rule.times[0][1]
    for since, clock in rule.times[1:]:
        if day >= date.fromisoformat(since):
            found = clock
    return found


def _days_of(
    rule: RecurringRelease, rules: RecurringRules, first: date, last: date, open_days: OpenDays
) -> Iterator[date]:
    is_open = _without(open_days(rule.days), rule.also_closed)
    if rule.every == "week":
        day = _on_or_after(first - timedelta(days=7), rule.weekday)
        while day <= last + timedelta(days=7):
            made = _weekly(rule, day, is_open)
            if first <= made <= last:
                yield made
            day += timedelta(days=7)
        return
    if rule.week_of:
        anchor = next(one for one in rules.release if one.kind == rule.week_of)
        for day in _days_of(anchor, rules, first, last + timedelta(days=7), open_days):
            made = _weekly(rule, _on_or_after(day - timedelta(days=day.weekday()), rule.weekday), is_open)
            if first <= made <= last:
                yield made
        return
    for year, month in _months(first, last):
        made = _monthly(rule, year, month, is_open) if month in rule.months else None
        if made is not None and first <= made <= last:
            yield made


def _weekly(rule: RecurringRelease, day: date, is_open: IsOpen) -> date:
    if rule.delayed_by_days_off_before and (_days_off_before(day, is_open) or not is_open(day)):
        day += timedelta(days=1)
    return _rolled(day, is_open, -1 if rule.closed == "before" else 1)


def _days_off_before(day: date, is_open: IsOpen) -> bool:
    return any(not is_open(day - timedelta(days=back)) for back in range(1, day.weekday() + 1))


def _monthly(rule: RecurringRelease, year: int, month: int, is_open: IsOpen) -> date | None:
    way = -1 if rule.closed == "before" else 1
    if rule.reference_week:
        before = date(year, month, 1) - timedelta(days=1)  # the month that the figure is of
        middle = date(before.year, before.month, rule.reference_week)
        day = middle + timedelta(
            days=(5 - middle.weekday()) % 7 + 20
        )  # its Saturday, and the third Friday after
        least = rule.not_before
        if least is not None and day < date(day.year, least.month, least.day) and day.month == least.month:
            day += timedelta(days=7)
        return _rolled(day, is_open, way)
    if rule.business_day:
        days = [day for day in _days_in(year, month) if is_open(day)]
        place = rule.business_day - 1 if rule.business_day > 0 else rule.business_day
        return days[place] if -len(days) <= place < len(days) else None
    if rule.last:
        end = _days_in(year, month)[-1]
        day = end - timedelta(days=(end.weekday() - _WEEKDAYS.index(rule.last)) % 7)
        return _rolled(day, is_open, way)
    return _rolled(_on_or_after(date(year, month, rule.day), rule.weekday), is_open, way)


def _without(is_open: IsOpen, also_closed: Sequence[str]) -> IsOpen:
    days = {tuple(map(int, day.split("-"))) for day in also_closed}
    return (lambda day: is_open(day) and (day.month, day.day) not in days) if days else is_open


def _on_or_after(day: date, weekday: str) -> date:
    return day + timedelta(days=(_WEEKDAYS.index(weekday) - day.weekday()) % 7)


def _rolled(day: date, is_open: IsOpen, way: int) -> date:
    for step in range(_MAX_ROLL):
        moved = day + timedelta(days=way * step)
        if is_open(moved):
            return moved
    return day


def _months(first: date, last: date) -> Iterator[tuple[int, int]]:
    year, month = first.year, first.month
    while (year, month) <= (last.year, last.month):
        yield year, month
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def _days_in(year: int, month: int) -> list[date]:
    first = date(year, month, 1)
    days = (first + timedelta(days=place) for place in range(31))
    return [day for day in days if day.month == month]


def superseded(events: Sequence[ScheduledEvent], by_rule: Sequence[ScheduledEvent]) -> list[ScheduledEvent]:
    """A calendar's events and, of kinds or times that it does not cover, those by rule; by rising time.

    A calendar covers a kind from its first event of that kind to its last; what a rule says there gives way to it.
    """
    covered: dict[str, tuple[int, int]] = {}
    for event in events:
        first, last = covered.get(event.kind, (event.time_ns, event.time_ns))
        covered[event.kind] = min(first, event.time_ns), max(last, event.time_ns)
    kept = [event for event in by_rule if not _is_covered(event, covered)]
    return sorted(
        [*events, *kept], key=lambda event: (event.time_ns, event.currency, event.symbol, event.name)
    )


_DAY_NS = 86_400 * 1_000_000_000


def _is_covered(event: ScheduledEvent, covered: Mapping[str, tuple[int, int]]) -> bool:
    found = covered.get(event.kind)
    return found is not None and found[0] - _DAY_NS <= event.time_ns <= found[1] + _DAY_NS


def day_of(time_ns: int, zone: ZoneInfo) -> date:
    """The local day of an instant."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, zone).date()
