"""What a calendar holds, kind by kind, and what a run does about each; pure figures that the command prints."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from zoneinfo import ZoneInfo

import msgspec

from htfi.calendar.recognition import figure_name, plain_name
from htfi.calendar.recurring import day_of, recurring_rules
from htfi.calendar.usual_times import ZoneFinding, check_zone
from htfi.domain.scheduled_event import ScheduledEvent

_TWICE_NS = 12 * 3600 * 1_000_000_000
_NEAR_NS = 300 * 1_000_000_000


class KindSummary(msgspec.Struct, frozen=True):
    """The events of one kind ('' those that no rule knows). Times are UTC nanoseconds."""

    kind: str
    num: int
    num_high: int
    num_without_time: int
    num_with_surprise: int  # actual and forecast
    num_announced: int  # whose outcomes are prepared for
    first_ns: int
    last_ns: int
    currencies: tuple[str, ...]
    series: tuple[str, ...]  # of those asked about, that it concerns
    what: str  # what is done about it


class RuleHits(msgspec.Struct, frozen=True):
    """How often a rule agrees with a calendar's own events of its kind."""

    kind: str
    num_events: int
    num_by_rule: int
    num_same_day: int
    num_same_time: int  # within five minutes


class CalendarCheck(msgspec.Struct, frozen=True):
    """A calendar as `htfi calendar check` reports it."""

    kinds: tuple[KindSummary, ...]
    num_events: int
    num_high: int
    num_high_recognised: int
    num_recognised: int
    first_ns: int
    last_ns: int
    zone: ZoneFinding
    unknown_names: tuple[tuple[str, str, int, int], ...]  # currency, name, number, of high impact; most first
    twice: tuple[tuple[str, str, int, int], ...]  # currency, name, both times: probably one release
    holidays_open: tuple[
        tuple[str, tuple[int, ...]], ...
    ]  # currency, and days called closed on which it trades
    num_by_rule: int
    ended_days: int  # for how many days nothing follows; 0 where something does


