"""Real text is told once and heard at the close of the session it falls into: weekends, holidays, half days, DST."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from htfi.domain.time import to_ns
from htfi_eval.eval.narrative.real_text import (
    PublishedText,
    questions,
    scaled_returns,
    session_closes,
    sessions_of,
    without_repeats,
)
from htfi_eval.eval.prices import Prices

NEW_YORK = ZoneInfo("America/New_York")
HOLIDAYS = {date(2014, 11, 27), date(2014, 12, 25), date(2015, 1, 1), date(2015, 1, 19)}


def at(told: str) -> int:
    """An instant from New York's clock."""
    return to_ns(datetime.fromisoformat(told).replace(tzinfo=NEW_YORK))


def days(first: date, last: date) -> list[date]:
    every = (first + timedelta(days=k) for k in range((last - first).days + 1))
    return [day for day in every if day.weekday() < 5 and day not in HOLIDAYS]


SESSIONS = days(date(2014, 11, 3), date(2015, 4, 30))
ENDS_NS = np.array([at(f"{day}T16:00:00") for day in SESSIONS])
CLOSES_NS = session_closes(ENDS_NS)


@pytest.mark.parametrize(
    ("published", "session"),
    [
        ("2015-02-03T15:59:59", "2015-02-03"),
        ("2015-02-03T16:00:00", "2015-02-03"),
        ("2015-02-03T16:01:00", "2015-02-04"),
        ("2015-02-04T03:00:00", "2015-02-04"),
        ("2015-02-06T16:01:00", "2015-02-09"),  # Friday evening
        ("2015-02-08T12:00:00", "2015-02-09"),  # Sunday
        ("2015-01-16T18:00:00", "2015-01-20"),  # Martin Luther King's day between
        ("2014-11-26T17:00:00", "2014-11-28"),  # over Thanksgiving
        ("2014-11-28T12:59:00", "2014-11-28"),  # a half day
        ("2014-11-28T13:01:00", "2014-12-01"),
        ("2014-12-24T14:00:00", "2014-12-26"),
        ("2015-03-06T15:30:00", "2015-03-06"),  # the last session of winter time
        ("2015-03-09T15:30:00", "2015-03-09"),  # the first of summer time
    ],
)
def test_text_is_heard_at_the_first_close_after_it(published: str, session: str) -> None:
    place = sessions_of(np.array([at(published)]), CLOSES_NS)[0]
    assert SESSIONS[place] == date.fromisoformat(session)


def test_the_same_utc_hour_falls_before_the_close_in_winter_and_after_it_in_summer() -> None:
    utc = ZoneInfo("UTC")
    winter = to_ns(datetime(2015, 3, 5, 20, 30, tzinfo=utc))
    summer = to_ns(datetime(2015, 3, 12, 20, 30, tzinfo=utc))
    found = [SESSIONS[place] for place in sessions_of(np.array([winter, summer]), CLOSES_NS).tolist()]
    assert found == [date(2015, 3, 5), date(2015, 3, 13)]


def test_what_comes_after_the_last_session_is_heard_nowhere() -> None:
    assert sessions_of(np.array([at("2015-05-01T10:00:00")]), CLOSES_NS)[0] == len(SESSIONS)


def test_half_days_end_at_one_and_no_other_day_does() -> None:
    early = [day for day, end, close in zip(SESSIONS, ENDS_NS, CLOSES_NS, strict=True) if end != close]
    assert early == [date(2014, 11, 28), date(2014, 12, 24)]


def test_repeats_retweets_and_copies_under_other_symbols_are_told_once() -> None:
    first = PublishedText(1, ("ACME",), "$ACME profit falls far short of plan in quarter http://x.co/1", 5)
    items = [
        PublishedText(
            3, ("ACME",), "RT @someone: $ACME profit falls far short of plan in quarter http://x.co/2", 9
        ),
        PublishedText(2, ("OTHR",), "$OTHR profit falls far short of plan in quarter", 7),
        first,
        PublishedText(4, ("ACME",), "$ACME wins a large order from the navy", 1),
    ]
    assert [item.published_ns for item in without_repeats(items)] == [1, 4]
    assert without_repeats(items)[0] == first


def test_lists_of_symbols_and_texts_without_words_are_dropped() -> None:
    lists = PublishedText(1, ("A", "B", "C", "D", "E"), "these five shares rose most today on volume", 1)
    bare = PublishedText(2, ("A",), "$A $B http://x.co up 3%", 1)
    unnamed = PublishedText(3, (), "shares rose most today on heavy volume", 1)
    assert without_repeats([lists, bare, unnamed]) == []


def _prices() -> Prices:
    dice = np.random.Generator(np.random.PCG64(3))
    close = 100.0 * np.exp(np.cumsum(0.01 * dice.standard_normal((len(SESSIONS), 2)), axis=0))
    return Prices("test", ("ACME", "OTHR"), "1d", ENDS_NS, ENDS_NS, close, close, close, close)


def test_a_question_knows_no_text_and_no_price_after_its_close() -> None:
    prices = _prices()
    items = [
        PublishedText(at(f"{day}T{hour:02d}:30:00"), ("ACME",), f"word{k} word{k}a word{k}b word{k}c", k)
        for k, (day, hour) in enumerate((day, hour) for day in SESSIONS[40:80] for hour in (3, 9, 15, 17, 22))
    ]
    asked = questions(prices, items, 1_000, 22, np.random.Generator(np.random.PCG64(1)))
    assert asked
    before = _prices()
    for one in asked:
        assert one.question.as_of_ns == CLOSES_NS[one.t]
        assert all(
            CLOSES_NS[one.t - 1] < item.available_at_ns <= one.question.as_of_ns
            for item in one.question.items
        )
        assert 0 < len(one.question.items) <= 3
        known = scaled_returns(before.close[: one.t + 1])[-32:, one.place]
        assert one.question.context == tuple(known[np.isfinite(known)].tolist())


def test_a_series_too_short_for_a_volatility_has_no_context() -> None:
    assert np.isnan(scaled_returns(np.full((15, 1), 7.0))).all()
