"""Order files: JSON lines, CSV and Parquet give the same events; rows that cannot be used are set aside with why."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from htfi.adapters.stores.order_files import MAX_ROW_BYTES, read_order_file
from htfi.domain.decision import Receipt
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import QuarantinedRow
from htfi.domain.orders import OrderEvent, encode_order_event
from order_streams import ack, cancel, fill, limits, market, new

EVENTS: list[OrderEvent] = [
    limits(price_collar=0.05, max_order_quantity=100, permitted=("ACME", "OTHER")),
    market(1, quantity=3),
    new("o1", 2, decision=Receipt(4, "ab" * 32)),
    ack("o1", 2.1),
    fill("o1", 3, 4, "100.01"),
    *cancel("o1", 4),
]
COLUMNS = [
    "kind",
    "at_ns",
    "order_id",
    "instrument",
    "venue",
    "side",
    "quantity",
    "price",
    "exec_id",
    "liquidity",
    "scope",
    "max_order_quantity",
    "price_collar",
    "permitted",
    "bid",
    "ask",
    "last",
    "last_quantity",
    "decision.index",
    "decision.leaf_hash",
    "algo",
    "trader",
    "desk",
    "client",
]
ROWS = [
    "kind=limits at_ns=1728036000000000000 scope=firm max_order_quantity=100 price_collar=0.05 "
    "permitted=ACME|OTHER",
    "kind=market at_ns=1728036001000000000 instrument=ACME venue=XTST bid=99.99 ask=100.01 last=100.00 "
    "last_quantity=3",
    "kind=new at_ns=1728036002000000000 order_id=o1 instrument=ACME venue=XTST side=buy quantity=10 "
    "price=100.00 decision.index=4 decision.leaf_hash={leaf} algo=a1 trader=t1 desk=d1 client=c1",
    "kind=ack at_ns=1728036002100000000 order_id=o1",
    "kind=fill at_ns=1728036003000000000 order_id=o1 quantity=4 price=100.01 exec_id=o1-3 liquidity=removed",
    "kind=cancel at_ns=1728036004000000000 order_id=o1",
    "kind=canceled at_ns=1728036004000001000 order_id=o1",
]


def csv_text() -> str:
    lines = [",".join(COLUMNS)]
    for row in ROWS:
        cells = dict(cell.split("=", 1) for cell in row.replace("{leaf}", "ab" * 32).split())
        lines.append(",".join(cells.get(name, "").replace("|", " ") for name in COLUMNS))
    return "\n".join(lines) + "\n"


def read(path: Path) -> tuple[list[OrderEvent], list[QuarantinedRow]]:
    aside: list[QuarantinedRow] = []
    return list(read_order_file(path, aside.append)), aside


def write_lines(path: Path, events=EVENTS) -> Path:
    path.write_bytes(b"".join(encode_order_event(event) + b"\n" for event in events))
    return path


def test_the_three_forms_give_the_same_events(tmp_path) -> None:
    (tmp_path / "orders.csv").write_text("\ufeff" + csv_text(), encoding="utf-8")
    lines, aside = read(write_lines(tmp_path / "orders.jsonl"))
    cells, none = read(tmp_path / "orders.csv")
    assert lines == cells == EVENTS
    assert aside == none == []
    table = pyarrow.Table.from_pylist(
        [
            {"kind": "new", "at_ns": event.at_ns, "order_id": "o1", "instrument": "ACME", "venue": "XTST",
             "side": "buy", "quantity": 10, "price": "100.00", "decision.index": 4, "decision.leaf_hash": "ab" * 32,
             "algo": "a1", "trader": "t1", "desk": "d1", "client": "c1", "account": None}
            for event in EVENTS[2:3]
        ]
    )  # fmt: skip
    pyarrow.parquet.write_table(table, tmp_path / "orders.parquet")
    assert read(tmp_path / "orders.parquet") == (EVENTS[2:3], [])


def test_instants_may_be_text(tmp_path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("kind,at,order_id\nack,2024-10-04T10:00:02.1Z,o1\nack,2024-10-04 10:00:03,o2\n")
    events, aside = read(path)
    assert [event.at_ns for event in events] == [1_728_036_002_100_000_000]
    assert "orders.csv row 3" in aside[0].detail
    assert "no zone" in aside[0].detail


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"kind":"new"', "row 1"),
        (b'{"kind":"teleport","at_ns":1}', "teleport"),
        (b'{"kind":"ack","at_ns":1}', "order_id"),
        (b'{"kind":"ack","at_ns":0,"order_id":"o"}', "at_ns 0 is no instant"),
        (b'{"kind":"fill","at_ns":1,"order_id":"o","exec_id":"x","quantity":0,"price":"1"}', "quantity is 0"),
        (
            b'{"kind":"fill","at_ns":1,"order_id":"o","exec_id":"x","quantity":1,"price":"NaN"}',
            "price is NaN",
        ),
        (b'{"kind":"ack","at_ns":1,"order_id":"\xff"}', "row 1"),
        (b'{"kind":"ack","at_ns":1,"order_id":"' + b"o" * MAX_ROW_BYTES + b'"}', "more than 1,048,576 bytes"),
        (b'{"kind":"limits","at_ns":1,"scope":"firm","max_position_value":"x"}', "row 1"),
    ],
)
def test_rows_that_cannot_be_used_are_set_aside_with_why(tmp_path, line, words) -> None:
    path = tmp_path / "orders.jsonl"
    path.write_bytes(line + b"\n" + encode_order_event(ack("good", 1)) + b"\n")
    events, aside = read(path)
    assert [event.order_id for event in events] == ["good"]
    assert [row.row for row in aside] == [1]
    assert words in aside[0].detail


def test_rows_out_of_order_are_set_aside(tmp_path) -> None:
    events, aside = read(write_lines(tmp_path / "orders.jsonl", [ack("a", 2), ack("b", 1), ack("c", 3)]))
    assert [event.order_id for event in events] == ["a", "c"]
    assert "sort the file" in aside[0].detail


def test_a_table_of_another_width_is_set_aside_by_row(tmp_path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("kind,at_ns,order_id\nack,1,a\nack,2\nack,3,c,more\nack,4,d\n")
    events, aside = read(path)
    assert [event.order_id for event in events] == ["a", "d"]
    assert "2 cells in a table of 3 columns" in aside[0].detail


def test_files_that_are_none_are_refused_in_one_line(tmp_path) -> None:
    (tmp_path / "orders.csv").write_text("when,what\n1,2\n")
    (tmp_path / "orders.parquet").write_bytes(b"no table")
    for name, words in (
        ("orders.csv", "no column kind"),
        ("orders.parquet", "is not a Parquet file"),
        ("orders.xlsx", "order files end in .jsonl"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read(tmp_path / name)
    with pytest.raises(DependencyUnavailable, match=r"gone\.jsonl: cannot be read"):
        read(tmp_path / "gone.jsonl")
