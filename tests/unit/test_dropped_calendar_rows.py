"""Rows of an economic calendar that come as news: which cannot matter, and that they leave no trace but a count."""

import msgspec
import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import Screening
from htfi.narrative.calendar_rows import CalendarRowFilter
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import Settings

VISITORS = "NZD: Visitor Arrivals m/m 1.2%, previous 2.0%"


def row(number: int, headline: str, *symbols: str) -> News:
    return News(number, number, "calendar", number, f"c{number}", headline, symbols)


@pytest.mark.parametrize(
    ("headline", "symbols", "is_pointless"),
    [
        (VISITORS, (), True),
        (VISITORS, ("NZDUSD",), False),
        ("CAD: Trade Balance -0.6B, expected -1.0B", (), False),
        ("CNY: CPI y/y 1.5%, expected 1.5%, previous 1.4%", (), False),
        ("USD: Non-Farm Employment Change 252K, expected 240K", (), False),
        ("CAD: BOC Gov Poloz Speaks", ("USDCAD",), True),
        ("EUR: ECB Press Conference", (), True),
        ("NZD: Bank Holiday", (), True),
        ("Fed Chair Yellen Speaks", (), False),
        ("ABC: Radio New Zealand Speaks", (), False),
        ("NZD falls after a poor auction", (), False),
        ("USD: dollar slumps as Yellen speaks of patience", (), False),
    ],
)
def test_a_row_matters_by_its_economy_and_by_what_it_reports(
    headline: str, symbols: tuple[str, ...], is_pointless: bool
) -> None:
    rows = CalendarRowFilter([("USDCAD", "")])
    assert rows.is_pointless(row(1, headline, *symbols)) is is_pointless


def test_without_series_every_economy_may_matter() -> None:
    rows = CalendarRowFilter()
    assert not rows.is_pointless(row(1, VISITORS))
    rows.add_series("USDCAD", "")
    assert rows.is_pointless(row(1, VISITORS))
    rows.add_series("NZDUSD", "")
    assert not rows.is_pointless(row(1, VISITORS))


def test_a_row_that_corrects_another_or_that_a_person_admitted_is_read() -> None:
    rows = CalendarRowFilter([("USDCAD", "")])
    assert not rows.is_pointless(replace(row(1, VISITORS), corrects="c0"))
    assert not rows.is_pointless(replace(row(1, VISITORS), released_by="A. Person"))
    assert not rows.is_pointless(replace(row(1, VISITORS), body="Visitors came by sea as well."))


def test_a_dropped_row_leaves_no_trace_but_a_count() -> None:
    made, plain = build_news_processor(Settings()), build_news_processor(Settings())
    for one in (made, plain):
        one.select("USDCAD", 0)
    dropped = made.receive(row(1, VISITORS))
    assert (dropped.item.headline, dropped.verdict) == ("", Screening.PASS)
    for one in (made, plain):
        one.receive(row(2, "CAD: Trade Balance -0.6B, expected -1.0B, previous 0.3B", "USDCAD"))
    assert made.select("USDCAD", 3) == plain.select("USDCAD", 3)
    assert (made.num_dropped_rows, plain.num_dropped_rows) == (1, 0)
    assert made.state() == plain.state() | {"dropped_rows": 1}


def test_what_was_dropped_is_counted_on_after_a_restart() -> None:
    first, second = build_news_processor(Settings()), build_news_processor(Settings())
    first.select("USDCAD", 0)
    first.receive(row(1, VISITORS))
    second.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(first.state())))
    second.receive(row(2, VISITORS))
    assert second.num_dropped_rows == 2
