"""What is opened, read ahead, matched and served, by the prepared reader alone."""

from collections.abc import Sequence

import msgspec
import pytest

from htfi.domain.events import MacroAnnouncement, News
from htfi.domain.news import ScreenedItem, Screening
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_S
from htfi.narrative.calendar.announcements import Announcement, AnnouncementKind, Calendar
from htfi.narrative.calendar.prefetching import MAX_OPEN_NS, AnnouncementPrefetcher
from htfi.narrative.config import PrefetchingConfig
from htfi.narrative.question import Question

AT_NS = 1_000_000 * NS_PER_S
FOMC = Announcement("fomc", AnnouncementKind.RATE, AT_NS, "fed", series="FED")
APPLE = Announcement("apple", AnnouncementKind.EARNINGS, AT_NS + 900 * NS_PER_S, "Apple", ("AAPL",))
CONFIG = PrefetchingConfig(budget_ms=8 * 80.0)


class Reading:
    """Reads with a view whose words are the headline; counts."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.confidence, self.provisional = 0.5, False

    def __call__(self, questions: Sequence[Question]) -> list[NewsView]:
        self.asked += questions
        return [
            NewsView(
                1.0, 1.0, 1.0, self.confidence, tuple(item.id for item in one.items), one.as_of_ns, 7,
                words=one.items[0].headline, provisional=self.provisional,
            )
            for one in questions
        ]  # fmt: skip


def said(headline: str, after_s: float = 1.0, name: str = "n1", **of: object) -> ScreenedItem:
    at_ns = AT_NS + round(after_s * NS_PER_S)
    item = News(at_ns, at_ns, "wire", 1, name, headline)
    return msgspec.structs.replace(ScreenedItem(item, Screening.PASS, 1.0), **of)


def question(symbol: str = "SPX", *items: ScreenedItem) -> Question:
    return Question(symbol, AT_NS + 60 * NS_PER_S, 60 * NS_PER_S, tuple(one.item for one in items))


def opened(
    *releases: Announcement, reading: Reading | None = None, asked: Sequence[str] = ("SPX",)
) -> AnnouncementPrefetcher:
    reader = AnnouncementPrefetcher(Calendar(releases, "ab" * 32), CONFIG)
    reader.observe_rate(MacroAnnouncement(0, 0, "macro", 1, "FED", 5.25))
    for release in reader.take_due(AT_NS - 1):
        reader.open_announcement(release, [(symbol, question(symbol)) for symbol in asked])
    if reading is not None:
        while reader.read_ahead(reading, 3):
            pass
    return reader


def test_a_release_is_due_once_from_its_lead_on() -> None:
    reader = AnnouncementPrefetcher(Calendar((FOMC, APPLE)), CONFIG)
    lead_ns = round(CONFIG.lead_s * NS_PER_S)
    assert reader.take_due(AT_NS - lead_ns) == []  # what happens at that very instant is still known
    assert reader.take_due(AT_NS - lead_ns + 1) == [FOMC]
    assert reader.take_due(AT_NS) == []
    assert reader.take_due(APPLE.at_ns) == [APPLE]


def test_a_release_that_is_long_gone_when_time_comes_to_it_is_left() -> None:
    reader = AnnouncementPrefetcher(Calendar((FOMC, APPLE)), CONFIG)
    assert reader.take_due(APPLE.at_ns + 10_000 * NS_PER_S) == []


def test_the_likeliest_outcomes_are_read_ahead_for_every_series_as_far_as_the_budget_goes() -> None:
    reading = Reading()
    reader = opened(FOMC, reading=reading, asked=("SPX", "VIX", "IBM"))
    assert len(reading.asked) == 8
    told = [one.items[0].headline for one in reading.asked]
    assert told[:3] == ["Fed leaves its target rate unchanged at 5.25%"] * 3
    assert [one.symbol for one in reading.asked[:3]] == ["SPX", "VIX", "IBM"]
    assert told[3:6] == ["Fed cuts its target rate by 25 bp to 5.00%"] * 3
    assert reader.stats.num_read == 8


def test_the_view_of_what_is_told_is_served_once_as_of_the_decision() -> None:
    reader = opened(FOMC, reading=Reading())
    item = said("Fed cuts rates by a quarter point")
    reader.receive(item, pytest.fail)
    asked = question("SPX", item)
    view = reader.serve("SPX", asked)
    assert view is not None
    assert view.words == "Fed cuts its target rate by 25 bp to 5.00%"
    assert view.prepared == "fomc, a cut of 25 bp"
    assert view.provisional
    assert view.as_of_ns == asked.as_of_ns
    assert view.cited == ("n1",)
    assert reader.serve("SPX", asked) is None
    assert reader.serve("VIX", asked) is None


def test_what_was_not_read_yet_is_read_when_it_is_told_and_nothing_else() -> None:
    reader, reading = opened(FOMC), Reading()
    reader.receive(said("Fed cuts rates by a quarter point"), reading)
    assert [one.items[0].headline for one in reading.asked] == ["Fed cuts its target rate by 25 bp to 5.00%"]
    assert reader.read_ahead(reading, 9) == 0
    assert reader.stats.num_reported == 1


@pytest.mark.parametrize(
    "item",
    [
        said("Fed cuts rates by a quarter point", after_s=-2.0),
        said("Fed cuts rates by a quarter point", after_s=1_801.0),
        said("Fed cuts rates by a quarter point", verdict=Screening.DISCOUNT, trust=0.5),
        said("Fed cuts rates by a quarter point", verdict=Screening.QUARANTINE, trust=0.0),
        said("Fed may cut rates by a quarter point"),
        said("ECB cuts rates by a quarter point"),
        said("Fed cuts rates by a quarter point to 4.50%"),  # it was 5.25
    ],
)
def test_what_is_early_late_doubtful_or_not_sure_is_no_release(item: ScreenedItem) -> None:
    reader = opened(FOMC, reading=Reading())
    reader.receive(item, pytest.fail)
    assert reader.serve("SPX", question("SPX", item)) is None
    assert reader.stats.num_reported == 0


def test_two_items_that_tell_otherwise_leave_nothing_to_serve() -> None:
    reader = opened(FOMC, reading=Reading())
    one, other = said("Fed cuts rates by a quarter point"), said("Fed leaves rates unchanged", 2.0, "n2")
    reader.receive(one, pytest.fail)
    reader.receive(other, pytest.fail)
    assert reader.serve("SPX", question("SPX", other, one)) is None
    assert reader.stats.num_contradicted == 1


def test_an_item_that_is_no_longer_on_the_wire_tells_nothing() -> None:
    reader = opened(FOMC, reading=Reading())
    item = said("Fed cuts rates by a quarter point")
    reader.receive(item, pytest.fail)
    assert reader.serve("SPX", question("SPX", said("Oil falls", 3.0, "n9"))) is None


def test_views_without_an_opinion_or_not_the_readers_own_are_not_served() -> None:
    for reading in (Reading(), Reading()):
        reading.confidence = 0.0
        reading.provisional = not reading.provisional
        reader = opened(FOMC, reading=reading)
        item = said("Fed cuts rates by a quarter point")
        reader.receive(item, pytest.fail)
        assert reader.serve("SPX", question("SPX", item)) is None


def test_each_of_two_releases_at_once_is_told_by_its_own_items() -> None:
    reader = AnnouncementPrefetcher(Calendar((FOMC, APPLE)), PrefetchingConfig(lead_s=3_600.0))
    reading = Reading()
    for release in reader.take_due(AT_NS):
        reader.open_announcement(release, [(symbol, question(symbol)) for symbol in ("AAPL", "SPX")])
    fed, apple = said("Fed leaves rates unchanged"), said("Apple tops estimates, raises outlook", 901.0, "n2")
    reader.receive(fed, reading)
    reader.receive(apple, reading)
    first = reader.serve("AAPL", question("AAPL", apple, fed))
    assert first is not None
    assert first.prepared == "fomc, no change"
    second = reader.serve("AAPL", question("AAPL", apple, fed))
    assert second is not None
    assert second.prepared == "apple, a beat, outlook raised"


def test_state_goes_on_where_it_was_left() -> None:
    reading = Reading()
    whole = opened(FOMC)
    whole.read_ahead(reading, 2)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(whole.state()))
    again = AnnouncementPrefetcher(Calendar((FOMC,), "ab" * 32), CONFIG)
    again.restore(state)
    item = said("Fed leaves rates unchanged")
    for reader in (whole, again):
        while reader.read_ahead(reading, 4):
            pass
        reader.receive(item, pytest.fail)
    assert again.state() == whole.state()
    assert again.serve("SPX", question("SPX", item)) == whole.serve("SPX", question("SPX", item))


def test_a_release_is_forgotten_a_day_later() -> None:
    reader = opened(FOMC, reading=Reading())
    item = said("Fed leaves rates unchanged")
    reader.receive(item, pytest.fail)
    reader.take_due(AT_NS + MAX_OPEN_NS + 1)
    assert reader.serve("SPX", question("SPX", item)) is None
    assert reader.state()["open"] == []
