"""Files as they come in life: empty, cut, misnamed, in several zones, with marks and quotes where none belong."""

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.events import FeedItem, Trade
from htfi.domain.time import SystemClock, format_ns
from htfi.wiring.feeds import open_feed, resolve

GOOD = '{"ts":"2013-10-07T14:00:00Z","symbol":"A","price":1}\n'


def read(*paths: Path, mapping: Path | None = None, **defaults: str) -> tuple[list[FeedItem], dict[str, int]]:
    folder = paths[0].parent if paths else mapping.parent if mapping else Path()
    quarantine = QuarantineFile(folder / "quarantine.out")
    specs = resolve([str(path) for path in paths], mapping, **defaults)
    feed = open_feed(specs, inbox=folder / "inbox", quarantine=quarantine, clock=SystemClock())
    try:
        return list(feed), quarantine.counts()
    finally:
        feed.close()
        quarantine.close()


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.jsonl.gz"])
def test_an_empty_file_has_no_events(tmp_path: Path, name: str) -> None:
    assert read(file(tmp_path, name, b"")) == ([], {})


def test_a_header_alone_has_no_events(tmp_path: Path) -> None:
    assert read(file(tmp_path, "h.csv", "date,close\n")) == ([], {})


def test_a_parquet_file_without_rows_has_no_events(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([], pa.timestamp("ms", "UTC")), "price": pa.array([], pa.float64())}), tmp_path / "e.parquet")  # fmt: skip # noqa: E501
    assert read(tmp_path / "e.parquet") == ([], {})


