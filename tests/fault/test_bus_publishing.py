"""`htfi publish` on NATS: a stream holds each entry of the ledger once, in its order, whatever is killed."""

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import forked
from htfi.adapters.nats.decision_bus import subject_of
from htfi.domain.errors import InvalidInput
from htfi.wiring.bus import open_decision_bus
from htfi.wiring.service.publishing import publish_record
from nats_server import NatsServer

NUM_KILLED = 20


def htfi(*words: object) -> list[str]:
    return [*forked.HTFI, *map(str, words)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that has ended."""
    folder = tmp_path_factory.mktemp("run")
    rng = random.Random(1)
    bars = ["date,symbol,close"]
    bars += [
        f"2024-{at // 28 + 1:02d}-{at % 28 + 1:02d},BRK.B/x y>*,{100 + rng.random():.3f}" for at in range(120)
    ]
    (folder / "prices.csv").write_text("\n".join(bars) + "\n")
    command = htfi("run", folder / "prices.csv", "--out", folder / "out", "--plain", "--outputs", "jsonl")
    forked.run(command, check=True, capture_output=True)
    return folder / "out"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as running:
        yield running


def publish(run: Path, url: str) -> tuple[int, list[str]]:
    """How many entries the bus holds, and the lines for a person."""
    lines: list[str] = []
    num = publish_record(
        run, open_decision_bus(url), stays=False, stopping=threading.Event(), notify=lines.append
    )
    return num, lines


def published(server: NatsServer, stream: str) -> bytes:
    return b"".join(content + b"\n" for _, _, content in server.messages(stream))


def test_each_entry_is_published_once_with_its_place(run: Path, server: NatsServer) -> None:
    whole = (run / "decisions.jsonl").read_bytes()
    num = whole.count(b"\n")
    for _ in range(2):
        assert publish(run, f"{server.url}/D?prefix=acme.decisions") == (num, [])
    assert published(server, "D") == whole
    messages = server.messages("D")
    assert {subject for subject, _, _ in messages} == {"acme.decisions.BRK%2EB%2Fx%20y%3E%2A.1d"}
    assert [headers["Htfi-Index"] for _, headers, _ in messages] == [str(at) for at in range(num)]
    assert messages[0][1]["Htfi-Leaf-Hash"] == json.loads(messages[0][2])["leaf_hash"]


def test_a_stream_of_another_ledger_is_refused(run: Path, server: NatsServer) -> None:
    server.make_stream("D", "x.>")
    server.send("x.y", [b"something else"])
    with pytest.raises(InvalidInput, match="something else than this ledger"):
        publish(run, f"{server.url}/D")


def test_a_line_that_no_message_holds_leaves_a_notice_in_its_place(run: Path, tmp_path: Path) -> None:
    with NatsServer(tmp_path / "small", settings="max_payload: 4096\n") as server:
        num, _ = publish(run, f"{server.url}/D")
        lines = (run / "decisions.jsonl").read_bytes().splitlines()
        messages = server.messages("D")
    large = [at for at, line in enumerate(lines) if len(line) > 3072]
    assert num == len(messages) == len(lines)
    assert large
    first = json.loads(lines[large[0]])
    assert json.loads(messages[large[0]][2]) == {
        "index": large[0],
        "leaf_hash": first["leaf_hash"],
        "too_large": len(lines[large[0]]),
    }


def test_a_full_stream_is_waited_for(run: Path, server: NatsServer) -> None:
    room = {"name": "D", "subjects": ["htfi.decisions.>"], "discard": "new"}
    server.run(lambda js: js.add_stream(max_bytes=100_000, **room))
    stopping, lines = threading.Event(), []
    thread = threading.Thread(
        target=publish_record,
        args=(run, open_decision_bus(f"{server.url}/D")),
        kwargs={"stays": False, "stopping": stopping, "notify": lines.append},
    )
    thread.start()
    until_s = time.monotonic() + 20
    while not lines and time.monotonic() < until_s:
        time.sleep(0.01)
    assert "maximum bytes exceeded" in lines[0]
    server.run(lambda js: js.update_stream(max_bytes=-1, **room))
    thread.join(30)
    assert not thread.is_alive()
    assert "the bus is back" in lines[1]
    assert published(server, "D") == (run / "decisions.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("symbol", "interval", "subject"),
    [
        ("ACME", "1d", "p.ACME.1d"),
        ("EUR/USD", "60s", "p.EUR%2FUSD.60s"),
        ("a.b c>*", "1m", "p.a%2Eb%20c%3E%2A.1m"),
        ("é", "1m", "p.%C3%A9.1m"),
        ("", "", "p.deleted"),
    ],
)
def test_a_symbol_is_one_token_of_the_subject(symbol: str, interval: str, subject: str) -> None:
    assert subject_of("p", symbol, interval) == subject


@pytest.mark.slow
def test_each_decision_comes_once_over_kills_of_run_publisher_and_server(
    server: NatsServer, tmp_path: Path
) -> None:
    seed = 11
    rng = random.Random(seed)
    out = tmp_path / "out"
    commands = [
        htfi("run", "--out", out, "--plain", "--outputs", "jsonl", "--pace", "50000000"),
        htfi("publish", out, "--to", f"{server.url}/D", "--stay"),
    ]

    def start(which: int) -> "subprocess.Popen[bytes]":
        return forked.Popen(commands[which], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    processes = [start(0), start(1)]
    num_killed = 0
    while num_killed < NUM_KILLED:
        time.sleep(rng.uniform(0.3, 1.8))
        which = rng.randrange(3)
        if which == 2:
            server.kill()
            server.start()
        else:
            processes[which].send_signal(signal.SIGKILL)
            processes[which].wait()
            processes[which] = start(which)
        num_killed += 1
    assert processes[0].wait(300) == 0
    processes[1].send_signal(signal.SIGKILL)
    processes[1].wait()
    forked.run([*commands[1][:-1]], check=True, capture_output=True, timeout=120)
    assert published(server, "D") == (out / "decisions.jsonl").read_bytes(), f"seed {seed}"
