"""Files of prices as vendors write them are read without a mapping, each with the same bars."""

import gzip
import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from htfi.adapters.feeds.text_files import TextFileReader
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, QuarantinedRow, Trade
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.feeds import resolve, table_events
from htfi.wiring.in_memory_run import MemoryQuarantine


class Row(NamedTuple):
    day: date
    at: datetime
    open: float
    high: float
    low: float
    close: float
    volume: int


def _rows() -> list[Row]:
    rng = random.Random(5)
    days = [day for n in range(60) if (day := date(2021, 3, 1) + timedelta(days=n)).weekday() < 5]
    rows: list[Row] = []
    close = 1_210.5
    for number, day in enumerate(days):
        opened, close = close, round(close * (1 + rng.gauss(0, 0.01)), 2)
        high, low = round(max(opened, close) + rng.random(), 2), round(min(opened, close) - rng.random(), 2)
        at = datetime(2021, 3, 1, 14, 30, tzinfo=UTC) + timedelta(minutes=number)
        rows.append(Row(day, at, opened, high, low, close, rng.randrange(1, 90) * 10_000))
    return rows


ROWS = _rows()


def written(header: str, line: Callable[[Row], str], rows: list[Row] = ROWS, footer: str = "") -> str:
    return "".join([f"{header}\n" if header else "", *(f"{line(row)}\n" for row in rows), footer])


