"""What recurs by rule: releases on their days, days off and early closes of exchanges, expiries."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from htfi.adapters.calendars.exchanges import CURRENCIES
from htfi.calendar.check import check_rules
from htfi.calendar.recurring import expiries, recurring_releases, recurring_rules
from htfi.domain.errors import InvalidInput, MissingExtra
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import to_ns

FIRST, LAST = date(2013, 1, 1), date(2020, 12, 31)
OFF = {
    date(2014, 1, 1), date(2014, 1, 20), date(2014, 2, 17), date(2014, 4, 18), date(2014, 5, 26), date(2014, 7, 4),
    date(2014, 9, 1), date(2014, 10, 13), date(2014, 11, 11), date(2014, 11, 27), date(2014, 12, 25), date(2015, 1, 1),
    date(2019, 7, 4), date(2016, 1, 1),
}  # fmt: skip


def weekdays_but(off: set[date]) -> Callable[[date], bool]:
    return lambda day: day.weekday() < 5 and day not in off


def days_of(kind: str, country: str = "us") -> list[str]:
    made = recurring_releases([country], FIRST, LAST, lambda _: weekdays_but(OFF))
    zone = ZoneInfo(recurring_rules().zones[country])
    return [
        datetime.fromtimestamp(event.time_ns / 1e9, zone).strftime("%Y-%m-%d %H:%M")
        for event in made
        if event.kind == kind
    ]


def test_payrolls_come_three_weeks_after_their_reference_week_and_never_in_the_first_days_of_january() -> (
    None
):
    days = days_of("us_payrolls")
    assert days[12:15] == ["2014-01-10 08:30", "2014-02-07 08:30", "2014-03-07 08:30"]
    assert "2014-07-03 08:30" in days  # the fourth of July was a Friday
    assert "2015-01-09 08:30" in days
    assert "2016-01-08 08:30" in days
    assert days_of("us_unemployment_rate") == days
    assert len(days) == 96


def test_weekly_releases_move_with_days_off() -> None:
    claims, crude = days_of("us_jobless_claims"), days_of("us_crude_inventories")
    assert "2014-11-26 08:30" in claims  # the day before Thanksgiving
    assert "2014-11-27 08:30" not in claims
    assert "2014-01-23 11:00" in crude  # Martin Luther King's day was a Monday
    assert "2014-01-15 10:30" in crude


def test_business_days_are_counted_from_both_ends_of_a_month() -> None:
    assert "2014-01-02 10:00" in days_of("us_ism_manufacturing")
    assert "2014-01-06 10:00" in days_of("us_ism_services")
    assert "2014-12-30 09:45" in days_of("us_chicago_pmi")  # in December the last but one
    assert "2014-10-31 09:45" in days_of("us_chicago_pmi")
    assert [day[:7] for day in days_of("jp_tankan", "jp")][:4] == ["2013-04", "2013-07", "2013-10", "2014-04"]


def test_times_follow_what_held_then() -> None:
    philly = days_of("us_philly_fed")
    assert philly[0] == "2013-01-17 10:00"
    assert philly[-1] == "2020-12-17 08:30"


def test_what_follows_from_a_rule_is_marked_and_always_known() -> None:
    made = recurring_releases(["us", "ea", "uk", "jp"], FIRST, LAST, lambda _: weekdays_but(OFF))
    assert {event.is_by_rule for event in made} == {True}
    assert {event.known_ns for event in made} == {0}
    assert {event.currency for event in made} == {"USD", "EUR", "GBP", "JPY"}
    assert [event.time_ns for event in made] == sorted(event.time_ns for event in made)


def test_options_expire_on_the_third_friday_or_the_session_before() -> None:
    made = expiries(
        "XNYS", ZoneInfo("America/New_York"), "USD", date(2014, 3, 1), date(2014, 4, 30), weekdays_but(OFF)
    )
    assert [(event.time_ns, event.impact) for event in made] == [
        (to_ns(datetime(2014, 3, 21, 20, tzinfo=UTC)), "medium"),
        (to_ns(datetime(2014, 4, 17, 20, tzinfo=UTC)), "low"),  # Good Friday
    ]
    assert expiries("XXXX", ZoneInfo("UTC"), "USD", FIRST, LAST, weekdays_but(OFF)) == []


def test_rules_are_compared_with_a_calendars_own_times() -> None:
    def payrolls(day: int, hour: int, **more: bool) -> ScheduledEvent:
        time_ns = to_ns(datetime(2014, 3, day, hour, 30, tzinfo=UTC))
        return ScheduledEvent(time_ns=time_ns, kind="us_payrolls", name="NFP", currency="USD", **more)

    stated = [payrolls(7, 13), payrolls(14, 12), payrolls(21, 12)]
    ruled = [
        payrolls(7, 13, is_by_rule=True),
        payrolls(14, 15, is_by_rule=True),
        payrolls(20, 12, is_by_rule=True),
    ]
    (hits,) = check_rules([*stated, *ruled], ruled)
    assert (hits.num_events, hits.num_by_rule, hits.num_same_day, hits.num_same_time) == (3, 3, 2, 1)


def test_exchanges_have_days_off_and_early_closes_and_a_sudden_one_is_known_on_its_day() -> None:
    pytest.importorskip("exchange_calendars", reason="needs exchange_calendars")
    from htfi.adapters.calendars.exchanges import exchange_events, open_days

    first, last = date(2012, 1, 1), date(2012, 12, 31)
    events = exchange_events("XNYS", first, last)
    closed = {event.time_ns: event for event in events if event.kind == "market_closed"}
    sandy, christmas = (to_ns(datetime(2012, *day, tzinfo=UTC)) for day in ((10, 29), (12, 25)))
    assert closed[christmas].known_ns == 0
    assert closed[sandy].known_ns == to_ns(datetime(2012, 10, 29, 4, tzinfo=UTC))
    halves = [event.time_ns for event in events if event.kind == "market_half_day"]
    assert to_ns(datetime(2012, 11, 23, 18, tzinfo=UTC)) in halves
    government, exchange = (open_days(whose, first, last) for whose in ("us_government", "XNYS"))
    columbus, good_friday = date(2012, 10, 8), date(2012, 4, 6)
    assert (government(columbus), exchange(columbus)) == (False, True)
    assert (government(good_friday), exchange(good_friday)) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("exchange", sorted(CURRENCIES))
def test_every_exchange_that_is_named_has_days_off(exchange: str) -> None:
    pytest.importorskip("exchange_calendars", reason="needs exchange_calendars")
    from htfi.adapters.calendars.exchanges import exchange_events

    events = exchange_events(exchange, date(2015, 1, 1), date(2016, 12, 31))
    closed = [event for event in events if event.kind == "market_closed"]
    assert len(closed) > (1 if exchange == "CMES" else 8)
    assert {event.currency for event in closed} == {CURRENCIES[exchange]}


def test_an_exchange_that_is_none_is_said() -> None:
    pytest.importorskip("exchange_calendars", reason="needs exchange_calendars")
    from htfi.adapters.calendars.exchanges import exchange_events

    with pytest.raises(InvalidInput, match="exchange 'XXXX': no calendar of it is known"):
        exchange_events("XXXX", FIRST, LAST)


def test_without_the_library_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from htfi.domain import errors
    from htfi.wiring.calendar import open_calendar

    monkeypatch.setattr(errors, "is_installed", lambda module: module != "exchange_calendars")
    with pytest.raises(MissingExtra, match=r"needs exchange_calendars: pip install 'htfi\[calendars\]'"):
        open_calendar("recurring")
