"""The draft of a folder in a process of its own: the same answers and blocks as with a draft in this one."""

import os
import time
from pathlib import Path

import pytest

from htfi.adapters.drafting.process import DraftProcess, DraftTimeouts
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, ControlToken, FreeTextField, GenerationRequest, PlainText
from htfi.wiring.models.draft_process import core_for_draft, open_draft_process
from htfi.wiring.models.loading import open_model
from random_pair import write_random_pair

CONFIG = DecodingConfig(batch_bytes=2**24, cache_bytes=2**20, strategy="outcomes")
PATIENT = DraftTimeouts(block_ms=60_000.0, hang_ms=60_000.0)


def pid_of(process: DraftProcess) -> int:
    """Of the child, −1 if there is none."""
    return process._running.process.pid if process._running else -1


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    target, _ = write_random_pair(tmp_path_factory.mktemp("pair"))
    return open_model(target, "fp32")  # its own draft: the blocks are long


def _author(opened, strategy, length=4):
    return LocalGenerator(
        opened.network,
        opened.tokenizer,
        "x",
        CONFIG,
        strategy=strategy,
        length_planner=FixedLengthPlanner(length),
    )


def _requests(num):
    prompt = (ControlToken("s"), ControlToken("news"), PlainText("a plant was shut"))
    return [
        GenerationRequest(prompt, (FreeTextField("words", 20, ControlToken("/s")),), seed, 1.0)
        for seed in range(num)
    ]


def test_a_draft_in_a_process_of_its_own_writes_the_blocks_of_chain_speculation(pair):
    told = []
    chained = _author(pair, ChainStrategy(KVSessions(pair.draft_network, CONFIG)))
    with open_draft_process(pair, CONFIG, told.append, PATIENT) as process:
        process.await_ready()
        strategy = OutcomeStrategy(process)
        ahead = _author(pair, strategy)
        for requests in ([request] for request in _requests(4)):
            (expected,), (found,) = chained.write(requests), ahead.write(requests)
            assert isinstance(found, Completion)
            assert found.tokens == expected.tokens
            assert found.rounds == expected.rounds
        side_by_side = _requests(7)
        assert [one.rounds for one in ahead.write(side_by_side)] == [
            one.rounds for one in chained.write(side_by_side)
        ]
    assert strategy.hits.hits + strategy.hits.misses > 10
    assert told == []


def test_the_process_ends_with_its_channel_and_leaves_nothing_behind(pair):
    shared = _shared_memory()
    process = open_draft_process(pair, CONFIG, [].append)
    process.await_ready()
    pid = pid_of(process)
    process.close()
    assert pid_of(process) == -1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert _shared_memory() <= shared


def _shared_memory() -> set[Path]:
    folder = Path("/dev/shm")
    return set(folder.iterdir()) if folder.is_dir() else set()


def test_a_draft_that_cannot_be_opened_says_why_in_one_line(tmp_path):
    _, draft = write_random_pair(tmp_path)
    gone = open_model(draft, "int8")
    (draft / "model.safetensors").unlink()
    told = []
    with (
        open_draft_process(gone, CONFIG, told.append) as process,
        pytest.raises(DependencyUnavailable, match=r"model\.safetensors"),
    ):
        process.await_ready()
    assert len(told) == 1
    assert "\n" not in told[0]


def test_nothing_is_done_while_nothing_is_asked(pair):
    with open_draft_process(pair, CONFIG, [].append) as process:
        process.await_ready()
        _author(pair, OutcomeStrategy(process)).write(_requests(1))
        time.sleep(0.3)
        before_s = _cpu_s(pid_of(process))
        time.sleep(0.5)
        assert _cpu_s(pid_of(process)) - before_s <= 0.05


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("ours", "num_cores", "expected"),
    [([0, 1], 2, 1), ([0], 2, 1), ([1], 2, 0), ([0], 1, -1), ([2, 3, 5], 8, 5)],
)
def test_the_draft_keeps_to_another_core_where_there_is_one(ours, num_cores, expected):
    assert core_for_draft(ours, num_cores) == expected
