"""Prices in every shape that people have them in, as the intake reads them."""

import datetime as dt
import decimal
import resource

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from htfi.domain.errors import InvalidInput
from htfi.library.tables import read_news, read_prices

DAYS = pd.bdate_range("2020-01-01", periods=4)
WIDE = pd.DataFrame(
    [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]], index=DAYS, columns=["AAPL", "日経"]
)
LONG = WIDE.rename_axis("Date").reset_index().melt("Date", var_name="Ticker", value_name="Close")
ROWS = sorted((day.date(), symbol, close) for day, of in WIDE.iterrows() for symbol, close in of.items())


def rows(prices, **options):
    """Time, symbol and close of each row, as the intake will see it."""
    table = pa.table(read_prices(prices, **options).table)
    names = {name.lower(): name for name in table.column_names}
    stamps = names.get("ts") or names.get("date") or names["ds"]
    symbol = names.get("symbol") or names.get("ticker") or names["unique_id"]
    close = names.get("close") or names["y"]
    found = table.select([stamps, symbol, close]).to_pylist()
    return sorted((row[stamps], row[symbol], float(row[close])) for row in found)


def fields(frame, *, swapped=False):
    columns = pd.concat({"Close": frame, "Open": frame, "Volume": frame * 0}, axis=1)
    return columns.swaplevel(axis=1).sort_index(axis=1) if swapped else columns


@pytest.mark.parametrize(
    "prices",
    [
        WIDE,
        WIDE[::-1],
        WIDE.reset_index(names="day"),
        WIDE.to_period("D"),
        LONG,
        LONG.sample(frac=1.0, random_state=3),
        LONG.set_index(["Date", "Ticker"]),
        LONG.assign(Ticker=LONG["Ticker"].astype("category")),
        LONG.astype(object),
        LONG.astype({"Date": str}),
        LONG.assign(Close=[decimal.Decimal(str(close)) for close in LONG["Close"]]),
        LONG.assign(Close=LONG["Close"].astype("int64")),
        LONG.assign(Close=LONG["Close"].astype(pd.SparseDtype(float))),
        LONG.rename(columns={"Ticker": "unique_id", "Date": "ds", "Close": "y"}),
        fields(WIDE),
        fields(WIDE, swapped=True),
        pl.from_pandas(LONG),
        pl.from_pandas(LONG).lazy(),
        pl.from_pandas(WIDE.reset_index(names="day")),
        pa.Table.from_pandas(LONG, preserve_index=False),
    ],
    ids=[
        *(
            "wide",
            "descending",
            "wide by column",
            "periods",
            "long",
            "shuffled",
            "multi-index",
            "categories",
            "objects",
        ),
        *(
            "texts",
            "decimals",
            "integers",
            "sparse",
            "nixtla",
            "yfinance",
            "yfinance by ticker",
            "polars",
            "lazy",
        ),
        *("polars wide", "arrow"),
    ],
)
def test_every_shape_gives_the_same_rows(prices):
    assert rows(prices) == ROWS


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_in_wide_form_give_the_same_rows(form, tmp_path):
    path = tmp_path / f"prices.{form}"
    if form == "parquet":
        WIDE.to_parquet(path)
    else:
        pyarrow.feather.write_feather(pa.Table.from_pandas(WIDE.reset_index(names="day")), path)
    assert rows(str(path)) == ROWS


def test_one_letter_tickers_are_symbols_and_ohlc_are_fields():
    assert {symbol for _, symbol, _ in rows(WIDE.set_axis(["C", "T"], axis=1))} == {"C", "T"}
    bars = pd.DataFrame(np.full((4, 4), 5.0), index=DAYS, columns=list("ohlc"))
    assert set(read_prices(bars).table.column_names) == {"ts", "o", "h", "l", "c"}


def test_rows_are_put_in_order_and_keep_their_numbers():
    source = read_prices(LONG[::-1].reset_index(drop=True))
    times = pa.table(source.table).column("Date").to_pylist()
    assert times == sorted(times)
    assert [source.row_number(row) for row in (1, 8)] == [4, 5]


def test_a_row_of_a_time_that_came_before_is_set_aside():
    later = LONG.iloc[[1]].assign(Close=99.0)
    source = read_prices(pd.concat([LONG, later], ignore_index=True))
    assert source.table.num_rows == len(LONG)
    assert [(row.row, row.reason) for row in source.set_aside] == [(9, "duplicate")]
    assert 99.0 not in pa.table(source.table).column("Close").to_pylist()


def test_an_empty_cell_of_a_wide_table_is_no_bar_and_a_word_is_set_aside():
    frame = WIDE.astype(object)
    frame.iloc[1, 0], frame.iloc[2, 1] = np.nan, "n/a"
    source = read_prices(frame)
    assert source.table.num_rows == 6
    assert [(row.row, row.reason, row.detail) for row in source.set_aside] == [
        (3, "bad_number", "日経: 'n/a' is not a number")
    ]


