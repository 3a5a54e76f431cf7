"""Parquet read column by column says of every row what the row parser says of it."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.feeds.parquet.columnwise import ColumnwiseParser
from htfi.adapters.feeds.parquet.reader import ParquetReader
from htfi.domain.events import Event, QuarantinedRow
from htfi.pipeline.intake.source import RowReader
from htfi.pipeline.intake.spec import SourceSpec

NS = 1_381_154_400_000_000_000


def mostly(good: list[Any], bad: list[Any]) -> st.SearchStrategy[Any]:
    """So many good cells that a row is often spoilt by a single bad one."""
    return st.sampled_from(good * (9 * len(bad) // len(good) + 1) + bad)


PRICE = mostly([1.0, 1.5, 2.0, 1e300], [None, 0.0, -1.0, float("nan"), float("inf")])
SIZE = mostly([0, 1, 100], [None, -1])
SYMBOL = mostly(["A", "B"], [" A", "", None, "x" * 70, "A\tB"])
STAMP = mostly([NS // 1000, NS // 1000 + 7], [None, NS // 1000 - 10**7, -(10**17), 8 * 10**15])
VENUE = mostly(["P", ""], [None, " Q "])
SIDE = mostly(["a", "b"], ["ASK", "bid ", "x", None])
KNOWN_AS = st.sampled_from([None, "1", "2", ""])

ZONED = pa.timestamp("us", "UTC")
TEXT = pa.dictionary(pa.int8(), pa.string())
TIME = {"ts": (STAMP, ZONED)}
COMMON = {**TIME, "symbol": (SYMBOL, TEXT), "exchange": (VENUE, pa.large_string())}
TABLES: dict[str, dict[str, tuple[st.SearchStrategy[Any], Any]]] = {
    "trades": {**COMMON, "price": (PRICE, pa.float64()), "size": (SIZE, pa.int32()), "cond": (KNOWN_AS, pa.string())},
    "trades with ids": {**COMMON, "price": (PRICE, pa.float32()), "size": (SIZE, pa.int64()), "id": (KNOWN_AS, TEXT)},
    "trades known later": {**TIME, "available_at": (STAMP, pa.timestamp("ms", "UTC")), "price": (PRICE, pa.float64())},
    "untyped trades": {"ts": (STAMP, pa.int64()), "price": (SIZE, pa.int64()), "symbol": (SIZE, pa.int32())},
    "naive trades": {"ts": (STAMP, pa.timestamp("us")), "price": (PRICE, pa.float64())},
    "texts": {"ts": (st.sampled_from(["2013-10-07T14:00Z", "x", None]), pa.string()), "price": (PRICE, pa.float64())},
    "one-sided quotes": {**COMMON, "side": (SIDE, TEXT), "price": (PRICE, pa.float64()), "size": (SIZE, pa.int32())},
    "quotes": {
        **COMMON,
        **{name: (st.one_of(PRICE, st.sampled_from([None, 1.0])), pa.float64()) for name in ("bid", "ask")},
        **{name: (SIZE, pa.float32()) for name in ("bid_size", "ask_size")},
    },
    "bars": {
        **COMMON,
        **{name: (PRICE, pa.float32()) for name in ("open", "high", "low", "close")},
        "volume": (SIZE, pa.int64()),
    },
    "bars of stated lengths": {
        **COMMON,
        "close": (PRICE, pa.float64()),
        "high": (mostly([2.0, 2.5], [20.0, 0.5]), pa.float64()),
        "res": (mostly(["h1", "1h", ""], ["H4", "soon", None, "volume:5"]), pa.large_string()),
    },
    "bars by day": {
        "date": (mostly([date(2013, 10, 7), date(2013, 12, 2)], [date(1800, 1, 1), None]), pa.date32()),
        "symbol": (SYMBOL, pa.large_string()),
        "close": (PRICE, pa.float64()),
    },
    "news": {**TIME, "headline": (KNOWN_AS, TEXT), "symbols": (SYMBOL, pa.string()), "id": (KNOWN_AS, TEXT)},
    "macro": {**TIME, "series": (SYMBOL, TEXT), "value": (PRICE, pa.float64())},
}  # fmt: skip
SPECS = st.builds(
    SourceSpec,
    name=st.just("s"),
    interval=st.sampled_from(["", "1h", "1d"]),
    only=st.sampled_from([(), ("A",)]),
    zone=st.sampled_from(["", "UTC", "America/New_York"]),
    delay=st.sampled_from(["", "90s"]),
    bar_stamp=st.sampled_from(["", "end"]),
    duplicates=st.sampled_from(["quarantine", "keep"]),
    unit=st.sampled_from(["", "us"]),
)


@pytest.mark.parametrize("name", TABLES)
@settings(
    max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(spec=SPECS, data=st.data())
def test_columns_and_rows_agree(tmp_path: Path, name: str, spec: SourceSpec, data: st.DataObject) -> None:
    columns = TABLES[name]
    assume(name != "trades with ids" or spec.duplicates == "quarantine")
    num_rows = data.draw(st.integers(0, 8))
    cells = {
        column: data.draw(st.lists(values, min_size=num_rows, max_size=num_rows))
        for column, (values, _) in columns.items()
    }
    if name == "untyped trades" and not spec.unit:
        spec = SourceSpec("s", kind="trade")
    path = tmp_path / "t.parquet"
    table = pa.table({column: pa.array(cells[column], pa.int64()).cast(kind) if _is_stamp(kind) else pa.array(cells[column], kind) for column, (_, kind) in columns.items()})  # fmt: skip # noqa: E501
    pq.write_table(table, path)
    fast = read(ParquetReader(path, spec, "FILE", 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnwiseParser, "read", lambda *_: None)
        slow = read(ParquetReader(path, spec, "FILE", 5))
    assert [show(item) for item in fast[0]] == [show(item) for item in slow[0]]
    assert pattern(fast[1]) == pattern(slow[1])
    if not spec.only:
        assert len(fast[0]) == num_rows


def test_clean_rows_take_the_fast_way(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"ts": pa.array([NS] * 3).cast(pa.timestamp("ns", "UTC")), "price": [1.0, 2.0, 3.0]}), path
    )
    reader = ParquetReader(path, SourceSpec("s"), "FILE", 10)
    reader.start(None)
    block = reader.read()
    assert block is not None
    assert block.in_order == (NS, NS, 0)


def read(reader: RowReader) -> tuple[list[Event | QuarantinedRow], list[Any]]:
    reader.start(None)
    items: list[Event | QuarantinedRow] = []
    identities: list[Any] = []
    while (block := reader.read()) is not None:
        items += block.items
        identities += block.identities or [None] * len(block.items)
    reader.close()
    return items, identities


def show(item: Event | QuarantinedRow) -> str:
    """Types count too: a size of 1 and of 1.0 encode differently into a digest."""
    return repr(item)


def pattern(identities: Sequence[Any]) -> list[int]:
    """For each row the first that is the same: what matters of identities."""
    first: dict[Any, int] = {}
    return [-1 if known is None else first.setdefault(known, place) for place, known in enumerate(identities)]


def _is_stamp(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "us"
