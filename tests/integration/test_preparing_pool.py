"""Children share what is to be prepared; the run goes on without those that end, hang or never start."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checks import sooner_than
from htfi.adapters.preparing import pool as module
from htfi.adapters.preparing.pool import PreparingPool, SharedPart

ECHO = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
def answers_of():  # the pipe to the run, which is no longer descriptor 1
    return next(fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")
                and os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"))
from htfi.adapters.preparing.process import serve
def open_work(start):
    def work(request):
        if b"die" in request:
            os._exit(3)
        if b"hang" in request:
            time.sleep(60)
        if b"slow" in request:
            time.sleep(0.2)
        if b"print" in request:
            print("a library's line")
            os.write(1, b"a line from C\\n")
        if b"garble" in request:
            os.write(answers_of(), bytes(range(64, 128)))
        if b"alter" in request:
            os.write(answers_of(), b"\\x03\\0\\0\\0\\1\\2\\3\\4abc")
        return start + request + f" of {os.getpid()}".encode()
    return work
serve(open_work)
"""


class Word(SharedPart):
    def __init__(self, word: bytes) -> None:
        super().__init__()
        self.word = word

    @property
    def said(self) -> bytes | None:
        """What was answered, without who did."""
        return None if self.answer is None else self.answer.split(b" of ")[0]

    @property
    def pid(self) -> int:
        assert self.answer is not None
        return int(self.answer.split(b" of ")[1])


Start = Callable[..., PreparingPool[Word]]


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def started(told: list[str]) -> Iterator[Start]:
    opened: list[PreparingPool[Word]] = []

    def start(num: int = 1, command: list[str] | None = None) -> PreparingPool[Word]:
        echo = command or [sys.executable, "-c", ECHO]
        pool = PreparingPool[Word](echo, b">", num, lambda part, _: part.word, told.append)
        opened.append(pool)
        await_ready(pool)
        return pool

    yield start
    for pool in opened:
        pool.close()


def await_ready(pool: PreparingPool[Word]) -> None:
    until_s = time.monotonic() + 20.0
    while not pool.is_ready and time.monotonic() < until_s:
        time.sleep(0.01)


def put(pool: PreparingPool[Word], *words: bytes) -> list[Word]:
    parts = [Word(word) for word in words]
    for part in parts:
        pool.put(part)
    return parts


def finish(pool: PreparingPool[Word], parts: list[Word]) -> list[bytes | None]:
    """What children answer; None for what waits again, which is then claimed."""
    for part in parts:
        while part.answer is None and not pool.claim(part):
            pool.wait(part)
    return [part.said for part in parts]


def test_each_part_is_answered_once_whichever_child_has_it(started, told) -> None:
    pool = started(2)
    words = [b"slow"] * 2 + [str(number).encode() for number in range(50)]
    parts = put(pool, *words)
    while pool._waiting:
        time.sleep(0.01)
    assert finish(pool, parts) == [b">" + word for word in words]
    assert len({part.pid for part in parts}) == 2
    assert told == []


def test_who_asked_takes_what_no_child_has(started) -> None:
    pool = started()
    slow, then, third, fourth = put(pool, b"slow", b"then", b"third", b"fourth")
    assert not pool.claim(slow)
    assert pool.claim(fourth)
    assert pool.claim_next() is third  # two are with the child
    assert pool.claim_next() is None
    assert finish(pool, [slow, then]) == [b">slow", b">then"]


def test_the_work_of_a_killed_child_is_done_by_another(started, told) -> None:
    pool = started(2)
    first = put(pool, b"a", b"b", b"slow", b"slow", b"slow", b"slow")
    pool.wait(first[0])
    os.kill(first[0].pid, signal.SIGKILL)
    last = put(pool, *(b"%d" % number for number in range(20)))
    while pool._waiting or not told:
        time.sleep(0.01)
    assert finish(pool, [*first, *last]) == [b">" + part.word for part in [*first, *last]]
    assert first[0].pid not in {part.pid for part in last}
    assert told == ["a process that reads news ahead ended; the run reads its news without it"]


def test_what_a_child_did_not_answer_waits_again_when_it_ends(started, told) -> None:
    pool = started()
    parts = put(pool, b"before", b"die", b"after", b"last")
    assert finish(pool, parts) == [b">before", None, None, None]
    assert pool.has_failed
    assert len(told) == 1


def test_what_is_forgotten_does_not_come_back(started) -> None:
    pool = started()
    dying, _ = put(pool, b"slow die", b"forgotten")
    pool.clear()
    (wanted,) = put(pool, b"wanted")
    pool.wait(dying)
    assert pool.claim_next() is wanted
    assert pool.claim_next() is None


def test_what_a_library_prints_is_no_answer(started, told) -> None:
    pool = started()
    assert finish(pool, put(pool, b"print")) == [b">print"]
    assert told == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    ("word", "why"), [(b"garble", "sent a frame of"), (b"alter", "does not match its checksum")]
)
def test_an_answer_that_is_no_frame_ends_the_child(started, told, word: bytes, why: str) -> None:
    pool = started()
    assert finish(pool, put(pool, word)) == [None]
    assert pool.has_failed
    assert len(told) == 1
    assert why in told[0]


def test_a_child_that_hangs_is_given_up(started, told, monkeypatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.3)
    pool = started()
    with sooner_than(60.0):  # that the child hangs
        assert finish(pool, put(pool, b"hang", b"then")) == [None, None]
    assert len(told) == 1
    assert "did not answer" in told[0]


def test_a_command_that_does_not_exist_costs_a_line_a_child(started, told) -> None:
    pool = started(2, ["/no/such/program"])
    assert pool.has_failed
    assert finish(pool, put(pool, b"word")) == [None]
    assert len(told) == 2
    assert "does not start" in told[0]


def test_children_end_with_their_input(started, told) -> None:
    pool = started(2)
    parts = put(pool, *[b"slow"] * 5)
    processes = [child.process._child for child in pool._children]
    pool.close()
    assert [process.returncode for process in processes] == [0, 0]
    assert [pool.claim_next() for _ in parts] == parts  # those that are gone are not waited for
    assert told == []


def is_running(pid: int) -> bool:
    """A process that ended may not have been waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


OWNER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without it
from htfi.adapters.preparing.pool import PreparingPool
pool = PreparingPool([sys.executable, "-c", sys.argv[1]], b">", 2, lambda part, child: b"", print)
while not pool.is_ready:
    time.sleep(0.01)
print(*(child.process._child.pid for child in pool._children), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_children_end_when_their_owner_does(sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, ECHO], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        owner.send_signal(sent)
        owner.wait()
        with sooner_than(20.0):
            while any(map(is_running, pids)):
                time.sleep(0.02)
