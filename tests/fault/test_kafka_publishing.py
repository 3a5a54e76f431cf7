"""`htfi publish` on Kafka: a partition holds each entry of the ledger in its order, whatever is killed."""

import asyncio
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

import forked
from htfi.domain.errors import InvalidInput
from htfi.pipeline.publishing import PublishedLine
from htfi.wiring.bus import open_decision_bus
from htfi.wiring.service.publishing import publish_record
from kafka_broker import KafkaBroker, read_all

LINES = [PublishedLine(at, f"{at:064x}", "A", "1d", "released", b'{"n":%d}' % at) for at in range(40)]
PLAIN = "transactions=no"  # Tansu gives none


def htfi(*words: object) -> list[str]:
    return [*forked.HTFI, *map(str, words)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that has ended."""
    folder = tmp_path_factory.mktemp("run")
    rng = random.Random(1)
    bars = ["date,symbol,close"]
    bars += [f"2024-{at // 28 + 1:02d}-{at % 28 + 1:02d},ACME,{100 + rng.random():.3f}" for at in range(120)]
    (folder / "prices.csv").write_text("\n".join(bars) + "\n")
    command = htfi("run", folder / "prices.csv", "--out", folder / "out", "--plain", "--outputs", "jsonl")
    forked.run(command, check=True, capture_output=True)
    return folder / "out"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


def publish(run: Path, url: str) -> tuple[int, list[str]]:
    """How many entries the bus holds, and the lines for a person."""
    lines: list[str] = []
    bus = open_decision_bus(url)
    num = publish_record(run, bus, stays=False, stopping=threading.Event(), notify=lines.append)
    return num, lines


def published(broker: KafkaBroker, topic: str) -> bytes:
    return b"".join(one.value + b"\n" for one in broker.records(topic))


def test_each_entry_is_published_once_with_its_place(run: Path, broker: KafkaBroker) -> None:
    whole = (run / "decisions.jsonl").read_bytes()
    num = whole.count(b"\n")
    for _ in range(2):
        assert publish(run, f"{broker.url}/once?{PLAIN}") == (num, [])
    assert published(broker, "once") == whole
    records = broker.records("once")
    assert [dict(one.headers)["Htfi-Index"] for one in records] == [b"%d" % at for at in range(num)]
    assert {one.key for one in records} == {b"ACME/1d"}
    assert {one.partition for one in records} == {0}


def test_a_topic_of_another_ledger_is_refused(run: Path, broker: KafkaBroker) -> None:
    broker.make_topic("foreign")
    broker.send("foreign", [b"something else"])
    with pytest.raises(InvalidInput, match="something else than this ledger"):
        publish(run, f"{broker.url}/foreign?{PLAIN}")


def test_what_comes_between_is_found(broker: KafkaBroker) -> None:
    bus = open_decision_bus(f"{broker.url}/between?{PLAIN}")
    assert bus.open("log") == 0
    bus.publish(LINES[:3])
    broker.send("between", [b"something else"])
    with pytest.raises(Exception, match="something else was published into it"):
        bus.publish(LINES[3:5])
    bus.close()


def test_a_broker_without_transactions_is_named(broker: KafkaBroker) -> None:
    bus = open_decision_bus(f"{broker.url}/transactional")
    with pytest.raises(InvalidInput, match=r"gives no transaction .*\?transactions=no"):
        bus.open("log")
    bus.close()


def test_a_partition_may_be_chosen(broker: KafkaBroker) -> None:
    broker.make_topic("shared", 2)
    for partition in range(2):
        bus = open_decision_bus(f"{broker.url}/shared?partition={partition}&{PLAIN}")
        assert bus.open(f"log{partition}") == 0
        bus.publish(LINES[: partition + 1])
        bus.close()
    assert [len(broker.records("shared", partition)) for partition in range(2)] == [1, 2]
    bus = open_decision_bus(f"{broker.url}/shared?partition=2&{PLAIN}")
    with pytest.raises(InvalidInput, match="has 2 partitions"):
        bus.open("log2")
    bus.close()


def test_a_line_that_no_message_holds_leaves_a_notice_in_its_place(broker: KafkaBroker) -> None:
    long = PublishedLine(0, "ab", "A", "1d", "released", b"x" * 1_000_001)
    bus = open_decision_bus(f"{broker.url}/long?{PLAIN}")
    bus.open("log")
    bus.publish([long])
    bus.close()
    assert published(broker, "long") == b'{"index":0,"leaf_hash":"ab","too_large":1000001}\n'


def test_transactions_leave_marks_that_are_read_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client library's own mock of a cluster commits transactions; it does not shut an older producer out."""
    confluent = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
    cluster = confluent.Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0})
    found = next(iter(cluster.list_topics(topic="marks", timeout=5).brokers.values()))
    server = f"{found.host}:{found.port}"
    without = partial(
        AIOKafkaConsumer, check_crcs=False
    )  # the mock leaves a batch's as it came, its offset aside
    monkeypatch.setattr("htfi.adapters.kafka.clients.AIOKafkaConsumer", without)
    held = 0
    for end in (1, 7, 40):
        bus = open_decision_bus(f"kafka://{server}/marks")
        assert bus.open("log") == held
        for at in range(held, end, 3):
            bus.publish(LINES[at : min(at + 3, end)])
        bus.close()
        held = end
    records = asyncio.run(read_all(server, "marks", check_crcs=False))
    assert [one.value for one in records] == [line.content for line in LINES]
    assert records[-1].offset > len(LINES)  # the marks have places too


@pytest.mark.slow
def test_each_decision_comes_over_kills_of_run_and_publisher(broker: KafkaBroker, tmp_path: Path) -> None:
    seed = 11
    rng = random.Random(seed)
    out = tmp_path / "out"
    commands = [
        htfi("run", "--out", out, "--plain", "--outputs", "jsonl", "--pace", "50000000"),
        htfi("publish", out, "--to", f"{broker.url}/killed?{PLAIN}", "--stay"),
    ]

    def start(which: int) -> "subprocess.Popen[bytes]":
        return forked.Popen(commands[which], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    processes = [start(0), start(1)]
    num_killed = 0
    while num_killed < 10:
        time.sleep(rng.uniform(0.5, 2.0))
        which = rng.randrange(2)
        processes[which].send_signal(signal.SIGKILL)
        processes[which].wait()
        processes[which] = start(which)
        num_killed += 1
    assert processes[0].wait(300) == 0
    processes[1].send_signal(signal.SIGKILL)
    processes[1].wait()
    forked.run([*commands[1][:-1]], check=True, capture_output=True, timeout=120)
    seen = -1
    taken: list[bytes] = []
    for record in broker.records("killed"):  # as a consumer reads: what is not greater was there already
        index = int(dict(record.headers)["Htfi-Index"])
        if index > seen:
            assert index == seen + 1, f"seed {seed}"
            seen = index
            taken.append(record.value + b"\n")
    assert b"".join(taken) == (out / "decisions.jsonl").read_bytes(), f"seed {seed}"
