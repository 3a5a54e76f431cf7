"""No bar is known before its true end, whatever lengths a file mixes and whichever way it is read."""

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.feeds.parquet.columnwise import ColumnwiseParser
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, NS_PER_S, SystemClock, format_ns
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine

T0_NS = 1_381_132_800 * NS_PER_S
MINUTES = {"M1": 1, "5min": 5, "15m": 15, "PERIOD_M30": 30, "h1": 60, "H4": 240, "12 hours": 720, "D": 1440}
CLOSED_MINUTES = (0, 0, 0, 77, 1_047, 2_949)  # lunch, night, weekend: none is as long as a bar
MINUTE_NS = 60 * NS_PER_S

Row = dict[str, Any]

# Some bars of one length, then a time without bars; several of these one after the other are a symbol.
STRETCH = st.tuples(st.sampled_from(list(MINUTES)), st.integers(2, 24), st.sampled_from(CLOSED_MINUTES))
SYMBOLS = st.lists(st.lists(STRETCH, min_size=1, max_size=4), min_size=1, max_size=4)
ORDERS = st.sampled_from(["by symbol", "by time", "backwards"])
FORMS = ("csv", "jsonl", "parquet", "parquet by row")


def rows_of(
    symbols: list[list[tuple[str, int, int]]], order: str
) -> tuple[list[Row], dict[tuple[str, int], int]]:
    """Rows in the file's order, and the true end of each bar by its symbol and start."""
    rows: list[Row] = []
    ends: dict[tuple[str, int], int] = {}
    for place, stretches in enumerate(symbols):
        at, symbol = T0_NS, f"S{place}"
        for label, count, closed in stretches:
            for _ in range(count):
                ends[symbol, at] = at + MINUTES[label] * MINUTE_NS
                rows.append({"at": at, "symbol": symbol, "res": label, "close": 1.0 + len(rows) / 1000})
                at = ends[symbol, at]
            at += closed * MINUTE_NS
    if order != "by symbol":
        rows.sort(key=lambda row: row["at"], reverse=order == "backwards")
    return rows, ends


def write(folder: Path, form: str, rows: list[Row], columns: tuple[str, ...]) -> Path:
    table = [{"ts": format_ns(row["at"]), **{name: row[name] for name in columns}} for row in rows]
    if form == "csv":
        (folder / "b.csv").write_text(
            "\n".join([",".join(table[0]), *(",".join(map(str, row.values())) for row in table)])
        )
    elif form == "jsonl":
        (folder / "b.jsonl").write_text("\n".join(map(json.dumps, table)))
    else:
        stamps = pa.array([row["at"] for row in rows], pa.int64()).cast(pa.timestamp("ns", "UTC"))
        rest = {name: [row[name] for row in rows] for name in columns}
        pq.write_table(pa.table({"ts": stamps, **rest}), folder / "b.parquet", row_group_size=50)
    return folder / f"b.{form.split()[0]}"


