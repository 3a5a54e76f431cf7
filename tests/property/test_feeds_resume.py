"""A feed stopped after any item and opened again hands out the rest, and fills the quarantine to the same bytes."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.feeds import records as framing
from htfi.adapters.feeds import text_files as text
from htfi.adapters.feeds.parquet import reader as parquet
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import FeedItem
from htfi.domain.time import SystemClock, format_ns
from htfi.pipeline.intake import source
from htfi.wiring import feeds
from htfi.wiring.feeds import open_feed, resolve

SOME_TIME_NS = 1_381_132_800_000_000_000
FORMATS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")

rows = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 0, 1, 2, -1, -6, 9, 20, 700, -700]).map(
            lambda tenths: tenths * 100_000_000
        ),
        st.sampled_from(["A", "B"]),
        st.sampled_from([1.0, 1.0, 2.5, -1.0]),
        st.integers(0, 1),
    ),
    max_size=60,
)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, windows and strides of a few rows, so that short files cross all of their edges."""
    monkeypatch.setattr(feeds, "_BLOCK_ROWS", (3, 3))
    monkeypatch.setattr(source, "IDENTITY_WINDOW_ROWS", 8)
    monkeypatch.setattr(source, "_ANCHOR_STRIDE_ROWS", 2)
    monkeypatch.setattr(framing, "CHUNK_BYTES", 150)
    monkeypatch.setattr(text, "CHUNK_BYTES", 150)
    monkeypatch.setattr(parquet, "_NEWS_ROWS", 3)


def write(path: Path, steps: Sequence[tuple[int, str, float, int]], *, bars: bool) -> None:
    """Trades; or bars, of which some have an open outside of high and low."""
    table: list[dict[str, Any]] = []
    now_ns = SOME_TIME_NS
    for step_ns, symbol, price, size in steps:
        now_ns += step_ns
        row: dict[str, Any] = {"ts": format_ns(now_ns), "symbol": symbol}
        if bars:
            opened = price * (1.0 + 0.05 * size)
            row |= {"open": opened, "high": price, "low": price, "close": price, "interval": "100ms"}
        else:
            row |= {"price": price, "size": size}
        table.append(row)
    columns = ("ts", "symbol", *(("open", "high", "low", "close", "interval") if bars else ("price", "size")))
    if path.suffix == ".parquet":
        pq.write_table(
            pa.table({name: [row[name] for row in table] for name in columns}), path, row_group_size=7
        )
        return
    if ".csv" in path.name:
        lines = [",".join(columns), *(",".join(str(row[name]) for name in columns) for row in table)]
    else:
        lines = [json.dumps(row) for row in table]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def run(
    folder: Path, paths: list[str], num_items: int | None, saved: dict[str, Any] | None, order: str
) -> tuple[list[FeedItem], dict[str, Any]]:
    """Up to `num_items` items, and the position after them as a saved state would hold it."""
    quarantine = QuarantineFile(folder / "quarantine.jsonl", saved["quarantine"] if saved else None)
    feed = open_feed(
        resolve(paths, order=order),
        inbox=folder / "inbox",
        quarantine=quarantine,
        clock=SystemClock(),
        position=saved["feed"] if saved else None,
    )
    items: list[FeedItem] = []
    if num_items != 0:
        for item in feed:
            items.append(item)
            if len(items) == num_items:
                break
    position = {"feed": feed.position(), "quarantine": quarantine.position()}
    feed.close()
    quarantine.close()
    return items, msgspec.json.decode(msgspec.json.encode(position))


@pytest.mark.parametrize("order", ["time", "sort"])
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(first=rows, second=rows, forms=st.tuples(*[st.sampled_from(FORMATS)] * 2), data=st.data())
def test_any_stop_resumes_to_the_same_items_and_quarantine(
    tmp_path_factory: pytest.TempPathFactory,
    order: str,
    first: list[Any],
    second: list[Any],
    forms: tuple[str, str],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("resume")
    paths = [str(folder / f"first.{forms[0]}"), str(folder / f"second.{forms[1]}")]
    write(Path(paths[0]), first, bars=data.draw(st.booleans()))
    write(Path(paths[1]), second, bars=data.draw(st.booleans()))
    (folder / "whole").mkdir()
    (folder / "parts").mkdir()
    expected, _ = run(folder / "whole", paths, None, None, order)

    items: list[FeedItem] = []
    saved: dict[str, Any] | None = None
    for _ in range(3):
        some, saved = run(folder / "parts", paths, data.draw(st.integers(0, 25)), saved, order)
        items += some
        # what happens after the save and before the crash is done again
        run(folder / "parts", paths, data.draw(st.integers(0, 15)), saved, order)
    rest, _ = run(folder / "parts", paths, None, saved, order)

    assert items + rest == expected
    whole = (folder / "whole" / "quarantine.jsonl").read_bytes()
    assert (folder / "parts" / "quarantine.jsonl").read_bytes() == whole
    num_repaired = whole.count(b'"reason":"repaired"')
    assert len(expected) + whole.count(b"\n") - num_repaired == len(first) + len(second)
