"""Renamed series are joined and splits adjusted on reading, as settings name them."""

from typing import Any

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, MacroAnnouncement, News, Quote, Trade
from htfi.domain.time import NS_PER_DAY, parse_timestamp
from htfi.pipeline.intake.adjusting import AdjustedFeed, SeriesAdjustments
from htfi.wiring.settings import Settings, encode_settings, load_settings, override
from memory_run import ListFeed

SPLITS = {"META": {"2014-06-09": 7.0, "2020-08-31": 4.0}, "R": {"2014-06-09": 0.1}}
ONE = SeriesAdjustments({"FB": "META.OLD", "META.OLD": "META"}, SPLITS)


def bar(symbol: str, end: str, price: float = 700.0) -> Bar:
    end_ns = at(end)
    return Bar(
        end_ns,
        end_ns,
        "prices",
        1,
        symbol,
        "1d",
        end_ns - NS_PER_DAY,
        end_ns,
        price,
        price,
        price,
        price,
        10.0,
    )


def at(text: str) -> int:
    return parse_timestamp(text)


@pytest.mark.parametrize(
    ("symbol", "end", "close", "volume"),
    [
        ("META", "2014-06-06T20:00:00Z", 25.0, 280.0),  # both splits are ahead
        (
            "META",
            "2014-06-09T04:00:00Z",
            25.0,
            280.0,
        ),  # ends at midnight in New York, as the split's day begins
        ("META", "2014-06-09T20:00:00Z", 175.0, 40.0),
        ("META", "2014-06-10T04:00:00Z", 175.0, 40.0),
        ("META", "2020-08-31T20:00:00Z", 700.0, 10.0),
        ("FB", "2014-06-06T20:00:00Z", 25.0, 280.0),
        ("R", "2014-06-06T20:00:00Z", 7000.0, 1.0),  # a reverse split
        ("OTHER", "2014-06-06T20:00:00Z", 700.0, 10.0),
    ],
)
def test_prices_before_a_split_are_divided_and_volumes_multiplied(
    symbol: str, end: str, close: float, volume: float
) -> None:
    found = ONE.adjusted(bar(symbol, end))
    assert isinstance(found, Bar)
    assert found.symbol == ("META" if symbol == "FB" else symbol)
    assert [found.open, found.high, found.low, found.close] == pytest.approx([close] * 4)
    assert found.volume == pytest.approx(volume)


def test_trades_quotes_and_news_are_of_the_series_too() -> None:
    before = at("2014-06-06T15:00:00Z")
    trade = ONE.adjusted(Trade(before, before, "t", 1, "FB", 280.0, 3.0))
    assert trade == Trade(before, before, "t", 1, "META", 10.0, 84.0)
    quote = ONE.adjusted(Quote(before, before, "t", 1, "FB", 280.0, 1.0, None, None))
    assert isinstance(quote, Quote)
    assert (quote.symbol, quote.bid, quote.bid_size) == ("META", pytest.approx(10.0), 28.0)
    assert (quote.ask, quote.ask_size) == (None, None)
    news = ONE.adjusted(News(before, before, "n", 1, "id", "FB and META rise", ("FB", "META", "X")))
    assert isinstance(news, News)
    assert (news.symbols, news.headline) == (("META", "X"), "FB and META rise")
    macro = MacroAnnouncement(before, before, "m", 1, "CPI", 1.0)
    other = Trade(before, before, "t", 1, "A", 1.0, 1.0)
    assert ONE.adjusted(macro) is macro
    assert ONE.adjusted(other) is other


def test_a_feed_keeps_its_place() -> None:
    items: list[FeedItem] = [bar("FB", "2020-08-31T20:00:00Z"), bar("A", "2020-08-31T20:00:00Z")]
    feed = AdjustedFeed(ListFeed(items), ONE)
    assert [one.symbol for one in feed if isinstance(one, Bar)] == ["META", "A"]
    assert (feed.position(), feed.progress()) == ({}, None)
    feed.stop()
    assert list(feed) == []
    assert not SeriesAdjustments({}, {})


def test_settings_without_any_are_recorded_as_before() -> None:
    plain = encode_settings(Settings())
    assert b"renames" not in plain
    assert b'"splits"' not in plain
    stated = override(Settings(), "market", renames={"FB": "META"}, splits=SPLITS)
    assert b'"renames":{"FB":"META"}' in encode_settings(stated)
    assert b'"2014-06-09":7' in encode_settings(stated)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"renames": {"A": "B", "B": "A"}}, "market.renames: A to B to A ends nowhere"),
        ({"renames": {"A": ""}}, "market.renames: a name is empty"),
        ({"splits": {"A": {"2014-6-9": 7.0}}}, "market.splits.A: '2014-6-9' is no day"),
        ({"splits": {"A": {"2014-02-30": 7.0}}}, "market.splits.A: '2014-02-30' is no day"),
        ({"splits": {"A": {"2014-06-09": 0.0}}}, "must be at least 0.0001"),
        (
            {"renames": {"A": "B"}, "splits": {"A": {"2014-06-09": 7.0}}},
            "A is renamed to B: state its splits under",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        override(Settings(), "market", **changes)


def test_the_environment_states_them_as_the_message_writes_them() -> None:
    settings = load_settings(
        environment={
            "HTFI_MARKET__RENAMES": '{"FB" = "META"}',
            "HTFI_MARKET__SPLITS": '{"A" = {"2014-06-09" = 7}}',
        }
    )
    assert settings.market.renames == {"FB": "META"}
    assert settings.market.splits == {"A": {"2014-06-09": 7.0}}
