"""A run's source on Kafka: each message counts once and each partition in its order, whatever is killed."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve
from kafka_broker import KafkaBroker

T0_NS = 1_381_132_800 * NS_PER_S
NUM_KILLED = 12
READER = Path(__file__).parents[1] / "feed_reader_process.py"


def row(number: int) -> bytes:
    return json.dumps({"ts": format_ns(T0_NS + number * NS_PER_S), "symbol": "A", "price": number}).encode()


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
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


def places(folder: Path) -> list[tuple[int, int, int, int]]:
    """Partition, offset, rows before and after in the message of each row of the inbox."""
    rows = [json.loads(line) for line in (folder / "inbox" / "bus.jsonl").read_bytes().splitlines()]
    return [(one.get("partition", 0), one["place"], one.get("before", 0), one.get("more", 0)) for one in rows]


def test_each_partition_comes_in_its_order_and_until_now_ends(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.make_topic("three", 3)
    for partition in range(3):
        broker.send("three", [row(10 * partition + number) for number in range(1, 6)], partition)
    with feed(tmp_path, f"{broker.url}/three?until=now") as merged:
        found = prices(merged)
    for partition in range(3):
        mine = [price for price in found if price // 10 == partition]
        assert mine == [10 * partition + number for number in range(1, 6)]
    assert sorted(places(tmp_path)) == [(partition, at, 0, 0) for partition in range(3) for at in range(5)]


def test_a_restart_goes_on_behind_the_newest_offset_of_each_partition(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    broker.make_topic("again", 2)
    for partition in range(2):
        broker.send("again", [row(1 + partition), row(3 + partition)], partition)
    with feed(tmp_path, f"{broker.url}/again?until=now") as merged:
        assert sorted(prices(merged)) == [1, 2, 3, 4]
    broker.send("again", [row(5)], 1)
    with feed(tmp_path, f"{broker.url}/again?until=now") as merged:
        assert sorted(prices(merged)) == [1, 2, 3, 4, 5]
    assert sorted(places(tmp_path)) == [(0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0), (1, 2, 0, 0)]


def test_of_a_message_that_was_half_written_the_rest_is_taken(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.make_topic("half")
    three = b"[" + b",".join([row(2), row(3), row(4)]) + b"]"
    broker.send("half", [row(1), three, b"", row(5)])
    url = f"{broker.url}/half?until=now"
    with feed(tmp_path, url) as merged:
        assert prices(merged) == [1, 2, 3, 4, 5]
    inbox = tmp_path / "inbox" / "bus.jsonl"
    lines = inbox.read_bytes().splitlines(keepends=True)
    inbox.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    with feed(tmp_path, url) as merged:
        assert prices(merged) == [1, 2, 3, 4, 5]
    assert places(tmp_path) == [(0, 0, 0, 0), (0, 1, 0, 2), (0, 1, 1, 1), (0, 1, 2, 0), (0, 3, 0, 0)]


def test_from_new_takes_only_what_comes(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.make_topic("new")
    broker.send("new", [row(1)])
    with feed(tmp_path, f"{broker.url}/new?from=new") as merged:
        sending = threading.Timer(1.0, broker.send, args=("new", [row(2)]))
        sending.start()
        assert prices(merged, 1) == [2]
        sending.join()


def test_a_topic_that_was_made_anew_is_refused(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.make_topic("anew")
    broker.send("anew", [row(1), row(2)])
    with feed(tmp_path, f"{broker.url}/anew?until=now") as merged:
        assert prices(merged) == [1, 2]
    broker.admin(lambda admin: admin.delete_topics(["anew"]))
    broker.make_topic("anew")
    with feed(tmp_path, f"{broker.url}/anew") as merged, pytest.raises(IntegrityError, match="made anew"):
        prices(merged)


def test_a_topic_that_is_not_there_is_named_and_not_made(broker: KafkaBroker, tmp_path: Path) -> None:
    with feed(tmp_path, f"{broker.url}/other") as merged, pytest.raises(InvalidInput, match="no such topic"):
        prices(merged)
    assert "other" not in broker.topics()


def test_a_broker_that_is_away_for_a_while_loses_nothing(broker: KafkaBroker, tmp_path: Path) -> None:
    broker.make_topic("away")
    broker.send("away", [row(1)])
    report: list[str] = []
    with feed(tmp_path, f"{broker.url}/away", report) as merged:
        assert prices(merged, 1) == [1]
        broker.pause()
        try:
            time.sleep(1.0)
        finally:
            broker.go_on()
        broker.send("away", [row(2)])
        assert prices(merged, 1) == [2]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("kafka://me:hidden@localhost/T", "no user or password"),
        ("kafka://localhost", "names no topic"),
        ("kafka://localhost/a%20b", "names no topic"),
        ("kafka://localhost/T?subject=x", "subject is not known"),
        ("kafka://localhost/T?from=then", "from=all or from=new"),
        ("kafka://localhost:x/T", "cannot be read"),
        ("kafka://localhost/T?stamp=then", "stamp"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_its_secret(url: str, words: str) -> None:
    with pytest.raises(HtfiError, match=words) as caught:
        resolve([url])
    assert "hidden" not in str(caught.value)


@pytest.mark.slow
def test_no_message_is_lost_or_taken_twice_over_kills_of_the_reader(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    seed = 7
    rng = random.Random(seed)
    num, sent, num_killed = 6_000, 0, 0
    broker.make_topic("killed", 2)
    command = [sys.executable, str(READER), str(tmp_path), f"{broker.url}/killed", str(num)]
    while sent < num or num_killed < NUM_KILLED:
        child = subprocess.Popen(command)
        for partition in range(2):
            numbers = range(sent + 1, min(sent + 500, num) + 1)
            broker.send("killed", [row(one) for one in numbers if one % 2 == partition], partition)
        sent = min(sent + 500, num)
        time.sleep(rng.uniform(0.5, 1.5))
        child.send_signal(signal.SIGKILL)
        num_killed += child.wait() == -signal.SIGKILL or num_killed >= NUM_KILLED
        if child.returncode == 0:
            break
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    found = json.loads((tmp_path / "state.json").read_text())["prices"]
    assert sorted(found) == [float(number) for number in range(1, num + 1)], f"seed {seed}"
    for partition in range(2):
        mine = [price for price in found if price % 2 == partition]
        assert mine == sorted(mine), f"seed {seed}"
