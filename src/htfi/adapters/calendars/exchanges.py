"""Sessions, holidays and early closes of exchanges by the library exchange_calendars (extra [calendars]).

It brings pandas, so it is imported when a calendar first asks for days, never at the start of a run without one.
"""

from datetime import date, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any
from zoneinfo import ZoneInfo

from htfi.calendar.recurring import US_GOVERNMENT, IsOpen, expiries
from htfi.domain.errors import InvalidInput, require_extra
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import session_time_ns, to_ns

CURRENCIES = {
    "XNYS": "USD", "XNAS": "USD", "XCBF": "USD", "CMES": "USD", "XLON": "GBP", "XETR": "EUR", "XFRA": "EUR",
    "XPAR": "EUR", "XAMS": "EUR", "XBRU": "EUR", "XMIL": "EUR", "XMAD": "EUR", "XTKS": "JPY", "XHKG": "HKD",
    "XASX": "AUD", "XTSE": "CAD", "XSWX": "CHF", "XSES": "SGD", "XKRX": "KRW", "XSHG": "CNY", "XNZE": "NZD",
    "XSTO": "SEK", "XOSL": "NOK", "XCSE": "DKK", "BVMF": "BRL", "XJSE": "ZAR", "XBOM": "INR", "XMEX": "MXN",
}  # fmt: skip
_CLOSED_AT_MOST = timedelta(days=10)  # at a stretch


def library_version() -> str:
    """The version that days come from, for a calendar's digest."""
    _require()
    return f"exchange_calendars/{version('exchange_calendars')}"


def open_days(whose: str, first: date, last: date) -> IsOpen:
    """Whether a day is one of work: of an exchange by its MIC, or of the US government. Raises: InvalidInput."""
    if whose == US_GOVERNMENT:
        sessions = _sessions("XNYS", first, last)
        return lambda day: _is_us_government_open(day, day in sessions)
    sessions = _sessions(whose, first, last)
    return lambda day: day in sessions


def _is_us_government_open(day: date, is_session: bool) -> bool:
    """The New York exchange's days, with Good Friday, and without Columbus Day and Veterans Day."""
    if day.weekday() >= 5 or _is_columbus_day(day) or _is_veterans_day(day):
        return False
    return is_session or _is_good_friday(day)


def _is_columbus_day(day: date) -> bool:
    return day.month == 10 and day.weekday() == 0 and 8 <= day.day <= 14


def _is_veterans_day(day: date) -> bool:
    return day.month == 11 and (
        day.day == 11 or (day.day == 10 and day.weekday() == 4) or (day.day == 12 and day.weekday() == 0)
    )


def _is_good_friday(day: date) -> bool:
    from dateutil.easter import easter

    return day == easter(day.year) - timedelta(days=2)


@lru_cache(maxsize=32)
def _sessions(exchange: str, first: date, last: date) -> frozenset[date]:
    return frozenset(moment.date() for moment in _calendar(exchange, first, last).sessions)


@lru_cache(maxsize=32)
def _calendar(exchange: str, first: date, last: date) -> Any:
    _require()
    library: Any = import_module("exchange_calendars")  # whose types are not complete
    failure: type[Exception] = import_module("exchange_calendars.errors").CalendarError
    try:
        try:
            return library.get_calendar(exchange, start=first.isoformat(), end=last.isoformat())
        except ValueError:  # it knows fewer years: those
            calendar = library.get_calendar(exchange)
            least, most = calendar.bound_min(), calendar.bound_max()
            start = first if least is None else max(first, least.date())
            end = last if most is None else min(last, most.date())
            return library.get_calendar(exchange, start=start.isoformat(), end=end.isoformat())
    except (failure, ValueError) as error:
        raise InvalidInput(
            f"exchange '{exchange}': no calendar of it is known: write its MIC, such as XNYS "
            f"({' '.join(str(error).split())[:80]})"
        ) from error


def _require() -> None:
    require_extra("a calendar of exchanges and recurring releases", "calendars", "exchange_calendars")


@lru_cache(maxsize=32)
def exchange_events(exchange: str, first: date, last: date) -> tuple[ScheduledEvent, ...]:
    """Days on which an exchange is closed or closes early, and expiries of its options; weekends are left out.

    A closure that followed from no rule (a storm, a mourning) counts as known from the start of its own day.
    """
    calendar = _calendar(exchange, first, last)
    zone, currency = ZoneInfo(str(calendar.tz)), CURRENCIES.get(exchange, "")
    sessions = _sessions(exchange, first, last)
    sudden = {_date(moment) for moment in calendar.adhoc_holidays}
    closes_early: list[tuple[Any, list[Any]]] = calendar.special_closes_adhoc
    sudden_closes = {_date(moment) for _, moments in closes_early for moment in moments}
    made: list[ScheduledEvent] = []
    day, end = calendar.first_session.date(), calendar.last_session.date()
    if day - first <= _CLOSED_AT_MOST:  # the library knows from then on: it begins or ends with days off
        day = first
    if last - end <= _CLOSED_AT_MOST:
        end = last
    while day <= end:
        if day.weekday() < 5 and day not in sessions:
            made.append(_closed(exchange, day, currency, zone, is_sudden=day in sudden))
        day += timedelta(days=1)
    for close in calendar.early_closes:
        session = close.date()
        closes = calendar.closes[close].to_pydatetime()
        made.append(
            ScheduledEvent(
                time_ns=to_ns(closes),
                kind="market_half_day",
                name=f"{exchange} closes early",
                currency=currency,
                is_by_rule=True,
                known_ns=session_time_ns(session, 0, 0, zone) if session in sudden_closes else 0,
            )
        )
    made += expiries(exchange, zone, currency, first, last, lambda one: one in sessions)
    return tuple(sorted(made, key=lambda event: (event.time_ns, event.kind)))


def _date(moment: object) -> date:
    """The day of what the library gives: times of pandas or numpy, or texts, as each exchange's part has them."""
    return date.fromisoformat(str(moment)[:10])


def _closed(exchange: str, day: date, currency: str, zone: ZoneInfo, *, is_sudden: bool) -> ScheduledEvent:
    return ScheduledEvent(
        time_ns=to_ns(datetime.fromisoformat(f"{day.isoformat()}T00:00:00+00:00")),
        kind="market_closed",
        name=f"{exchange} closed",
        currency=currency,
        is_exact=False,
        is_by_rule=True,
        known_ns=session_time_ns(day, 0, 0, zone) if is_sudden else 0,
    )
