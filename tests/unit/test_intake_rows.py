"""Each rule on values: what becomes an event, and which reason each bad row gets."""

from hashlib import sha256
from typing import Any

import pytest

from htfi.domain.events import Bar, MacroAnnouncement, News, QuarantinedRow, Quote, Trade
from htfi.domain.time import format_ns
from htfi.pipeline.intake.cells import show_row
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

TS = "2013-10-07T14:00:00Z"
TS_NS = 1_381_154_400_000_000_000
TRADE = {"ts": TS, "symbol": "IBM", "price": 180.5, "size": 100}
QUOTE = {"ts": TS, "symbol": "IBM", "bid": 180.0, "ask": 180.5, "bid_size": 1, "ask_size": 2}
BAR = {
    "ts": TS,
    "symbol": "IBM",
    "open": 2,
    "high": 3,
    "low": 1,
    "close": 2.5,
    "volume": 10,
    "interval": "60s",
}
NEWS = {"ts": TS, "headline": "Fed cuts", "symbols": "IBM, MSFT;IBM"}
MACRO = {"ts": TS, "series": "VIX", "value": -1.5}


def parse(row: dict[str, Any], number: int = 1, arrival_ns: int | None = None, **keys: Any) -> Any:
    return RowParser(SourceSpec("s", **keys), "FILE").parse(row, number, "", arrival_ns)


def test_each_kind_becomes_its_event() -> None:
    assert parse(TRADE) == Trade(TS_NS, TS_NS, "s", 1, "IBM", 180.5, 100.0)
    assert parse(QUOTE) == Quote(TS_NS, TS_NS, "s", 1, "IBM", 180.0, 1.0, 180.5, 2.0)
    end_ns = TS_NS + 60 * 10**9
    assert parse(BAR) == Bar(end_ns, end_ns, "s", 1, "IBM", "1m", TS_NS, end_ns, 2.0, 3.0, 1.0, 2.5, 10.0)
    assert parse(NEWS, 7) == News(TS_NS, TS_NS, "s", 7, "s:7", "Fed cuts", ("IBM", "MSFT"))
    assert parse(MACRO) == MacroAnnouncement(TS_NS, TS_NS, "s", 1, "VIX", -1.5)


def test_numbers_may_be_texts_and_a_missing_symbol_is_the_files_name() -> None:
    row = {"ts": TS, "price": " 180.5 ", "size": "1e2"}
    assert parse(row) == Trade(TS_NS, TS_NS, "s", 1, "FILE", 180.5, 100.0)


@pytest.mark.parametrize(("side", "bid", "ask"), [("b", 9.0, None), ("ASK", None, 9.0)])
def test_a_one_sided_quote_leaves_the_other_side_open(
    side: str, bid: float | None, ask: float | None
) -> None:
    row = {"ts": TS, "symbol": "IBM", "side": side, "price": 9, "size": 5, "exchange": "P"}
    quote = parse(row)
    assert (quote.bid, quote.ask, quote.venue) == (bid, ask, "P")
    assert (quote.bid_size, quote.ask_size) == ((5.0, None) if bid else (None, 5.0))


def test_a_quote_may_carry_one_of_its_two_sides() -> None:
    quote = parse({**QUOTE, "ask": None})
    assert (quote.bid, quote.ask, quote.ask_size) == (180.0, None, None)


def test_a_row_can_name_its_kind() -> None:
    assert type(parse({**MACRO, "kind": " Macro "})) is MacroAnnouncement
    assert type(parse({**TRADE, "type": "trade"})) is Trade
    assert type(parse({**TRADE, "type": "odd lot"})) is Trade  # any other `type` is the source's own affair


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**TRADE, "price": 0}, "bad_price"),
        ({**TRADE, "price": -1.0}, "bad_price"),
        ({**TRADE, "price": float("nan")}, "bad_price"),
        ({**TRADE, "price": "inf"}, "bad_price"),
        ({**TRADE, "price": "1,000"}, "bad_number"),
        ({**TRADE, "price": "1_000"}, "bad_number"),
        ({**TRADE, "price": True}, "bad_number"),
        ({**TRADE, "price": 10**400}, "bad_number"),
        ({**TRADE, "price": [1]}, "bad_number"),
        ({**TRADE, "price": None}, "missing_field"),
        ({**TRADE, "size": -1}, "bad_size"),
        ({**TRADE, "size": float("nan")}, "bad_size"),
        ({**TRADE, "symbol": ""}, "missing_field"),
        ({**TRADE, "symbol": "X" * 65}, "bad_symbol"),
        ({**TRADE, "symbol": "A\nB"}, "bad_symbol"),
        ({**TRADE, "symbol": 1.5}, "bad_symbol"),
        ({**TRADE, "ts": "2013-10-07T14:00:00"}, "no_zone"),
        ({**TRADE, "ts": "soon"}, "bad_time"),
        ({**TRADE, "ts": "1700-01-01T00:00:00Z"}, "absurd_time"),
        ({**TRADE, "ts": None}, "missing_field"),
        ({"price": 1.0}, "missing_field"),
        ({**QUOTE, "bid": 181}, "crossed_quote"),
        ({**QUOTE, "bid": None, "ask": ""}, "missing_field"),
        ({**QUOTE, "ask_size": -1}, "bad_size"),
        ({"ts": TS, "symbol": "A", "side": "a", "price": -1}, "bad_price"),
        ({"kind": "quote", "ts": TS, "symbol": "A", "side": "x", "price": 1}, "bad_side"),
        ({**BAR, "high": 0.5}, "bad_bar"),
        ({**BAR, "low": 3, "high": 1, "close": 4}, "bad_bar"),
        ({**BAR, "close": 0.9}, "bad_bar"),
        ({**BAR, "low": "n/a"}, "bad_number"),
        ({**BAR, "close": None}, "missing_field"),
        ({**BAR, "interval": "soon"}, "bad_interval"),
        ({**BAR, "interval": "9" * 30 + "d"}, "bad_interval"),
        ({**BAR, "interval": "volume:-1"}, "bad_interval"),
        ({**BAR, "interval": None}, "bad_interval"),
        ({"date": "2008-10-10", "close": 899.22}, "bad_interval"),
        ({**BAR, "available_at": TS}, "bad_time"),
        ({**NEWS, "headline": " "}, "missing_field"),
        ({**NEWS, "symbols": ["A" * 99]}, "bad_symbol"),
        ({**MACRO, "value": "n/a"}, "bad_number"),
        ({**MACRO, "value": float("inf")}, "bad_number"),
        ({**MACRO, "series": ""}, "missing_field"),
        ({**TRADE, "kind": "tick"}, "unknown_kind"),
        ({**TRADE, "kind": 5}, "unknown_kind"),
        ({"foo": 1}, "unknown_kind"),
        ({}, "unknown_kind"),
    ],
)
def test_a_bad_row_is_refused_with_its_reason(row: dict[str, Any], reason: str) -> None:
    found = parse(row, 3)
    assert isinstance(found, QuarantinedRow)
    assert (found.source, found.row, found.reason) == ("s", 3, reason)
    assert found.detail


