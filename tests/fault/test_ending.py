"""A command that is told to end does, by itself and with the right status, whatever in it or beside it is stuck."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from htfi.apps.cli.main import cli

HTFI = [*forked.HTFI]
CLOUD = [*HTFI, "cloud", "--insecure-loopback", "--plain", "--name"]
END_S = 100.0  # a process that has not ended by then never will
STACKS_S = 30.0  # a process that should have ended by then tells what each of its threads does
FINISHED = "has finished its requests and stops"


class Process:
    """A command whose standard output is a pipe that this test holds, and reads when it likes."""

    def __init__(self, command: Sequence[str], **env: str) -> None:
        reads, self.writes = os.pipe()
        self.out = os.fdopen(reads, "rb", buffering=0)
        self.process = forked.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self.writes,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )

    def line(self) -> str:
        told = b""
        while not told.endswith(b"\n"):
            if select.select([self.out], [], [], 0.1)[0]:
                told += self.out.read(1)
            else:  # the test holds the pipe open itself, so that its end says nothing
                assert self.process.poll() is None, f"it ended: {self.process.communicate()[1].decode()}"
        return told.decode()

    def fill(self) -> None:
        """Leave no room in the pipe: a descriptor of its own keeps the child's as it is."""
        filling = os.open(f"/proc/self/fd/{self.writes}", os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(filling, b"x" * size)
        os.close(filling)

    def end(self, *signals: int) -> tuple[int, str]:
        """Its status, and what it said on standard error, after these signals."""
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.2)
        _, said = self.process.communicate(timeout=END_S)
        return self.process.returncode, said.decode()

    def end_or_show_stacks(self, number: int) -> tuple[int, str]:
        """As `end`; one that is late ends with the stacks of its threads, for which PYTHONFAULTHANDLER asks."""
        self.process.send_signal(number)
        try:
            self.process.wait(timeout=STACKS_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
        return self.end()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate()
        self.out.close()
        os.close(self.writes)


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def start(closing: contextlib.ExitStack, command: Sequence[str], **env: str) -> Process:
    process = Process(command, **env)
    closing.callback(process.close)
    return process


def free_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def pair(closing: contextlib.ExitStack) -> list[Process]:
    """Two clouds that watch each other."""
    ports = [free_port(), free_port()]
    names = ["cloud1", "cloud2"]
    return [
        start(
            closing,
            [*CLOUD, name, "--listen", f"127.0.0.1:{port}", "--cloud", f"{other}=127.0.0.1:{beside}"],
            HTFI_CLUSTER__DRAIN_S="5",
        )
        for name, port, other, beside in zip(names, ports, names[::-1], ports[::-1], strict=True)
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_cloud_whose_view_nobody_reads_drains(closing: contextlib.ExitStack) -> None:
    cloud = start(closing, [*CLOUD, "cloud1", "--listen", "127.0.0.1:0"], PYTHONFAULTHANDLER="1")
    assert "is ready on" in cloud.line()
    cloud.fill()
    time.sleep(2.5)  # a line of the view is due every two seconds
    assert cloud.end_or_show_stacks(signal.SIGTERM) == (0, "")


@pytest.mark.slow
def test_idle_clouds_drain_though_a_peer_never_closes_its_stream(closing: contextlib.ExitStack) -> None:
    first, second = pair(closing)
    for cloud in (first, second):
        assert "is ready on" in cloud.line()
    while "1 streams" not in first.line() and "2 streams" not in first.line():
        pass  # a line of the view every two seconds
    second.process.send_signal(signal.SIGSTOP)
    assert first.end(signal.SIGTERM)[0] == 0
    second.process.send_signal(signal.SIGCONT)
    assert second.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_clouds_end_whenever_they_are_told(closing: contextlib.ExitStack, seed: int) -> None:
    clouds = pair(closing)
    time.sleep(random.Random(seed).uniform(0.0, 3.0))
    for cloud in clouds:
        cloud.process.send_signal(signal.SIGTERM)
    statuses = [cloud.end()[0] for cloud in clouds]
    assert set(statuses) <= {0, -signal.SIGTERM}  # the latter before it has begun to serve


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_run_whose_decisions_nobody_reads_stops_when_it_is_told_to(
    closing: contextlib.ExitStack, tmp_path: Path
) -> None:
    folder = str(tmp_path / "run")
    run = start(closing, [*HTFI, "run", "--stdout", "--out", folder])
    run.line()  # of decisions, of which nobody reads more
    run.fill()
    time.sleep(0.5)
    status, said = run.end(signal.SIGTERM)
    assert status == 130
    assert "not read from standard output" in said
    assert said.splitlines()[-1] == "htfi: stopped; run the same command again to resume"
    assert CliRunner().invoke(cli, ["ledger", "verify", folder], catch_exceptions=False).exit_code == 0


STUCK = """
import ctypes, sys, threading, time
from htfi.apps.cli import signals
signals._KERNEL_MARGIN_S = 1.0
def end(): {end}
with signals.graceful_shutdown(end, 1.0, "it"):
    print("ready", flush=True)
    {then}
"""
LOCK = "lock = threading.Lock(); lock.acquire(); lock.acquire()"
EVERY_SIGNAL = "ctypes.create_string_buffer(bytes([255]) * 128)"
WAYS = {  # what it does when it is told to end, what it does until then, its status
    "a lock": ("pass", LOCK, 1),
    "a lock in the handler": (LOCK, "time.sleep(1e6)", 1),
    "a call in C": ("pass", f"ctypes.CDLL(None).sigsuspend({EVERY_SIGNAL})", 1),
    "the interpreter": ("ctypes.PyDLL(None).sleep(1000)", "time.sleep(1e6)", -signal.SIGALRM),
    "a thread at exit": (
        "pass",
        "threading.Thread(target=time.sleep, args=(1e6,)).start(); time.sleep(1.0)",
        1,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_stuck_is_ended(closing: contextlib.ExitStack, way: str) -> None:
    end, then, wanted = WAYS[way]
    process = start(closing, [sys.executable, "-c", STUCK.format(end=end, then=then)])
    assert process.line() == "ready\n"
    status, said = process.end(signal.SIGTERM)
    assert status == wanted
    if wanted == 1:
        assert said == "htfi: it did not stop within 1 s and was ended; what is recorded is safe\n"


@pytest.mark.parametrize(
    ("first", "second"), [("SIGTERM", "SIGTERM"), ("SIGTERM", "SIGINT"), ("SIGINT", "SIGTERM")]
)
def test_a_second_signal_ends_at_once(closing: contextlib.ExitStack, first: str, second: str) -> None:
    script = STUCK.format(end="pass", then=LOCK).replace("(end, 1.0", "(end, 1e6")
    process = start(closing, [sys.executable, "-c", script])
    assert process.line() == "ready\n"
    status, said = process.end(signal.Signals[first], signal.Signals[second])
    assert status == 128 + signal.Signals[second]
    assert said == "htfi: it received a second signal and was ended; what is recorded is safe\n"


def test_what_is_not_told_to_end_goes_on(closing: contextlib.ExitStack) -> None:
    script = STUCK.format(end="pass", then="pass") + "time.sleep(1.5); print(threading.active_count())"
    process = start(closing, [sys.executable, "-c", script])
    assert process.line() == "ready\n"
    assert process.line() == "1\n"
    assert process.end() == (0, "")
