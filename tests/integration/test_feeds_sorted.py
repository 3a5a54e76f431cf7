"""Files whose symbols stand one below the other, and files in any order, come out in order of time."""

import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htfi.adapters.feeds import spool
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import Bar, FeedItem, News, Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.wiring.feeds import open_feed, resolve

T0_NS = 1_381_132_800 * NS_PER_S


def read(folder: Path, path: Path, **defaults: str) -> tuple[list[FeedItem], list[str]]:
    quarantine = QuarantineFile(folder / "q.jsonl")
    feed = open_feed(
        resolve([str(path)], **defaults), inbox=folder / "inbox", quarantine=quarantine, clock=SystemClock()
    )
    items = list(feed)
    feed.close()
    quarantine.close()
    return items, (folder / "q.jsonl").read_text().splitlines()


@pytest.mark.parametrize(
    "num_days", [5, 5000]
)  # within the rows that are looked at first, and far beyond them
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_stacked_by_symbol_is_sorted(tmp_path: Path, form: str, num_days: int) -> None:
    days = [date.fromordinal(date(1990, 1, 1).toordinal() + day).isoformat() for day in range(num_days)]
    table = [(day, symbol, place + 1.0) for symbol in ("A", "B", "C") for place, day in enumerate(days)]
    path = tmp_path / f"panel.{form}"
    if form == "csv":
        path.write_text(
            "date,symbol,close\n" + "".join(f"{d},{s},{c}\n" for d, s, c in table), encoding="utf-8"
        )
    elif form == "jsonl":
        rows = (f'{{"date":"{d}","symbol":"{s}","close":{c}}}\n' for d, s, c in table)
        path.write_text("".join(rows), encoding="utf-8")
    else:
        columns = dict(zip(("date", "symbol", "close"), map(list, zip(*table, strict=True)), strict=True))
        pq.write_table(pa.table(columns), path)
    items, refused = read(tmp_path, path)
    assert [(item.symbol, item.close) for item in items if isinstance(item, Bar)] == [
        (symbol, place + 1.0) for place in range(num_days) for symbol in ("A", "B", "C")
    ]
    assert [item.row for item in items if isinstance(item, Bar)] == list(range(1, 3 * num_days + 1))
    assert refused == []


def test_a_bar_file_with_single_late_rows_is_not_taken_for_stacked(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("date,symbol,close\n2013-10-07,A,1\n2013-10-09,A,1\n2013-10-08,A,1\n", encoding="utf-8")
    items, refused = read(tmp_path, path)
    assert (len(items), len(refused)) == (2, 1)
    assert '"late"' in refused[0]


def test_a_stated_order_sorts_anything_through_runs_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_RUN_ROWS", 50)
    numbers = random.Random(7).sample(range(1000), 1000)
    lines = [
        f'{{"ts":"{format_ns(T0_NS + n * NS_PER_S)}","price":{n + 1},"note":"{"x" * 300}"}}' for n in numbers
    ]
    lines[10:10] = ["junk", '{"ts":"2013-10-07T08:00:00Z","headline":"h","symbols":"A B"}']
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    items, refused = read(tmp_path, path, order="sort")
    assert [item.price for item in items if isinstance(item, Trade)] == [float(n + 1) for n in range(1000)]
    assert [item.symbols for item in items if isinstance(item, News)] == [("A", "B")]
    (line,) = refused
    assert "(row 11 of the file)" in line
    assert list((tmp_path / "inbox").iterdir()) == []  # nothing is left once it is read


@pytest.mark.parametrize("place", [0.0, 0.3, 0.9, 0.999])
def test_a_spool_with_a_bit_flipped_is_sorted_again(tmp_path: Path, place: float) -> None:
    numbers = random.Random(9).sample(range(9000), 9000)
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(f'{{"ts":"{format_ns(T0_NS + n * NS_PER_S)}","price":{n + 1}}}\n' for n in numbers),
        encoding="utf-8",
    )
    specs = resolve([str(path)], order="sort")
    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    feed = open_feed(specs, inbox=tmp_path / "inbox", quarantine=quarantine, clock=SystemClock())
    first = [item for _, item in zip(range(5000), feed, strict=False)]
    position = feed.position()
    feed.close()
    sorted_rows = tmp_path / "inbox" / "t.sorted"
    content = bytearray(sorted_rows.read_bytes())
    content[int(place * len(content))] ^= 4
    sorted_rows.write_bytes(content)
    feed = open_feed(
        specs, inbox=tmp_path / "inbox", quarantine=quarantine, clock=SystemClock(), position=position
    )
    items = [*first, *feed]
    feed.close()
    quarantine.close()
    assert [item.price for item in items if isinstance(item, Trade)] == [float(n + 1) for n in range(9000)]