def check_calendar(
    events: Sequence[ScheduledEvent],
    announced_ns: Iterable[tuple[str, int]],
    now_ns: int,
    symbols: Sequence[str] = (),
    concerns: Callable[[str, ScheduledEvent], bool] = lambda symbol, event: event.symbol == symbol,
    trades_on: Callable[[str, date], bool | None] = lambda _currency, _day: None,
) -> CalendarCheck:
    """`announced_ns` are kind (or symbol) and time of what is prepared for; `concerns` says whether an event matters
    for one of `symbols`; `trades_on` whether a currency's main exchange trades on a day, None where that is unknown.
    """
    prepared = Counter(announced_ns)
    stated = [event for event in events if not event.is_by_rule]
    by_kind: dict[str, list[ScheduledEvent]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    kinds = [_summary(kind, group, prepared, symbols, concerns) for kind, group in by_kind.items()]
    high = [event for event in stated if event.impact == "high"]
    last = max((event.time_ns for event in stated), default=0)
    return CalendarCheck(
        kinds=tuple(sorted(kinds, key=lambda one: (one.kind == "", -one.num_high, -one.num, one.kind))),
        num_events=len(stated),
        num_high=len(high),
        num_high_recognised=sum(bool(event.kind) for event in high),
        num_recognised=sum(bool(event.kind) for event in stated),
        first_ns=min((event.time_ns for event in stated), default=0),
        last_ns=last,
        zone=check_zone(stated),
        unknown_names=_unknown(by_kind.get("", ())),
        twice=_twice(stated),
        holidays_open=_holidays_open(stated, trades_on),
        num_by_rule=len(events) - len(stated),
        ended_days=max((now_ns - last) // (86_400 * 1_000_000_000), 0) if stated else 0,
    )


def check_rules(events: Sequence[ScheduledEvent], by_rule: Sequence[ScheduledEvent]) -> list[RuleHits]:
    """Rules against a calendar's own times, over the time that it covers each kind."""
    zones = recurring_rules().zones
    found: list[RuleHits] = []
    for kind in dict.fromkeys(event.kind for event in by_rule if event.is_exact):
        actual = [
            event.time_ns
            for event in events
            if event.kind == kind and event.is_exact and not event.is_by_rule
        ]
        zone = ZoneInfo(zones.get(kind.partition("_")[0], "UTC"))
        if not actual:
            continue
        first, last = day_of(min(actual), zone), day_of(max(actual), zone)
        ruled = [
            one.time_ns for one in by_rule if one.kind == kind and first <= day_of(one.time_ns, zone) <= last
        ]
        days = {day_of(time_ns, zone) for time_ns in actual}
        found.append(
            RuleHits(
                kind=kind,
                num_events=len(days),
                num_by_rule=len(ruled),
                num_same_day=sum(day_of(time_ns, zone) in days for time_ns in ruled),
                num_same_time=sum(any(abs(time_ns - one) <= _NEAR_NS for one in actual) for time_ns in ruled),
            )
        )
    return found


def _summary(
    kind: str,
    group: Sequence[ScheduledEvent],
    prepared: Counter[tuple[str, int]],
    symbols: Sequence[str],
    concerns: Callable[[str, ScheduledEvent], bool],
) -> KindSummary:
    untimed = sum(not event.is_exact for event in group)
    places = {(event.symbol or event.kind, event.time_ns) for event in group}
    announced = sum(prepared[place] for place in places)
    currencies = Counter(event.currency for event in group if event.currency)
    one_each = {(event.currency, event.symbol): event for event in group}.values()
    return KindSummary(
        kind=kind,
        num=len(group),
        num_high=sum(event.impact == "high" for event in group),
        num_without_time=untimed,
        num_with_surprise=sum(event.actual is not None and event.forecast is not None for event in group),
        num_announced=announced,
        first_ns=min(event.time_ns for event in group),
        last_ns=max(event.time_ns for event in group),
        currencies=tuple(currency for currency, _ in currencies.most_common()),
        series=tuple(symbol for symbol in symbols if any(concerns(symbol, event) for event in one_each)),
        what=_what(kind, len(group), untimed, announced),
    )


def _what(kind: str, num: int, untimed: int, announced: int) -> str:
    if not kind:
        return "band as learnt"
    if untimed == num:
        return "day's band"
    return "band, views" if announced else "band"


def _unknown(events: Sequence[ScheduledEvent]) -> tuple[tuple[str, str, int, int], ...]:
    names: Counter[tuple[str, str]] = Counter()
    high: Counter[tuple[str, str]] = Counter()
    for event in events:
        key = event.currency, plain_name(event.name)
        names[key] += 1
        high[key] += event.impact == "high"
    ordered = sorted(names, key=lambda key: (-high[key], -names[key], key))
    return tuple((*key, names[key], high[key]) for key in ordered)


def _twice(events: Sequence[ScheduledEvent]) -> tuple[tuple[str, str, int, int], ...]:
    """Figures with an actual that come twice within half a day under one name."""
    last: dict[tuple[str, str, str], ScheduledEvent] = {}
    found: list[tuple[str, str, int, int]] = []
    for event in events:
        if event.actual is None or not event.is_exact:
            continue
        key = event.currency, event.symbol, figure_name(event.name)
        before = last.get(key)
        if before is not None and 0 < event.time_ns - before.time_ns < _TWICE_NS:
            found.append((event.currency or event.symbol, event.name, before.time_ns, event.time_ns))
        last[key] = event
    return tuple(found)


def _holidays_open(
    events: Sequence[ScheduledEvent], trades_on: Callable[[str, date], bool | None]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    utc = ZoneInfo("UTC")
    found: dict[str, list[int]] = {}
    for event in events:
        if event.kind == "market_closed" and trades_on(event.currency, day_of(event.time_ns, utc)):
            found.setdefault(event.currency, []).append(event.time_ns)
    return tuple((currency, tuple(days)) for currency, days in found.items())
