"""An item of 50 MB is refused by its size, whatever it comes in, and what stands around it is used."""

import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import News
from htfi.domain.time import SystemClock
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS
from htfi.wiring.feeds import open_feed, resolve
from web_feed import set_aside

BIG = "a" * 50_000_000
ROWS = [
    ("2024-01-01T00:00:00Z", "First", "x"),
    ("2024-01-01T00:00:01Z", "Big", BIG),
    ("2024-01-02T00:00:00Z", "Last", "y"),
]


def jsonl(path: Path) -> None:
    path.write_text(
        "".join(f'{{"ts":"{ts}","headline":"{head}","body":"{body}"}}\n' for ts, head, body in ROWS)
    )


def csv(path: Path) -> None:
    path.write_text("ts,headline,body\n" + "".join(f'{ts},{head},"{body}"\n' for ts, head, body in ROWS))


def parquet(path: Path) -> None:
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    pq.write_table(pa.table(dict(zip(("ts", "headline", "body"), columns, strict=True))), path)


@pytest.mark.parametrize(("name", "write"), [("n.jsonl", jsonl), ("n.csv", csv), ("n.parquet", parquet)])
def test_a_row_of_50_mb_in_a_file_is_refused_by_size(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    feed = open_feed(
        resolve([str(tmp_path / name)]), inbox=tmp_path, quarantine=quarantine, clock=SystemClock()
    )
    assert [item.headline for item in feed if isinstance(item, News)] == ["First", "Last"]
    feed.close()
    quarantine.close()
    rows = set_aside(tmp_path)
    assert [(row["row"], row["reason"]) for row in rows] == [(2, "too_long")]
    assert rows[0]["detail"].startswith("500000")
    kept = (tmp_path / name).read_bytes()
    assert rows[0]["num_bytes"] == int(rows[0]["detail"].split()[0])
    assert 300 < len(rows[0]["raw"]) <= MAX_RAW_CHARS
    if name != "n.parquet":  # a row of which has no bytes of its own
        assert rows[0]["sha256"] == sha256(kept.split(b"\n")[-3]).hexdigest()


def test_a_cell_of_half_a_megabyte_is_read_from_a_csv(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('ts,headline,body\n2024-01-01T00:00:00Z,Long,"' + "a, " * 160_000 + '"\n')
    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    feed = open_feed(
        resolve([str(tmp_path / "n.csv")]), inbox=tmp_path, quarantine=quarantine, clock=SystemClock()
    )
    assert [len(item.body) for item in feed if isinstance(item, News)] == [479_999]
    feed.close()
    quarantine.close()


BOMB = """
import sys, resource
from hashlib import sha256
from pathlib import Path
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.time import SystemClock
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS
from htfi.wiring.feeds import open_feed, resolve
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))
quarantine = QuarantineFile(folder / "q.jsonl")
feed = open_feed(resolve([str(folder / "n.parquet")]), inbox=folder, quarantine=quarantine, clock=SystemClock())
assert sum(1 for _ in feed) == 1
quarantine.close()
"""


@pytest.mark.slow
def test_a_cell_of_50_mb_that_a_parquet_file_repeats_a_thousand_times_is_held_once(tmp_path: Path) -> None:
    body = pa.DictionaryArray.from_arrays(pa.array([0] * 1000 + [1], pa.int32()), pa.array([BIG, "short"]))
    stamps = pa.array(["2024-01-01T00:00:00Z"] * 1001)
    heads = pa.array([f"Story {number}" for number in range(1001)])
    table = pa.table({"ts": stamps, "headline": heads, "body": body})
    pq.write_table(
        table, tmp_path / "n.parquet", compression="zstd", store_schema=False, write_statistics=False
    )
    subprocess.run([sys.executable, "-c", BOMB, str(tmp_path)], check=True, timeout=60)
    assert {row["reason"] for row in set_aside(tmp_path)} == {"too_long"}
    assert len(set_aside(tmp_path)) == 1000


def test_a_websocket_message_of_50_mb_is_refused_and_the_next_connection_goes_on(tmp_path: Path) -> None:
    connections: list[int] = []

    def speak(connection: ServerConnection) -> None:
        connections.append(1)
        try:
            if len(connections) == 1:
                connection.send('{"ts":"2024-01-01T00:00:00Z","headline":"First"}')
                connection.send(BIG)
            else:
                connection.send('{"ts":"2024-01-02T00:00:00Z","headline":"Last"}')
            connection.recv()
        except ConnectionClosed:
            return

    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    with serve(speak, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        feed = open_feed(resolve([url]), inbox=tmp_path / "inbox", quarantine=quarantine, clock=SystemClock())
        found: list[str] = []
        for item in feed:
            if isinstance(item, News):
                found.append(item.headline)
            if len(found) == 2:
                break
        feed.close()
        server.shutdown()
        thread.join()
    quarantine.close()
    assert found == ["First", "Last"]
    assert [row["reason"] for row in set_aside(tmp_path)] == ["too_long"]