def session_date(start_ns: int) -> date:
    return datetime.fromtimestamp(start_ns // 10**9, ZoneInfo("America/New_York")).date()


def plain(row: Row) -> str:
    return f"{row.open},{row.high},{row.low},{row.close}"


DAILY = {
    "Investing, newest first": written(
        '"Date","Price","Open","High","Low","Vol.","Change %"',
        lambda r: (
            f'"{r.day:%b %d, %Y}","{r.close:,.2f}","{r.open:,.2f}","{r.high:,.2f}","{r.low:,.2f}",'
            f'"{r.volume / 1e6:.2f}M","-0.31%"'
        ),
        ROWS[::-1],
    ),
    "Barchart, a line below": written(
        "Time,Open,High,Low,Latest,Change,%Change,Volume",
        lambda r: f"{r.day},{plain(r)},0.1,0.2%,{r.volume}",
        ROWS[::-1],
        '"Downloaded from Barchart.com as of 05-01-2021 10:00am CST"\n',
    ),
    "Bloomberg": written(
        "Date,PX_LAST,PX_OPEN,PX_HIGH,PX_LOW,PX_VOLUME",
        lambda r: f"{r.day:%m/%d/%Y},{r.close},{r.open},{r.high},{r.low},{r.volume}",
    ),
    "NSE": written(
        '"Symbol","Series","Date","Open Price","High Price","Low Price","Last Price",'
        '"Close Price","Total Traded Quantity"',
        lambda r: (
            f'"SBIN","EQ","{r.day:%d-%b-%Y}","{r.open}","{r.high}","{r.low}","1","{r.close}","{r.volume:,}"'
        ),
    ),
    "Stooq": written(
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>",
        lambda r: f"SPY.US,D,{r.day:%Y%m%d},000000,{plain(r)},{r.volume},0",
    ),
    "a German exchange": written(
        "Datum;Erster;Hoch;Tief;Schlusskurs;Stücke",
        lambda r: f"{r.day:%d.%m.%Y};{plain(r).replace(',', ';').replace('.', ',')};{r.volume}",
    ),
    "without a header": written("", lambda r: f"{r.day},{plain(r)},{r.volume}"),
    "a symbol, without a header": written("", lambda r: f"AAPL,{r.day:%Y%m%d},{plain(r)},{r.volume}"),
    "a title above": written(
        "https://www.example.com", lambda r: f"{r.day},{plain(r)}", footer=""
    ).replace("\n", "\ndate,open,high,low,close\n", 1),
    "month first": written(
        "Date,Open,High,Low,Close,Volume", lambda r: f"{r.day:%m/%d/%Y},{plain(r)},{r.volume}"
    ),
    "day first": written(
        "Date,Open,High,Low,Close,Volume", lambda r: f"{r.day:%d/%m/%Y},{plain(r)},{r.volume}"
    ),
    "two digits": written("date,open,high,low,close", lambda r: f"{r.day:%d-%b-%y},{plain(r)}"),
    "Nasdaq, newest first": written(
        "Date,Close/Last,Volume,Open,High,Low",
        lambda r: f"{r.day:%m/%d/%Y},${r.close},{r.volume},${r.open},${r.high},${r.low}",
        ROWS[::-1],
    ),
    "yfinance, three lines": (
        "Price,Close,High,Low,Open,Volume\nTicker,AAPL,AAPL,AAPL,AAPL,AAPL\nDate,,,,,\n"
        + written("", lambda r: f"{r.day},{r.close},{r.high},{r.low},{r.open},{r.volume}")
    ),
}  # fmt: skip

CLOSES = {
    "FRED": written("observation_date,CLOSE", lambda r: f"{r.day},{r.close}"),
    "Nixtla": written("unique_id,ds,y", lambda r: f"A,{r.day},{r.close}"),
    "yfinance by ticker": (
        "Ticker,AAPL,AAPL\nPrice,Close,Volume\nDate,,\n"
        + written("", lambda r: f"{r.day},{r.close},{r.volume}")
    ),
}

CLOSES_FIRST = written("", lambda r: f"{r.day},{r.close},{r.high},{r.low},{r.open}")

INTRADAY = {
    "MetaTrader 5": written(
        "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>",
        lambda r: f"{r.at:%Y.%m.%d,%H:%M:%S},{plain(r)},{r.volume},0,9".replace(",", "\t"),
    ),
    "MetaTrader 4": written("", lambda r: f"{r.at:%Y.%m.%d,%H:%M},{plain(r)},{r.volume}"),
    "HistData": written("", lambda r: f"{r.at:%Y%m%d %H%M%S};{plain(r).replace(',', ';')};0"),
    "Stooq, minutes": written(
        "<TICKER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>",
        lambda r: f"SPY.US,{r.at:%Y%m%d,%H%M%S},{plain(r)}",
    ),
    "Dukascopy": written(
        "Gmt time,Open,High,Low,Close,Volume", lambda r: f"{r.at:%d.%m.%Y %H:%M:%S}.000,{plain(r)},1.5"
    ),
    "Dukascopy, local": written(
        "Local time,Open,High,Low,Close,Volume",
        lambda r: f"{r.at + timedelta(hours=1):%d.%m.%Y %H:%M:%S}.000 GMT+0100,{plain(r)},1.5",
    ),
    "an American clock": written(
        "DateTime,Open,High,Low,Close", lambda r: f"{r.at + timedelta(days=13):%m/%d/%Y %I:%M %p},{plain(r)}"
    ),
    "Interactive Brokers": written(
        ",date,open,high,low,close,volume,average,barCount",
        lambda r: f"0,{r.at:%Y%m%d  %H:%M:%S},{plain(r)},5,1.0,3",
    ),
    "Binance": written(
        "",
        lambda r: f"{int(r.at.timestamp()) * 1000},{plain(r)},7,1,5.5,12,1.1,2.2,0",
    ),
    "Databento": written(
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol",
        lambda r: f"{r.at:%Y-%m-%dT%H:%M:%S}.000000000Z,33,1,5482,{plain(r)},4,ESM1",
    ),
}


def read_items(folder: Path, text: str, **stated: str) -> list[object]:
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8")
    spec = SourceSpec(name="prices", path=str(path), format="csv", **stated)
    reader = TextFileReader(path, spec, "prices", 1000)
    reader.start(None)
    found: list[object] = []
    while (block := reader.read()) is not None:
        found += block.items
    reader.close()
    return found


def bars_of(items: list[object]) -> list[Bar]:
    return sorted((item for item in items if isinstance(item, Bar)), key=lambda bar: bar.start_ns)


@pytest.mark.parametrize("form", [*DAILY, *CLOSES])
def test_daily_files_of_vendors_give_their_bars(form: str, tmp_path: Path) -> None:
    bars = bars_of(read_items(tmp_path, (DAILY | CLOSES)[form]))
    assert [bar.close for bar in bars] == [row.close for row in ROWS]
    assert [session_date(bar.start_ns) for bar in bars] == [row.day for row in ROWS]
    spans = [(row.open, row.high, row.low) if form in DAILY else (row.close,) * 3 for row in ROWS]
    assert [(bar.open, bar.high, bar.low) for bar in bars] == spans


@pytest.mark.parametrize("form", INTRADAY)
def test_intraday_files_of_vendors_give_their_bars(form: str, tmp_path: Path) -> None:
    bars = bars_of(read_items(tmp_path, INTRADAY[form], zone="UTC"))
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in bars] == [row[2:6] for row in ROWS]
    later = timedelta(days=13) if form == "an American clock" else timedelta()
    starts = [int((row.at + later).timestamp()) for row in ROWS]
    assert [bar.start_ns // 10**9 for bar in bars] == starts
    assert {bar.interval for bar in bars} == {"1m"}


def test_a_file_of_closes_by_symbol_gives_the_bars_of_each(tmp_path: Path) -> None:
    text = written(",AAPL,BRK-B,EMPTY", lambda r: f"{r.day},{r.close},{'' if r.volume % 3 else r.open},")
    found = read_items(tmp_path, text)
    bars = bars_of(found)
    assert [bar.close for bar in bars if bar.symbol == "AAPL"] == [row.close for row in ROWS]
    assert [bar.close for bar in bars if bar.symbol == "BRK-B"] == [r.open for r in ROWS if not r.volume % 3]
    (refused,) = (item for item in found if isinstance(item, QuarantinedRow))
    assert (refused.reason, refused.detail) == ("missing_field", "EMPTY: none of its closes is a number")
    assert len({bar.row for bar in bars}) == len(bars)


def test_a_word_among_the_closes_of_symbols_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="columns a, b fit no kind of event"):  # nor without times
        read_items(tmp_path, "a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="columns Date, AAPL, note fit no kind of event"):
        read_items(tmp_path, written("Date,AAPL,note", lambda r: f"{r.day},{r.close},calm"))
    late = (
        written("Date,AAPL,MSFT", lambda r: f"{r.day},{r.close},{r.open}", [*ROWS] * 6) + "2022-01-03,x,5\n"
    )
    (refused,) = (
        item
        for item in read_items(tmp_path, late, duplicates="keep")
        if isinstance(item, QuarantinedRow) and item.reason == "bad_number"
    )
    assert refused.detail == "close 'x' is not a number"


@pytest.mark.parametrize(
    ("days", "stated", "expected"),
    [
        (("01/02/2021", "02/02/2021"), "", None),  # either way, and nothing says which
        (("01/02/2021", "02/02/2021"), "month_first", [date(2021, 1, 2), date(2021, 2, 2)]),
        (("01/02/2021", "02/02/2021"), "day_first", [date(2021, 2, 1), date(2021, 2, 2)]),
        (("01/02/2021", "13/02/2021"), "", [date(2021, 2, 1), date(2021, 2, 13)]),
        (("13/02/2021", "02/14/2021"), "", None),  # they contradict each other
    ],
)
def test_month_and_day_are_never_guessed(
    days: tuple[str, ...], stated: str, expected: list[date] | None, tmp_path: Path
) -> None:
    text = "date,close\n" + "".join(f"{day},{100 + n}\n" for n, day in enumerate(days))
    items = read_items(tmp_path, text, dates=stated, interval="1d")
    if expected is None:
        details = [item.detail for item in items if isinstance(item, QuarantinedRow)]
        assert len(details) == len(days)
        assert all('state dates = "month_first" or "day_first"' in detail for detail in details)
    else:
        assert [session_date(bar.start_ns) for bar in bars_of(items)] == expected


def test_the_order_is_found_behind_the_first_rows(tmp_path: Path) -> None:
    minutes = [f"0{1 + n % 9}/03/2021 10:00" for n in range(400)]
    text = "ts,symbol,price\n" + "".join(
        f"{at},A,{5 + n}\n" for n, at in enumerate([*minutes, "03/25/2021 10:00"])
    )
    trades = [item for item in read_items(tmp_path, text, zone="UTC") if isinstance(item, Trade)]
    assert len(trades) == 401
    assert {session_date(trade.event_time_ns).day for trade in trades[:-1]} == {3}


def test_trades_without_a_header_are_read(tmp_path: Path) -> None:
    items = read_items(tmp_path, "1614556800,1.5,2\n1614556801,1.25,3\n")
    assert [(item.price, item.size) for item in items if isinstance(item, Trade)] == [(1.5, 2.0), (1.25, 3.0)]


@pytest.mark.parametrize("line", ["2021-03-01,5,4,6,5.5,100", "2021-03-01,2,3,1", CLOSES_FIRST])
def test_a_file_without_a_header_that_may_mean_several_things_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match="has no header, its first line is a row: put the names of its columns"
    ):
        read_items(tmp_path, line)


