"""A draft's process that dies, hangs, is late or writes nonsense: the answer is right and in time, one line says so."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from htfi.adapters.drafting.process import DraftProcess, DraftTimeouts
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.domain.errors import DependencyUnavailable
from outcome_pair import author, chain, requests, written

CHILD = [sys.executable, str(Path(__file__).parents[1] / "draft_child.py")]
QUICK = DraftTimeouts(block_ms=30.0, hang_ms=300.0, first_pause_s=0.2)
PATIENT = DraftTimeouts(block_ms=30_000.0, hang_ms=30_000.0, first_pause_s=0.2)
ASKED = requests(8)


@pytest.fixture(scope="module")
def plain():
    return [one.tokens for one in written(author(None).write(ASKED))]


def started(how: str, told: list[str], patience: DraftTimeouts = QUICK) -> DraftProcess:
    process = DraftProcess([*CHILD, how], told.append, patience)
    process.await_ready()
    return process


def pid_of(process: DraftProcess) -> int:
    """Of the child, −1 if there is none."""
    return process._running.process.pid if process._running else -1


def one_by_one(strategy, upset=None):
    writer, answers = author(strategy), []
    for number, request in enumerate(ASKED):
        if upset is not None:
            upset(number)
        answers += written(writer.write([request]))
    return answers


def tokens(answers):
    return [one.tokens for one in answers]


def test_it_works_ahead_when_nothing_goes_wrong(plain):
    told = []
    with started("works", told, PATIENT) as process:
        strategy = OutcomeStrategy(process)
        answers = one_by_one(strategy)
        assert tokens(answers) == plain
        assert [one.rounds for one in answers] == [
            one.rounds for one in written(author(chain()).write(ASKED))
        ]
    assert told == []


def test_killed_in_the_midst_it_is_missed_by_nobody_and_started_anew(plain):
    told, pids = [], set()
    with started("works", told, PATIENT) as process:

        def kill_once(number):
            pids.add(pid_of(process))
            if number == 3:
                os.kill(pid_of(process), signal.SIGKILL)

        strategy = OutcomeStrategy(process)
        assert tokens(one_by_one(strategy, kill_once)) == plain
        assert len(told) == 1
        assert "has ended" in told[0]
        assert "0.2 s" in told[0]
        time.sleep(0.25)
        process.await_ready()
        assert pid_of(process) not in pids
        seen = strategy.hits.hits + strategy.hits.misses
        assert tokens(one_by_one(strategy)) == plain
        assert strategy.hits.hits + strategy.hits.misses > seen


def test_stopped_in_the_midst_it_is_given_up_and_the_answers_come_in_time(plain):
    told = []
    with started("works", told) as process:
        stopped = pid_of(process)

        def stop_once(number):
            if number == 2:
                os.kill(stopped, signal.SIGSTOP)

        began_s = time.perf_counter()
        strategy = OutcomeStrategy(process)
        assert tokens(one_by_one(strategy, stop_once)) == plain
        while not told and time.perf_counter() < began_s + 20:
            assert tokens(one_by_one(strategy)) == plain
        assert len(told) == 1
        assert "does not answer" in told[0] or "does not read its messages" in told[0]
        with pytest.raises(ProcessLookupError):
            os.kill(stopped, 0)


def test_while_it_is_late_the_author_waits_once_and_not_at_every_round(plain):
    told = []
    with started("late", told, DraftTimeouts(block_ms=30.0, hang_ms=5_000.0)) as process:
        strategy = OutcomeStrategy(process)
        assert tokens(one_by_one(strategy)) == plain
    assert told == []


def test_tokens_that_the_form_does_not_admit_end_it(plain):
    told = []
    with started("nonsense", told, PATIENT) as process:
        assert tokens(one_by_one(OutcomeStrategy(process))) == plain
    assert "invalid tokens" in told[0]
    assert all("\n" not in line for line in told)


def test_a_child_that_cannot_start_says_why_and_pauses_double(plain):
    told, clock = [], [0.0]
    process = DraftProcess(
        [*CHILD, "refuses"], told.append, DraftTimeouts(first_pause_s=1.0), lambda: clock[0]
    )
    with process, pytest.raises(DependencyUnavailable, match="no such draft"):
        process.await_ready()
    assert told == ["the draft process failed: no such draft: answers continue without it; restart in 1 s"]
    with DraftProcess(
        [*CHILD, "refuses"], told.append, DraftTimeouts(first_pause_s=1.0), lambda: clock[0]
    ) as again:
        for _ in range(4):
            while pid_of(again) != -1:
                assert not again.is_up
            clock[0] += 100.0
            assert not again.is_up
        while pid_of(again) != -1:
            assert not again.is_up
    assert [line.split()[-2] for line in told[1:]] == ["1", "2", "4", "8", "16"]


def test_a_program_that_is_not_there_is_told_and_answers_are_plain(plain):
    told = []
    with DraftProcess(["/nowhere/python"], told.append) as process:
        assert tokens(one_by_one(OutcomeStrategy(process))) == plain
    assert "cannot be started" in told[0]


def test_another_strategy_takes_over_while_it_is_away(plain):
    with DraftProcess(["/nowhere/python"], [].append) as process:
        answers = one_by_one(OutcomeStrategy(process, otherwise=chain()))
    assert tokens(answers) == plain
    assert any(rounds.drafted for one in answers for rounds in one.rounds)


def test_it_ends_when_the_author_is_killed():
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from htfi.adapters.drafting.process import DraftProcess\n"
        "p = DraftProcess([*sys.argv[2:], 'works'], print); p.await_ready()\n"
        "print(p._running.process.pid, flush=True); time.sleep(60)\n"
    )
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", code, tests, *CHILD], stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    until_s = time.perf_counter() + 20
    while _lives(child) and time.perf_counter() < until_s:
        time.sleep(0.02)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # ended, and not yet asked about by whoever adopted it


def test_forgotten_it_ends_and_is_not_left_behind():
    process = started("works", [])
    child = pid_of(process)
    del process
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