def read(path: Path, form: str, **defaults: str) -> tuple[list[Bar], MemoryQuarantine]:
    tray = MemoryQuarantine()
    with pytest.MonkeyPatch.context() as patch:
        if form == "parquet by row":
            patch.setattr(ColumnwiseParser, "read", lambda *_: None)
            patch.setattr(ColumnwiseParser, "measure_bar_intervals", lambda *_: False)
        specs = resolve([str(path)], None, order="sort", **defaults)
        feed = open_feed(specs, inbox=path.parent, quarantine=tray, clock=SystemClock())
        bars = [item for item in feed if isinstance(item, Bar)]
        feed.close()
    return bars, tray


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(symbols=SYMBOLS, order=ORDERS)
@example([[("h1", 24, 0)] * 2, [("H4", 24, 0)], [("h1", 20, 2_949), ("H4", 20, 0), ("h1", 3, 0)]], "by time")
@example([[("h1", 10, 0), ("H4", 2, 77), ("h1", 10, 0)], [("M1", 2, 1_047), ("D", 2, 0)]], "by symbol")
def test_unlabelled_bars_are_never_known_too_early(
    tmp_path: Path, form: str, symbols: list[list[tuple[str, int, int]]], order: str
) -> None:
    rows, ends = rows_of(symbols, order)
    bars, tray = read(write(tmp_path, form, rows, ("symbol", "close")), form)
    early = [bar for bar in bars if bar.available_at_ns < ends[bar.symbol, bar.start_ns]]
    assert early == []
    assert len(bars) + sum(tray.counts().values()) == len(rows)
    assert tray.counts().keys() <= {"bad_interval"}


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(symbols=SYMBOLS, order=ORDERS)
def test_labelled_bars_end_where_their_label_says_or_are_refused(
    tmp_path: Path, form: str, symbols: list[list[tuple[str, int, int]]], order: str
) -> None:
    rows, ends = rows_of(symbols, order)
    bars, tray = read(write(tmp_path, form, rows, ("symbol", "res", "close")), form)
    wrong = [bar for bar in bars if bar.end_ns != ends[bar.symbol, bar.start_ns]]
    assert wrong == []
    assert all(bar.available_at_ns == bar.end_ns for bar in bars)
    assert len(bars) + sum(tray.counts().values()) == len(rows)


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(symbols=SYMBOLS, stated=st.sampled_from(["", "1h", "15m"]), labels=st.booleans())
def test_columns_and_rows_say_the_same_of_intervals(
    tmp_path: Path, symbols: list[list[tuple[str, int, int]]], stated: str, labels: bool
) -> None:
    rows, _ = rows_of(symbols, "by time")
    rows = [{**row, "res": ["?", row["res"], None][place % 3]} for place, row in enumerate(rows)]
    path = write(tmp_path, "parquet", rows, ("symbol", "res", "close") if labels else ("symbol", "close"))
    fast, slow = (read(path, form, interval=stated) for form in FORMS[2:])
    assert fast[0] == slow[0]
    assert fast[1].by_reason == slow[1].by_reason


def month_starts(count: int) -> list[date]:
    return [date(2007 + nth // 12, nth % 12 + 1, 1) for nth in range(count)]


@pytest.mark.parametrize("form", ["csv", "parquet", "parquet by row"])
@pytest.mark.parametrize(
    ("days", "end"),
    [
        ([date(2008, 1, 7) + timedelta(7 * week) for week in range(60)], lambda day: day + timedelta(5)),
        (month_starts(40), lambda day: (day + timedelta(31)).replace(day=1)),
        (month_starts(120)[::3], lambda day: (day + timedelta(95)).replace(day=1)),
        (
            [date(2008, 1, 1) + timedelta(n) for n in range(300) if (1 + n) % 7 not in (5, 6)],
            lambda day: day + timedelta(1),
        ),
    ],
    ids=["weeks", "months", "quarters", "weekdays"],
)
def test_bars_dated_by_day_are_not_known_before_their_period_ends(
    tmp_path: Path, form: str, days: list[date], end: Callable[[date], date]
) -> None:
    path = tmp_path / f"d.{form.split()[0]}"
    prices = [1.0 + place / 1000 for place in range(len(days))]
    if form == "csv":
        rows = (f"{day},{price}" for day, price in zip(days, prices, strict=True))
        path.write_text("\n".join(["date,close", *rows]))
    else:
        pq.write_table(pa.table({"date": pa.array(days, pa.date32()), "close": prices}), path)
    bars, tray = read(path, form)
    assert tray.counts() == {}
    assert len(bars) == len(days)
    epoch = date(1970, 1, 1)
    early = [
        day
        for day, bar in zip(days, bars, strict=True)
        if bar.available_at_ns < (end(day) - epoch).days * NS_PER_DAY
    ]
    assert early == []


@pytest.mark.parametrize("form", FORMS)
def test_a_statement_that_the_spacing_contradicts_refuses_that_symbol_only(tmp_path: Path, form: str) -> None:
    rows, _ = rows_of([[("h1", 30, 0)], [("H4", 30, 0)], [("15m", 30, 0)]], "by time")
    bars, tray = read(write(tmp_path, form, rows, ("symbol", "close")), form, interval="h1")
    assert {(bar.symbol, bar.interval) for bar in bars} == {("S0", "1h")}
    details = {row.detail for row in tray.by_reason["bad_interval"]}
    assert sorted(detail.split(" (row")[0] for detail in details)[::30] == [
        "rows of S1 are 4h apart and 1h is stated: its bars may be longer than stated",
        "rows of S2 are 15m apart and 1h is stated: its bars would overlap",
    ]  # fmt: skip