def test_a_bad_first_row_is_no_bad_header(tmp_path: Path) -> None:
    items = read_items(tmp_path, 'date,close\n2021-03-01,"10\n2021-03-02,11\n2021-03-03,12\n')
    assert [getattr(item, "reason", "bar") for item in items] == ["malformed", "bar", "bar"]


def test_an_empty_close_in_the_second_row_makes_no_second_header(tmp_path: Path) -> None:
    items = read_items(tmp_path, "date,close\n2021-03-01,10\n2021-03-02,\n2021-03-03,11\n2021-03-04,12\n")
    assert [bar.close for bar in bars_of(items)] == [10.0, 11.0, 12.0]


@pytest.mark.parametrize(
    "header",
    [
        "Date,First Price,Second Price",
        "Date,Open,High",
        "DATE,HIGH,LOW",
        "date,actual,previous",
        "Date,OPEN,OI",
    ],
)
def test_names_of_fields_are_no_symbols(header: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="fit no kind of event"):
        read_items(tmp_path, written(header, lambda r: f"{r.day},{r.open},{r.close}"))


def test_tickers_that_are_words_of_fields_are_symbols_among_others(tmp_path: Path) -> None:
    text = written("Date,AAPL,LOW,MSFT", lambda r: f"{r.day},{r.open},{r.low},{r.close}")
    assert {bar.symbol for bar in bars_of(read_items(tmp_path, text))} == {"AAPL", "LOW", "MSFT"}