def test_a_column_without_a_number_is_named():
    source = read_prices(WIDE.assign(EMPTY=np.nan))
    assert source.table.num_rows == 8
    assert [(row.row, row.reason, row.detail, row.num) for row in source.set_aside] == [
        (0, "empty", "EMPTY: none of its closes is a number", 0)
    ]


def test_seconds_since_1970_are_times():
    seconds = (DAYS - pd.Timestamp(0)) // pd.Timedelta("1s")
    assert read_prices(pd.DataFrame({"ts": seconds, "close": [1.0, 2.0, 3.0, 4.0]})).table.num_rows == 4


def test_midnights_without_a_zone_are_dates_and_other_times_are_utc():
    assert pa.table(read_prices(WIDE).table).schema.field("ts").type == pa.date32()
    hours = WIDE.set_axis(pd.date_range("2020-01-01 09:30", periods=4, freq="h"))
    source = read_prices(hours)
    assert source.spec.zone == "UTC"
    assert source.notes == ("times without a zone are taken as UTC",)
    assert pa.types.is_timestamp(pa.table(source.table).schema.field("ts").type)


def test_times_of_several_zones_are_the_same_instants():
    zones = [dt.timezone(dt.timedelta(hours=hours)) for hours in (-5, 0, 9, 2)]
    moments = [
        dt.datetime(2020, 1, 1 + k, 12, tzinfo=dt.UTC).astimezone(zone) for k, zone in enumerate(zones)
    ]
    source = read_prices(pd.DataFrame({"ts": moments, "close": [1.0, 2.0, 3.0, 4.0]}))
    assert pa.table(source.table).column("ts").cast(pa.int64()).to_pylist() == [
        round(moment.timestamp() * 1e6) for moment in moments
    ]


def test_a_series_is_named_and_gets_the_symbol_that_is_asked_for():
    assert {symbol for _, symbol, _ in rows(WIDE["AAPL"])} == {"AAPL"}
    assert {symbol for _, symbol, _ in rows(WIDE["AAPL"], symbol="ÄPFEL")} == {"ÄPFEL"}


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        (WIDE.iloc[:0], "is empty"),
        (pd.DataFrame(), "is empty"),
        (pd.DataFrame({"close": [1.0]}), "no column of times"),
        (pd.DataFrame({"a": [1.0], "b": [2.0]}), "no column of times"),
        (pd.DataFrame({"day": DAYS, "a": ["x"] * 4}), "holds no number"),
        (WIDE * np.nan, "holds no number"),
        (pl.Series([1.0]), "polars Series has no times"),
        (5, "an object of type int is not a table"),
        (pl.from_pandas(LONG).cast({"Close": pl.Int128}), "of a type that Arrow does not have .*: cast it"),
        (WIDE.set_axis(["A", "A"], axis=1), "two columns are named 'A'"),
        (
            pd.DataFrame({"unique_id": "a", "ds": range(4), "y": 1.0}),
            "whole numbers 0 to 3, which are no times",
        ),
        (pd.DataFrame({"ts": [2019, 2020], "close": [1.0, 2.0]}), "whole numbers 2019 to 2020"),
    ],
)
def test_what_cannot_be_read_is_one_line(prices, says):
    with pytest.raises(InvalidInput, match=says) as refusal:
        read_prices(prices)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "news",
    [
        [{"ts": "2020-01-02 12:00", "headline": "AAPL cuts guidance", "symbols": ["AAPL", "MSFT"]}],
        pd.DataFrame({"published": [DAYS[1]], "title": ["AAPL cuts guidance"], "ticker": ["AAPL"]}),
        pl.DataFrame({"ts": [dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)], "title": ["AAPL"]}),
    ],
)
def test_news_may_be_a_frame_or_dictionaries(news):
    (source,) = read_news(news)
    assert source.table.num_rows == 1
    assert source.spec.kind == "news"
    assert read_news(news[:0]) == []


def test_news_without_headlines_is_one_line():
    with pytest.raises(InvalidInput, match="no column of times or of headlines"):
        read_news(pd.DataFrame({"ts": [DAYS[0]], "x": ["y"]}))


def test_a_relation_of_duckdb_is_read():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("prices", LONG)
    assert rows(connection.sql("SELECT * FROM prices")) == ROWS


@pytest.mark.slow
def test_ten_million_rows_take_memory_of_a_few_times_their_own():
    num = 10_000_000
    codes = np.tile(np.arange(100), num // 100)
    frame = pd.DataFrame({
        "ts": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(num // 100).repeat(100), "min"),
        "symbol": pd.Categorical.from_codes(codes, [f"S{code}" for code in range(100)]),
        "close": 1.0 + np.arange(num) % 7,
    })[::-1]  # fmt: skip
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = read_prices(frame)
    taken_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb)
    assert source.table.num_rows == num
    assert taken_bytes < 8 * frame.memory_usage().sum()
