"""Any text at all: an outcome of the release or none, soon, and never from words that put it into doubt."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import one_in_eight
from growth import assert_in_proportion
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.narrative.calendar.announcements import (
    Announcement,
    AnnouncementKind,
    Calendar,
    likely_outcomes,
    outcome_keys,
)
from htfi.narrative.calendar.parsing import parse_calendar
from htfi.narrative.calendar.prefetching import item_outcome

RELEASES = [
    Announcement("r", AnnouncementKind.RATE, 0, "fed"),
    Announcement("c", AnnouncementKind.CPI, 0, "us", consensus=0.3),
    Announcement("p", AnnouncementKind.PAYROLLS, 0, "us", consensus=150.0),
    Announcement("g", AnnouncementKind.GDP, 0, "us", publishers=("wire",)),
    Announcement("e", AnnouncementKind.EARNINGS, 0, "Apple", ("AAPL",), consensus=1.0),
]
WORDS = (
    "fed", "fomc", "the", "cuts", "raises", "leaves", "holds", "rates", "rate", "target", "its", "by", "to",
    "at", "half a", "quarter point", "25", "50", "bp", "percent", "%", "5-1/4", "5.25", "unchanged", "steady",
    "u.s.", "consumer prices", "cpi", "rise", "fall", "more", "less", "than", "expected", "forecasts",
    "in line with", "not", "no", "may", "could", "will", "if", ",", ";", ":", "-", "apple", "tops", "misses",
    "beats", "meets", "estimates", "cuts outlook", "payrolls", "adds", "209,000", "jobs", "gdp", "grows",
    "economy", "vs", "?", "(", ")", "1/0", "0/0",
)  # fmt: skip


def told(headline: str, release: Announcement, body: str = "") -> str | None:
    return item_outcome(News(0, 0, "wire", 1, "n", headline, body=body), release, 5.25).key


@given(
    st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)),
    st.text(max_size=300),
)
def test_any_text_gives_an_outcome_or_none(headline: str, body: str) -> None:
    for release in RELEASES:
        key = told(headline, release, body)
        # a rate may be set to any level
        assert key is None or release.kind is AnnouncementKind.RATE or key in outcome_keys(release.kind)


@given(
    st.sampled_from([outcome.headline for release in RELEASES for outcome in likely_outcomes(release, 5.25)]),
    st.sampled_from(
        ["If ", "Poll: ", "Analysts say ", "PREVIEW-", "Traders bet ", "What if ", "FACTBOX-", "Rumour: "]
    ),
    st.sampled_from(["", "?", ", sources say", ", analyst predicts", ", according to a rumour"]),
)
def test_words_of_doubt_before_a_report_leave_none(headline: str, before: str, after: str) -> None:
    assert all(told(before + headline + after, release) is None for release in RELEASES)


@given(
    st.sampled_from([outcome.headline for release in RELEASES for outcome in likely_outcomes(release, 5.25)]),
    st.sampled_from(["?", ", sources say", ", according to a rumour", ", economist predicts"]),
)
def test_words_of_doubt_after_a_report_leave_none(headline: str, after: str) -> None:
    assert all(told(headline + after, release) is None for release in RELEASES)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.id)
def test_no_text_takes_long(release: Announcement) -> None:
    """Over repeated words the work grows with the text, not with its square."""
    for word in (
        "the committee decided today to lower ",
        "board voted unanimously ",
        "to to to ",
        "its its rate 1-1/2 ",
    ):
        assert_in_proportion(lambda num, word=word: told("FOMC statement", release, word * num), 50, 400)
    pairs = [
        (head, f"{first} {second} ")
        for first in WORDS
        for second in ("its", "the", "1", "in may", "net", ",", "more", "cuts")
        for head in ("", "fed cuts ", "u.s. consumer prices ", "apple profit ")
    ]
    random.Random(0).shuffle(pairs)
    tried = one_in_eight(pairs)
    assert_in_proportion(lambda num: [told(head + pair * num, release) for head, pair in tried], 8, 60)


@given(st.binary(max_size=300))
def test_any_file_is_a_calendar_or_refused_in_one_line(data: bytes) -> None:
    for name in ("c.toml", "c.csv"):
        found = parsed(data, name)
        assert isinstance(found, Calendar) or "\n" not in found


def parsed(data: bytes, name: str) -> Calendar | str:
    """The calendar, or why it is refused."""
    try:
        return parse_calendar(data, name)
    except InvalidInput as error:
        return str(error)
