"""A run's source on NATS: each message counts once and in order, whatever is killed."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from htfi.adapters.feeds.live import Inbox, RowOrigin
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve
from nats_server import NatsServer

T0_NS = 1_381_132_800 * NS_PER_S
NUM_KILLED = 20
READER = Path(__file__).parents[1] / "feed_reader_process.py"


def row(number: int) -> str:
    return json.dumps({"ts": format_ns(T0_NS + number * NS_PER_S), "symbol": "A", "price": number})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as running:
        running.make_stream("TICKS", "ticks.>")
        yield running


@contextmanager
def feed(folder: Path, url: str, report: list[str] | None = None) -> Iterator[MergedFeed]:
    mapping = folder / "m.toml"
    mapping.write_text(f'[[source]]\nname = "bus"\nurl = "{url}"\n', encoding="utf-8")
    quarantine = QuarantineFile(folder / "q.jsonl", None)
    merged = open_feed(
        resolve([], mapping), inbox=folder / "inbox", quarantine=quarantine, clock=SystemClock(),
        report=(report if report is not None else []).append,
    )  # fmt: skip
    try:
        yield merged
    finally:
        merged.close()
        quarantine.close()


def prices(merged: MergedFeed, count: int = sys.maxsize) -> list[float]:
    found: list[float] = []
    for item in merged:
        if isinstance(item, Trade):
            found.append(item.price)
        if len(found) == count:
            break
    return found


def test_messages_come_in_order_over_a_server_that_is_killed(server: NatsServer, tmp_path: Path) -> None:
    server.send("ticks.A", [row(1).encode(), f"[{row(2)},{row(3)}]".encode(), f"{row(4)}\n{row(5)}".encode()])
    server.send("ticks.B", [b"", row(6).encode()])
    with feed(tmp_path, f"{server.url}/TICKS") as merged:
        assert prices(merged, 6) == [1, 2, 3, 4, 5, 6]
        server.kill()
        server.start()
        server.send("ticks.A", [row(7).encode(), row(8).encode()])
        assert prices(merged, 2) == [7, 8]


@pytest.mark.slow
def test_a_server_that_is_away_for_a_while_is_waited_for(server: NatsServer, tmp_path: Path) -> None:
    server.send("ticks.A", [row(1).encode()])
    report: list[str] = []
    with feed(tmp_path, f"{server.url}/TICKS", report) as merged:
        assert prices(merged, 1) == [1]
        server.kill()
        time.sleep(0.4)
        assert len(report) == 1
        assert report[0].endswith("; trying again")
        server.start()
        server.send("ticks.A", [row(2).encode()])
        assert prices(merged, 1) == [2]
    assert report[1:] == ["source 'bus': the bus is back"]


def test_a_reader_that_is_slower_than_the_bus_gets_all(
    server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk holds the reader up; the server keeps what was not asked for."""
    num = 2_500
    taken: list[int] = []
    append = Inbox.append

    def slow(inbox: Inbox, rows: Sequence[tuple[bytes, int]], origins: Sequence[RowOrigin] = ()) -> None:
        time.sleep(0.03)
        taken.append(len(rows))
        append(inbox, rows, origins)

    monkeypatch.setattr(Inbox, "append", slow)
    server.send("ticks.A", [row(number).encode() for number in range(1, num + 1)])
    with feed(tmp_path, f"{server.url}/TICKS?until=now") as merged:
        assert prices(merged) == list(range(1, num + 1))
    assert sum(taken) == num
    assert max(taken) <= 2 * 1024  # what is under way is bounded: two groups that were asked for


def test_rows_that_are_alike_all_count(server: NatsServer, tmp_path: Path) -> None:
    alike = json.dumps({"symbol": "A", "price": 5}).encode()
    server.send("ticks.A", [alike, alike, b"[" + alike + b"," + alike + b"]"])
    with feed(tmp_path, f"{server.url}/TICKS?until=now") as merged:
        assert prices(merged) == [5, 5, 5, 5]
    assert not (tmp_path / "q.jsonl").read_bytes()


