"""A checked calendar on one screen, and as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from htfi.apps.display.tables import print_facts, print_line, print_table
from htfi.calendar.check import CalendarCheck, KindSummary, RuleHits
from htfi.calendar.reading import CalendarReading
from htfi.domain.counts import counted
from htfi.domain.time import NS_PER_S, format_ns
from htfi.wiring.calendar_reading import CheckedCalendar, OpenedCalendar

_NUM_KINDS, _NUM_NAMES, _NUM_FAULTS = 12, 4, 2  # that fit a screen
_NUM_DAYS = 5


def show(file: str, opened: OpenedCalendar, checked: CheckedCalendar, *, show_all: bool) -> None:
    """Facts of the calendar, its kinds, what is not recognised, and what is wrong; a screen unless `show_all`."""
    check = checked.check
    print_line(file)
    print_facts(_facts(opened, check))
    has_series = any(kind.series for kind in check.kinds)
    kinds = [kind for kind in check.kinds if kind.kind]
    shown = kinds if show_all else kinds[:_NUM_KINDS]
    if shown:
        columns = ("kind", "events", "high", "years", "concerns", "what is done")
        if show_all:
            columns = (
                "kind",
                "events",
                "high impact",
                "first",
                "last",
                "surprises",
                "concerns",
                "what is done",
            )
        rest = len(kinds) - len(shown)
        notes = [f"and {counted(rest, 'kind')} more: --all"] if rest else []
        rows = [_kind_row(kind, has_series, show_all=show_all) for kind in shown]
        print_table(columns, rows, notes=notes)
    _show_unknown(check, None if show_all else _NUM_NAMES)
    for reading in opened.readings:
        _show_faults(reading, None if show_all else _NUM_FAULTS)
    _show_twice(check, None if show_all else _NUM_FAULTS)
    if checked.rules is not None:
        _show_rules(checked.rules)


def as_json(file: str, opened: OpenedCalendar, checked: CheckedCalendar) -> dict[str, Any]:
    """Every figure of the check as plain JSON values; times are ISO 8601 in UTC."""
    made = msgspec.to_builtins(checked.check)
    for kind in made["kinds"]:
        kind["first"], kind["last"] = format_ns(kind.pop("first_ns")), format_ns(kind.pop("last_ns"))
    made["first"], made["last"] = format_ns(made.pop("first_ns")), format_ns(made.pop("last_ns"))
    made["zone"] = checked.check.zone._asdict()
    made["unknown_names"] = [
        dict(zip(("currency", "name", "num", "num_high"), one, strict=True)) for one in made["unknown_names"]
    ]
    made["twice"] = [
        {"currency": currency, "name": name, "first": format_ns(one), "second": format_ns(other)}
        for currency, name, one, other in made["twice"]
    ]
    made["holidays_open"] = {
        currency: [_day(time_ns) for time_ns in days] for currency, days in made["holidays_open"]
    }
    files = [
        {
            "path": one.path,
            "num_rows": one.num_rows,
            "num_events": len(one.events),
            "num_refused": one.num_refused,
            "num_figures_left_out": len(one.faults) - one.num_refused,
            "num_repeated": one.num_repeated,
            "num_revised": one.num_revised,
            "num_moved": one.num_moved,
            "num_cancelled": one.num_cancelled,
            "num_not_wanted": one.num_not_wanted,
            "faults": [fault._asdict() for fault in one.faults],
        }
        for one in opened.readings
    ]
    rules = None if checked.rules is None else msgspec.to_builtins(checked.rules)
    return {
        "calendar": file,
        "digest": opened.calendar.digest,
        "num_announcements": len(opened.calendar.releases),
        "files": files,
        **made,
        "rules": rules,
    }


def _facts(opened: OpenedCalendar, check: CalendarCheck) -> dict[str, str]:
    rows = sum(reading.num_rows for reading in opened.readings)
    facts = {
        "events": f"{check.num_events:,}" + (f" of {counted(rows, 'row')}" if opened.readings else ""),
        "from, to": f"{_day(check.first_ns)}, {_day(check.last_ns)}{_ended(check)}"
        if check.num_events
        else "",
        "recognised": _recognised(check),
        "views prepared": f"for {counted(len(opened.calendar.releases), 'announcement')}"
        if opened.calendar.releases
        else "",
        "by rule": counted(check.num_by_rule, "event") if check.num_by_rule else "",
        "times": _times(check),
        "rows": _rows(opened.readings),
        "days off": "; ".join(
            f"the exchange of {currency} trades on {_days(days)}, called closed: take out what is none"
            for currency, days in check.holidays_open
        ),
    }
    return {name: value for name, value in facts.items() if value}


def _recognised(check: CalendarCheck) -> str:
    if not check.num_events:
        return ""
    of_all = f"{check.num_recognised / check.num_events:.1%} of all"
    if not check.num_high:
        return of_all
    share = f"{check.num_high_recognised / check.num_high:.1%}"
    return f"{share} of {check.num_high:,} of high impact, {of_all}"


def _ended(check: CalendarCheck) -> str:
    if not check.ended_days:
        return ""
    years, days = divmod(check.ended_days, 365)
    since = counted(years, "year") if years else counted(days, "day")
    return f" (it ended {since} ago: nothing that it states is ahead)"


def _times(check: CalendarCheck) -> str:
    found = check.zone
    if found.fault:
        return f"WRONG: {found.fault}"
    if not found.num_seen:
        return ""
    return f"{found.num_at_usual:,} of {counted(found.num_seen, 'release')} of known hours come at them"


def _rows(readings: Sequence[CalendarReading]) -> str:
    counts = (
        (sum(one.num_refused for one in readings), "refused"),
        (sum(len(one.faults) - one.num_refused for one in readings), "figures left out"),
        (sum(one.num_repeated for one in readings), "repeated"),
        (sum(one.num_revised for one in readings), "with a revised actual (the first stands)"),
        (sum(one.num_moved for one in readings), "moved"),
        (sum(one.num_cancelled for one in readings), "cancelled"),
        (sum(one.num_not_wanted for one in readings), "of other currencies"),
    )
    return ", ".join(f"{num:,} {what}" for num, what in counts if num)


def _kind_row(kind: KindSummary, has_series: bool, *, show_all: bool) -> tuple[str, ...]:
    if has_series:
        concerned = ", ".join(kind.series) or "–"
    else:
        concerned = ", ".join(kind.currencies[:2]) + (" …" if len(kind.currencies) > 2 else "") or "companies"
    num, high = f"{kind.num:,}", f"{kind.num_high:,}" if kind.num_high else "–"
    if not show_all:
        first, last = _day(kind.first_ns)[:4], _day(kind.last_ns)[:4]
        return kind.kind, num, high, first if first == last else f"{first}–{last}", concerned, kind.what
    surprises = f"{kind.num_with_surprise:,}" if kind.num_with_surprise else "–"
    return kind.kind, num, high, _day(kind.first_ns), _day(kind.last_ns), surprises, concerned, kind.what


def _show_unknown(check: CalendarCheck, most: int | None) -> None:
    names = check.unknown_names
    if not names:
        return
    num = sum(one[2] for one in names)
    rows = [
        (currency or "–", name, f"{seen:,}", f"{high:,}" if high else "–")
        for currency, name, seen, high in names[:most]
    ]
    rest = len(names) - len(rows)
    notes = [f"and {counted(rest, 'name')} more: --all"] if rest else []
    if nameless := sum(1 for one in names if not one[0]):
        notes.append(
            f"{counted(nameless, 'name')} of no economy: a column country or currency, or currency of the [[source]], "
            "says whose they are"
        )
    print_line(f"not recognised, so each is learnt by its own words: {counted(num, 'event')}")
    print_table(("currency", "name", "events", "high impact"), rows, notes=notes)


def _show_faults(reading: CalendarReading, most: int | None) -> None:
    ordered = sorted(reading.faults, key=lambda fault: not fault.refused)
    for fault in ordered[:most]:
        print_line(f"{fault.place}: {fault.detail}{' (row refused)' if fault.refused else ''}")
    rest = len(ordered) - len(ordered[:most])
    if rest:
        print_line(f"and {counted(rest, 'fault')} of rows more: --all")


def _show_twice(check: CalendarCheck, most: int | None) -> None:
    for currency, name, first, second in check.twice[:most]:
        print_line(f"{currency} {name} comes twice within hours: {_minute(first)} and {_minute(second)}")
    rest = len(check.twice) - len(check.twice[:most])
    if rest:
        print_line(f"and {counted(rest, 'release')} more that come twice: --all")


def _show_rules(rules: Sequence[RuleHits]) -> None:
    rows = [
        (
            one.kind,
            f"{one.num_events:,}",
            f"{one.num_by_rule:,}",
            f"{one.num_same_day / one.num_by_rule:.1%}" if one.num_by_rule else "–",
            f"{one.num_same_time / one.num_by_rule:.1%}" if one.num_by_rule else "–",
        )
        for one in rules
    ]
    columns = ("kind", "days in the calendar", "by rule", "on its day", "within 5 min")
    print_line("rules against the calendar's own times:")
    print_table(columns, rows)


def _days(days: Sequence[int]) -> str:
    rest = len(days) - _NUM_DAYS
    shown = ", ".join(_day(time_ns) for time_ns in days[:_NUM_DAYS])
    return f"{shown} and {counted(rest, 'day')} more" if rest > 0 else shown


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // NS_PER_S, UTC).strftime("%Y-%m-%d")


def _minute(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M")
