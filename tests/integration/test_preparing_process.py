"""A child that prepares items answers in their order; a run goes on without one that ends, hangs or never starts."""

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from checks import sooner_than
from htfi.adapters.preparing import process as module
from htfi.adapters.preparing.process import PreparingProcess

ECHO = """
import os, time
def answers_of():  # the pipe to the run, which is no longer descriptor 1
    return next(fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")
                and os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"))
from htfi.adapters.preparing.process import serve
def open_work(start):
    def work(items):
        if b"die" in items:
            os._exit(3)
        if b"hang" in items:
            time.sleep(60)
        if b"print" in items:
            print("a library's line")
            os.write(1, b"a line from C\\n")
        if b"garble" in items:
            os.write(answers_of(), bytes(range(64, 128)))
        if b"alter" in items:
            os.write(answers_of(), b"\\x03\\0\\0\\0\\1\\2\\3\\4abc")
        return [start + item for item in items]
    return work
serve(open_work, 4)
"""


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def started(told: list[str]) -> Iterator[Callable[..., PreparingProcess]]:
    opened: list[PreparingProcess] = []

    def start(command: list[str] | None = None) -> PreparingProcess:
        child = PreparingProcess(command or [sys.executable, "-c", ECHO], b">", told.append)
        opened.append(child)
        return child

    yield start
    for child in opened:
        child.close()


def await_ready(child: PreparingProcess) -> None:
    until_s = time.monotonic() + 20.0
    while not child.is_ready and not child.has_failed and time.monotonic() < until_s:
        time.sleep(0.01)


def test_answers_come_in_the_order_of_the_items(started, told) -> None:
    child = started()
    await_ready(child)
    items = [str(number).encode() for number in range(50)]
    for item in items:
        child.send(item)
    assert [child.take() for _ in items] == [b">" + item for item in items]
    assert told == []


def test_a_child_that_ends_is_told_of_once_and_nothing_waits_for_it(started, told) -> None:
    child = started()
    await_ready(child)
    child.send(b"die")
    assert child.take() is None
    child.send(b"after")
    assert child.take() is None
    assert child.has_failed
    assert told == [
        "the process that reads news ahead ended; news is read in the run's own process",
    ]


def test_what_a_library_prints_is_no_answer(started, told) -> None:
    child = started()
    await_ready(child)
    child.send(b"print")
    assert child.take() == b">print"
    assert told == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    ("item", "why"), [(b"garble", "sent a frame of"), (b"alter", "does not match its checksum")]
)
def test_an_answer_that_is_no_frame_ends_the_child(started, told, item: bytes, why: str) -> None:
    child = started()
    await_ready(child)
    child.send(item)
    assert child.take() is None
    assert child.take() is None
    assert len(told) == 1
    assert why in told[0]


def test_a_child_that_hangs_is_given_up(started, told, monkeypatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.3)
    child = started()
    await_ready(child)
    child.send(b"hang")
    with sooner_than(60.0):  # that the child hangs
        assert child.take() is None
        assert child.take() is None
    assert len(told) == 1
    assert "did not answer" in told[0]


def test_a_command_that_does_not_exist_costs_a_line(started, told) -> None:
    child = started(["/no/such/program"])
    assert child.has_failed
    assert child.take() is None
    assert len(told) == 1
    assert "does not start" in told[0]


def test_the_child_ends_with_its_input(started, told) -> None:
    child = started()
    await_ready(child)
    child.close()
    assert child._child is not None
    assert child._child.returncode == 0
    assert told == []