def test_only_the_subject_is_read_and_until_now_ends(server: NatsServer, tmp_path: Path) -> None:
    server.send("ticks.A", [row(1).encode()])
    server.send("ticks.B", [row(2).encode()])
    server.send("ticks.A", [row(3).encode()])
    server.send("ticks.B", [row(4).encode()])
    with feed(tmp_path, f"{server.url}/TICKS?subject=ticks.A&until=now") as merged:
        assert prices(merged) == [1, 3]


def test_of_a_message_that_was_half_written_the_rest_is_taken(server: NatsServer, tmp_path: Path) -> None:
    server.send("ticks.A", [row(1).encode(), f"[{row(2)},{row(3)},{row(4)}]".encode(), row(5).encode()])
    url = f"{server.url}/TICKS?until=now"
    with feed(tmp_path, url) as merged:
        assert prices(merged) == [1, 2, 3, 4, 5]
    inbox = tmp_path / "inbox" / "bus.jsonl"
    lines = inbox.read_bytes().splitlines(keepends=True)
    inbox.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    with feed(tmp_path, url) as merged:
        assert prices(merged) == [1, 2, 3, 4, 5]
    again = [json.loads(line) for line in inbox.read_bytes().splitlines()]
    assert [(one["place"], one.get("before", 0), one.get("more", 0)) for one in again] == [
        (1, 0, 0), (2, 0, 2), (2, 1, 1), (2, 2, 0), (3, 0, 0),
    ]  # fmt: skip


def test_a_stream_that_was_made_anew_is_refused(server: NatsServer, tmp_path: Path) -> None:
    server.send("ticks.A", [row(1).encode(), row(2).encode()])
    with feed(tmp_path, f"{server.url}/TICKS?until=now") as merged:
        assert prices(merged) == [1, 2]
    server.run(lambda js: js.delete_stream("TICKS"))
    server.make_stream("TICKS", "ticks.>")
    with feed(tmp_path, f"{server.url}/TICKS") as merged, pytest.raises(IntegrityError, match="made anew"):
        prices(merged)


def test_a_stream_that_is_not_there_is_named(server: NatsServer, tmp_path: Path) -> None:
    with feed(tmp_path, f"{server.url}/OTHER") as merged, pytest.raises(InvalidInput, match="no such stream"):
        prices(merged)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nats://me:hidden@localhost/TICKS", "no user or password"),
        ("nats://localhost", "names no stream"),
        ("nats://localhost/a.b", "names no stream"),
        ("nats://localhost/TICKS?topic=x", "topic is not known"),
        ("nats://localhost/TICKS?from=then", "from=all or from=new"),
        ("nats://localhost:x/TICKS", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_its_secret(url: str, words: str) -> None:
    with pytest.raises(HtfiError, match=words) as caught:
        resolve([url])
    assert "hidden" not in str(caught.value)


@pytest.mark.slow
def test_no_message_is_lost_or_taken_twice_over_kills_of_reader_and_server(
    server: NatsServer, tmp_path: Path
) -> None:
    seed = 7
    rng = random.Random(seed)
    num, sent, num_killed = 12_000, 0, 0
    url = f"{server.url}/TICKS"
    command = [sys.executable, str(READER), str(tmp_path), url, str(num)]
    while sent < num or num_killed < NUM_KILLED:
        child = subprocess.Popen(command)
        server.send("ticks.A", [row(number).encode() for number in range(sent + 1, min(sent + 600, num) + 1)])
        sent = min(sent + 600, num)
        time.sleep(rng.uniform(0.4, 1.2))
        if rng.random() < 0.3:
            server.kill()
            server.start()
        child.send_signal(signal.SIGKILL)
        num_killed += child.wait() == -signal.SIGKILL or num_killed >= NUM_KILLED
        if child.returncode == 0:
            break
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    found = json.loads((tmp_path / "state.json").read_text())["prices"]
    assert found == [float(number) for number in range(1, num + 1)], f"seed {seed}"