def parquet_bytes(tmp_path: Path, num_rows: int = 20_000) -> bytes:
    stamps = pa.array(range(num_rows), pa.int64()).cast(pa.timestamp("ms", "UTC"))
    prices = pa.array([1.0 + row * 1e-9 for row in range(num_rows)])
    pq.write_table(pa.table({"ts": stamps, "price": prices}), tmp_path / "whole.parquet", row_group_size=5000)
    return (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("kept", [0, 3, 100, 0.5, -1])
def test_a_truncated_parquet_is_one_line_that_names_it(tmp_path: Path, kept: float) -> None:
    data = parquet_bytes(tmp_path)
    cut = data[: int(len(data) * kept)] if isinstance(kept, float) else data[:kept]
    with pytest.raises(
        InvalidInput, match=r"cut\.parquet is not a whole Parquet file \(.*\): fetch it again"
    ) as caught:
        read(file(tmp_path, "cut.parquet", cut))
    assert "\n" not in str(caught.value)


def test_a_parquet_damaged_inside_is_one_line_that_says_where(tmp_path: Path) -> None:
    data = bytearray(parquet_bytes(tmp_path))
    column = pq.ParquetFile(tmp_path / "whole.parquet").metadata.row_group(2).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    with pytest.raises(InvalidInput, match=r"bad\.parquet: damaged after row \d+ \(.*\): fetch it again"):
        read(file(tmp_path, "bad.parquet", bytes(data)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "x.csv",
            "date,foo\n2013-10-07,calm\n",
            r"x\.csv: columns date, foo fit no kind of event: state kind",
        ),
        ("x.csv", "price,size\n1,1\n", r"x\.csv: a trade needs ts; its columns are price, size"),
        ("x.csv", "ts,price,price\n", r"x\.csv: two columns are named 'price'"),
        ("x.csv", 'ts,"price\n', r"x\.csv: the header cannot be read"),
        ("x.csv", b"\xff\xfet\x00s\x00\x00", r"x\.csv: not UTF-16 at byte 6: save it as UTF-8"),
        (
            "x.xls",
            "",
            r"x\.xls: its name does not show its format: it must end in \.parquet, \.csv or \.jsonl",
        ),
        ("x.jsonl.gz", b"no gzip at all", r"x\.jsonl\.gz: damaged or cut short \(.*\): fetch it again"),
        ("x.jsonl.gz", gzip.compress(GOOD.encode(), mtime=0)[:-9], r"x\.jsonl\.gz: damaged or cut short"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(HtfiError, match=said) as caught:
        read(file(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_paths_that_lead_nowhere_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.csv does not exist: check the path"):
        read(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInput, match=r"folder\.csv is a folder: check the path"):
        read(tmp_path / "folder.csv")
    with pytest.raises(InvalidInput, match="no source: name a file"):
        resolve([])


def test_an_inbox_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    quarantine = QuarantineFile(tmp_path / "q")
    occupied = file(tmp_path, "inbox", "a file, no folder")
    with pytest.raises(
        DependencyUnavailable, match=r"inbox .*: free some disk space or choose another folder"
    ):
        open_feed(resolve(["-"]), inbox=occupied, quarantine=quarantine, clock=SystemClock())
    quarantine.close()


def test_several_zones_in_one_file_are_one_time(tmp_path: Path) -> None:
    stamps = [
        "2013-10-07T10:00:00-04:00",
        "2013-10-07T14:00:00.5Z",
        "2013-10-07T23:00:01+09:00",
        "2013-10-07T14:00:02",
    ]
    rows = "".join(GOOD.replace("2013-10-07T14:00:00Z", stamp) for stamp in stamps)
    events, counts = read(file(tmp_path, "z.jsonl", rows))
    assert [format_ns(event.available_at_ns)[11:] for event in events] == [
        "14:00:00Z",
        "14:00:00.500Z",
        "14:00:01Z",
    ]
    assert counts == {"no_zone": 1}
    events, counts = read(tmp_path / "z.jsonl", zone="UTC")
    assert (len(events), counts) == (4, {})


def test_marks_carriage_returns_and_quotes_are_read_through(tmp_path: Path) -> None:
    head = b"\xef\xbb\xbf" + b'ts;symbol;price;"note"\r\n'
    rows = b'2013-10-07T14:00:00Z;A;1;"two\nlines; ""quoted"""\r\n\r\n2013-10-07T14:00:01Z;A;2;\r\n'
    file(tmp_path, "m.csv", head + rows)
    mapping = file(tmp_path, "m.toml", '[[source]]\npath = "m.csv"\nmultiline = true\n')
    events, counts = read(mapping=mapping)
    assert [(event.row, event.price) for event in events if isinstance(event, Trade)] == [(1, 1.0), (2, 2.0)]
    assert counts == {}


def test_every_kind_of_broken_line_is_set_aside_under_its_number(tmp_path: Path) -> None:
    lines = [
        GOOD.encode().strip(), b"{", b"[1]", b'"text"', b'{"ts":"\xff"}', b"\xff\xfe", b"[" * 100_000,
        b'{"ts":"' + b"x" * 1_000_001 + b'"}', GOOD.replace(":00Z", ":01Z").encode().strip(),
    ]  # fmt: skip
    events, counts = read(file(tmp_path, "b.jsonl", b"\n".join(lines)))
    assert [event.row for event in events if isinstance(event, Trade)] == [1, 9]
    assert counts == {"bad_encoding": 2, "malformed": 4, "too_long": 1}
    kept = [json.loads(line) for line in (tmp_path / "quarantine.out").read_text().splitlines()]
    assert [entry["row"] for entry in kept] == [2, 3, 4, 5, 6, 7, 8]
    assert all(entry["detail"] for entry in kept)
    for entry in kept:
        line = lines[entry["row"] - 1]
        if "sha256" in entry:
            assert (entry["num_bytes"], entry["sha256"]) == (len(line), sha256(line).hexdigest())
        else:
            assert entry["raw"].encode() == line


def test_broken_csv_rows_are_set_aside(tmp_path: Path) -> None:
    rows = "ts,price\n2013-10-07T14:00:00Z,1\n2013-10-07T14:00:01Z\n2013-10-07T14:00:02Z,1,2\nx,1\n,\n"
    events, counts = read(file(tmp_path, "b.csv", rows))
    assert len(events) == 1
    assert counts == {"malformed": 2, "bad_time": 1, "missing_field": 1}


def test_a_lone_surrogate_does_not_reach_an_event(tmp_path: Path) -> None:
    row = '{"ts":"2013-10-07T14:00:00Z","headline":"a\\ud800b"}\n'
    events, counts = read(file(tmp_path, "s.jsonl", row))
    assert len(events) + sum(counts.values()) == 1
    assert all(json.dumps(str(event)).encode() for event in events)


def test_rows_of_several_kinds_share_a_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "trade", "ts": "2013-10-07T14:00:00Z", "price": 1},
        {"kind": "quote", "ts": "2013-10-07T14:00:01Z", "side": "b", "price": 1},
        {"kind": "news", "ts": "2013-10-07T14:00:02Z", "headline": "x"},
        {"kind": "macro", "ts": "2013-10-07T14:00:03Z", "series": "VIX", "value": 1},
        {"kind": "bar", "ts": "2013-10-07T14:00:04Z", "close": 1, "interval": "1s"},
    ]
    events, counts = read(file(tmp_path, "mixed.jsonl", "\n".join(map(json.dumps, rows))))
    assert [type(event).__name__ for event in events] == [
        "Trade",
        "Quote",
        "News",
        "MacroAnnouncement",
        "Bar",
    ]
    assert counts == {}


def test_two_files_of_one_name_stay_two_sources(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = file(tmp_path, "t.jsonl", GOOD), file(tmp_path / "a", "t.jsonl", GOOD)
    events, counts = read(first, second)
    assert [event.source for event in events if isinstance(event, Trade)] == ["t", "t-2"]
    assert counts == {}


def test_a_mapped_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    file(tmp_path, "t.csv", "ts,price\n")
    mapping = file(tmp_path, "m.toml", '[[source]]\npath="t.csv"\n[source.columns]\nprice="px"\n')
    with pytest.raises(
        InvalidInput, match=re.escape("t.csv: no column 'px' for price: its columns are ts, price")
    ):
        read(mapping=mapping)