def test_one_column_of_values_is_a_symbol(tmp_path: Path) -> None:
    bars = bars_of(read_items(tmp_path, written("Date,Value", lambda r: f"{r.day},{r.close}")))
    assert {bar.symbol for bar in bars} == {"Value"}


def test_three_numbers_of_two_digits_are_no_day(tmp_path: Path) -> None:
    items = read_items(tmp_path, "date,close\n21-01-04,10\n21-01-05,11\n21-01-25,12\n", interval="1d")
    assert [getattr(item, "reason", "") for item in items] == ["bad_time"] * 3


OBJECTS = [
    {
        "t": int(r.at.timestamp()) * 1000,
        "o": r.open,
        "h": r.high,
        "l": r.low,
        "c": r.close,
        "v": r.volume,
        "vw": 1.0,
    }
    for r in ROWS
]
DOCUMENTS = {
    "an array": json.dumps(OBJECTS),
    "an array over lines": json.dumps(OBJECTS, indent=2),
    "an answer": json.dumps({"ticker": "AAPL", "count": len(OBJECTS), "results": OBJECTS}),
    "an answer over lines": json.dumps(
        {"ticker": "AAPL", "results": OBJECTS, "links": {"next": None}}, indent=1
    ),
    "lists of cells": json.dumps([[o["t"], *(f"{o[k]}" for k in "ohlc"), "5", 0, "1.5"] for o in OBJECTS]),
    "lines": "\n".join(map(json.dumps, OBJECTS)),
}


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_json_documents_give_their_rows(form: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"prices.{ending}"
    content = DOCUMENTS[form].encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    quarantine = MemoryQuarantine()
    bars = bars_of(list(table_events(*resolve([str(path)]), {}, tmp_path, quarantine)))
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in bars] == [row[2:6] for row in ROWS]
    assert {bar.symbol for bar in bars} == {"AAPL" if "answer" in form else "prices"}
    assert quarantine.counts() == {}


@pytest.mark.parametrize(
    "content", [DOCUMENTS["an array"][:-40], "[1, 2]", '{"results": [], "more": [{"a": 1}']
)
def test_damaged_documents_and_those_without_rows_are_quarantined(content: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)
    quarantine = MemoryQuarantine()
    assert list(table_events(*resolve([str(path)]), {}, tmp_path, quarantine)) == []
    assert set(quarantine.counts()) == {"malformed"}


def test_cells_without_names_that_may_mean_several_things_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('[["2021-01-04", 3, 1, 2], ["2021-01-05", 3, 1, 2]]')
    with pytest.raises(
        InvalidInput, match="its rows are lists of cells without names: write each as an object"
    ):
        list(table_events(*resolve([str(path)]), {}, tmp_path, MemoryQuarantine()))


def test_a_run_sorts_a_file_whose_newest_row_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(DAILY["Nasdaq, newest first"])
    quarantine = MemoryQuarantine()
    events = list(table_events(*resolve([str(path)]), {}, tmp_path, quarantine))
    assert [event.close for event in events if isinstance(event, Bar)] == [row.close for row in ROWS]
    assert quarantine.counts() == {}


@pytest.mark.parametrize("form", ["a column by symbol", "an array over lines"])
def test_reading_goes_on_at_each_mark(form: str, tmp_path: Path) -> None:
    if form == "a column by symbol":
        path = tmp_path / "prices.csv"
        path.write_text(written("Date,A,B,NONE", lambda r: f"{r.day},{r.close},{r.open},", ROWS * 40))
    else:
        path = tmp_path / "prices.json"
        path.write_text(json.dumps(OBJECTS * 40, indent=2))
    (spec,) = resolve([str(path)], duplicates="keep")

    def items_from(mark: list[int] | None) -> list[tuple[list[int], list[object]]]:
        reader = TextFileReader(path, spec, "prices", 50)
        reader.start(mark)
        blocks: list[tuple[list[int], list[object]]] = []
        while (block := reader.read()) is not None:
            blocks.append((block.mark, block.items))
        reader.close()
        return blocks

    whole = items_from(None)
    assert len(whole) > 5
    for place in (1, len(whole) // 2, len(whole) - 1):
        found = [item for _, items in items_from(whole[place][0]) for item in items]
        assert found == [item for _, items in whole[place:] for item in items]
