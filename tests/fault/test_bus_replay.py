"""What a bus brought makes the same record as a file of the same rows, and as what the inbox holds of it."""

import json
import random
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import forked
from kafka_broker import KafkaBroker
from nats_server import NatsServer

BEGIN = datetime(2024, 3, 1, 14, tzinfo=UTC)
NUM_TICKS = 700  # 35 minutes


def run(source: str, out: Path, bar: str = "1m") -> list[str]:
    return [
        *forked.HTFI, "run", source, "--bar", bar, "--out", str(out), "--plain",
        "--outputs", "jsonl",
    ]  # fmt: skip


def record(source: str, out: Path, bar: str = "1m") -> bytes:
    """The decisions with their leaves, and the root that is signed."""
    forked.run(run(source, out, bar), check=True, capture_output=True, timeout=60)
    return (out / "decisions.jsonl").read_bytes()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], bytes]:
    """Ticks of a recorded day, and the record of their file."""
    rng, price, rows = random.Random(1), 100.0, []
    for number in range(NUM_TICKS):
        price *= 1 + rng.gauss(0, 1e-4)
        at = BEGIN + timedelta(seconds=3 * number)
        row = {"ts": at.isoformat(), "symbol": "A", "price": round(price, 4), "size": 1}
        rows.append(json.dumps(row).encode())
    folder = tmp_path_factory.mktemp("day")
    (folder / "ticks.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    return rows, record(str(folder / "ticks.jsonl"), folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("bus", ["nats", "kafka"])
def test_a_recorded_day_gives_the_same_bytes_as_its_file(
    bus: str, day: tuple[list[bytes], bytes], tmp_path: Path
) -> None:
    rows, expected = day
    assert expected.count(b"\n") > 10
    if bus == "nats":
        with NatsServer(tmp_path / "server") as server:
            server.make_stream("ticks", "of.>")
            server.send("of.A", rows)
            assert record(f"{server.url}/ticks?until=now&stamp=row", tmp_path / "out") == expected
    else:
        with KafkaBroker() as broker:
            broker.make_topic("ticks")
            broker.send("ticks", rows)
            assert record(f"{broker.url}/ticks?until=now&stamp=row", tmp_path / "out") == expected


@pytest.mark.slow
def test_a_live_day_gives_the_same_bytes_from_its_inbox(tmp_path: Path) -> None:
    """Times of arrival are in the inbox: a run that was killed and resumed, and one from its inbox alone, are equal."""
    out, again = tmp_path / "out", tmp_path / "again"
    with NatsServer(tmp_path / "server") as server:
        server.make_stream("ticks", "of.>")
        command = run(f"{server.url}/ticks", out, "1s")
        for _ in range(2):
            child = forked.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for number in range(140):
                server.send("of.A", [json.dumps({"symbol": "A", "price": 100 + number % 7}).encode()])
                time.sleep(0.1)
            child.send_signal(signal.SIGKILL)
            child.wait()
        child = forked.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3.0)
        child.send_signal(signal.SIGINT)
        child.wait(30)
        (again / "inbox").mkdir(parents=True)
        shutil.copy(out / "inbox" / "ticks.jsonl", again / "inbox")
        whole = record(f"{server.url}/ticks?until=now", again, "1s")
    live = (out / "decisions.jsonl").read_bytes()
    assert whole.count(b"\n") > 4
    assert live.startswith(whole)  # while nothing came time went on, and more bars closed