def test_a_locked_quote_stands() -> None:
    assert isinstance(parse({**QUOTE, "bid": 180.5}), Quote)


def test_what_a_rejection_keeps_of_a_row_is_bounded_and_says_how_it_is_cut() -> None:
    row = {**NEWS, "headline": "", "body": "x" * 10_000}
    whole = show_row(row).encode()
    found = parse(row)
    assert found.raw == whole[:MAX_RAW_CHARS].decode()
    assert (found.num_bytes, found.sha256) == (len(whole), sha256(whole).hexdigest())
    short = parse({**NEWS, "headline": ""})
    assert (short.raw, short.num_bytes, short.sha256) == (show_row({**NEWS, "headline": ""}), 0, "")


def test_unwanted_symbols_are_no_rows() -> None:
    assert parse(TRADE, only=("MSFT",)) is None
    assert parse({**TRADE, "price": -1}, only=("MSFT",)) is None
    assert parse(MACRO, only=("VIX",)) is not None
    assert parse(NEWS, only=("GE",)) is None


@pytest.mark.parametrize(
    ("keys", "start", "end"),
    [
        ({}, "2013-10-07T14:00:00Z", "2013-10-07T15:00:00Z"),
        ({"bar_stamp": "end"}, "2013-10-07T13:00:00Z", "2013-10-07T14:00:00Z"),
    ],
)
def test_a_bar_is_known_at_its_end(keys: dict[str, str], start: str, end: str) -> None:
    bar = parse({**BAR, "interval": None}, interval="1h", **keys)
    assert (format_ns(bar.start_ns), format_ns(bar.end_ns)) == (start, end)
    assert bar.available_at_ns == bar.end_ns


def test_a_bar_dated_by_day_is_a_days_bar() -> None:
    bar = parse({"date": "2008-10-10", "close": 899.22}, interval="daily")
    assert (bar.interval, format_ns(bar.available_at_ns)) == ("1d", "2008-10-11T04:00:00Z")
    assert bar.open == bar.high == bar.low == bar.close == 899.22


def test_a_weeks_bar_dated_by_its_first_day_ends_six_days_later() -> None:
    row = {"date": "2008-10-06", "close": 899.22}
    assert format_ns(parse(row, interval="7d").end_ns) == "2008-10-13T04:00:00Z"
    assert format_ns(parse(row, interval="7d", bar_stamp="end").end_ns) == "2008-10-07T04:00:00Z"


def test_a_delay_holds_back_what_is_dated_by_reference_period() -> None:
    known = parse({"date": "2024-07-01", "series": "CPI", "value": 3.0}, delay="45d").available_at_ns
    assert format_ns(known) == "2024-08-16T04:00:00Z"
    assert parse(MACRO, delay="1h").available_at_ns == TS_NS + 3600 * 10**9


def test_a_live_row_is_known_when_it_arrives() -> None:
    now_ns = TS_NS + 5
    trade = parse(TRADE, 1, now_ns, stamp="arrival")
    assert (trade.available_at_ns, trade.event_time_ns) == (now_ns, TS_NS)
    untimed = parse({"symbol": "A", "price": 1, "ts": None}, 1, now_ns, stamp="arrival")
    assert (untimed.available_at_ns, untimed.event_time_ns) == (now_ns, now_ns)


def test_a_live_bar_that_is_not_finished_is_refused() -> None:
    assert parse(BAR, 1, TS_NS + 30 * 10**9, stamp="arrival").reason == "bad_time"
    assert isinstance(parse(BAR, 1, TS_NS + 60 * 10**9, stamp="arrival"), Bar)
